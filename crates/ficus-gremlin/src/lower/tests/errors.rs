//! What is refused, of which kind, and in which words.

use super::super::{LowerErrorKind, lower};
use super::read;

use LowerErrorKind::*;

/// Checks kind and words; case does not count, as in TinkerPop's own suite.
fn check(cases: &[(&str, LowerErrorKind, &str)]) {
    for (text, kind, words) in cases {
        match lower(&read(text)) {
            Ok(plan) => panic!("{text} should be refused, but became {plan}"),
            Err(error) => {
                assert_eq!(error.kind, *kind, "{text}: {error}");
                assert!(error.message.to_lowercase().contains(&words.to_lowercase()), "{text}: {error}");
            }
        }
    }
}

#[test]
fn a_second_by_where_one_is_allowed() {
    check(&[
        ("g.V().groupCount().by('a').by('b')", IllegalUse, "GroupCount step can only have one by modulator"),
        ("g.V().dedup().by('a').by('b')", IllegalUse, "Dedup step can only have one by modulator"),
        ("g.V().aggregate('x').by('a').by('b')", IllegalUse, "Aggregate step can only have one by modulator"),
        ("g.V().sample(1).by('a').by('b')", IllegalUse, "Sample step can only have one by modulator"),
        ("g.withSack(1).V().sack(sum).by('a').by('b')", IllegalUse, "Sack step can only have one by modulator"),
        ("g.V().valueMap().by(unfold()).by()", IllegalUse, "step can only have one by modulator"),
        (
            "g.V().group().by().by().by()",
            IllegalUse,
            "The key and value traversals for group()-step have already been set",
        ),
    ]);
}

#[test]
fn modulators_without_a_step_to_modulate() {
    check(&[
        ("g.V().by('a')", IllegalUse, "by() cannot modulate the V() step"),
        ("g.V().dedup(local).by('a')", IllegalUse, "by() cannot modulate the dedup() step"),
        ("g.V().path().by('a', desc)", IllegalUse, "does not support traversal/comparator-based modulation"),
        ("g.V().out().from('a')", IllegalUse, "The from() step cannot follow out()"),
        ("g.V().to('a')", IllegalUse, "The to() step cannot follow V()"),
        ("g.V().path().from(out())", WrongArguments, "takes a step label"),
        ("g.V().option(1, out())", IllegalUse, "option() cannot follow V()"),
        ("g.V().choose(id()).option(onMatch, [:])", WrongArguments, "takes a traversal"),
        ("g.V().count().with('x')", IllegalUse, "with() cannot modulate the count() step"),
        (
            "g.V().valueMap().with(WithOptions.tokens, 'x')",
            WrongArguments,
            "WithOptions.tokens requires Integer arguments",
        ),
        ("g.V().index().with(WithOptions.indexer, 7)", WrongArguments, "WithOptions.indexer requires a single Integer"),
        ("g.io('x')", IllegalUse, "IO mode was not set to read() or write()"),
        ("g.V().read()", IllegalUse, "read() can only follow io()"),
    ]);
}

#[test]
fn loops() {
    check(&[
        ("g.V().emit()", IllegalUse, "The repeat()-traversal was not defined"),
        ("g.V().until(id())", IllegalUse, "The repeat()-traversal was not defined"),
        ("g.V().times(5).out()", IllegalUse, "The repeat()-traversal was not defined"),
        ("g.V().repeat(out()).times(1).times(2)", IllegalUse, "The repeat()-traversal was not defined"),
        ("g.V().repeat(inject(1)).times(1)", IllegalUse, "The parent of inject()-step can not be repeat()-step"),
        (
            "g.V().repeat(map(union(inject(1)))).times(1)",
            IllegalUse,
            "The parent of inject()-step can not be repeat()-step",
        ),
        ("g.V().repeat(out()).until(inject(1))", IllegalUse, "The parent of inject()-step can not be repeat()-step"),
        (
            "g.V().repeat(out().count()).times(1)",
            IllegalUse,
            "The parent of a reducing/supplying barrier can not be repeat()-step",
        ),
        (
            "g.V().repeat(cap('x')).times(1)",
            IllegalUse,
            "The parent of a reducing/supplying barrier can not be repeat()-step",
        ),
    ]);
}

#[test]
fn arguments() {
    check(&[
        ("g.V().range(3, 2)", WrongArguments, "Not a legal range: [3, 2]"),
        ("g.inject([1]).limit(local, -2)", WrongArguments, "Not a legal range: [0, -2]"),
        ("g.V().asNumber(GType.VERTEX)", WrongArguments, "asNumber() requires a numeric type token, got VERTEX"),
        ("g.V().project('a', 'a')", WrongArguments, "keys must be unique"),
        ("g.V().where(eq(1))", WrongArguments, "where(P) requires a String scope key but encountered an integer"),
        ("g.V().where(typeOf(GType.INT))", WrongArguments, "where(P) requires a String scope key"),
        ("g.V().choose(id()).option(Pick.any, out())", IllegalUse, "Choose step can not have an any-option"),
        ("g.V().choose(id()).option(out(), in())", IllegalUse, "Traversal is not allowed as a Pick token"),
        (
            "g.addE('a').property(list, 'k', 1)",
            IllegalUse,
            "Multi-property cardinality of [list] can only be set for a Vertex",
        ),
        ("g.addV('a').property(T.label, 'b')", WrongArguments, "T.label has already been set to [a]"),
        ("g.addV().property(T.id, 1).property(T.id, 2)", WrongArguments, "T.id has already been set to [1]"),
        ("g.addV().property('k', 1, 'm')", WrongArguments, "found key without matching value"),
        ("g.addV().property(T.id, null)", WrongArguments, "Value of T cannot be null"),
        ("g.V().property(T.id, 1)", IllegalUse, "T.id is immutable on existing elements"),
        ("g.V(g.V(1).next())", WrongArguments, "takes a value"),
    ]);
}

