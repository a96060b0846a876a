//! Requests and their answers: batches, arguments, status codes, formats.

use ficus_model::{Shared, Value};
use ficus_wire::{Data, Format, Limits, RequestId};
use tokio_tungstenite::tungstenite::Message;

use crate::client::*;

#[tokio::test]
async fn batches_end_with_the_final_status() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    /// Rows, batch size, and status and rows of each part.
    type Case = (i64, Option<i32>, &'static [(u16, usize)]);
    let check: &[Case] = &[
        (0, None, &[(204, 0)]),
        (1, None, &[(200, 1)]),
        (64, None, &[(200, 64)]),
        (65, None, &[(206, 64), (200, 1)]),
        (128, None, &[(206, 64), (200, 64)]),
        (130, None, &[(206, 64), (206, 64), (200, 2)]),
        (5, Some(2), &[(206, 2), (206, 2), (200, 1)]),
        (300, Some(1000), &[(200, 300)]),
    ];
    for (rows, batch_size, expected) in check {
        let args: Vec<_> = batch_size.iter().map(|size| ("batchSize", Value::Int(*size))).collect();
        let parts = client.ask(&eval_with(&format!("rows {rows}"), &args)).await;
        let found: Vec<_> = parts.iter().map(|part| (part.status, values(part).len())).collect();
        assert_eq!(found, *expected, "{rows} rows by {batch_size:?}");
        let all: Vec<_> = parts.iter().flat_map(values).collect();
        let numbers: Vec<_> = (0..*rows).map(|row| Value::Int(row as i32)).collect();
        assert_eq!(all, numbers);
    }
}

#[tokio::test]
async fn text_gets_values_and_bytecode_traversers_with_bulk() {
    let server = Server::start().await;
    for format in [Format::GraphBinary1, Format::GraphSon3, Format::GraphSon2] {
        let mut client = server.connect().await.speaking(format);
        let answer = client.ask_once(&eval("bulk 3")).await;
        assert_eq!(answer.data, Data::Values(vec![Value::Int(7); 3]), "{format:?}");
        let answer = client.ask_once(&bytecode(steps("bulk", 3))).await;
        assert_eq!(answer.data, Data::Traversers(vec![(Value::Int(7), 3)]), "{format:?}");
    }
}

#[tokio::test]
async fn a_null_is_a_result() {
    let server = Server::start().await;
    let answer = server.connect().await.ask_once(&eval("null")).await;
    assert_eq!((answer.status, answer.data), (200, Data::Values(vec![Value::Null])));
}

#[tokio::test]
async fn the_last_part_carries_host_and_the_attributes_of_the_engine() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let answer = client.ask_once(&eval("echo")).await;
    let host = format!("/{}", client.socket.get_ref().local_addr().unwrap());
    assert_eq!(attribute(&answer, "host"), Some(&text(&host)));
    assert_eq!(attribute(&answer, "engine"), Some(&Value::Int(1)));
    let parts = client.ask(&eval("rows 65")).await;
    assert!(parts[0].attributes.is_empty());
    assert_eq!(attribute(&client.ask_once(&eval("rows 0")).await, "host"), Some(&text(&host)));
}

#[tokio::test]
async fn text_frames_are_answered_in_text_frames() {
    let server = Server::start().await;
    let mut client = server.connect().await.in_text();
    assert_eq!(values(&client.ask_once(&eval("rows 2")).await), [Value::Int(0), Value::Int(1)]);
    client.send_message(Message::text("{")).await;
    assert_eq!(client.next().await.status, 499);
}

#[tokio::test]
async fn every_format_is_answered_in_itself() {
    let server = Server::start().await;
    for &format in Format::ALL {
        let mut client = server.connect().await.speaking(format);
        let answer = client.ask_once(&eval("rows 2")).await;
        assert_eq!((answer.status, values(&answer).len()), (200, 2), "{format:?}");
    }
}

