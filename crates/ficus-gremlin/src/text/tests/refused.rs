//! Texts that are not gremlin-lang, and what their errors say.

use std::collections::HashMap;

use ficus_dataflow::{CancelToken, Control};
use ficus_model::Value;
use ficus_query::planning::Planning;

use crate::text::{Limits, ParseOptions, SyntaxErrorKind, parse};

#[test]
fn mistakes_are_named_and_placed() {
    use SyntaxErrorKind::*;
    let bindings: HashMap<String, Value> =
        [("name".to_string(), Value::String("x".into())), ("ids".to_string(), Value::Int(1))].into();
    let options = ParseOptions { bindings: &bindings, ..ParseOptions::default() };
    // Text, kind, line, column, and a part of what is displayed.
    let cases = [
        ("", EmptyScript, 1, 1, "nothing to run"),
        (";; // nothing", EmptyScript, 1, 1, "nothing to run"),
        ("g.V().outt()", UnknownStep, 1, 7, "did you mean out()?"),
        ("g.V()\n .hasLable('x')", UnknownStep, 2, 3, "did you mean hasLabel()?"),
        ("g.V().has_label('x')", UnknownStep, 1, 7, "did you mean hasLabel()?"),
        ("g.V().in_('x')", UnknownStep, 1, 7, "did you mean in()?"),
        ("g.V().map(valuees('x'))", UnknownStep, 1, 11, "did you mean values()?"),
        ("g.V().limit('a')", WrongArguments, 1, 13, "limit(Scope, integer), limit(integer)"),
        ("g.V().limit()", WrongArguments, 1, 7, "limit() needs arguments"),
        ("g.V().limit(local)", WrongArguments, 1, 7, "limit(Scope, integer)"),
        ("g.V().count(1)", WrongArguments, 1, 13, "count() does not take an integer here"),
        ("g.V().out(in())", WrongArguments, 1, 11, "out() does not take a traversal here"),
        ("g.V().fold().id(1)", WrongArguments, 1, 17, "does not take 1 arguments here"),
        ("g.V().aggregate(local,'x')", WrongArguments, 1, 17, "local(aggregate('x'))"),
        ("g.V().none()", WrongArguments, 1, 7, "discard()"),
        ("g.V().times(99999999999)", WrongArguments, 1, 13, "32 bit"),
        ("g.V().order().by(incr)", Unsupported, 1, 18, "Order.asc"),
        ("g.V().has('x', P.gtt(1))", UnknownToken, 1, 18, "P.gt"),
        ("g.V().has('x', P.regex('a'))", UnknownToken, 1, 18, "P.within"),
        ("g.V().has('x', Direction.out)", UnknownToken, 1, 26, "Direction.OUT"),
        ("g.V().is(typeOf('Nonsense'))", UnknownToken, 1, 10, "GType.INT"),
        ("g.V(unknown)", UnboundParameter, 1, 5, "the request binds ids, name"),
        ("g.V(id1)", UnboundParameter, 1, 5, "no variable found for id1"),
        (
            "g.V().out(ids)",
            ParameterType,
            1,
            11,
            "the parameter ids is bound to 1, but out() takes a string or null here",
        ),
        ("g.inject(name)", WrongArguments, 1, 10, "inject() takes literals only"),
        ("g.inject([(name):1])", Unsupported, 1, 12, "a map literal takes no parameters"),
        ("name.V()", Unexpected, 1, 1, "name is a parameter"),
        ("g.V('a)", UnterminatedString, 1, 5, "no closing '"),
        ("g.V('a\\qb')", InvalidEscape, 1, 7, "\\uXXXX"),
        ("g.V('\\uD83C')", InvalidEscape, 1, 6, "surrogate"),
        ("g.V(08)", InvalidNumber, 1, 5, "octal"),
        ("g.V(128b)", InvalidNumber, 1, 5, "-128 to 127"),
        ("g.V(1_)", InvalidNumber, 1, 5, "underscore"),
        ("g.V(1e100001m)", InvalidNumber, 1, 5, "100000"),
        ("g.V(12abc)", InvalidNumber, 1, 5, "neither a number nor a name"),
        ("g.V(datetime('2023-02-32'))", InvalidDate, 1, 14, "is not a date"),
        ("g.V(UUID('x'))", InvalidUuid, 1, 10, "is not a UUID"),
        ("g.V(0..2000000)", InvalidRange, 1, 5, "2000001 values"),
        ("g.V(1..600000, 1..600000)", InvalidRange, 1, 16, "600000 values"),
        ("g.V('ab'..'xy')", InvalidRange, 1, 5, "before their last character"),
        ("g.V(1L..2)", InvalidRange, 1, 5, "from an int to an int"),
        ("g.V(1", Unexpected, 1, 4, "this ( is never closed"),
        ("g.inject([1, 2", Unexpected, 1, 10, "this [ is never closed"),
        ("g.V(1))", Unexpected, 1, 7, "has no opening one"),
        ("g.V().", Unexpected, 1, 7, "the end of the script"),
        ("g.V().out", Unexpected, 1, 10, "out needs parentheses"),
        ("g.V().by(T..id)", Unexpected, 1, 11, "unexpected .."),
        ("g.V().is(P..gt(1))", Unexpected, 1, 11, "unexpected .."),
        ("g.V(1,)", Unexpected, 1, 7, "where an argument should be"),
        ("g.inject({a: 1})", Unexpected, 1, 11, "braces are sets"),
        ("g.inject({'a': 1})", Unexpected, 1, 14, "braces are sets"),
        ("g.out()", Unexpected, 1, 3, "g.V().out(…)"),
        ("g.V().withPath()", Unexpected, 1, 7, "g.withPath(…) before the first step"),
        ("g.V().gt(1)", UnknownStep, 1, 7, "is(gt(…))"),
        ("g.V().map(out().next())", Unexpected, 1, 17, "cannot stand in an anonymous traversal"),
        ("g.addE('a').from(g.V(1))", WrongArguments, 1, 18, "__.V(1) instead of g.V(1)"),
        ("g.V(g.V(1))", Unexpected, 1, 5, "end it with next()"),
        ("g.V().next().values('x')", Unexpected, 1, 14, "before next() or toList()"),
        ("g.V().toList().size()", Unexpected, 1, 16, "g.V().count()"),
        ("g.tx()", Unexpected, 1, 7, ".commit()"),
        ("g.tx().undo()", Unexpected, 1, 8, ".rollback()"),
        // Groovy.
        ("g.V().filter{it.get().value('x') > 1}", Unsupported, 1, 13, "filter(values('age').is(gt(30)))"),
        ("g.V().map({x -> x})", Unsupported, 1, 11, "closures are not part of gremlin-lang"),
        ("g.V().sideEffect({ it })", Unsupported, 1, 18, "closures are not part of gremlin-lang"),
        ("g.V().map(Lambda.function('it'))", Unsupported, 1, 11, "lambdas are not part"),
        ("def x = g.V()", Unsupported, 1, 1, "variables cannot be declared"),
        ("x = g.V()", Unsupported, 1, 1, "cannot be assigned to"),
        ("import java.util.*", Unsupported, 1, 1, "no imports"),
        ("System.exit(0)", Unsupported, 1, 1, "cannot call System"),
        ("new Date()", Unsupported, 1, 1, "cannot be created"),
        ("for (v in g.V()) {}", Unsupported, 1, 1, "no for"),
        ("graph.tx().commit()", Unsupported, 1, 1, "g.tx().commit()"),
        ("__.out()", Unsupported, 1, 1, "begin with g"),
        ("V()", Unexpected, 1, 1, "write g.V(…)"),
        ("g.V().toList()[0]", Unsupported, 1, 15, "limit(1)"),
        ("g.V(1 + 2)", Unsupported, 1, 7, "math()"),
        ("g.V().has('a', 1 as Long)", Unsupported, 1, 18, "suffix"),
        ("g.V((long) 1)", Unsupported, 1, 5, "1L"),
        ("g.V() == 1", Unsupported, 1, 7, "eq(1)"),
        ("g.V() /* all */", Unsupported, 1, 7, "//"),
        ("g.V().has('age', System.currentTimeMillis())", Unsupported, 1, 18, "cannot call System"),
        ("g.V().is(typeOf(Integer.class))", Unsupported, 1, 17, "GType.INT"),
        ("g.V().store('x')", Unsupported, 1, 7, "local(aggregate('x'))"),
        ("g.withComputer().V()", Unsupported, 1, 3, "without a graph computer"),
        ("g.V().property(VertexProperty.Cardinality.set,'a',1)", Unsupported, 1, 16, "Cardinality.set"),
        ("g.V().has('x', 'é').outt()", UnknownStep, 1, 21, "did you mean"),
    ];
    let mut wrong = Vec::new();
    for (text, kind, line, column, part) in cases {
        let Err(error) = parse(text, &options) else {
            wrong.push(format!("{text} is accepted"));
            continue;
        };
        let shown = error.to_string();
        let place = format!("line {line}, column {column}:");
        if (error.kind, error.line, error.column) != (kind, line, column) || !shown.contains(&place) {
            wrong.push(format!("{text} should be {kind:?} at {place}, not {:?}\n{shown}", error.kind));
        } else if !shown.contains(part) {
            wrong.push(format!("{text} should say {part:?}\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn an_error_shows_the_place() {
    let error = parse("g.V().\n  has('größe', 1).outt('knows')", &ParseOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "syntax error at line 2, column 19: there is no step outt()\n    has('größe', 1).outt('knows')\n                    ^^^^\ndid you mean out()?"
    );
    assert_eq!(error.kind.code(), "unknown-step");
    assert_eq!(error.offset, 27);
    let far = format!("g.inject('{}').outt().inject('{}')", "x".repeat(500), "y".repeat(500));
    let error = parse(&far, &ParseOptions::default()).unwrap_err();
    let lines: Vec<&str> = error.excerpt.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() < 130), "{}", error.excerpt);
    let caret = lines[1].find('^').expect("a caret");
    assert_eq!(lines[0].chars().skip(caret).take(4).collect::<String>(), "outt");
}

#[test]
fn reading_ends_with_its_query() {
    let cancel = CancelToken::default();
    let planning = Planning::under(Control { cancel: cancel.clone(), ..Control::unlimited() });
    let options = ParseOptions { planning: &planning, ..ParseOptions::default() };
    let long = format!("g.inject({}1)", "1,".repeat(10_000));
    assert!(parse(&long, &options).is_ok());
    cancel.cancel();
    assert_eq!(parse(&long, &options).unwrap_err().kind, SyntaxErrorKind::Stopped);
}

#[test]
fn limits_are_kept() {
    let refused = |text: &str, limits: Limits| {
        parse(text, &ParseOptions { limits, ..ParseOptions::default() }).expect_err(text).kind
    };
    let limits = Limits::default();
    assert_eq!(refused("g.V()", Limits { text_bytes: 4, ..limits }), SyntaxErrorKind::TooLarge);
    assert_eq!(refused("g;g;g", Limits { statements: 2, ..limits }), SyntaxErrorKind::TooLarge);
    assert_eq!(refused("g.V(map(map(out())))", Limits { depth: 2, ..limits }), SyntaxErrorKind::TooDeep);
    assert_eq!(refused("g.V(1..3)", Limits { range_values: 2, ..limits }), SyntaxErrorKind::InvalidRange);
    let four = Limits { text_bytes: 5, statements: 1, depth: 3, range_values: 3 };
    let options = ParseOptions { limits: four, ..ParseOptions::default() };
    assert!(parse("g.V()", &options).is_ok());
}
