//! Who asks: users, passwords, and the two ways in which clients send them.
//!
//! Passwords are kept as Argon2 hashes. Checking one takes tens of milliseconds of a core on purpose, so it happens off
//! the network threads and [`CONCURRENT_CHECKS`] at a time, in the order of arrival; who waits for longer than a request may take is told to try
//! again, and who has gone does not keep its place. A password that was right once is remembered as a quick hash
//! under a key of this process, so that HTTP clients, which send theirs with every request, do not pay each time.
//! Unknown names cost as much as known ones.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use argon2::password_hash::rand_core::{OsRng, RngCore};
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::backend::Failure;
use crate::catalogue;
use crate::config::ServerConfig;
use crate::tenants::{Asker, Tenants};

/// Passwords checked at a time. Each takes a core and about 20 MiB while it lasts; attackers must not get more.
const CONCURRENT_CHECKS: usize = 2;

/// Longest user name or password that is looked at, in bytes.
const CREDENTIAL_BYTES_MAX: usize = 1024;

/// Makes the hash of a password that [`crate::UserConfig`] and users files hold: Argon2id with its recommended costs.
pub fn hash_password(password: &str) -> Result<String, String> {
    let salt = SaltString::generate(&mut OsRng);
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).map_err(|error| format!("the password cannot be hashed: {error}"))
}

/// A name and a password as a client sent them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub name: String,
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads a SASL PLAIN message (RFC 4616), Base64 encoded: authorization id, NUL, name, NUL, password.
    pub fn from_sasl(text: &str) -> Option<Credentials> {
        let message = String::from_utf8(decode_base64(text)?).ok()?;
        let mut parts = message.split('\0');
        let (authorization, name, password) = (parts.next()?, parts.next()?, parts.next()?);
        // Acting for somebody else is not offered, so the authorization id is absent or the name itself.
        let plain = parts.next().is_none() && (authorization.is_empty() || authorization == name);
        (plain && !name.is_empty()).then(|| Credentials { name: name.into(), password: password.into() })
    }

    /// Reads the value of an `Authorization` header, `Basic` scheme (RFC 7617).
    pub fn from_basic(header: &str) -> Option<Credentials> {
        let (scheme, encoded) = header.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let text = String::from_utf8(decode_base64(encoded.trim())?).ok()?;
        let (name, password) = text.split_once(':')?;
        (!name.is_empty()).then(|| Credentials { name: name.into(), password: password.into() })
    }
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    if text.len() > CREDENTIAL_BYTES_MAX * 4 {
        return None;
    }
    [BASE64, BASE64URL, BASE64_NOPAD, BASE64URL_NOPAD].iter().find_map(|base64| base64.decode(text.as_bytes()).ok())
}

/// The users a server knows.
#[derive(Debug)]
pub(crate) struct Users {
    hashes: HashMap<String, String>,
    /// Who asks, by name.
    askers: HashMap<String, Asker>,
    /// For whom their queries run.
    pub tenants: Arc<Tenants>,
    /// A hash no password is known for, checked when the name is unknown.
    decoy: String,
    /// Key of the quick hashes below.
    key: [u8; 32],
    /// Quick hashes of passwords that were right, by name. The lock protects the map alone; nothing is locked under it.
    known: Mutex<HashMap<String, [u8; 32]>>,
    checks: Arc<Semaphore>,
}

