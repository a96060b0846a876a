//! The error catalogue: every stable code a client can meet, with its status and what to do about it.
//!
//! A code names a situation for good: its text may improve, its number never means something else. The wire carries the
//! code beside the message (status attribute `code`, JSON field `code` over HTTP). `docs/errors.md` lists the same
//! table; a test holds the two together. Codes of other crates are added here too, so that there is one list:
//!
//! | range | whose |
//! |---|---|
//! | 1000–1099 | requests that cannot be understood |
//! | 1100–1199 | who may ask |
//! | 1200–1299 | load limits |
//! | 1300–1399 | sessions and transactions |
//! | 1400–1499 | time and life of the server |
//! | 1500–1599 | answers |
//! | 1600–1699 | HTTP only |
//! | 1900–1999 | our own mistakes |

/// One situation: its code, the Gremlin status it is answered with, and words for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Stable code, `FICUS-` and four digits.
    pub code: &'static str,
    /// Gremlin status code of the answer; HTTP derives its own from it, see [`Entry::http_status`].
    pub status: u16,
    /// What happened.
    pub meaning: &'static str,
    /// True when the same request may succeed later, unchanged.
    pub retryable: bool,
    /// What the caller can do.
    pub remedy: &'static str,
    /// HTTP status when it differs from the one the Gremlin status implies.
    http: Option<u16>,
}

impl Entry {
    /// The HTTP status of an answer with this code.
    pub const fn http_status(&self) -> u16 {
        match self.http {
            Some(status) => status,
            None => http_status(self.status),
        }
    }
}

/// The HTTP status that stands for a Gremlin status.
///
/// Refusals of the request are 4xx; whatever fails while it runs is 500, as with Gremlin Server, except for what may be
/// retried (503).
pub const fn http_status(status: u16) -> u16 {
    match status {
        200 | 204 | 206 => 200,
        401 | 407 => 401,
        403 => 403,
        429 => 429,
        498 | 499 => 400,
        596 => 503,
        _ => 500,
    }
}

macro_rules! catalogue {
    ($($name:ident = $code:literal, $status:literal $(/ $http:literal)?, $retryable:literal, $meaning:literal, $remedy:literal;)+) => {
        $(
            #[doc = $meaning]
            pub const $name: Entry = Entry {
                code: $code,
                status: $status,
                meaning: $meaning,
                retryable: $retryable,
                remedy: $remedy,
                http: catalogue!(@http $($http)?),
            };
        )+
        /// Every entry, in order of code.
        pub const ALL: &[Entry] = &[$($name),+];
    };
    (@http) => { None };
    (@http $http:literal) => { Some($http) };
}

