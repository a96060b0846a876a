//! Queries that are wrong, huge or deep.

use ficus_conformance::client::{Options, text};
use ficus_model::Value;
use ficus_wire::Format;

use crate::{FORMATS, Fate, Tested, fate};

/// The nesting that must be refused rather than overflow a stack.
const DEPTH: usize = 5_000;

#[test]
fn mistakes_in_a_query_are_refused_with_their_status() {
    let mut tested = Tested::start();
    for format in FORMATS {
        let mut client = tested.client(format);
        let mut check = |gremlin: &str, bindings: &[(&str, Value)], status: u16, message: &str| {
            let bindings = bindings.iter().map(|(name, value)| (text(name), value.clone())).collect();
            let options = Options { bindings, ..Options::alias("gmodern") };
            let failure = client.submit(gremlin, &options).expect_err(gremlin);
            assert_eq!(failure.status(), Some(status), "{gremlin}: {failure}");
            let lower = failure.to_string().to_lowercase();
            assert!(lower.contains(&message.to_lowercase()), "{gremlin}: expected {message:?} in: {failure}");
        };
        // A typo: the word, and what was meant.
        check("g.V().outt('knows')", &[], 597, "outt");
        check("g.V().has('name' 'marko')", &[], 597, "line 1");
        check("g.V(", &[], 597, "");
        check("", &[], 597, "");
        check("g.V().map{it.get()}", &[], 597, "");
        // A missing parameter.
        check("g.V().has('name', nobody)", &[], 597, "nobody");
        check("g.V(missing)", &[("other", Value::Int(1))], 597, "missing");
        // A wrong type, in the text, as a parameter, and met while running.
        check("g.V().limit('three')", &[], 597, "");
        check("g.V().limit(n)", &[("n", text("three"))], 597, "");
        check("g.V().values('name').sum()", &[], 597, "");
        check("g.V().values('name').math('_ + 1')", &[], 597, "");
        check("g.V().has('age', TextP.startingWith('x'))", &[], 597, "");
        // An unknown source, a reserved parameter.
        let unknown = client.submit("g.V()", &Options::alias("gnobody")).expect_err("there is no such source");
        assert_eq!(unknown.status(), Some(499), "{unknown}");
    }
    tested.assert_healthy();
}

#[test]
fn a_query_of_ten_megabytes_is_answered_or_refused() {
    let mut tested = Tested::start();
    for format in FORMATS {
        // As data: it is as long as it may be, and nothing is wrong with it.
        let long = format!("g.inject('{}').count()", "a".repeat(10_000_000));
        let answer = tested.client(format).submit(&long, &Options::alias("gmodern"));
        assert_eq!(answer, Ok(vec![Value::Long(1)]), "{format:?}");
        // As steps: more than any query needs.
        let steps = format!("g.V(){}", ".out()".repeat(1_600_000));
        let failure = tested.client(format).submit(&steps, &Options::alias("gmodern")).expect_err("too many steps");
        assert_eq!(failure.status(), Some(597), "{format:?}: {failure}");
        // As a literal that is never closed, and as brackets only.
        for bad in [format!("g.inject('{}", "a".repeat(10_000_000)), format!("g.inject({}", "(".repeat(10_000_000))] {
            let failure = tested.client(format).submit(&bad, &Options::alias("gmodern")).expect_err("not closed");
            assert_eq!(failure.status(), Some(597), "{format:?}");
        }
        // Past the limit of a message: the status says so, or the connection is closed for it.
        let past = format!("g.inject('{}')", "a".repeat(11 << 20));
        let mut client = tested.client(format);
        let request = ficus_conformance::client::eval_request(&past, &Options::alias("gmodern"));
        match client.send(&request).map(|()| fate(&mut client)) {
            Ok(Fate::Answered(response)) => assert_eq!(response.status, 499, "{format:?}: {}", response.message),
            Ok(Fate::Closed) | Err(_) => {}
        }
    }
    tested.assert_healthy();
}

#[test]
fn a_query_nested_five_thousand_deep_is_refused() {
    let mut tested = Tested::start();
    let nested = |open: &str, middle: &str, close: &str| {
        format!("g.inject(1){}{middle}{}", open.repeat(DEPTH), close.repeat(DEPTH))
    };
    let queries = [
        format!("g.V(){}{}", ".where(__.out()".repeat(DEPTH), ")".repeat(DEPTH)),
        format!("g.V().where({}__.out(){})", "__.not(".repeat(DEPTH), ")".repeat(DEPTH)),
        format!("g.V().repeat({}out(){}", "repeat(".repeat(DEPTH), ").times(1)".repeat(DEPTH)),
        format!("g.inject({}1{})", "[".repeat(DEPTH), "]".repeat(DEPTH)),
        format!("g.inject({}1{})", "[a:".repeat(DEPTH), "]".repeat(DEPTH)),
        format!("g.V().has('age',{}gt(1){})", "P.not(".repeat(DEPTH), ")".repeat(DEPTH)),
        nested(".union(__", ".identity()", ")"),
    ];
    for format in FORMATS {
        for query in &queries {
            let failure = tested.client(format).submit(query, &Options::alias("gmodern"));
            let failure = failure.expect_err("nested too deep");
            let start: String = query.chars().take(40).collect();
            assert_eq!(failure.status(), Some(597), "{format:?} {start}…: {failure}");
        }
    }
    // Long is not deep: a chain of calls of the same predicate must not recurse either.
    let chain = format!("g.V().has('age',gt(0){}).count()", ".and(gt(0))".repeat(DEPTH));
    match tested.client(Format::GraphBinary1).submit(&chain, &Options::alias("gmodern")) {
        Ok(answer) => assert_eq!(answer, [Value::Long(4)]),
        Err(failure) => assert_eq!(failure.status(), Some(597), "{failure}"),
    }
    tested.assert_healthy();
}
