//! From an HTTP request to a Gremlin request: query parameters, plain JSON, or a message in a format of the wire.
//!
//! | method | body | becomes |
//! |---|---|---|
//! | GET | — | `eval` of the parameter `gremlin`; `bindings.x`, `aliases.g`, `language`, … beside it |
//! | POST | `application/json`, or no or a form's type (what `curl -d` sends) | `eval` of the field `gremlin` |
//! | POST | a GraphSON or GraphBinary mime type | the message, with or without a leading mime type |

use std::sync::Arc;

use ficus_model::{Shared, Value, ValueMap};
use ficus_wire::{Format, Limits, Request, RequestId};
use indexmap::IndexMap;

use crate::backend::Failure;
use crate::catalogue;
use crate::conversation::unreadable;
use crate::plain_json;

fn malformed(message: impl Into<String>) -> Failure {
    Failure::new(&catalogue::MALFORMED, message)
}

/// The parameters of a request, in their order.
pub(crate) fn parameters(query: &str) -> Result<Vec<(String, String)>, Failure> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(name, value)| Ok((percent_decode(name)?, percent_decode(value)?))).collect()
}

/// Reads the parameters of a GET.
pub(crate) fn from_query(query: &str, default_id: RequestId) -> Result<Request, Failure> {
    let mut args = IndexMap::<Arc<str>, Value>::new();
    let (mut bindings, mut aliases) = (ValueMap::default(), ValueMap::default());
    // Of parameters given twice the first one counts, as with Gremlin Server.
    let put_first = |map: &mut ValueMap, name: &str, text: Value| {
        let name = Value::String(name.into());
        if !map.contains_key(&name) {
            map.insert(name, text);
        }
    };
    let mut id = default_id;
    for (name, value) in parameters(query)? {
        let text = Value::String(value.as_str().into());
        if let Some(binding) = name.strip_prefix("bindings.") {
            put_first(&mut bindings, binding, text);
        } else if let Some(alias) = name.strip_prefix("aliases.") {
            put_first(&mut aliases, alias, text);
        } else if name == "requestId" {
            id = RequestId::from_text(&value);
        } else if matches!(name.as_str(), "evaluationTimeout" | "batchSize") {
            let number = value.parse().map(Value::Long);
            let number = number.map_err(|_| malformed(format!("{name} is {value:?}; it must be a whole number")))?;
            args.entry(name.into()).or_insert(number);
        } else {
            args.entry(name.into()).or_insert(text);
        }
    }
    if !bindings.is_empty() {
        args.insert("bindings".into(), Value::Map(Shared::new(bindings)));
    }
    if !aliases.is_empty() {
        args.insert("aliases".into(), Value::Map(Shared::new(aliases)));
    }
    eval(id, args)
}