#[test]
fn where_and_match() {
    check(&[
        ("g.V().where(out().as('a', 'b'))", IllegalUse, "The end step of a where()-traversal can only have one label"),
        ("g.V().match(out())", IllegalUse, "All match()-traversals must have a single start label (i.e. variable)"),
        ("g.V().match(as('a', 'b').out())", IllegalUse, "All match()-traversals must have a single start label"),
        (
            "g.V().match(as('a').out().as('b', 'c'))",
            IllegalUse,
            "The end step of a match()-traversal can only have one label",
        ),
    ]);
}

#[test]
fn merge_maps() {
    check(&[
        ("g.V([1], 2)", IllegalUse, "V() takes ids, or one list of ids: [1] is none"),
        ("g.E(7, [8])", IllegalUse, "E() takes ids, or one list of ids: [8] is none"),
        ("g.mergeV(['~id': 1])", WrongArguments, "Property key can not be a hidden key: ~id"),
        ("g.mergeV([(T.label): '~a'])", WrongArguments, "Label can not be a hidden key: ~a"),
        ("g.mergeV([(T.label): null])", WrongArguments, "mergeV() does not allow null Map values - check: T.label"),
        ("g.mergeV([(T.label): 1])", WrongArguments, "expect T.label value to be of String"),
        ("g.mergeV([(OUT): 1])", WrongArguments, "expect keys in Map to be either String or [id, label]"),
        (
            "g.mergeV([:]).option(onMatch, [(T.label): 'a'])",
            WrongArguments,
            "option(onMatch) expects keys in Map to be of String",
        ),
        (
            "g.mergeV([a: 1]).option(onCreate, [a: 2])",
            WrongArguments,
            "option(onCreate) cannot override values from merge() argument",
        ),
        ("g.mergeV([:]).option(Merge.outV, [:])", IllegalUse, "Option outV for Merge is not supported"),
        ("g.mergeE([(OUT): Merge.inV])", WrongArguments, "Only Merge.outV token may be used for Direction.OUT"),
        ("g.mergeE([:]).option(onMatch, [a: 1], single)", IllegalUse, "can only be used following mergeV()"),
        ("g.mergeE([:]).option(onMatch, [a: Cardinality.set(1)])", IllegalUse, "can only be used following mergeV()"),
    ]);
}

#[test]
fn profile_ends_a_traversal() {
    check(&[
        ("g.V().profile().out()", IllegalUse, "must be the last step or followed only by the cap()-step"),
        ("g.V().profile().profile()", IllegalUse, "cannot be specified multiple times"),
    ]);
}

#[test]
fn graph_programs() {
    for step in ["pageRank", "peerPressure", "connectedComponent", "shortestPath"] {
        let class = format!("{}{}", step[..1].to_uppercase(), &step[1..]);
        check(&[
            (&format!("g.V().map({step}())"), IllegalUse, "stands in the outermost traversal only"),
            (
                &format!("g.V().{step}().with('x', 1)"),
                WrongArguments,
                &format!("{step}() has no option x: see {class}"),
            ),
            (&format!("g.V().{step}().with('~tinkerpop.{step}.x')"), WrongArguments, "has no option"),
            (
                &format!("g.V().{step}().with('~tinkerpop.{step}.edges', 'knows')"),
                WrongArguments,
                &format!("{class}.edges requires a Traversal"),
            ),
            (
                &format!("g.V().{step}().with('~tinkerpop.{step}.edges', __.out())"),
                WrongArguments,
                &format!("{class}.edges begins with outE(), inE() or bothE()"),
            ),
        ]);
    }
    check(&[
        (
            "g.V().pageRank().with(PageRank.times, 'x')",
            WrongArguments,
            "PageRank.times requires an Integer of 0 or more as its argument",
        ),
        ("g.V().pageRank().with(PageRank.times, -1)", WrongArguments, "PageRank.times requires an Integer"),
        ("g.V().pageRank().with(PageRank.propertyName, 1)", WrongArguments, "PageRank.propertyName requires a String"),
        ("g.V().pageRank().with(PeerPressure.times, 1)", WrongArguments, "pageRank() has no option"),
        ("g.V().connectedComponent().with('~tinkerpop.connectedComponent.times', 1)", WrongArguments, "has no option"),
        (
            "g.V().shortestPath().with(ShortestPath.target, 'x')",
            WrongArguments,
            "ShortestPath.target requires a Traversal",
        ),
        (
            "g.V().shortestPath().with(ShortestPath.edges, 'x')",
            WrongArguments,
            "ShortestPath.edges requires a Traversal or a Direction",
        ),
        (
            "g.V().shortestPath().with(ShortestPath.maxDistance, 'x')",
            WrongArguments,
            "ShortestPath.maxDistance requires a Number",
        ),
        (
            "g.withStrategies(new VertexProgramStrategy(persist: 'EDGES')).V()",
            UnsupportedAnalytics,
            "nothing that a program computes is persisted",
        ),
        (
            "g.withStrategies(new VertexProgramStrategy(vertices: hasLabel('a'))).V()",
            UnsupportedAnalytics,
            "use SubgraphStrategy",
        ),
        (
            "g.withStrategies(VertexProgramRestrictionStrategy, VertexProgramStrategy).V()",
            IllegalUse,
            "The TraversalSource does not allow the use of a GraphComputer",
        ),
    ]);
}

