//! Settings from four places with one definition: flags > `--set` > environment > file.
//!
//! The fields of [`Settings`] are that definition. A key is the path to a field, `server.limits.connections`; in a file it
//! is TOML, in the environment `FICUS_SERVER__LIMITS__CONNECTIONS`. Unknown keys are refused with the nearest known one.

use std::ffi::OsString;
use std::path::PathBuf;

use ficus_analytics::AnalyticsOptions;
use ficus_server::ServerConfig;
use ficus_storage::{StoreOptions, SyncPolicy, machine_memory_bytes};
use serde::Deserialize;
use toml::{Table, Value};

use crate::demo::Demo;
use crate::nearest::nearest;

/// Everything `ficus serve` can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The network side.
    pub server: ServerConfig,
    /// The data.
    pub store: StoreSettings,
    /// The execution of queries.
    pub engine: EngineSettings,
    /// The log.
    pub log: LogSettings,
}

/// Settings of the store.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// The data directory; without one everything is in memory.
    pub data_dir: Option<PathBuf>,
    /// An archive that is kept close behind the data directory, to restore from; none by default.
    pub archive_dir: Option<PathBuf>,
    /// Milliseconds between two looks whether there is something new to archive. Default 1000.
    pub archive_delay_ms: u64,
    /// When a commit is acknowledged. Default `always`.
    pub sync: Sync,
    /// Sample graphs to install when they are absent.
    pub demo: Option<Demo>,
    /// Milliseconds for which a state can be read as of then after it was replaced. Default 0: the past is not kept.
    pub retention_ms: u64,
    /// States of one graph that are kept at most. Default 10 000.
    pub retention_versions: usize,
    /// Changes that one transaction may hold. Default 16 777 216, which is the most.
    pub transaction_changes_limit: usize,
    /// Bytes of files that one load sends to the server; they are kept in the data directory until it ends. Default 64 GiB; 0 is no
    /// bound but the disk's.
    pub upload_bytes: u64,
}

impl Default for StoreSettings {
    fn default() -> StoreSettings {
        let StoreOptions { retention_ms, retention_versions, transaction_changes_limit, .. } = StoreOptions::default();
        StoreSettings {
            data_dir: None,
            archive_dir: None,
            archive_delay_ms: 1000,
            sync: Sync::default(),
            demo: None,
            retention_ms,
            retention_versions,
            transaction_changes_limit,
            upload_bytes: 64 << 30,
        }
    }
}

impl StoreSettings {
    /// As the store takes them.
    pub fn options(&self) -> StoreOptions {
        let mut options = StoreOptions::default();
        options.sync = self.sync.policy();
        options.retention_ms = self.retention_ms;
        options.retention_versions = self.retention_versions;
        options.transaction_changes_limit = self.transaction_changes_limit;
        options
    }
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// When it is on the disk.
    #[default]
    Always,
    /// When the operating system has it.
    Never,
}

impl Sync {
    /// The store's word for it.
    pub fn policy(self) -> SyncPolicy {
        match self {
            Sync::Always => SyncPolicy::Always,
            Sync::Never => SyncPolicy::Never,
        }
    }
}

/// Queries that run at a time for each executor: enough that those which wait for their clients leave none idle.
const QUERIES_PER_EXECUTOR: usize = 64;

/// Executors there may be: each is a thread, and what all of them share is looked through one by one.
const EXECUTORS_MAX: usize = 1024;

/// How walks of several hops whose ends are wanted once each are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KHop {
    /// As searches along a projection, large ones of different users in one pass.
    #[default]
    Batched,
    /// As searches along the store, each query by itself.
    Single,
    /// As streams of walks, as all other traversals. A query can ask for a search by `with('ficus.khop', true)`.
    Off,
}