/// Reads the body of a POST.
pub(crate) fn from_body(
    content_type: Option<&str>,
    body: &[u8],
    limits: &Limits,
    default_id: RequestId,
) -> Result<Request, Failure> {
    let essence = content_type.and_then(|mime| mime.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
    if matches!(essence.as_str(), "" | "application/json" | "application/x-www-form-urlencoded" | "text/plain") {
        return from_json(body, limits, default_id);
    }
    let mime = content_type.unwrap_or_default();
    let Some(format) = Format::from_mime(mime) else {
        let message = format!("[{mime}] is no content type the server reads; use application/json");
        return Err(Failure::new(&catalogue::UNKNOWN_MIME, message));
    };
    // The body may begin with the mime type as a WebSocket frame does. GraphBinary messages begin with 0x81, JSON with a
    // brace or white space, so a length that fits tells the two apart.
    let prefixed = matches!(body.first(), Some(0x10..=0x7a)) && ficus_wire::split_frame(body).is_ok();
    let decoded = if prefixed {
        let (named, _) = ficus_wire::split_frame(body).map_err(|error| unreadable(&error))?;
        if named != format {
            let message = "Mime type mismatch. Value in content-type header is not equal payload header.";
            return Err(malformed(message));
        }
        ficus_wire::decode_frame(body, limits).map(|(_, request)| request)
    } else {
        ficus_wire::decode_request(format, body, limits)
    };
    let request = decoded.map_err(|error| unreadable(&error))?;
    if &*request.processor == "session" {
        return Err(session_over_http());
    }
    Ok(request)
}

fn from_json(body: &[u8], limits: &Limits, default_id: RequestId) -> Result<Request, Failure> {
    let value = plain_json::read(body, limits.items)
        .map_err(|error| malformed(format!("body could not be parsed: {error}")))?;
    let Value::Map(fields) = value else {
        return Err(malformed("body could not be parsed: expected a JSON object with the field `gremlin`"));
    };
    let mut args = IndexMap::new();
    let mut id = default_id;
    for (name, value) in fields.iter() {
        let Value::String(name) = name else { continue };
        match (&**name, value) {
            ("requestId", Value::String(text)) => id = RequestId::from_text(text),
            ("requestId", Value::Null) => {}
            ("requestId", _) => return Err(malformed("requestId must be a string")),
            // Only one operation can be meant; Gremlin Server does not look either.
            ("op" | "processor", Value::String(text)) if matches!(&**text, "" | "eval") => {}
            ("op" | "processor", _) => {
                return Err(malformed(format!("`{name}` can only be `eval` or empty in plain JSON")));
            }
            _ => {
                args.insert(name.clone(), value.clone());
            }
        }
    }
    eval(id, args)
}

fn eval(id: RequestId, args: IndexMap<Arc<str>, Value>) -> Result<Request, Failure> {
    let request = Request { id, op: "eval".into(), processor: "".into(), args };
    if request.arg("session").is_some() {
        return Err(session_over_http());
    }
    match request.arg("gremlin") {
        Some(Value::String(text)) if text.trim().is_empty() => {}
        Some(_) => return Ok(request),
        None => {}
    }
    Err(Failure::new(&catalogue::MISSING_ARGUMENT, "no gremlin script supplied"))
}

fn session_over_http() -> Failure {
    Failure::new(&catalogue::SESSION_OVER_HTTP, "sessions are not available over HTTP; use a WebSocket")
}

/// Undoes the encoding of forms: `+` is a space, `%41` a byte.
fn percent_decode(text: &str) -> Result<String, Failure> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = tail.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
                let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
                let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                bytes.push(decoded.ok_or_else(|| malformed("the query has a % without two hexadecimal digits"))?);
                rest = &tail[2..];
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| malformed("the query is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> RequestId {
        RequestId::Text("id".into())
    }

    fn show(request: Result<Request, Failure>) -> String {
        match request {
            Ok(request) => format!("{} {:?}", request.id, request.args),
            Err(failure) => format!("{} {}", failure.code, failure.message),
        }
    }

    #[test]
    fn queries() {
        let check = |query: &str, expected: &str| {
            let found = show(from_query(query, id()));
            assert!(found.contains(expected), "{query}: {found}");
        };
        check("gremlin=g.V()", "id {\"gremlin\": String(\"g.V()\")}");
        check("gremlin=g.V%28x%29+&bindings.x=1", "\"bindings\": Map({String(\"x\"): String(\"1\")})");
        check("gremlin=a&gremlin=b&requestId=7", "7 {\"gremlin\": String(\"a\")}");
        check("gremlin=a&aliases.g=gmodern", "\"aliases\": Map({String(\"g\"): String(\"gmodern\")})");
        check("gremlin=a&evaluationTimeout=5", "\"evaluationTimeout\": Long(5)");
        check("gremlin=a&evaluationTimeout=x", "FICUS-1001");
        check("gremlin=a&session=s", "FICUS-1606");
        check("gremlin=", "FICUS-1007");
        check("", "FICUS-1007 no gremlin script supplied");
        check("gremlin=%4", "FICUS-1001");
        check("gremlin=%ff", "FICUS-1001");
        check("gremlin=%+1", "FICUS-1001");
    }

    #[test]
    fn json_bodies() {
        let check = |body: &str, expected: &str| {
            let found = show(from_body(None, body.as_bytes(), &Limits::default(), id()));
            assert!(found.contains(expected), "{body}: {found}");
        };
        check(r#"{"gremlin": "g.V()"}"#, "id {\"gremlin\": String(\"g.V()\")}");
        check(r#"{"gremlin": "a", "bindings": {"x": 1}}"#, "Map({String(\"x\"): Long(1)})");
        check(r#"{"gremlin": "a", "requestId": "r", "op": "eval"}"#, "r {");
        check(r#"{"gremlin": "a", "session": "s"}"#, "FICUS-1606");
        check(r#"{"gremlin": "a", "op": "bytecode"}"#, "FICUS-1001");
        check(r#"{"gremlin": ""}"#, "FICUS-1007");
        check("{}", "FICUS-1007");
        check("[]", "FICUS-1001");
        check("{", "FICUS-1001 body could not be parsed");
    }

    #[test]
    fn content_types() {
        let check = |mime: &str, expected: &str| {
            let found = show(from_body(Some(mime), b"{\"gremlin\":\"a\"}", &Limits::default(), id()));
            assert!(found.contains(expected), "{mime}: {found}");
        };
        check("application/json; charset=utf-8", "id {");
        check("application/x-www-form-urlencoded", "id {");
        check("application/xml", "FICUS-1002");
    }
}
