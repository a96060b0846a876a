//! Texts that are gremlin-lang, and what becomes of them.

use std::collections::HashMap;
use std::sync::Arc;

use ficus_model::{Argument, Comparison, OffsetDateTime, P, Shared, TextComparison, Value};

use crate::text::{ParseOptions, Script, Statement, Terminal, parse, parse_traversal, print, print_value};

fn script(text: &str) -> Script {
    parse(text, &ParseOptions::default()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// The arguments of the only or last step.
fn last_arguments(text: &str, options: &ParseOptions<'_>) -> Vec<Argument> {
    let bytecode = parse_traversal(text, options).unwrap_or_else(|error| panic!("{text}\n{error}"));
    bytecode.steps.last().expect("a traversal has steps").args.clone()
}

fn literal(text: &str) -> Value {
    match last_arguments(&format!("g.inject({text})"), &ParseOptions::default()).as_slice() {
        [Argument::Value(value)] => value.clone(),
        other => panic!("{text}: {other:?}"),
    }
}

fn predicate(text: &str) -> P {
    match last_arguments(&format!("g.V().is({text})"), &ParseOptions::default()).as_slice() {
        [Argument::Predicate(predicate)] => predicate.clone(),
        other => panic!("{text}: {other:?}"),
    }
}

fn string(text: &str) -> Value {
    Value::String(text.into())
}

fn ints(values: &[i32]) -> Value {
    Value::List(Shared::new(values.iter().copied().map(Value::Int).collect()))
}

#[test]
fn texts_mean_what_their_canonical_form_says() {
    let cases = [
        ("g.V(1).out('knows').count()", "g.V(1).out('knows').count()"),
        (" g . V ( ) // all of them\n\t.out ( \"knows\" )", "g.V().out('knows')"),
        // Tokens by their short and long names, and words that are steps elsewhere.
        ("g.V().has(id,1).has(T.label,'x')", "g.V().has(T.id, 1).has(T.label, 'x')"),
        ("g.V().count(local).fold().count(Scope.global)", "g.V().count(Scope.local).fold().count(Scope.global)"),
        ("g.V().local(count(local))", "g.V().local(__.count(Scope.local))"),
        (
            "g.V().order().by(desc).by('x',asc).by(id,Order.shuffle)",
            "g.V().order().by(Order.desc).by('x', Order.asc).by(T.id, Order.shuffle)",
        ),
        (
            "g.V().by(keys).by(values).by(value).by(values('x'),desc)",
            "g.V().by(Column.keys).by(Column.values).by(T.value).by(__.values('x'), Order.desc)",
        ),
        (
            "g.V().select(all,'a').select(last,'a','b').select(values)",
            "g.V().select(Pop.all, 'a').select(Pop.last, 'a', 'b').select(Column.values)",
        ),
        (
            "g.V().to(OUT,'x').to(from).toE(to).toV(Direction.BOTH)",
            "g.V().to(Direction.OUT, 'x').to(Direction.OUT).toE(Direction.IN).toV(Direction.BOTH)",
        ),
        (
            "g.withSack(1,sum).V().sack(Operator.mult).fold(0,max)",
            "g.withSack(1, Operator.sum).V().sack(Operator.mult).fold(0, Operator.max)",
        ),
        (
            "g.V().barrier(normSack).barrier(Barrier.normSack).barrier(5)",
            "g.V().barrier(Barrier.normSack).barrier(Barrier.normSack).barrier(5)",
        ),
        (
            "g.V().asNumber(GType.INT).asNumber(int).asNumber(null)",
            "g.V().asNumber(GType.INT).asNumber(GType.INT).asNumber(GType.NULL)",
        ),
        ("g.V().dateAdd(DT.second,-1).dateAdd(day,2)", "g.V().dateAdd(DT.second, -1).dateAdd(DT.day, 2)"),
        (
            "g.inject(set,list,single,outV,any,hour,IN,key)",
            "g.inject(Cardinality.set, Cardinality.list, Cardinality.single, Merge.outV, Pick.any, DT.hour, Direction.IN, T.key)",
        ),
        (
            "g.inject(map,property,UUID,uuid,vproperty)",
            "g.inject(GType.MAP, GType.PROPERTY, GType.UUID, GType.UUID, GType.VPROPERTY)",
        ),
        // Anonymous traversals.
        (
            "g.V().where(__.not(out())).where(not(not(in())))",
            "g.V().where(__.not(__.out())).where(__.not(__.not(__.in())))",
        ),
        ("g.V().filter(not(eq(1))).filter(not(not(P.eq(1))))", "g.V().filter(P.not(P.eq(1))).filter(P.eq(1))"),
        ("g.V().map(outV()).map(id()).map(value().key())", "g.V().map(__.outV()).map(__.id()).map(__.value().key())"),
        (
            "g.V(g.V().has('x').next(),g.V().next(2),g.inject(1).toList())",
            "g.V(g.V().has('x').next(), g.V().next(2L), g.inject(1).toList())",
        ),
        // Counts take the type of their step.
        (
            "g.V().limit(1).range(local,0,-1).skip(1b).tail().timeLimit(5)",
            "g.V().limit(1L).range(Scope.local, 0L, -1L).skip(1L).tail().timeLimit(5L)",
        ),
        (
            "g.V().times(2L).sample(3n).substring(1,2).coin(1).pageRank(0.5f)",
            "g.V().times(2).sample(3).substring(1, 2).coin(1.0).pageRank(0.5)",
        ),
        // Steps with many overloads.
        (
            "g.V().has(null).has('a',null).has('p','a',within('x')).has(label,neq('x'))",
            "g.V().has(null).has('a', null).has('p', 'a', P.within('x')).has(T.label, P.neq('x'))",
        ),
        (
            "g.addV('a').property(single,'k','v','m',1).property('k',1).property(set,[a:1]).property(['a':2]).property(null)",
            "g.addV('a').property(Cardinality.single, 'k', 'v', 'm', 1).property('k', 1).property(Cardinality.set, ['a': 1]).property(['a': 2]).property(null)",
        ),
        (
            "g.mergeV([(T.label):'x',k:set('y')]).option(onCreate,[k:1],single).option(Merge.onMatch,null)",
            "g.mergeV([(T.label): 'x', 'k': Cardinality.set('y')]).option(Merge.onCreate, ['k': 1], Cardinality.single).option(Merge.onMatch, null)",
        ),
        (
            "g.V().choose(id).option(1,out()).option(any,in()).option(gt(1),both()).option(none,both())",
            "g.V().choose(T.id).option(1, __.out()).option(Pick.any, __.in()).option(P.gt(1), __.both()).option(Pick.none, __.both())",
        ),
        ("g.V().valueMap(true).valueMap(false,'a').valueMap()", "g.V().valueMap(true).valueMap(false, 'a').valueMap()"),
        (
            "g.V().concat(out(),in()).concat('a',null).concat()",
            "g.V().concat(__.out(), __.in()).concat('a', null).concat()",
        ),
        (
            "g.V().shortestPath().with(ShortestPath.target,__.has('x')).with(WithOptions.tokens,WithOptions.labels).with('y')",
            "g.V().shortestPath().with('~tinkerpop.shortestPath.target', __.has('x')).with('~tinkerpop.valueMap.tokens', 2).with('y')",
        ),
        ("g.io('f').with(IO.reader,IO.gryo).read()", "g.io('f').with('~tinkerpop.io.reader', 'gryo').read()"),
        ("g.call('s',[a:1],out()).call('t',out())", "g.call('s', ['a': 1], __.out()).call('t', __.out())"),
        ("g.call().union()", "g.call().union()"),
        // Sources.
        (
            "g.with('x').with('evaluationTimeout',5L).withBulk(false).withPath().V()",
            "g.with('x').with('evaluationTimeout', 5L).withBulk(false).withPath().V()",
        ),
        ("g.withSideEffect('a',[1],addAll).V()", "g.withSideEffect('a', [1], Operator.addAll).V()"),
        (
            "g.withStrategies(ReadOnlyStrategy,new SubgraphStrategy(vertices:has('x'),checkAdjacentVertices:false),A()).V()",
            "g.withStrategies(new ReadOnlyStrategy, new SubgraphStrategy(vertices: __.has('x'), checkAdjacentVertices: false), new A).V()",
        ),
        (
            "g.withoutStrategies(CountStrategy,EarlyLimitStrategy).V()",
            "g.withoutStrategies(CountStrategy, EarlyLimitStrategy).V()",
        ),
        // Maps with keys of every kind; names of steps and keywords among them.
        (
            "g.inject([g:1,out:2,true:3,null:4,'x y':5,1:6,(2L):7,T.id:8,(label):9,Direction.OUT:10,(to):11])",
            "g.inject(['g': 1, 'out': 2, 'true': 3, 'null': 4, 'x y': 5, 1: 6, 2L: 7, (T.id): 8, (T.label): 9, (Direction.OUT): 10, (Direction.IN): 11])",
        ),
        (
            "g.inject([[1]:2,{3}:4,[a:5]:6,([7]):8,NaN:9,-Infinity:10],[:],[],{})",
            "g.inject([[1]: 2, {3}: 4, ['a': 5]: 6, [7]: 8, NaN: 9, -Infinity: 10], [:], [], {})",
        ),
        ("g.inject([a:1,b:2,a:3])", "g.inject(['a': 3, 'b': 2])"),
        (
            "g.inject([out(),1,[set('x')]],[a:out()],{out()})",
            "g.inject([__.out(), 1, [Cardinality.set('x')]], ['a': __.out()], {__.out()})",
        ),
    ];
    for (text, canonical) in cases {
        let bytecode =
            parse_traversal(text, &ParseOptions::default()).unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_eq!(print(&bytecode), canonical, "{text}");
    }
}

#[test]
fn numbers_take_the_smallest_type_their_suffix_allows() {
    let cases = [
        ("1", "1"),
        ("-11", "-11"),
        ("+5", "5"),
        ("0", "0"),
        ("-0", "0"),
        ("2147483647", "2147483647"),
        ("2147483648", "2147483648L"),
        ("-2147483649", "-2147483649L"),
        ("9223372036854775807", "9223372036854775807L"),
        ("9223372036854775808", "9223372036854775808N"),
        ("-0xfffffffffffffffff", "-295147905179352825855N"),
        ("1B", "1B"),
        ("-128b", "-128B"),
        ("1s", "1S"),
        ("1I", "1"),
        ("1l", "1L"),
        ("1n", "1N"),
        ("1_2_3", "123"),
        ("1__2", "12"),
        ("0xA", "10"),
        ("-0xA_0L", "-160L"),
        ("0x1B", "27"),
        ("0x1FN", "31N"),
        ("010", "8"),
        ("-01_0L", "-8L"),
        ("0_7", "7"),
        ("00", "0"),
        ("1.5", "1.5"),
        ("-.5", "-0.5"),
        ("1e2", "100.0"),
        ("1.5E-3d", "0.0015"),
        ("1e999", "Infinity"),
        ("08.5", "8.5"),
        ("1_000.5", "1000.5"),
        ("1.5f", "1.5F"),
        ("123F", "123.0F"),
        ("1.50M", "1.50M"),
        ("15m", "15M"),
        ("1.5e3m", "15E2M"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("+Infinity", "Infinity"),
        ("-Infinity", "-Infinity"),
    ];
    for (text, canonical) in cases {
        assert_eq!(print_value(&literal(text)), canonical, "{text}");
    }
}

#[test]
fn strings_resolve_their_escapes() {
    let cases = [
        (r"'a'", "a"),
        (r#""a'b""#, "a'b"),
        (r#"'a"b'"#, "a\"b"),
        (r#"'\t\b\n\r\f\'\"\\'"#, "\t\u{8}\n\r\u{c}'\"\\"),
        (r"'\0\07\377\400'", "\u{0}\u{7}\u{ff} 0"),
        (r"'\u0041\uuu00e9'", "Aé"),
        (r"'\uD83C\uDF33'", "🌳"),
        ("'two\nlines'", "two\nlines"),
        ("'joined\\\nlines'", "joined\nlines"),
        ("'名前 // no comment'", "名前 // no comment"),
        ("''", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(literal(text), string(expected), "{text}");
    }
}

#[test]
fn other_literals_are_values() {
    let moment =
        |epoch_seconds, nanos, offset_seconds| Value::DateTime(OffsetDateTime { epoch_seconds, nanos, offset_seconds });
    let uuid = "41d2e28a-20a4-4ab0-b379-d810dede3786";
    let cases = [
        ("null", Value::Null),
        ("true", Value::Bool(true)),
        ("datetime('2023-08-02T00:00:00Z')", moment(1_690_934_400, 0, 0)),
        ("DateTime(\"1970-01-01T00:00:00.5+01:00\")", moment(-3_600, 500_000_000, 3_600)),
        ("1..4", ints(&[1, 2, 3, 4])),
        ("2..-1", ints(&[2, 1, 0, -1])),
        ("'ab'..'ad'", Value::List(Shared::new(["ab", "ac", "ad"].map(string).to_vec()))),
        ("'c'..\"a\"", Value::List(Shared::new(["c", "b", "a"].map(string).to_vec()))),
        ("''..''", ints(&[])),
        ("[1..2,'x']", Value::List(Shared::new(vec![ints(&[1, 2]), string("x")]))),
    ];
    for (text, expected) in cases {
        assert_eq!(literal(text), expected, "{text}");
    }
    assert_eq!(print_value(&literal(&format!("UUID('{uuid}')"))), format!("UUID('{uuid}')"));
    assert!(matches!(literal("UUID()"), Value::Uuid(_)));
    let now = OffsetDateTime { epoch_seconds: 5, nanos: 0, offset_seconds: 0 };
    let options = ParseOptions { now: Some(now), ..ParseOptions::default() };
    assert_eq!(last_arguments("g.inject(datetime())", &options), [Argument::Value(Value::DateTime(now))]);
}

#[test]
fn predicates_become_what_they_stand_for() {
    let compare = |comparison, value: i32| P::Compare(comparison, Value::Int(value));
    let text = |comparison, pattern: &str| P::Text(comparison, pattern.into());
    use Comparison::*;
    let cases = [
        ("gt(1)", compare(Gt, 1)),
        ("P.lte(1)", compare(Lte, 1)),
        ("between(1,2)", P::And(vec![compare(Gte, 1), compare(Lt, 2)])),
        ("inside(1,2)", P::And(vec![compare(Gt, 1), compare(Lt, 2)])),
        ("outside(1,2)", P::Or(vec![compare(Lt, 1), compare(Gt, 2)])),
        (
            "inside(1,5).and(neq(3)).and(lt(4))",
            P::And(vec![compare(Gt, 1), compare(Lt, 5), compare(Neq, 3), compare(Lt, 4)]),
        ),
        ("lt(1).or(gt(2)).and(neq(3))", P::And(vec![P::Or(vec![compare(Lt, 1), compare(Gt, 2)]), compare(Neq, 3)])),
        ("lt(1).or(gt(2).or(eq(0)))", P::Or(vec![compare(Lt, 1), compare(Gt, 2), compare(Eq, 0)])),
        ("eq(1).negate()", P::Not(Box::new(compare(Eq, 1)))),
        ("P.not(eq(1)).negate()", compare(Eq, 1)),
        ("between(1,2).negate()", P::Or(vec![P::Not(Box::new(compare(Gte, 1))), P::Not(Box::new(compare(Lt, 2)))])),
        ("within()", P::Within(Shared::new(vec![]))),
        ("within(1,'a',null)", P::Within(Shared::new(vec![Value::Int(1), string("a"), Value::Null]))),
        ("within([1,2])", P::Within(Shared::new(vec![Value::Int(1), Value::Int(2)]))),
        ("within({1})", P::Within(Shared::new(vec![Value::Int(1)]))),
        ("within(1..3)", P::Within(Shared::new(vec![Value::Int(1), Value::Int(2), Value::Int(3)]))),
        ("within([1],[2])", P::Within(Shared::new(vec![ints(&[1]), ints(&[2])]))),
        ("without('a')", P::Without(Shared::new(vec![string("a")]))),
        ("TextP.startingWith('a')", text(TextComparison::StartingWith, "a")),
        ("regex('a.*').negate()", text(TextComparison::NotRegex, "a.*")),
        ("not(notContaining('a'))", text(TextComparison::Containing, "a")),
        ("typeOf(GType.INT)", P::TypeOf(ficus_model::GType::Int)),
        ("P.typeOf('Integer')", P::TypeOf(ficus_model::GType::Int)),
    ];
    for (text, expected) in cases {
        assert_eq!(predicate(text), expected, "{text}");
    }
}

#[test]
fn parameters_are_replaced_by_their_values() {
    let list = Value::List(Shared::new(vec![Value::Int(1), Value::Int(2)]));
    let older = P::Compare(Comparison::Gt, Value::Int(30));
    let map = Value::Map(Shared::new([(string("k"), Value::Int(1))].into_iter().collect()));
    let bindings: HashMap<String, Value> = [
        ("x", Value::Int(7)),
        ("label1", string("knows")),
        ("ids", list),
        ("older", Value::P(Arc::new(older))),
        ("m", map),
        ("nothing", Value::Null),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_string(), value))
    .collect();
    let options = ParseOptions { bindings: &bindings, ..ParseOptions::default() };
    let cases = [
        ("g.V(x,ids)", "g.V(7, [1, 2])"),
        ("g.V().out(label1,'b')", "g.V().out('knows', 'b')"),
        ("g.V().has('age',older)", "g.V().has('age', P.gt(30))"),
        ("g.V().has(label1,'age',x)", "g.V().has('knows', 'age', 7)"),
        ("g.V().limit(x).range(x,9)", "g.V().limit(7L).range(7L, 9L)"),
        ("g.V().is(within(ids)).is(gt(x))", "g.V().is(P.within(1, 2)).is(P.gt(7))"),
        ("g.mergeV(m).option(onCreate,nothing)", "g.mergeV(['k': 1]).option(Merge.onCreate, null)"),
        ("g.addV(label1).property('a',x).property(m)", "g.addV('knows').property('a', 7).property(['k': 1])"),
        ("g.withStrategies(S(a:x)).V()", "g.withStrategies(new S(a: 7)).V()"),
    ];
    for (text, canonical) in cases {
        let bytecode = parse_traversal(text, &options).unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_eq!(print(&bytecode), canonical, "{text}");
    }
    let bindings: ficus_model::ValueMap = [(string("x"), Value::Int(8))].into_iter().collect();
    let options = ParseOptions { bindings: &bindings, ..ParseOptions::default() };
    assert_eq!(last_arguments("g.V(x)", &options), [Argument::Value(Value::Int(8))]);
}

#[test]
fn statements_are_told_apart() {
    fn describe(statement: &Statement) -> String {
        match statement {
            Statement::Traversal { source, bytecode, terminal } => {
                format!("{source}: {} {terminal:?}", print(bytecode))
            }
            Statement::Transaction { source, operation } => format!("{source}: {operation:?}"),
            Statement::SourceOnly { source, bytecode } => format!("{source}: {}", print(bytecode)),
            Statement::Empty => "empty".into(),
            Statement::ToString(inner) => format!("text of {}", describe(inner)),
        }
    }
    let terminals = [
        ("next()", Terminal::Next),
        ("next(3)", Terminal::NextMany(3)),
        ("toList()", Terminal::ToList),
        ("toSet()", Terminal::ToSet),
        ("toBulkSet()", Terminal::ToBulkSet),
        ("iterate()", Terminal::Iterate),
        ("hasNext()", Terminal::HasNext),
        ("tryNext()", Terminal::TryNext),
        ("explain()", Terminal::Explain),
    ];
    for (text, terminal) in terminals {
        let found = script(&format!("g.V().{text}"));
        assert!(
            matches!(&found.statements[..], [Statement::Traversal { terminal: Some(found), .. }] if *found == terminal),
            "{text}"
        );
    }
    let cases: &[(&str, &[&str])] = &[
        ("g", &["g: g"]),
        ("g.withPath()", &["g: g.withPath()"]),
        ("''", &["empty"]),
        ("\"\";", &["empty"]),
        ("g.V();g.E();", &["g: g.V() None", "g: g.E() None"]),
        ("g.V().next()\ng.E()", &["g: g.V() Some(Next)", "g: g.E() None"]),
        (";; g.V() ;;; // the end", &["g: g.V() None"]),
        ("g.tx().begin();g.tx().commit();g.tx().rollback()", &["g: Begin", "g: Commit", "g: Rollback"]),
        ("g.withBulk(true).tx().commit()", &["g: Commit"]),
        ("g.V().toString()", &["text of g: g.V() None"]),
        ("g.toString().toString()", &["text of g: g"]),
        ("g.V().toList().toString()", &["text of g: g.V() Some(ToList)"]),
    ];
    for (text, expected) in cases {
        let found: Vec<String> = script(text).statements.iter().map(describe).collect();
        assert_eq!(found, *expected, "{text}");
    }
    let options = ParseOptions { sources: &["gmodern"], ..ParseOptions::default() };
    let named = parse("gmodern.V(); g.V(gmodern.V().next())", &options).expect("both are sources");
    assert!(matches!(&named.statements[0], Statement::Traversal { source, .. } if **source == *"gmodern"));
}

#[test]
fn instructions_know_their_place() {
    let bytecode = parse_traversal("g.V() .out()", &ParseOptions::default()).expect("well-formed");
    let offsets: Vec<Option<u32>> = bytecode.steps.iter().map(|step| step.offset).collect();
    assert_eq!(offsets, [Some(2), Some(7)]);
    let options = ParseOptions { offsets: false, ..ParseOptions::default() };
    let bytecode = parse_traversal("g.V().out()", &options).expect("well-formed");
    assert!(bytecode.steps.iter().all(|step| step.offset.is_none()));
}
