//! Bytes that no honest client sends: truncated, mutated, enormous, deeply nested.

#![allow(clippy::print_stdout)] // Randomised tests say their seed, and a test's output is shown when it fails.

mod common;

use common::*;
use ficus_model::Value;
use ficus_wire::{
    DecodeError, DecodeErrorKind, Format, Limits, Request, decode_frame, decode_request, decode_response, decode_value,
    encode_value,
};

/// A small generator of the SplitMix64 family; its seed is all that a run depends on.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn seed() -> u64 {
    match std::env::var("FICUS_TEST_SEED") {
        Ok(seed) => seed.parse().expect("FICUS_TEST_SEED is a number"),
        Err(_) => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64,
    }
}

/// All fixtures as bytes, messages included.
fn corpus() -> Vec<(Format, Vec<u8>)> {
    let bodies = fixtures().filter_map(|(_, column, text)| {
        let format = match column {
            "1" => Format::GraphSon1,
            "2" => Format::GraphSon2,
            "3" => Format::GraphSon3,
            "2u" => Format::GraphSon3Untyped,
            "b" => return Some((Format::GraphBinary1, bytes_of_hex(text))),
            _ => return None,
        };
        Some((format, text.as_bytes().to_vec()))
    });
    bodies.collect()
}

/// Changes a few bytes, cuts, repeats or splices.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            1 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, [0x00, 0x7f, 0x80, 0xff, b'[', b'{', b'"', b','][random.below(8)]),
            4 => {
                let from = random.below(other.len());
                let length = random.below(other.len() - from + 1);
                bytes.splice(at..at, other[from..from + length].iter().copied());
            }
            5 if bytes.len() > 4 => {
                let at = random.below(bytes.len() - 4);
                let number = [i32::MAX, i32::MIN, -1, 0x0100_0000, 3][random.below(5)];
                bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
            }
            _ => {
                let end = at + random.below(bytes.len() - at + 1);
                bytes.drain(at..end);
            }
        }
    }
}

/// Tight, so that a test that ran wild would be noticed by its time.
fn limits() -> Limits {
    Limits { items: 10_000, ..Limits::default() }
}

fn decode_every_way(format: Format, bytes: &[u8]) {
    let _ = decode_value(format, bytes, &limits());
    let _ = decode_request(format, bytes, &limits());
    let _ = decode_response(format, bytes, &limits());
    let mime = format.mime();
    let frame = [&[mime.len() as u8], mime.as_bytes(), bytes].concat();
    let _ = decode_frame(&frame, &limits());
}

#[test]
fn mutated_bytes_never_panic() {
    let seed = seed();
    println!("seed {seed}; FICUS_TEST_SEED={seed} repeats this run");
    let corpus = corpus();
    let mut random = Random(seed);
    for _ in 0..40_000 {
        let (format, bytes) = &corpus[random.below(corpus.len())];
        let (_, other) = &corpus[random.below(corpus.len())];
        let mut bytes = bytes.clone();
        mutate(&mut random, &mut bytes, other);
        decode_every_way(*format, &bytes);
    }
}

#[test]
fn mutants_that_are_read_can_be_written_and_read_again() {
    let seed = seed();
    println!("seed {seed}; FICUS_TEST_SEED={seed} repeats this run");
    let corpus = corpus();
    let mut random = Random(seed);
    for _ in 0..20_000 {
        let (format, bytes) = &corpus[random.below(corpus.len())];
        let mut bytes = bytes.clone();
        mutate(&mut random, &mut bytes, &[1]);
        let Ok(value) = decode_value(*format, &bytes, &limits()) else { continue };
        for format in [Format::GraphBinary1, Format::GraphSon3] {
            let mut written = Vec::new();
            if encode_value(format, &value, &mut written).is_err() {
                continue;
            }
            let generous = Limits { nesting: 1000, ..Limits::default() };
            let read = decode_value(format, &written, &generous);
            assert!(read.is_ok(), "{format:?} {value:?} {read:?}");
        }
    }
}

#[test]
fn every_prefix_of_a_message_is_refused_or_read() {
    for (format, bytes) in corpus() {
        for end in 0..bytes.len() {
            decode_every_way(format, &bytes[..end]);
        }
    }
}

fn refused(format: Format, bytes: &[u8]) -> Box<DecodeError> {
    decode_value(format, bytes, &Limits::default()).unwrap_err()
}

