//! Addresses of servers as people write them.

/// The port of a server that says nothing else.
const PORT: u16 = 8182;

/// `HOST:PORT` for a host with or without a port, which may be an IPv6 address.
///
/// Errors: there is no host, or what stands for the port is none.
pub fn with_port(host: &str) -> Result<String, String> {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            (format!("[{address}]"), rest.strip_prefix(':').or((!rest.is_empty()).then_some(rest)))
        }
        None => match host.rsplit_once(':') {
            // An IPv6 address alone.
            Some((name, _)) if name.contains(':') => (format!("[{host}]"), None),
            Some((name, port)) => (name.to_owned(), Some(port)),
            None => (host.to_owned(), None),
        },
    };
    if name.is_empty() {
        return Err(format!("'{host}' names no host; a server looks like 127.0.0.1:{PORT}"));
    }
    let port = match port {
        None => PORT,
        Some(port) => match port.parse() {
            Ok(port @ 1..) => port,
            _ => return Err(format!("'{port}' in '{host}' is no port; ports are the numbers from 1 to {}", u16::MAX)),
        },
    };
    Ok(format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_ports() {
        let cases = [
            ("db", Ok("db:8182")),
            ("db:1", Ok("db:1")),
            ("127.0.0.1:65535", Ok("127.0.0.1:65535")),
            ("::1", Ok("[::1]:8182")),
            ("[::1]", Ok("[::1]:8182")),
            ("[::1]:7000", Ok("[::1]:7000")),
            ("db:99999", Err("'99999' in 'db:99999' is no port; ports are the numbers from 1 to 65535")),
            ("db:0", Err("'0' in")),
            ("db:", Err("'' in 'db:' is no port")),
            ("db:http", Err("'http' in")),
            ("[::1]x", Err("'x' in")),
            ("", Err("names no host")),
            (":8182", Err("names no host")),
        ];
        for (host, expected) in cases {
            match (with_port(host), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(part)) => assert!(found.contains(part), "{host}: {found}"),
                (found, _) => panic!("{host}: {found:?} instead of {expected:?}"),
            }
        }
    }
}