#[tokio::test]
async fn one_socket_may_mix_formats() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for format in [Format::GraphSon3, Format::GraphBinary1, Format::GraphSon2] {
        client = client.speaking(format);
        assert_eq!(client.ask_once(&eval("rows 1")).await.status, 200);
    }
}

#[tokio::test]
async fn ids_may_be_text_and_repeat() {
    let server = Server::start().await;
    let mut client = server.connect().await.speaking(Format::GraphSon3);
    let mut request = eval("rows 1");
    request.id = RequestId::Text("mine".into());
    for _ in 0..2 {
        assert_eq!(client.ask_once(&request).await.request_id, Some(RequestId::Text("mine".into())));
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_and_run_together() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let requests = [eval("wait 1000"), eval("rows 200"), eval("wait 1"), eval("fail 500"), eval("rows 0")];
    for request in &requests {
        client.send(request).await;
    }
    let mut statuses = Vec::new();
    for request in &requests {
        statuses.push(client.collect(&request.id).await.last().unwrap().status);
    }
    assert_eq!(statuses, [200, 200, 200, 500, 204]);
    assert_eq!(server.mock.log(), ["waited 1", "waited 1000"], "the short one did not wait for the long one");
}

#[tokio::test]
async fn failures_carry_status_message_and_attributes() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for status in [500, 595, 596, 597, 598, 599] {
        let answer = client.ask_once(&eval(&format!("fail {status}"))).await;
        assert_eq!((answer.status, answer.message.as_str()), (status, format!("failed with {status}").as_str()));
        let Some(Value::List(exceptions)) = attribute(&answer, "exceptions") else { panic!("{answer:?}") };
        assert_eq!(exceptions.len(), 1);
        assert!(matches!(attribute(&answer, "stackTrace"), Some(Value::String(_))));
        assert_eq!(attribute(&answer, "failStepMessage").is_some(), status == 595);
        assert_eq!(attribute(&answer, "retryable"), Some(&Value::Bool(status == 596)));
    }
}

#[tokio::test]
async fn misbehaviour_of_the_engine_is_answered() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for (query, status, code) in
        [("panic", 500, "FICUS-1901"), ("vanish", 500, "FICUS-1901"), ("undetached", 599, "FICUS-1501")]
    {
        let answer = client.ask_once(&eval(query)).await;
        assert_eq!((answer.status, attribute(&answer, "code")), (status, Some(&text(code))), "{query}");
    }
    let parts = client.ask(&eval("late")).await;
    let statuses: Vec<_> = parts.iter().map(|part| part.status).collect();
    assert_eq!(statuses, [206, 206, 206, 599]);
    assert_eq!(client.ask_once(&eval("rows 1")).await.status, 200, "the connection goes on");
}