impl Users {
    /// The users of a configuration; `None` when there are none, so that nobody has to authenticate.
    pub fn from_config(config: &ServerConfig) -> Result<Option<Arc<Users>>, String> {
        let mut hashes = HashMap::new();
        let mut add = |name: &str, hash: &str, place: &dyn Fn() -> String| {
            PasswordHash::new(hash).map_err(|error| {
                format!("{}: the hash of user `{name}` is not an Argon2 PHC string: {error}", place())
            })?;
            match hashes.insert(name.to_owned(), hash.to_owned()) {
                None => Ok(()),
                Some(_) => Err(format!("{}: user `{name}` is listed twice", place())),
            }
        };
        for user in &config.users {
            add(&user.name, &user.password_hash, &|| "users".into())?;
        }
        if let Some(path) = &config.users_file {
            for (line, name, hash) in read_users_file(path)? {
                add(&name, &hash, &|| format!("{}, line {line}", path.display()))?;
            }
        }
        if hashes.is_empty() {
            return match &config.users_file {
                None if !config.tenants.is_empty() || !config.administrators.is_empty() => {
                    Err("`tenants` and `administrators` are about users, and there are none; add `users`".into())
                }
                None => Ok(None),
                Some(path) => Err(format!("{} lists no user; nobody could connect", path.display())),
            };
        }
        let mut names: Vec<&str> = hashes.keys().map(String::as_str).collect();
        names.sort_unstable();
        let (tenants, askers) = Tenants::of_users(config, &names)?;
        let mut key = [0; 32];
        OsRng.fill_bytes(&mut key);
        let decoy = hashes.values().next().cloned().unwrap_or_default();
        let checks = Arc::new(Semaphore::new(CONCURRENT_CHECKS));
        Ok(Some(Arc::new(Users {
            hashes,
            askers,
            tenants: Arc::new(tenants),
            decoy,
            key,
            known: Mutex::default(),
            checks,
        })))
    }

    /// Who asks, if name and password belong together. Takes a while the first time.
    ///
    /// Errors: so many others are to be checked that there was no time for this one within `patience`.
    pub async fn check(
        self: Arc<Self>,
        credentials: Credentials,
        patience: Option<Duration>,
    ) -> Result<Option<Asker>, Failure> {
        if credentials.name.len() > CREDENTIAL_BYTES_MAX || credentials.password.len() > CREDENTIAL_BYTES_MAX {
            return Ok(None);
        }
        let quick = self.quick_hash(&credentials);
        if quick.is_some() && self.lock_known().get(&credentials.name).copied() == quick {
            return Ok(self.askers.get(&credentials.name).cloned());
        }
        let turn = self.checks.clone().acquire_owned();
        let permit = match patience {
            Some(patience) => timeout(patience, turn).await.map_err(|_| too_many_logins())?,
            None => turn.await,
        };
        let users = self.clone();
        let checked = tokio::task::spawn_blocking(move || {
            // Given back when it is over, also if nobody waits for it any more.
            let _permit = permit.ok()?;
            let hash = users.hashes.get(&credentials.name);
            let parsed = PasswordHash::new(hash.unwrap_or(&users.decoy)).ok()?;
            let right = Argon2::default().verify_password(credentials.password.as_bytes(), &parsed).is_ok();
            (right && hash.is_some()).then_some(credentials.name)
        });
        let Some(name) = checked.await.ok().flatten() else { return Ok(None) };
        if let Some(quick) = quick {
            self.lock_known().insert(name.clone(), quick);
        }
        Ok(self.askers.get(&name).cloned())
    }

    fn lock_known(&self) -> std::sync::MutexGuard<'_, HashMap<String, [u8; 32]>> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Argon2 at its least cost, keyed: some microseconds.
    fn quick_hash(&self, credentials: &Credentials) -> Option<[u8; 32]> {
        let mut output = [0; 32];
        let params = Params::new(Params::MIN_M_COST, 1, 1, Some(output.len())).ok()?;
        let argon = Argon2::new_with_secret(&self.key, Algorithm::Argon2id, Version::V0x13, params).ok()?;
        let salt = format!("ficus:{}", credentials.name);
        // Argon2 wants eight bytes of salt at least.
        let salt = format!("{salt:8}");
        argon.hash_password_into(credentials.password.as_bytes(), salt.as_bytes(), &mut output).ok()?;
        Some(output)
    }
}

fn too_many_logins() -> Failure {
    Failure::new(
        &catalogue::TOO_MANY_REQUESTS,
        "so many passwords are to be checked that there was no time for this one; try again",
    )
}

