//! Which web pages may talk to the server.
//!
//! A browser sends requests wherever a page tells it to, with an `Origin` header that the page cannot forge. Programs
//! send none, or their own host. So a request without an origin passes; one with an origin passes when the page came
//! from this server or is allowed by the configuration. Where nobody has to authenticate, "from this server" also means
//! from a loopback name: otherwise a page could point its own name at 127.0.0.1 and pass as ours.

use std::net::IpAddr;

use crate::config::ServerConfig;

/// Whether a request with this `Origin` and `Host` may pass.
pub(crate) fn is_allowed(origin: Option<&str>, host: Option<&str>, config: &ServerConfig, authenticates: bool) -> bool {
    let Some(origin) = origin else { return true };
    if config.allowed_origins.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin)) {
        return true;
    }
    let Some((_, authority)) = origin.split_once("://") else { return false };
    let same = host.is_some_and(|host| same_authority(authority, host));
    same && (authenticates || config.allow_unauthenticated || is_loopback(authority))
}

/// Whether two `host:port` are the same; drivers leave out default ports on either side.
fn same_authority(left: &str, right: &str) -> bool {
    let strip = |authority: &str| {
        let authority = authority.to_ascii_lowercase();
        let stripped = authority.strip_suffix(":80").or_else(|| authority.strip_suffix(":443"));
        stripped.map(str::to_owned).unwrap_or(authority)
    };
    strip(left) == strip(right)
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_others_stay_out() {
        let strict = ServerConfig::default();
        let open = ServerConfig { allow_unauthenticated: true, ..ServerConfig::default() };
        let listed = ServerConfig { allowed_origins: vec!["https://a.example".into()], ..ServerConfig::default() };
        let all = ServerConfig { allowed_origins: vec!["*".into()], ..ServerConfig::default() };
        let check = |origin, host, config, authenticates, expected| {
            assert_eq!(is_allowed(origin, host, config, authenticates), expected, "{origin:?} {host:?}");
        };
        let host = Some("localhost:8182");
        check(None, host, &strict, false, true);
        check(Some("http://localhost:8182"), host, &strict, false, true);
        check(Some("http://127.0.0.1:8182"), Some("127.0.0.1:8182"), &strict, false, true);
        check(Some("http://[::1]:8182"), Some("[::1]:8182"), &strict, false, true);
        check(Some("http://localhost:3000"), host, &strict, false, false);
        check(Some("null"), host, &strict, false, false);
        check(Some("http://evil.example:8182"), Some("evil.example:8182"), &strict, false, false);
        check(Some("http://graphs.example"), Some("graphs.example:80"), &strict, true, true);
        check(Some("http://graphs.example"), Some("graphs.example"), &open, false, true);
        check(Some("https://a.example"), host, &listed, false, true);
        check(Some("https://b.example"), host, &listed, false, false);
        check(Some("https://b.example"), host, &all, false, true);
    }
}