catalogue! {
    MALFORMED = "FICUS-1001", 499, false, "The message is not what its format prescribes.",
        "Check the serializer of the client; the message names the byte and what was expected there.";
    UNKNOWN_MIME = "FICUS-1002", 499 / 415, false, "The message is in a format the server does not speak.",
        "Use GraphBinary 1 or GraphSON 1 to 3.";
    MESSAGE_TOO_LARGE = "FICUS-1003", 499 / 413, false, "The message is larger than the server accepts.",
        "Send smaller requests, pass data as parameters in several requests, or raise `limits.message_bytes`.";
    MESSAGE_LIMIT = "FICUS-1004", 499, false, "The message nests too deep or holds too many values.",
        "Simplify the request, or raise `limits.nesting` or `limits.values`.";
    UNKNOWN_OPERATION = "FICUS-1005", 498, false, "The processor does not know this operation.",
        "Use `eval`, `bytecode`, `close` or `authentication` on the processor that offers it.";
    UNKNOWN_PROCESSOR = "FICUS-1006", 499, false, "There is no such processor.",
        "Use the processor `` (empty), `session` or `traversal`.";
    MISSING_ARGUMENT = "FICUS-1007", 499, false, "The operation needs an argument that is not there.",
        "Add the argument that the message names.";
    INVALID_ARGUMENT = "FICUS-1008", 499, false, "An argument has the wrong type or value.",
        "Correct the argument that the message names.";
    UNKNOWN_SOURCE = "FICUS-1009", 499, false, "There is no traversal source of this name.",
        "Use one of the sources that the message lists.";
    INVALID_BINDING = "FICUS-1010", 499, false, "A binding has a name that is reserved or no string.",
        "Rename the binding.";
    TOO_MANY_BINDINGS = "FICUS-1011", 499, false, "The request has more bindings than the server accepts.",
        "Pass lists or maps as single bindings, or raise `limits.bindings`.";
    UNKNOWN_LANGUAGE = "FICUS-1012", 499, false, "The server does not speak this query language.",
        "Leave `language` out or set it to `gremlin-lang`.";
    NOT_DECODABLE = "FICUS-1013", 599, false, "The message holds a type that cannot be read here.",
        "Send standard types; lambdas and custom types have no place in a request.";
    TRANSACTION_OUTSIDE_SESSION = "FICUS-1014", 499, false, "A transaction was to be ended outside a session.",
        "Use a session, or the driver's `tx()`, for transactions over several requests.";

    AUTHENTICATION_REQUIRED = "FICUS-1101", 401, false, "The server wants to know who asks.",
        "Give user name and password to the driver (SASL PLAIN), or HTTP basic authentication.";
    AUTHENTICATION_FAILED = "FICUS-1102", 401, false, "User name or password are wrong.",
        "Check the credentials.";
    AUTHENTICATION_MALFORMED = "FICUS-1103", 401, false, "The answer to the authentication challenge is unreadable.",
        "Send the argument `sasl`: Base64 of authorization id, NUL, user name, NUL, password.";
    ORIGIN_REFUSED = "FICUS-1104", 403, false, "A web page of another origin asked.",
        "Add the origin to `allowed_origins` if the page is yours.";
    NOT_ALLOWED = "FICUS-1105", 403, false, "Who asks may not do this.",
        "Ask an administrator, or have the user listed in `administrators`.";

    TOO_MANY_REQUESTS_ON_CONNECTION = "FICUS-1201", 429, true, "More requests wait on this connection than allowed.",
        "Wait for answers before sending more, or use more connections.";
    TOO_MANY_REQUESTS = "FICUS-1202", 429, true, "More requests run on the server than allowed.",
        "Try again later, with growing pauses.";
    TOO_MANY_CONNECTIONS = "FICUS-1203", 429 / 503, true, "More connections are open than allowed.",
        "Close idle connections, or raise `limits.connections`.";
    SERVER_MEMORY = "FICUS-1204", 429, true, "The queries that run hold all the memory that they may hold together, or so much that the rest is left to other tenants.",
        "Try again later, with growing pauses, or raise `engine.queries_memory_bytes`.";
    LOAD_RUNS = "FICUS-1205", 429, true, "Another load runs on the server.",
        "Try again when it has ended; `GET /v1/graphs` tells how far it is.";
    REQUESTS_MEMORY = "FICUS-1206", 429, true, "The requests of all clients hold all the memory that they may hold together.",
        "Try again later, with growing pauses, in smaller requests, or raise `limits.requests_bytes`.";

    SESSION_NOT_OURS = "FICUS-1301", 500, false, "The session belongs to another connection.",
        "Send all requests of a session through the connection that opened it.";
    SESSION_EXPIRED = "FICUS-1302", 500, false, "The session was idle too long and its transaction was rolled back.",
        "Start over in a new session, or raise `timeouts.session_idle_ms`.";
    TOO_MANY_SESSIONS = "FICUS-1303", 429, true, "More sessions are open than allowed.",
        "Close sessions that are done, or raise `limits.sessions`.";
    TRANSACTION_EXPIRED = "FICUS-1304", 500, false, "The session's transaction was open too long and was rolled back.",
        "Start over in a new session with shorter transactions, or raise `timeouts.transaction_ms`.";

    TIMEOUT = "FICUS-1401", 598, false, "The request took longer than it may.",
        "Make the traversal cheaper, or give it more time with `evaluationTimeout` up to the server's cap.";
    SHUTTING_DOWN = "FICUS-1402", 596, true, "The server is shutting down.",
        "Connect again, to another server or after the restart.";

    NOT_ENCODABLE = "FICUS-1501", 599, false, "The result cannot be written in the format asked for.",
        "Ask for another format, or have the traversal yield other values.";
    RESULT_TOO_LARGE = "FICUS-1502", 500, false, "The result is too large for one response.",
        "Limit the traversal, let it yield rows instead of one collection, or use a WebSocket, where rows come in batches.";

    NO_SUCH_PATH = "FICUS-1601", 499 / 404, false, "There is nothing at this path.",
        "Gremlin is at `/gremlin`, health at `/health/live`, `/health/ready` and `/health/writable`, metrics at `/metrics`, graphs at `/v1/graphs`.";
    METHOD_NOT_ALLOWED = "FICUS-1602", 499 / 405, false, "The path does not answer this method.",
        "Use one of the methods in the `Allow` header.";
    NOT_ACCEPTABLE = "FICUS-1603", 499, false, "The client accepts none of the formats the server can answer in.",
        "Accept `application/json`, a GraphSON or GraphBinary mime type, `text/plain` or `*/*`.";
    BODY_TOO_SLOW = "FICUS-1604", 499 / 408, true, "The body of the request took too long to arrive.",
        "Send the body faster, or raise `timeouts.body_ms`.";
    BAD_HANDSHAKE = "FICUS-1605", 499, false, "The WebSocket handshake is not valid.",
        "Use version 13 of the WebSocket protocol and a `Sec-WebSocket-Key`.";
    SESSION_OVER_HTTP = "FICUS-1606", 499, false, "Sessions are not available over HTTP.",
        "Use a WebSocket for sessions and transactions.";

    NO_SUCH_GRAPH = "FICUS-1607", 499 / 404, false, "There is no graph of this name.",
        "`GET /v1/graphs` lists those there are, `PUT /v1/graphs/NAME` makes one.";
    TRANSFER_REFUSED = "FICUS-1608", 499, false, "A graph cannot be made, removed, loaded or exported as the request asks.",
        "Correct what the message names: a parameter, a file, or the graph.";
    UPLOAD_TOO_LARGE = "FICUS-1609", 499 / 413, false, "The files are larger than the server takes, or than its disk has room for.",
        "Pack them, load them in parts, raise `store.upload_bytes`, or free space.";

    INTERNAL = "FICUS-1901", 500, false, "The server made a mistake.",
        "Please report it with the message and the server's log.";

    SYNTAX = "FICUS-2001", 597, false, "The text is not gremlin-lang.",
        "Correct the text where the message points; it tells line, column and what was expected.";
    UNKNOWN_STEP = "FICUS-2002", 599, false, "There is no step or source method of this name.",
        "Use the step that the message names as nearest, or one of the reference.";
    INVALID_TRAVERSAL = "FICUS-2003", 500, false, "The traversal is not one that can be carried out.",
        "Correct the step or argument that the message names.";
    NO_ANALYTICS = "FICUS-2004", 500, false, "Something of a graph computer is wanted that there is not: program(), a part of the graph, persisted results.",
        "Use pageRank(), connectedComponent(), peerPressure(), shortestPath() with their options, or a service through call().";
    EVALUATION = "FICUS-2005", 500, false, "The traversal met data it cannot work on, or arguments it cannot use.",
        "Correct the traversal or filter the data; the message names both, and the step.";
    FAIL_STEP = "FICUS-2006", 595, false, "The traversal reached fail().",
        "The message is the one given to fail().";
    CONFLICT = "FICUS-2007", 596, true, "Another transaction changed the same data first.",
        "Run the transaction again.";
    CANCELLED = "FICUS-2008", 500, false, "The query was cancelled.",
        "Nothing of it was committed; send it again if it is still wanted.";
    BUDGET = "FICUS-2009", 500, false, "The query needs more memory than it may use.",
        "Narrow the traversal, aggregate earlier, or raise `engine.memory_limit_bytes`, and `engine.queries_memory_bytes` if that is less.";
    STORE = "FICUS-2010", 500, true, "The store cannot do what is asked: it is read-only or full.",
        "See the message and the server's log; reads go on. Free space or restart, then try again.";
    OUTSIDE_RETENTION = "FICUS-2011", 500, false, "The state of the past that was asked for is not kept.",
        "Ask for a state between the oldest one kept and the present, which the message names; raise `store.retention_ms` to keep more.";
    TRANSACTION_TOO_LARGE = "FICUS-2012", 500, false, "The transaction has more changes than allowed.",
        "Commit in smaller parts, load with `ficus load`, or raise `store.transaction_changes_limit`.";
    CONSTRAINT = "FICUS-2013", 500, false, "The write would break a declared type, a unique index or a multiplicity.",
        "Change what is written; the message names type or index, property, what is expected and what was given.";
    KILLED = "FICUS-2014", 500, false, "Its user or an administrator ended the query.",
        "Nothing of it was committed; ask who runs the server before sending it again.";
    WRONG_OPTION = "FICUS-2015", 500, false, "An option given by with() is not one, or takes something else.",
        "Correct the key or the value; the message says what it takes or which option is nearest. `docs/options.md` lists all.";
    DAMAGED = "FICUS-2016", 500, false, "A file of the graph is damaged: the graph is neither read nor written any more. Other graphs go on.",
        "See `ficus admin check`; restore the data directory from an archive or a copy, or remove or clear the graph and load it again.";
}

/// The entry with this code.
pub fn find(code: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        for pair in ALL.windows(2) {
            assert!(pair[0].code < pair[1].code, "{} before {}", pair[0].code, pair[1].code);
        }
    }

    /// The table of the document, made from the catalogue; run with `-- --nocapture` after a failure and paste.
    fn table() -> String {
        let mut table =
            String::from("| Code | Status | HTTP | Retry | What happened | What to do |\n|---|---|---|---|---|---|\n");
        for entry in ALL {
            let retry = if entry.retryable { "yes" } else { "no" };
            let (code, status, http) = (entry.code, entry.status, entry.http_status());
            table += &format!("| {code} | {status} | {http} | {retry} | {} | {} |\n", entry.meaning, entry.remedy);
        }
        table
    }

    #[test]
    fn the_document_lists_the_same() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
        let document = std::fs::read_to_string(path).expect("docs/errors.md exists");
        let expected = table();
        let listed: Vec<&str> = document.lines().filter(|line| line.starts_with('|')).collect();
        let expected_lines: Vec<&str> = expected.lines().collect();
        assert_eq!(listed, expected_lines, "docs/errors.md differs from the catalogue; it should hold:\n{expected}");
    }
}