#[test]
fn strategies() {
    let always = "Always specify edge labels";
    check(&[
        (
            "g.withStrategies(ReadOnlyStrategy).V().map(drop())",
            IllegalUse,
            "The provided traversal has a mutating step and thus is not read only: DropStep",
        ),
        ("g.withStrategies(ReadOnlyStrategy).io('x').read()", IllegalUse, "thus is not read only"),
        ("g.withStrategies(EdgeLabelVerificationStrategy(throwException: true)).V().filter(out())", IllegalUse, always),
        (
            "g.withStrategies(ReservedKeysVerificationStrategy(throwException: true)).addV().property('k', 1, 'id', 2)",
            IllegalUse,
            "is setting a property key to a reserved word: id",
        ),
        (
            "g.withStrategies(ReservedKeysVerificationStrategy(throwException: true, keys: {'a'})).V().property('k', 1, 'a', 1)",
            IllegalUse,
            "contains a AddPropertyStep that is setting a property key to a reserved word: a",
        ),
        (
            "g.withStrategies(ReservedKeysVerificationStrategy(throwException: true)).V().map(addE('e').property(single, 'id', 1))",
            IllegalUse,
            "contains a AddEdgeStep that is setting a property key to a reserved word: id",
        ),
        ("g.withStrategies(ReadOnlyStrateg).V()", UnknownStep, "did you mean ReadOnlyStrategy?"),
        ("g.with('ficus.rule.countDegree', false).V()", WrongOption, "did you mean 'ficus.rule.CountDegrees'?"),
        ("g.with('ficus.rule.CountDegrees', 0).V()", WrongOption, "takes true or false, but got Integer 0"),
        ("g.with('ficus.rules', 'none').V()", WrongOption, "takes true or false, but got 'none'"),
        (
            "g.withStrategies(new SubgraphStrategy(vertex: has('a'))).V()",
            WrongArguments,
            "SubgraphStrategy has no option vertex",
        ),
        ("g.withStrategies(SubgraphStrategy).V()", WrongArguments, "A subgraph must be filtered by"),
        (
            "g.withStrategies(new PartitionStrategy(writePartition: 'a')).V()",
            WrongArguments,
            "The partitionKey cannot be null or empty",
        ),
        ("g.withStrategies(SeedStrategy).V()", WrongArguments, "requires a 'seed' value"),
        (
            "g.withStrategies(new PartitionStrategy(partitionKey: 'p', readPartitions: ['a'], includeMetaProperties: true)).V().values('p')",
            IllegalUse,
            "Cannot explicitly request the partitionKey",
        ),
    ]);
    // Without throwing, they only warn.
    assert!(lower(&read("g.withStrategies(EdgeLabelVerificationStrategy).V().out()")).is_ok());
    assert!(lower(&read("g.withStrategies(ReservedKeysVerificationStrategy).addV().property('id', 1)")).is_ok());
    // Nobody looks at what is not a key that addV() or addE() sets itself.
    for allowed in [
        "V().property('id', 1)",
        "addV().property('id', 1, 'm', 2)",
        "addV().property(list, 'id', 1)",
        "addV().property(['id': Cardinality.list(1)])",
        "addV().sideEffect(property('id', 1))",
        "mergeV(['id': 1]).option(onCreate, ['id': 1]).option(onMatch, ['id': 2])",
        "mergeE([(from): 1, (to): 2, 'id': 1]).property('id', 2)",
    ] {
        let text = format!("g.withStrategies(ReservedKeysVerificationStrategy(throwException: true)).{allowed}");
        assert!(lower(&read(&text)).is_ok(), "{allowed}");
    }
}

#[test]
fn errors_say_where() {
    let error = lower(&read("g.V().out().by('a')")).unwrap_err();
    assert_eq!((&*error.step, error.offset), ("by", Some(12)));
    assert_eq!(error.to_string(), "by() cannot modulate the out() step (step by() at offset 12)");
    assert_eq!(error.kind.code(), "illegal-use");
}