#[test]
fn lengths_beyond_the_message_are_refused_before_anything_is_allocated() {
    for type_code in [0x03, 0x09, 0x0a, 0x0b, 0x15, 0x23, 0x25, 0x2a, 0x2b] {
        for length in [0x7fff_ffff_u32, 0xffff_ffff, 0x0100_0000] {
            let bytes = [&[type_code, 0][..], &length.to_be_bytes(), &[0; 8]].concat();
            let error = refused(Format::GraphBinary1, &bytes);
            assert_eq!(error.kind, DecodeErrorKind::Malformed);
            assert_eq!(error.offset, 2, "{error}");
        }
    }
}

/// The deepest accepted value of each format must fit a thread with little stack.
#[test]
fn nesting_is_bounded_where_the_stack_is_not() {
    let json = |depth: usize, open: &str, close: &str| [open.repeat(depth), "1".into(), close.repeat(depth)].concat();
    let check = move || {
        let typed = |depth| json(depth, r#"{"@type":"g:List","@value":["#, "]}");
        let reversed = |depth| json(depth, r#"{"@value":["#, r#"],"@type":"g:Set"}"#);
        let traversals = |depth| json(depth, r#"{"@type":"g:Bytecode","@value":{"step":[["repeat","#, "]]}}");
        let predicates = |depth| json(depth, r#"{"@type":"g:P","@value":{"predicate":"eq","value":"#, "}}");
        let trees = |depth: usize| {
            let open = r#"{"@type":"g:Tree","@value":[{"key":1,"value":"#.repeat(depth);
            format!(r#"{open}{{"@type":"g:Tree","@value":[]}}{}"#, "}]}".repeat(depth))
        };
        let properties = |depth| json(depth, r#"{"@type":"g:VertexProperty","@value":{"value":"#, "}}");
        let plain = |depth| json(depth, "[", "]");
        let forms: [&dyn Fn(usize) -> String; 7] =
            [&typed, &reversed, &traversals, &predicates, &trees, &properties, &plain];
        for (index, form) in forms.iter().enumerate() {
            for format in [Format::GraphSon3, Format::GraphSon1, Format::GraphSon2Untyped] {
                // Eight levels of `@value` before `@type` is more than drivers send, sixty levels would be read often.
                let accepted = if index == 1 { 8 } else { 60 };
                decode_value(format, form(accepted).as_bytes(), &Limits::default())
                    .unwrap_or_else(|error| panic!("form {index}: {error}"));
                for depth in [1000, 100_000] {
                    assert_eq!(refused(format, form(depth).as_bytes()).kind, DecodeErrorKind::Limit, "form {index}");
                }
            }
        }
        let list = [0x09, 0, 0, 0, 0, 1];
        let bytecode = [0x15, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
        for head in [&list[..], &bytecode] {
            let nested = |depth: usize| [head.repeat(depth), vec![0xfe, 1], vec![0; depth * 4]].concat();
            assert_eq!(refused(Format::GraphBinary1, &nested(100_000)).kind, DecodeErrorKind::Limit);
        }
        let deep_list = [list.repeat(127), vec![0xfe, 1]].concat();
        let value = decode_value(Format::GraphBinary1, &deep_list, &Limits::default()).unwrap();
        for &format in Format::ALL {
            encode_value(format, &value, &mut Vec::new()).unwrap();
        }
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(check).unwrap().join().unwrap();
}

#[test]
fn values_nested_too_deep_are_not_written() {
    let deep = (0..300).fold(Value::Null, |inner, _| list([inner]));
    for &format in Format::ALL {
        let mut out = b"before".to_vec();
        assert!(encode_value(format, &deep, &mut out).is_err());
        assert_eq!(out, b"before");
    }
}

#[test]
fn bulks_do_not_multiply_memory() {
    let bulked = |bulk: i64| {
        let head = [0x09, 2, 0, 0, 0, 1, 0x01, 0, 0, 0, 0, 7];
        [&head[..], &bulk.to_be_bytes()].concat()
    };
    let three = decode_value(Format::GraphBinary1, &bulked(3), &Limits::default()).unwrap();
    assert_eq!(three, list([7, 7, 7].map(Value::Int)));
    assert_eq!(refused(Format::GraphBinary1, &bulked(i64::MAX)).kind, DecodeErrorKind::Limit);
    assert_eq!(refused(Format::GraphBinary1, &bulked(0)).kind, DecodeErrorKind::Malformed);
    assert_eq!(refused(Format::GraphBinary1, &bulked(-1)).kind, DecodeErrorKind::Malformed);
    let flagged_int = [0x01, 2, 0, 0, 0, 1];
    assert_eq!(refused(Format::GraphBinary1, &flagged_int).kind, DecodeErrorKind::Malformed);
}

#[test]
fn numbers_and_messages_have_a_longest() {
    let digits = "9".repeat(20_000);
    assert_eq!(refused(Format::GraphSon3, digits.as_bytes()).kind, DecodeErrorKind::Limit);
    for quote in ["", "\""] {
        let typed = format!(r#"{{"@type":"gx:BigInteger","@value":{quote}{digits}{quote}}}"#);
        assert_eq!(refused(Format::GraphSon3, typed.as_bytes()).kind, DecodeErrorKind::Limit);
    }
    let binary = [&[0x23, 0][..], &10_000_u32.to_be_bytes(), &[1; 10_000]].concat();
    assert_eq!(refused(Format::GraphBinary1, &binary).kind, DecodeErrorKind::Limit);
    let small = Limits { bytes: 10, ..Limits::default() };
    assert_eq!(decode_value(Format::GraphSon3, b"\"0123456789\"", &small).unwrap_err().kind, DecodeErrorKind::Limit);
    let few = Limits { items: 10, ..Limits::default() };
    let many = list((0..10).map(Value::Int));
    for format in [Format::GraphSon3, Format::GraphBinary1] {
        let mut bytes = Vec::new();
        encode_value(format, &many, &mut bytes).unwrap();
        assert_eq!(decode_value(format, &bytes, &few).unwrap_err().kind, DecodeErrorKind::Limit);
    }
}

fn refused_request(format: Format, body: &str) -> Box<DecodeError> {
    decode_request(format, body.as_bytes(), &Limits::default()).unwrap_err()
}

#[test]
fn errors_tell_place_expectation_finding_and_request() {
    let check = |body: &str, expected: &str, id: Option<&str>| {
        let error = refused_request(Format::GraphSon3, body);
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.request_id.map(|id| id.to_string()).as_deref(), id);
        assert_eq!(error.format, Some(Format::GraphSon3));
    };
    check("", "malformed message at byte 0: expected an object, found the end", None);
    check(r#"{"requestId":"x"}"#, "incomplete message at byte 17: op is missing", Some("x"));
    check(r#"{"op":"eval","args":{}}"#, "incomplete message at byte 23: requestId is missing", None);
    check(
        r#"{"op":"eval","args":{"a":{"@type":"g:Wrong","@value":1}},"requestId":"late"}"#,
        "malformed message at byte 53: expected a type of GraphSON, found \"g:Wrong\"",
        Some("late"),
    );
    check(
        r#"{"requestId":"x","op":"eval","args":{"a":{"@type":"g:Int32","@value":1.5}}}"#,
        "malformed message at byte 69: expected a 32-bit integer, found \"1.5}}}\"",
        Some("x"),
    );
}

#[test]
fn frames_tell_their_format_even_when_the_body_is_broken() {
    let limits = Limits::default();
    let frame = |mime: &str, body: &[u8]| [&[mime.len() as u8], mime.as_bytes(), body].concat();
    let error = decode_frame(&frame("application/vnd.graphbinary-v1.0", &[0x81]), &limits).unwrap_err();
    assert_eq!(error.format, Some(Format::GraphBinary1));
    let uuid_and_no_more = [&[0x81][..], &[7; 16]].concat();
    let error = decode_frame(&frame("application/vnd.graphbinary-v1.0", &uuid_and_no_more), &limits).unwrap_err();
    assert_eq!(error.request_id.unwrap().to_string(), "07070707-0707-0707-0707-070707070707");
    let error = decode_frame(&frame("text/csv", b"1"), &limits).unwrap_err();
    assert_eq!((error.kind, error.format), (DecodeErrorKind::UnknownMime, None));
    assert!(decode_frame(&[], &limits).is_err());
    assert!(decode_frame(&[200, 1, 2], &limits).is_err());
}

#[test]
fn requests_of_json_clients_are_read_leniently() {
    let read = |body: &str| -> Request {
        decode_request(Format::GraphSon3, body.as_bytes(), &Limits::default()).unwrap_or_else(|e| panic!("{body}: {e}"))
    };
    let plain =
        read(r#" {"op":"eval","requestId":"my id","args":{"gremlin":"g.V()","bindings":{"x":1}},"extra":[1]} "#);
    assert_eq!(plain.id.to_string(), "my id");
    assert_eq!(&*plain.processor, "");
    assert_eq!(plain.arg("gremlin"), Some(&string("g.V()")));
    assert_eq!(plain.arg("bindings"), Some(&map([(string("x"), Value::Int(1))])));
    let typed = format!(
        r#"{{"args":{{"@value":["gremlin","1"],"@type":"g:Map"}},"processor":null,"op":"eval",
            "requestId":{{"@value":"{ID}","@type":"g:UUID"}}}}"#
    );
    let typed = read(&typed);
    assert_eq!(typed.id.to_string(), ID);
    assert_eq!(typed.arg("gremlin"), Some(&string("1")));
    assert_eq!(typed.arg("language"), None);
}