/// Settings of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSettings {
    /// Threads that run queries, 1024 at most. Default 0: one per core.
    pub executors: usize,
    /// Whether a query that takes long may use executors that have nothing to do. Default true.
    pub spread: bool,
    /// Whether each executor has a core of its own, where there are enough (Linux). Default true.
    pub pinned: bool,
    /// Whether the program's code and the first 64 MiB of its memory lie in large pages (Linux). Default true.
    pub large_pages: bool,
    /// Bytes one query may hold. Default 1 GiB.
    pub memory_limit_bytes: usize,
    /// Bytes that all queries may hold together, and so the most that one may. Default 0: half of the memory of the machine or of the container, and at least what one query may hold.
    pub queries_memory_bytes: usize,
    /// Queries that run at a time; more wait in a line, on their own time. Default 0: 64 for each executor.
    pub queries_limit: usize,
    /// The folder that `io()` may read and write; without it `io()` is refused.
    pub io_dir: Option<PathBuf>,
    /// How walks of several hops are answered. Default `batched`.
    pub khop: KHop,
    /// Bytes that projections for such passes and for graph programs may take together. Default 2 GiB; 0: none are made.
    pub projection_limit_bytes: u64,
}

impl Default for EngineSettings {
    fn default() -> EngineSettings {
        let AnalyticsOptions { projection_bytes_limit, .. } = AnalyticsOptions::default();
        EngineSettings {
            executors: 0,
            spread: true,
            pinned: true,
            large_pages: true,
            memory_limit_bytes: 1 << 30,
            queries_memory_bytes: 0,
            queries_limit: 0,
            io_dir: None,
            khop: KHop::default(),
            projection_limit_bytes: projection_bytes_limit,
        }
    }
}

impl EngineSettings {
    /// As the passes take them.
    pub fn analytics(&self) -> AnalyticsOptions {
        AnalyticsOptions {
            threads: self.executor_count(),
            projection_bytes_limit: self.projection_limit_bytes,
            batching: self.khop == KHop::Batched,
            ..AnalyticsOptions::default()
        }
    }

    /// Bytes that all queries may hold together, with the default filled in.
    pub fn queries_memory(&self) -> usize {
        match self.queries_memory_bytes {
            0 => machine_memory_bytes().map_or(usize::MAX, |bytes| (bytes / 2).max(self.memory_limit_bytes)),
            bytes => bytes,
        }
    }

    /// Refuses what no machine can do.
    pub fn check(&self) -> Result<(), String> {
        if self.executors > EXECUTORS_MAX {
            let count = self.executors;
            return Err(format!(
                "`engine.executors` is {count}; it can be {EXECUTORS_MAX} at most, and more than there are cores are of no use"
            ));
        }
        Ok(())
    }

    /// Queries that run at a time, with the default filled in.
    pub fn queries_limit(&self) -> usize {
        match self.queries_limit {
            0 => QUERIES_PER_EXECUTOR * self.executor_count(),
            count => count,
        }
    }

    /// The number of executors with the default filled in.
    pub fn executor_count(&self) -> usize {
        match self.executors {
            0 => std::thread::available_parallelism().map_or(1, usize::from).min(EXECUTORS_MAX),
            count => count,
        }
    }
}

/// Settings of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// The least severe messages that are written. Default `info`.
    pub level: LogLevel,
    /// `text` or `json`. Default `text`.
    pub form: LogForm,
}

/// Severity of log messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Someone must act.
    Error,
    /// Someone should know.
    Warn,
    /// Life of the process.
    #[default]
    Info,
    /// Decisions.
    Debug,
    /// Data.
    Trace,
}