#[tokio::test]
async fn arguments_that_break_rules_are_refused() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let g = |name: &str| ("aliases", map(&[("g", text(name))]));
    let gremlin = |query: &str| ("gremlin", text(query));
    let one = ("gremlin", steps("rows", 1));
    let bindings = |name: &str| ("bindings", map(&[(name, Value::Int(1))]));
    let many: Vec<(String, Value)> = (0..65).map(|index| (format!("b{index}"), Value::Int(1))).collect();
    let many: Vec<(&str, Value)> = many.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let number_key = Value::Map(Shared::new([(Value::Int(1), Value::Int(1))].into_iter().collect()));
    /// Operation, processor, arguments, status, part of the message.
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, Value)], u16, &'a str);
    let check: &[Case] = &[
        ("eval", "", &[], 499, "requires a [gremlin] argument"),
        ("eval", "", &[("gremlin", Value::Int(1))], 499, "of type String"),
        ("eval", "nowhere", &[gremlin("rows 1")], 499, "Invalid OpProcessor requested [nowhere]"),
        ("dance", "", &[gremlin("rows 1")], 498, "op code [dance] is not recognized"),
        ("bytecode", "", &[one.clone(), g("g")], 498, "op code [bytecode] is not recognized"),
        ("eval", "traversal", &[gremlin("rows 1")], 498, "op code [eval] is not recognized"),
        ("close", "traversal", &[], 498, "op code [close] is not recognized"),
        ("authentication", "", &[("sasl", text("x"))], 498, "authenticated already"),
        ("bytecode", "traversal", &[g("g")], 499, "requires a [gremlin] argument"),
        ("bytecode", "traversal", &[gremlin("rows 1"), g("g")], 499, "of type Bytecode"),
        ("bytecode", "traversal", std::slice::from_ref(&one), 499, "requires a [aliases] argument"),
        ("bytecode", "traversal", &[one.clone(), ("aliases", map(&[("h", text("g"))]))], 499, "named 'g'"),
        (
            "bytecode",
            "traversal",
            &[one.clone(), g("gx")],
            499,
            "traversal source [gx] for alias [g] is not configured",
        ),
        ("eval", "", &[gremlin("rows 1"), g("gx")], 499, "Could not alias [g] to [gx]"),
        ("eval", "", &[gremlin("rows 1"), ("aliases", text("g"))], 499, "of type Map"),
        ("eval", "", &[gremlin("rows 1"), bindings("id")], 499, "reserved names"),
        ("eval", "", &[gremlin("rows 1"), bindings("LABEL")], 499, "reserved names"),
        ("eval", "", &[gremlin("rows 1"), bindings("asc")], 499, "reserved names"),
        ("eval", "", &[gremlin("rows 1"), bindings("sum")], 499, "reserved names"),
        ("eval", "", &[gremlin("rows 1"), ("bindings", number_key)], 499, "must be of type String"),
        ("eval", "", &[gremlin("rows 1"), ("bindings", map(&many))], 499, "contains 65 bindings"),
        ("eval", "", &[gremlin("rows 1"), ("language", text("cypher"))], 499, "[cypher] is not an available language"),
        ("eval", "", &[gremlin("rows 1"), ("batchSize", Value::Int(0))], 499, "[batchSize]"),
        ("eval", "", &[gremlin("rows 1"), ("batchSize", Value::Int(100_001))], 499, "[batchSize]"),
        ("eval", "", &[gremlin("rows 1"), ("evaluationTimeout", text("1"))], 499, "[evaluationTimeout]"),
        ("eval", "", &[gremlin("rows 1"), ("evaluationTimeout", Value::Int(-1))], 499, "[evaluationTimeout]"),
        ("eval", "", &[gremlin("rows 1"), ("materializeProperties", text("some"))], 499, "[all] or [tokens]"),
        (
            "eval",
            "",
            &[gremlin("rows 1"), ("manageTransaction", Value::Bool(true))],
            499,
            "only applies to requests made",
        ),
        ("eval", "", &[gremlin("rows 1"), ("session", text("s"))], 499, "needs the processor [session]"),
        ("eval", "session", &[gremlin("rows 1")], 499, "requires a [session] argument"),
        ("close", "session", &[], 499, "requires a [session] argument"),
        ("bytecode", "session", &[one.clone(), g("g")], 499, "requires a [session] argument"),
        ("bytecode", "traversal", &[("gremlin", tx("commit")), g("g")], 499, "needs a session"),
        ("bytecode", "traversal", &[("gremlin", tx("dance")), g("g")], 499, "not a recognized graph operation"),
    ];
    for (op, processor, args, status, message) in check {
        let answer = client.ask_once(&request(op, processor, args)).await;
        assert!(answer.message.contains(message), "{op} {processor} {args:?}: {answer:?}");
        assert_eq!(answer.status, *status, "{op} {processor} {args:?}: {answer:?}");
    }
}

