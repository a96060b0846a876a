//! Frames that are not what a serializer prescribes: crafted, cut short, and mutated at random.

use std::time::Instant;

use ficus_conformance::client::{Options, eval_request, text};
use ficus_model::{Shared, Value};
use ficus_wire::Format;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::{FORMATS, Fate, Tested, fate};

const DEPTH: usize = 5_000;
const MUTATIONS: usize = 1_500;

/// A frame: mime type with its length, and a body.
fn frame(mime: &str, body: &[u8]) -> Vec<u8> {
    let length = u8::try_from(mime.len()).expect("a short mime type");
    [&[length], mime.as_bytes(), body].concat()
}

/// A GraphBinary request up to and with its one argument's name; the value is to follow.
fn graph_binary_argument(op: &str, name: &str) -> Vec<u8> {
    let mut body = vec![0x81];
    body.extend([7; 16]);
    for word in [op, "traversal"] {
        body.extend(i32::try_from(word.len()).expect("a short word").to_be_bytes());
        body.extend(word.as_bytes());
    }
    body.extend(1i32.to_be_bytes());
    body.extend([0x03, 0x00]);
    body.extend(i32::try_from(name.len()).expect("a short name").to_be_bytes());
    body.extend(name.as_bytes());
    body
}

fn graph_binary(value: &[u8]) -> Vec<u8> {
    frame(Format::GraphBinary1.mime(), &[&graph_binary_argument("bytecode", "gremlin"), value].concat())
}

fn graph_son(body: &str) -> Vec<u8> {
    frame(Format::GraphSon3.mime(), body.as_bytes())
}

