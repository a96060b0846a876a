//! Bytecode as drivers send it where it differs from what text becomes.

use std::sync::Arc;

use ficus_model::{Argument, Bytecode, Cardinality, Direction, Instruction, Merge, P, Scope, Shared, Value};

use super::super::{LowerErrorKind, lower, transaction_command};
use super::text;
use crate::text::TransactionOperation;

fn step(name: &str, args: Vec<Argument>) -> Instruction {
    Instruction { name: name.into(), args, offset: None }
}

fn value(value: Value) -> Argument {
    Argument::Value(value)
}

fn list(members: Vec<Value>) -> Value {
    Value::List(Shared::new(members))
}

fn traversal(steps: Vec<Instruction>) -> Arc<Bytecode> {
    Arc::new(Bytecode { source: vec![], steps })
}

fn check(steps: Vec<Instruction>, expected: &str) {
    let bytecode = Bytecode { source: vec![], steps };
    match lower(&bytecode) {
        Ok(plan) => assert_eq!(plan.to_string(), expected),
        Err(error) => panic!("{expected}: {error}"),
    }
}

#[test]
fn varargs_may_come_as_lists() {
    let names = || value(list(vec![text("a"), text("b")]));
    check(vec![step("V", vec![value(list(vec![Value::Long(1)]))])], "[GraphStep(vertex,[1])]");
    check(vec![step("out", vec![names()])], "[VertexStep(OUT,[a, b],vertex)]");
    check(vec![step("to", vec![value(Value::Direction(Direction::Out)), names()])], "[VertexStep(OUT,[a, b],vertex)]");
    check(vec![step("hasLabel", vec![names()])], "[HasStep([~label.within([a, b])])]");
    check(vec![step("select", vec![names()])], "[SelectStep(last,[a, b])]");
    check(vec![step("V", vec![]), step("as", vec![names()])], "[GraphStep(vertex,[])@[a, b]]");
    let out = Argument::Traversal(traversal(vec![step("out", vec![])]));
    check(
        vec![step("union", vec![Argument::List(vec![out.clone(), out])])],
        "[UnionStep([[VertexStep(OUT,vertex)], [VertexStep(OUT,vertex)]])]",
    );
}

#[test]
fn integers_come_in_any_width() {
    for number in
        [Value::Byte(2), Value::Short(2), Value::Int(2), Value::Long(2), Value::BigInteger(Arc::new(2.into()))]
    {
        check(vec![step("limit", vec![value(number.clone())])], "[RangeGlobalStep(0,2)]");
        let local = value(Value::Scope(Scope::Local));
        check(vec![step("substring", vec![local, value(number.clone())])], "[SubstringLocalStep(2)]");
        check(vec![step("coin", vec![value(number)])], "[CoinStep(2.0)]");
    }
}

#[test]
fn predicates_and_traversals_may_come_as_values() {
    let predicate = value(Value::P(Arc::new(P::eq(Value::Int(1)))));
    check(vec![step("has", vec![value(text("a")), predicate])], "[HasStep([a.eq(1)])]");
    let bound = value(Value::Bytecode(traversal(vec![step("out", vec![])])));
    check(vec![step("map", vec![bound])], "[TraversalMapStep([VertexStep(OUT,vertex)])]");
}

#[test]
fn cardinality_values_may_come_as_bytecode() {
    let source = step("CardinalityValueTraversal", vec![value(text("set")), value(Value::Int(1))]);
    let traversal = Arc::new(Bytecode { source: vec![source], steps: vec![] });
    let map = Argument::Map(vec![(value(text("k")), Argument::Traversal(traversal.clone()))]);
    check(
        vec![
            step("mergeV", vec![value(Value::Map(Shared::default()))]),
            step("option", vec![value(Value::Merge(Merge::OnMatch)), map.clone()]),
        ],
        "[MergeVertexStep({},onMatch({k=set=1}))]",
    );
    check(vec![step("addV", vec![]), step("property", vec![map])], "[AddVertexStartStep({set:k=[1]})]");
    let bound = [(text("k"), Value::Bytecode(traversal.clone()))].into_iter().collect();
    let bound = value(Value::Map(Shared::new(bound)));
    check(vec![step("mergeV", vec![bound.clone()])], "[MergeVertexStep({k=set=1})]");
    check(vec![step("addV", vec![]), step("property", vec![bound])], "[AddVertexStartStep({set:k=[1]})]");
    let single = value(Value::Cardinality(Cardinality::Single));
    let given = vec![single, value(text("k")), Argument::Traversal(traversal)];
    check(vec![step("addV", vec![]), step("property", given)], "[AddVertexStartStep({set:k=[1]})]");
}