#[tokio::test]
async fn arguments_reach_the_engine() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let answer = client.ask_once(&eval("echo")).await;
    assert_eq!(entry(&answer, "source"), text("g"));
    assert_eq!(entry(&answer, "timeout"), Value::Long(30_000));
    assert_eq!(entry(&answer, "cap"), Value::Long(600_000));
    assert_eq!(entry(&answer, "batch"), Value::Int(64));
    assert_eq!(entry(&answer, "materialize"), text("All"));
    assert_eq!(entry(&answer, "transaction"), Value::Null);
    assert_eq!(entry(&answer, "language"), Value::Null);
    let args = [
        ("aliases", map(&[("g", text("gmodern"))])),
        ("evaluationTimeout", Value::Long(700_000)),
        ("batchSize", Value::Int(7)),
        ("materializeProperties", text("tokens")),
        ("language", text("gremlin-groovy")),
        ("bindings", map(&[("x", Value::Long(1))])),
        ("userAgent", text("tests")),
        ("accept", text("what JavaScript sends")),
        ("frobnicate", Value::Int(1)),
    ];
    let answer = client.ask_once(&eval_with("echo", &args)).await;
    assert_eq!(entry(&answer, "source"), text("gmodern"));
    assert_eq!(entry(&answer, "timeout"), Value::Long(600_000));
    assert_eq!(entry(&answer, "batch"), Value::Int(7));
    assert_eq!(entry(&answer, "materialize"), text("Tokens"));
    assert_eq!(entry(&answer, "language"), text("gremlin-groovy"));
    assert_eq!(entry(&answer, "bindings"), map(&[("x", Value::Long(1))]));
    let Some(Value::List(warnings)) = attribute(&answer, "warnings") else { panic!("{answer:?}") };
    assert_eq!(**warnings, [text("the argument [frobnicate] is not known and had no effect")]);
}

#[tokio::test]
async fn malformed_messages_are_answered() {
    let server = Server::start().await;
    let mut client = server.connect().await.speaking(Format::GraphSon3);
    let json = |body: &str| [b"\x21application/vnd.gremlin-v3.0+json", body.as_bytes()].concat();
    let check = [
        (Vec::new(), 499),
        (vec![0], 499),
        (vec![200, 1, 2], 499),
        (b"\x04text{}".to_vec(), 499),
        (json(""), 499),
        (json("{"), 499),
        (json("[]"), 499),
        (json("{\"op\":\"eval\",\"processor\":\"\",\"args\":{\"gremlin\":\"rows 1\"}}"), 499),
        (json(&"[".repeat(5000)), 499),
    ];
    for (bytes, status) in check {
        client.send_message(Message::binary(bytes.clone())).await;
        let answer = client.next().await;
        assert_eq!(answer.status, status, "{:?}: {answer:?}", String::from_utf8_lossy(&bytes));
        assert!(answer.message.contains("Message could not be parsed"), "{answer:?}");
    }
    let mut good = Vec::new();
    ficus_wire::encode_frame(Format::GraphBinary1, &eval("rows 1"), &mut good).unwrap();
    client = client.speaking(Format::GraphBinary1);
    for length in 33..good.len() {
        client.send_message(Message::binary(good[..length].to_vec())).await;
        let answer = client.next().await;
        assert!(matches!(answer.status, 499 | 599), "cut at {length}: {answer:?}");
    }
    assert_eq!(client.ask_once(&eval("rows 1")).await.status, 200, "the connection goes on");
}

#[tokio::test]
async fn noise_is_answered() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let seed: u64 = 0x5eed;
    let mut state = seed;
    for round in 0..300 {
        let mut bytes = b"\x20application/vnd.graphbinary-v1.0".to_vec();
        let length = round % 40;
        bytes.extend((0..length).map(|_| {
            // An xorshift is noise enough.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        }));
        client.send_message(Message::binary(bytes)).await;
        let Some(Message::Binary(bytes)) = client.next_message().await else { panic!("seed {seed}, round {round}") };
        let answer = ficus_wire::decode_response(Format::GraphBinary1, &bytes, &Limits::default());
        let status = answer.expect("readable").status;
        assert!(matches!(status, 499 | 599), "seed {seed}, round {round}: {status}");
    }
}