#[test]
fn crafted_frames_get_their_status() {
    let mut tested = Tested::start();
    let deep_json = format!(
        r#"{{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","op":"eval","processor":"","args":{{"gremlin":{}1{}}}}}"#,
        "[".repeat(DEPTH),
        "]".repeat(DEPTH)
    );
    let deep_lists = [[0x09, 0x00, 0, 0, 0, 1].repeat(DEPTH), vec![0xFE, 0x01]].concat();
    // Bytecode with one step `where` whose one argument is such bytecode again.
    let one_step = [&[0x15, 0x00, 0, 0, 0, 1, 0, 0, 0, 5], b"where".as_slice(), &[0, 0, 0, 1]].concat();
    let deep_bytecode = [one_step.repeat(DEPTH), vec![0xFE, 0x01]].concat();
    let json = |op: &str, processor: &str, args: &str| {
        graph_son(&format!(
            r#"{{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","op":"{op}","processor":"{processor}","args":{args}}}"#
        ))
    };
    let cases: Vec<(&str, Vec<u8>, u16)> = vec![
        ("an empty frame", vec![], 499),
        ("only a length", vec![0x21], 499),
        ("a mime type of no length", vec![0], 499),
        ("a mime type longer than the frame", vec![0xFF, b'a'], 499),
        ("an unknown mime type", frame("application/x-nothing", b"{}"), 499),
        ("a mime type that is not text", vec![2, 0xC3, 0x28, b'{', b'}'], 499),
        ("no JSON at all", graph_son(""), 499),
        ("half a JSON text", graph_son("{\"requestId\":"), 499),
        ("JSON of another shape", graph_son("[1,2,3]"), 499),
        ("JSON nested deep", graph_son(&deep_json), 499),
        ("no request id", graph_son(r#"{"op":"eval","processor":"","args":{"gremlin":"g.V()"}}"#), 499),
        ("an unknown operation", json("dance", "", "{}"), 498),
        ("an unknown processor", json("eval", "ballet", r#"{"gremlin":"g.V()"}"#), 499),
        ("no gremlin", json("eval", "", "{}"), 499),
        (
            "bytecode without a source",
            json("bytecode", "traversal", r#"{"gremlin":{"@type":"g:Bytecode","@value":{"step":[["V"]]}}}"#),
            499,
        ),
        ("a type that does not exist", json("eval", "", r#"{"gremlin":{"@type":"g:Nonsense","@value":1}}"#), 599),
        ("no GraphBinary at all", frame(Format::GraphBinary1.mime(), &[]), 499),
        ("another version of GraphBinary", frame(Format::GraphBinary1.mime(), &[0x84; 40]), 499),
        ("a list of two billion", graph_binary(&[0x09, 0x00, 0x7F, 0xFF, 0xFF, 0xFF]), 499),
        ("a list of minus one", graph_binary(&[0x09, 0x00, 0xFF, 0xFF, 0xFF, 0xFF]), 499),
        ("a string of two billion", graph_binary(&[0x03, 0x00, 0x7F, 0xFF, 0xFF, 0xFF, b'a']), 499),
        ("a map of two billion", graph_binary(&[0x0A, 0x00, 0x7F, 0xFF, 0xFF, 0xFF]), 499),
        ("bytecode of two billion steps", graph_binary(&[0x15, 0x00, 0x7F, 0xFF, 0xFF, 0xFF]), 499),
        ("lists nested deep", graph_binary(&deep_lists), 499),
        ("bytecode nested deep", graph_binary(&deep_bytecode), 499),
    ];
    for (name, frame, status) in cases {
        let mut client = tested.client(Format::GraphBinary1);
        client.send_bytes(frame).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        match fate(&mut client) {
            Fate::Answered(response) => assert_eq!(response.status, status, "{name}: {}", response.message),
            Fate::Closed => panic!("{name}: the connection was closed without an answer"),
        }
        // The next request on the same connection is none the worse.
        let answer = client.submit("g.V().count()", &Options::alias("gmodern"));
        assert_eq!(answer, Ok(vec![Value::Long(6)]), "after {name}");
    }
    tested.assert_healthy();
}

/// Requests worth damaging: text with parameters, of every kind of value that matters.
fn sound_frame(format: Format) -> Vec<u8> {
    let list = Value::List(Shared::new(vec![Value::Int(1), Value::Double(0.5), text("x"), Value::Null]));
    let bindings =
        [(text("x1"), list), (text("x2"), Value::Long(6)), (text("x3"), text("marko"))].into_iter().collect();
    let options = Options { bindings, ..Options::alias("gmodern") };
    let request = eval_request("g.V().has('name',x3).limit(x2).count()", &options);
    let mut frame = Vec::new();
    ficus_wire::encode_frame(format, &request, &mut frame).expect("a sound request can be written");
    frame
}

#[test]
fn a_frame_cut_short_anywhere_is_answered() {
    let mut tested = Tested::start();
    for format in FORMATS {
        let whole = sound_frame(format);
        let mut client = tested.client(format);
        for length in 0..whole.len() {
            client.send_bytes(whole[..length].to_vec()).unwrap_or_else(|failure| panic!("{length}: {failure}"));
            match fate(&mut client) {
                Fate::Answered(response) => {
                    assert!(response.status >= 400, "{format:?} cut to {length} bytes is taken for whole");
                }
                Fate::Closed => client = tested.client(format),
            }
        }
    }
    tested.assert_healthy();
}

#[test]
fn a_mutated_frame_is_answered() {
    let seed: u64 = rand::random();
    let mut random = StdRng::seed_from_u64(seed);
    let mut tested = Tested::start();
    let started = Instant::now();
    for format in FORMATS {
        let sound = sound_frame(format);
        let mut client = tested.client(format);
        for round in 0..MUTATIONS {
            let mut bytes = sound.clone();
            for _ in 0..random.random_range(1..=4) {
                let at = random.random_range(0..bytes.len());
                match random.random_range(0..5) {
                    0 => bytes[at] ^= 1 << random.random_range(0..8),
                    1 => bytes[at] = [0x00, 0x7F, 0x80, 0xFE, 0xFF, b'"', b'{', b'['][random.random_range(0..8)],
                    2 => drop(bytes.remove(at)),
                    3 => bytes.insert(at, random.random()),
                    _ => bytes.truncate(at.max(1)),
                }
                if bytes.is_empty() {
                    bytes.push(0);
                }
            }
            let context = || format!("seed {seed}, {format:?}, round {round}, {:?}, {bytes:02x?}", started.elapsed());
            if client.send_bytes(bytes.clone()).is_err() {
                panic!("the server does not read: {}", context());
            }
            match fate(&mut client) {
                Fate::Answered(_) => {}
                Fate::Closed => client = tested.client(format),
            }
            assert!(tested.server.is_alive(), "the server ended: {}", context());
        }
    }
    tested.assert_healthy();
}