#[test]
fn older_words_are_understood_or_explained() {
    check(vec![step("V", vec![]), step("none", vec![])], "[GraphStep(vertex,[]), DiscardStep]");
    let aggregate = step("aggregate", vec![value(Value::Scope(Scope::Local)), value(text("x"))]);
    for (instruction, kind, words) in [
        (aggregate, LowerErrorKind::WrongArguments, "local(aggregate(key))"),
        (step("store", vec![value(text("x"))]), LowerErrorKind::UnknownStep, "local(aggregate(key))"),
        (step("outt", vec![]), LowerErrorKind::UnknownStep, "did you mean out()?"),
        (
            step("has", vec![value(text("a")), Argument::Traversal(traversal(vec![]))]),
            LowerErrorKind::WrongArguments,
            "where(",
        ),
    ] {
        let error = lower(&Bytecode { source: vec![], steps: vec![instruction] }).unwrap_err();
        assert_eq!((error.kind, error.offset), (kind, None));
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn strategies_come_with_their_class_names() {
    let strategy = Argument::Strategy {
        name: "org.apache.tinkerpop.gremlin.process.traversal.strategy.decoration.SubgraphStrategy".into(),
        options: vec![
            ("strategy".into(), value(text("SubgraphStrategy"))),
            ("vertices".into(), Argument::Traversal(traversal(vec![step("hasLabel", vec![value(text("a"))])]))),
        ],
    };
    let source =
        vec![step("withStrategies", vec![strategy]), step("withoutStrategies", vec![value(text("CountStrategy"))])];
    let plan = lower(&Bytecode { source, steps: vec![step("V", vec![])] }).unwrap();
    assert_eq!(
        plan.to_string(),
        "{strategies=[SubgraphStrategy, without(CountStrategy)]} [GraphStep(vertex,[]), TraversalFilterStep([HasStep([~label.eq(a)])])]"
    );
}

#[test]
fn transactions_are_commands() {
    let command = |source: Vec<Instruction>, steps: Vec<Instruction>| transaction_command(&Bytecode { source, steps });
    let tx = |name: &str| vec![step("tx", vec![value(text(name))])];
    assert_eq!(command(tx("commit"), vec![]), Some(TransactionOperation::Commit));
    assert_eq!(command(tx("rollback"), vec![]), Some(TransactionOperation::Rollback));
    assert_eq!(command(tx("begin"), vec![]), Some(TransactionOperation::Begin));
    assert_eq!(command(tx("close"), vec![]), None);
    assert_eq!(command(tx("commit"), vec![step("V", vec![])]), None);
    assert_eq!(command(vec![], vec![step("V", vec![])]), None);
    let error = lower(&Bytecode { source: tx("commit"), steps: vec![step("V", vec![])] }).unwrap_err();
    assert_eq!(error.kind, LowerErrorKind::IllegalUse);
}

#[test]
fn a_traversal_inside_another_configures_no_source() {
    let inner = Arc::new(Bytecode { source: vec![step("withPath", vec![])], steps: vec![step("out", vec![])] });
    let error =
        lower(&Bytecode { source: vec![], steps: vec![step("map", vec![Argument::Traversal(inner)])] }).unwrap_err();
    assert_eq!(error.kind, LowerErrorKind::IllegalUse);
}