/// Name and hash with the number of their line.
fn read_users_file(path: &Path) -> Result<Vec<(usize, String, String)>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| match line.split_once(':') {
            Some((name, hash)) if !name.trim().is_empty() => Ok((number, name.trim().into(), hash.trim().into())),
            _ => Err(format!("{}, line {number}: expected `name:hash`", path.display())),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UserConfig;

    fn cheap_hash(password: &str) -> String {
        let params = Params::new(8, 1, 1, None).expect("these are the least costs");
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let salt = SaltString::from_b64("c2FsdHNhbHQ").expect("valid salt");
        argon.hash_password(password.as_bytes(), &salt).expect("hashes").to_string()
    }

    fn users() -> Arc<Users> {
        let user = |name: &str, password: &str| UserConfig { name: name.into(), password_hash: cheap_hash(password) };
        let config = ServerConfig { users: vec![user("anna", "pipe"), user("b", "")], ..ServerConfig::default() };
        Users::from_config(&config).expect("valid").expect("has users")
    }

    #[tokio::test]
    async fn only_the_right_password_is_let_in_again_and_again() {
        let users = users();
        for _ in 0..2 {
            for (name, password, right) in [
                ("anna", "pipe", true),
                ("anna", "Pipe", false),
                ("b", "", true),
                ("b", "x", false),
                ("c", "pipe", false),
            ] {
                let credentials = Credentials { name: name.into(), password: password.into() };
                assert_eq!(users.clone().check(credentials, None).await.unwrap().is_some(), right, "{name}:{password}");
            }
        }
    }

    #[tokio::test]
    async fn who_waits_too_long_is_told_to_try_again_and_who_has_gone_keeps_no_place() {
        let users = users();
        let anna = || Credentials { name: "anna".into(), password: "pipe".into() };
        let others = users.checks.clone().acquire_many_owned(CONCURRENT_CHECKS as u32).await.expect("it is open");
        let failure = users.clone().check(anna(), Some(Duration::ZERO)).await.expect_err("there is no turn");
        assert!(failure.retryable && failure.code == "FICUS-1202", "{failure}");
        let gone = tokio::spawn(users.clone().check(anna(), None));
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.is_err());
        drop(others);
        assert_eq!(users.checks.available_permits(), CONCURRENT_CHECKS, "nobody took a turn");
        assert!(users.clone().check(anna(), Some(Duration::ZERO)).await.expect("there is a turn").is_some());
    }

    #[test]
    fn made_hashes_verify() {
        let hash = hash_password("tree").expect("hashes");
        assert!(Argon2::default().verify_password(b"tree", &PasswordHash::new(&hash).expect("PHC")).is_ok());
    }

    #[test]
    fn sasl_plain() {
        let read = |text: &str| {
            Credentials::from_sasl(&BASE64.encode(text.as_bytes())).map(|found| (found.name, found.password))
        };
        let pair = |name: &str, password: &str| Some((name.to_owned(), password.to_owned()));
        assert_eq!(read("\0anna\0pipe"), pair("anna", "pipe"));
        assert_eq!(read("anna\0anna\0"), pair("anna", ""));
        assert_eq!(read("root\0anna\0pipe"), None);
        assert_eq!(read("anna\0pipe"), None);
        assert_eq!(read("\0\0pipe"), None);
        assert_eq!(read("\0anna\0pipe\0more"), None);
        assert_eq!(Credentials::from_sasl("?"), None);
    }

    #[test]
    fn basic_header() {
        let read = |text: &str| Credentials::from_basic(text).map(|found| (found.name, found.password));
        assert_eq!(read("Basic YW5uYTpwaTpwZQ=="), Some(("anna".into(), "pi:pe".into())));
        assert_eq!(read("basic YW5uYTpwaTpwZQ"), Some(("anna".into(), "pi:pe".into())));
        assert_eq!(read("Bearer YW5uYTpwaTpwZQ=="), None);
        assert_eq!(read("Basic"), None);
    }

    #[test]
    fn unusable_lists_are_refused() {
        let check = |name: &str, hash: &str, part: &str| {
            let user = UserConfig { name: name.into(), password_hash: hash.into() };
            let config = ServerConfig { users: vec![user.clone(), user], ..ServerConfig::default() };
            let error = Users::from_config(&config).expect_err(part);
            assert!(error.contains(part), "{error}");
        };
        check("anna", "secret", "not an Argon2 PHC string");
        check("anna", &cheap_hash("x"), "listed twice");
    }
}