impl LogLevel {
    /// The filter of the log library.
    pub fn filter(self) -> tracing_subscriber::filter::LevelFilter {
        use tracing_subscriber::filter::LevelFilter;
        match self {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        }
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogForm {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The places settings come from, the weakest first.
#[derive(Debug, Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// The environment, of which only what begins with `FICUS_` matters.
    pub environment: Vec<(OsString, OsString)>,
    /// `--set KEY=VALUE`.
    pub assignments: Vec<String>,
    /// Keys that have a flag of their own.
    pub flags: Vec<(String, Value)>,
}

impl Settings {
    /// Joins the sources.
    ///
    /// What stands alone is looked at alone, so that a mistake is told with its place. What lacks something, as a certificate without its key, may get
    /// that from elsewhere: whether all is there is looked at once, at the end.
    pub fn read(sources: &Sources) -> Result<Settings, String> {
        let mut table = Table::new();
        let mut lacking = None;
        if let Some(path) = &sources.file {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            // Read alone first: then a mistake is reported with its line.
            if let Err(error) = toml::from_str::<Settings>(&text) {
                let told = format!("{}: {}{}", path.display(), error.to_string().trim_end(), hint(error.message()));
                if !is_incomplete(&error) {
                    return Err(told);
                }
                lacking = Some(told);
            }
            table = text.parse().map_err(|error: toml::de::Error| format!("{}: {error}", path.display()))?;
        }
        for (name, text) in &sources.environment {
            let Some((name, rest)) = name.to_str().and_then(|name| Some((name, name.strip_prefix("FICUS_")?))) else {
                continue;
            };
            if !rest.contains("__") {
                match meant_by(rest) {
                    None => continue,
                    Some(meant) => {
                        return Err(format!("environment {name}: there is no such setting; did you mean {meant}?"));
                    }
                }
            }
            let text = text.to_str().ok_or_else(|| format!("environment {name}: the value is not UTF-8"))?;
            let key = rest.split("__").map(str::to_lowercase).collect::<Vec<_>>().join(".");
            add(&mut table, &key, value_of(text)).map_err(|reason| format!("environment {name}: {reason}"))?;
        }
        for assignment in &sources.assignments {
            let (key, text) =
                assignment.split_once('=').ok_or_else(|| format!("--set {assignment}: KEY=VALUE is expected"))?;
            add(&mut table, key.trim(), value_of(text)).map_err(|reason| format!("--set {assignment}: {reason}"))?;
        }
        for (key, value) in &sources.flags {
            assign(&mut table, key, value.clone())?;
        }
        let settings = check(&table).map_err(|error| match lacking.filter(|_| is_incomplete(&error)) {
            Some(told) => told,
            None => explain(&error),
        })?;
        settings.engine.check()?;
        Ok(settings)
    }
}

/// Turns a table into settings.
fn check(table: &Table) -> Result<Settings, toml::de::Error> {
    Settings::deserialize(Value::Table(table.clone()))
}

fn explain(error: &toml::de::Error) -> String {
    format!("{}{}", error.to_string().trim_end(), hint(error.message()))
}

/// Whether something is missing, and nothing that is there is wrong.
fn is_incomplete(error: &toml::de::Error) -> bool {
    error.message().starts_with("missing field")
}

/// Adds a setting that is right as far as it goes.
fn add(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    let mut alone = Table::new();
    assign(&mut alone, key, value.clone())?;
    match check(&alone) {
        Err(error) if !is_incomplete(&error) => Err(explain(&error)),
        _ => assign(table, key, value),
    }
}

/// The groups that settings are in.
const GROUPS: [&str; 4] = ["server", "store", "engine", "log"];

/// Single underscores that may have been meant to be double ones; no key has more.
const UNDERSCORES_MAX: usize = 8;

/// The variable that was probably meant by one whose name, behind `FICUS_`, has single underscores only: `LOG_LEVEL` or `DATA_DIR`. `None` if it is
/// somebody else's, as orchestrators make some for each service.
fn meant_by(name: &str) -> Option<String> {
    let words: Vec<String> = name.split('_').map(str::to_lowercase).collect();
    if words.len() > UNDERSCORES_MAX || words.iter().any(String::is_empty) {
        return None;
    }
    let is_known = |key: &str| {
        let mut alone = Table::new();
        // The value does not matter: if it is of the wrong type there is such a setting.
        assign(&mut alone, key, Value::String(String::new())).is_ok()
            && check(&alone).map_or_else(|error| !error.message().starts_with("unknown field"), |_| true)
    };
    // Every way to read its underscores, as they are or as dots.
    let readings = (0..1_usize << (words.len() - 1)).flat_map(|dots| {
        let mut key = words[0].clone();
        for (index, word) in words[1..].iter().enumerate() {
            key.push(if dots >> index & 1 == 1 { '.' } else { '_' });
            key.push_str(word);
        }
        let in_groups = GROUPS.map(|group| format!("{group}.{key}"));
        std::iter::once(key).filter(|key| key.contains('.')).chain(in_groups)
    });
    let key = readings.into_iter().find(|key| is_known(key))?;
    Some(format!("FICUS_{}", key.replace('.', "__").to_uppercase()))
}

/// A value as TOML writes it; what is no TOML is a text.
fn value_of(text: &str) -> Value {
    let parsed: Result<Table, _> = format!("value = {text}").parse();
    match parsed {
        Ok(mut table) if table.len() == 1 => table.remove("value").unwrap_or_else(|| Value::String(text.into())),
        _ => Value::String(text.into()),
    }
}

fn assign(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    let mut current = table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if part.is_empty() {
            return Err(format!("'{key}' is no key; a key looks like server.listen"));
        }
        if parts.peek().is_none() {
            current.insert(part.to_owned(), value);
            return Ok(());
        }
        current = current
            .entry(part)
            .or_insert_with(|| Value::Table(Table::new()))
            .as_table_mut()
            .ok_or_else(|| format!("'{part}' in '{key}' is a value, not a group of settings"))?;
    }
    Ok(())
}

/// Adds what was probably meant to a message about an unknown field.
fn hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next().filter(|_| message.starts_with("unknown field")) else { return String::new() };
    match nearest(unknown, quoted) {
        Some(near) => format!("\ndid you mean `{near}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_environment(pairs: &[(&str, &str)], assignments: &[&str]) -> Result<Settings, String> {
        Settings::read(&Sources {
            environment: pairs.iter().map(|(name, text)| (name.into(), text.into())).collect(),
            assignments: assignments.iter().map(|text| (*text).into()).collect(),
            ..Sources::default()
        })
    }

    #[test]
    fn later_places_win() {
        let file = std::env::temp_dir().join(format!("ficus-settings-{}.toml", std::process::id()));
        std::fs::write(
            &file,
            "[server]\nlisten = \"a:1\"\n[server.limits]\nconnections = 1\nrunning = 7\n[engine]\nexecutors = 3\n",
        )
        .expect("it can be written");
        let settings = Settings::read(&Sources {
            file: Some(file.clone()),
            environment: vec![
                ("FICUS_SERVER__LIMITS__CONNECTIONS".into(), "2".into()),
                ("FICUS_SERVER__LISTEN".into(), "b:2".into()),
                ("FICUS_HISTORY".into(), "ignored, it is no setting".into()),
            ],
            assignments: vec!["server.limits.connections=3".into(), "store.demo=modern".into()],
            flags: vec![("server.listen".into(), Value::String("c:3".into()))],
        });
        std::fs::remove_file(&file).expect("it can be removed");
        let settings = settings.expect("all keys are known");
        assert_eq!(settings.server.listen, "c:3");
        assert_eq!(settings.server.limits.connections, 3);
        assert_eq!(settings.server.limits.running, 7);
        assert_eq!(settings.engine.executors, 3);
        assert_eq!(settings.store.demo, Some(Demo::Modern));
    }

    #[test]
    fn the_documented_settings_are_the_defaults() {
        let chapter = include_str!("../../../../docs/configuration.md");
        let block =
            chapter.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).expect("one block of TOML");
        let documented: Settings = toml::from_str(block).expect("all keys are known");
        assert_eq!(documented, Settings::default());
        // Keys without a default stand in comments; they must be known too.
        let commented: Vec<&str> = block.lines().filter_map(|line| line.strip_prefix("# ")).collect();
        for key in ["users_file", "data_dir", "archive_dir", "demo", "io_dir", "certificate", "password_hash", "weight"]
        {
            assert!(commented.iter().any(|line| line.starts_with(key)), "{key}");
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        type Environment = &'static [(&'static str, &'static str)];
        let cases: &[(Environment, &[&str], &[&str])] = &[
            (&[("FICUS_SERVER__LISEN", "x")], &[], &["FICUS_SERVER__LISEN", "did you mean `listen`?"]),
            (&[("FICUS_STOR__DATA_DIR", "x")], &[], &["did you mean `store`?"]),
            (&[], &["server.limits.conections=1"], &["did you mean `connections`?"]),
            (&[], &["engine.executors=many"], &["engine.executors=many"]),
            (&[], &["engine"], &["KEY=VALUE"]),
            (&[], &["server.listen.port=1", "server.listen=a"], &["server.listen.port=1"]),
            (&[], &["store.demo=moden"], &["moden"]),
            (&[], &["server.tenants.anna.wieght=2"], &["did you mean `weight`?"]),
            (&[], &["server.tenants.anna.weight=half"], &["server.tenants.anna.weight=half"]),
            (&[], &["server.tls.certificate=a"], &["missing field `key`", "tls"]),
            (&[], &["server.tls.certificate=a", "engine.executors=many"], &["--set engine.executors=many"]),
            (&[], &["server.tls.certificate=a", "server.tls.kye=b"], &["--set server.tls.kye=b", "`key`"]),
            (&[], &["engine.executors=1000000"], &["`engine.executors` is 1000000; it can be 1024 at most"]),
            (&[("FICUS_LOG_LEVEL", "debug")], &[], &["FICUS_LOG_LEVEL", "did you mean FICUS_LOG__LEVEL?"]),
            (&[("FICUS_DATA_DIR", "/x")], &[], &["did you mean FICUS_STORE__DATA_DIR?"]),
            (&[("FICUS_STORE_DATA_DIR", "/x")], &[], &["did you mean FICUS_STORE__DATA_DIR?"]),
            (&[("FICUS_LISTEN", "x")], &[], &["did you mean FICUS_SERVER__LISTEN?"]),
            (&[("FICUS_SERVER_LIMITS_HTTP_ROWS", "1")], &[], &["did you mean FICUS_SERVER__LIMITS__HTTP_ROWS?"]),
        ];
        for (environment, assignments, parts) in cases {
            let error = from_environment(environment, assignments).expect_err("it must be refused");
            for part in *parts {
                assert!(error.contains(part), "{part} in {error}");
            }
        }
    }

    #[test]
    fn what_belongs_together_may_come_one_by_one_and_from_several_places() {
        let settings = from_environment(&[], &["server.tls.certificate=a.pem", "server.tls.key=b.pem"]);
        let tls = settings.expect("both are there").server.tls.expect("it is on");
        assert_eq!((tls.certificate, tls.key), ("a.pem".into(), "b.pem".into()));
        let settings = from_environment(&[("FICUS_SERVER__TLS__KEY", "b.pem")], &["server.tls.certificate=a.pem"]);
        assert!(settings.is_ok(), "{settings:?}");
        let file = std::env::temp_dir().join(format!("ficus-settings-half-{}.toml", std::process::id()));
        std::fs::write(&file, "[server.tls]\ncertificate = \"a.pem\"\n").expect("it can be written");
        let read = |assignments: &[&str]| {
            let assignments = assignments.iter().map(|text| (*text).into()).collect();
            Settings::read(&Sources { file: Some(file.clone()), assignments, ..Sources::default() })
        };
        let (half, whole) = (read(&[]), read(&["server.tls.key=b.pem"]));
        std::fs::remove_file(&file).expect("it can be removed");
        assert!(half.is_err_and(|reason| reason.contains("line 1") && reason.contains("missing field `key`")));
        assert!(whole.is_ok(), "{whole:?}");
    }

    #[test]
    #[cfg(unix)]
    fn variables_of_others_may_hold_what_they_like() {
        use std::os::unix::ffi::OsStringExt;
        let read = |name: &[u8], value: &[u8]| {
            let variable = (OsString::from_vec(name.into()), OsString::from_vec(value.into()));
            Settings::read(&Sources { environment: vec![variable], ..Sources::default() })
        };
        for (name, value) in [
            (&b"PATH"[..], &b"\xff"[..]),
            (b"\xff", b"x"),
            (b"FICUS_HISTORY", b"\xff"),
            (b"FICUS_USER", b"anna"),
            // As Kubernetes makes them for a service of this name.
            (b"FICUS_SERVICE_HOST", b"10.0.0.1"),
            (b"FICUS_PORT_8182_TCP_ADDR", b"10.0.0.1"),
            (b"FICUS_PORT", b"tcp://10.0.0.1:8182"),
        ] {
            assert_eq!(read(name, value), Ok(Settings::default()), "{}", String::from_utf8_lossy(name));
        }
        let refused = read(b"FICUS_STORE__DATA_DIR", b"/x\xff").expect_err("it is ours");
        assert!(refused.contains("FICUS_STORE__DATA_DIR: the value is not UTF-8"), "{refused}");
    }
}
