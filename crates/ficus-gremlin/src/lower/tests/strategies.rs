//! Strategies worked into plans.

use super::{check, plan};
use crate::lower::lower;

#[test]
fn subgraph_filters_follow_what_reaches_elements() {
    let head = "{strategies=[SubgraphStrategy]} ";
    let person = "TraversalFilterStep([HasStep([~label.eq(person)])])";
    let case = |text: &str, expected: &str| {
        let text = format!("g.withStrategies(new SubgraphStrategy(vertices: hasLabel('person'))).{text}");
        assert_eq!(plan(&text), format!("{head}{expected}"));
    };
    // Labels move behind the filter.
    case("V().as('a').out()", &format!("[GraphStep(vertex,[]), {person}@[a], VertexStep(OUT,vertex), {person}]"));
    case(
        "V().outE()",
        &format!(
            "[GraphStep(vertex,[]), {person}, VertexStep(OUT,edge), TraversalFilterStep([EdgeVertexStep(IN), {person}])]"
        ),
    );
    case(
        "V().bothE()",
        &format!(
            "[GraphStep(vertex,[]), {person}, VertexStep(BOTH,edge), TraversalFilterStep([EdgeOtherVertexStep, {person}])]"
        ),
    );
    case(
        "E()",
        &format!("[GraphStep(edge,[]), AndStep([[EdgeVertexStep(IN), {person}], [EdgeVertexStep(OUT), {person}]])]"),
    );
    // Traversals inside are restricted as well.
    case(
        "V().where(out())",
        &format!("[GraphStep(vertex,[]), {person}, TraversalFilterStep([VertexStep(OUT,vertex), {person}])]"),
    );
}

#[test]
fn subgraph_edges_are_looked_at_on_the_way() {
    let knows = "TraversalFilterStep([HasStep([~label.eq(knows)])])";
    let source = "g.withStrategies(new SubgraphStrategy(edges: hasLabel('knows'))).";
    check(&[
        (
            &format!("{source}V().out('a').as('x')"),
            &format!(
                "{{strategies=[SubgraphStrategy]}} [GraphStep(vertex,[]), VertexStep(OUT,[a],edge), {knows}, EdgeVertexStep(IN)@[x]]"
            ),
        ),
        (
            &format!("{source}V().both()"),
            &format!(
                "{{strategies=[SubgraphStrategy]}} [GraphStep(vertex,[]), VertexStep(BOTH,edge), {knows}, EdgeOtherVertexStep]"
            ),
        ),
    ]);
}

#[test]
fn subgraph_hides_vertex_properties() {
    let new = "TraversalFilterStep([HasStep([t.gt(5)])])";
    let any = "OrStep([[NotStep([IsStep(typeOf(VPROPERTY))])], [HasStep([t.gt(5)])]])";
    let source = "g.withStrategies(new SubgraphStrategy(vertexProperties: has('t', gt(5)))).";
    let head = "{strategies=[SubgraphStrategy]} ";
    let map_or = |inner: &str| {
        format!(
            "[ChooseStep(hasNext([IsStep(typeOf(MAP))]),[eq(true)->[SelectOneStep(last,a)], \
             eq(false)->[PropertiesStep([a],property), {inner}, PropertyValueStep]])]"
        )
    };
    check(&[
        (
            &format!("{source}V().values('a').as('x')"),
            &format!("{head}[GraphStep(vertex,[]), PropertiesStep([a],property), {new}, PropertyValueStep@[x]]"),
        ),
        // What select() gives may be anything.
        (
            &format!("{source}V().select('x').properties()"),
            &format!("{head}[GraphStep(vertex,[]), SelectOneStep(last,x), PropertiesStep(property), {any}]"),
        ),
        (
            &format!("{source}V().outE().values('a')"),
            &format!("{head}[GraphStep(vertex,[]), VertexStep(OUT,edge), PropertiesStep([a],value)]"),
        ),
        (
            &format!("{source}V().valueMap()"),
            &format!("{head}[GraphStep(vertex,[]), PropertyMapStep(value,filter([{new}]))]"),
        ),
        (
            &format!("{source}V().hasNot('a')"),
            &format!("{head}[GraphStep(vertex,[]), NotStep([PropertiesStep([a],property), {new}])]"),
        ),
        (
            &format!("{source}V().dedup().by('a')"),
            &format!("{head}[GraphStep(vertex,[]), DedupGlobalStep({})]", map_or(any)),
        ),
    ]);
}

#[test]
fn partitions() {
    let source =
        "g.withStrategies(new PartitionStrategy(partitionKey: 'p', writePartition: 'a', readPartitions: ['a', 'b'])).";
    let head = "{strategies=[PartitionStrategy]} ";
    let seen = "p.within([a, b])";
    check(&[
        (
            &format!("{source}V().has('x', 1).out()"),
            &format!(
                "{head}[GraphStep(vertex,[]), HasStep([x.eq(1), {seen}]), VertexStep(OUT,vertex), HasStep([{seen}])]"
            ),
        ),
        (
            &format!("{source}addV('l').property('x', 1)"),
            &format!("{head}[AddVertexStartStep({{label=[l], x=[1], p=[a]}})]"),
        ),
        (
            &format!("{source}V().property('x', 1)"),
            &format!("{head}[GraphStep(vertex,[]), HasStep([{seen}]), AddPropertyStep({{x=[1]}})]"),
        ),
        (
            &format!("{source}mergeV([x: 1]).option(onMatch, select('m'))"),
            &format!("{head}[MergeVertexStep({{x=1, p=a}},onMatch([SelectOneStep(last,m), MergeStep({{p=a}})]))]"),
        ),
    ]);
}

#[test]
fn partitions_of_vertex_properties() {
    let source = "g.withStrategies(new PartitionStrategy(partitionKey: 'p', writePartition: 'a', readPartitions: ['a'], includeMetaProperties: true)).";
    let head = "{strategies=[PartitionStrategy]} ";
    let visible =
        "OrStep([[NotStep([IsStep(typeOf(VPROPERTY))])], [HasStep([p.within([a])])]]), HasStep([~key.neq(p)])";
    check(&[
        (
            &format!("{source}V().values('x')"),
            &format!(
                "{head}[GraphStep(vertex,[]), HasStep([p.within([a])]), PropertiesStep([x],property), {visible}, PropertyValueStep]"
            ),
        ),
        (
            &format!("{source}V().elementMap()"),
            &format!("{head}[GraphStep(vertex,[]), HasStep([p.within([a])]), ElementMapStep(filter([{visible}]))]"),
        ),
        (
            &format!("{source}addV().property(T.id, 1).property('x', 2)"),
            &format!("{head}[AddVertexStartStep({{id=[1], x=[2]{{p=a}}, p=[a]{{p=a}}}})]"),
        ),
        (
            &format!("{source}V().property('x', 2)"),
            &format!("{head}[GraphStep(vertex,[]), HasStep([p.within([a])]), AddPropertyStep({{x=[2]{{p=a}}}})]"),
        ),
    ]);
}

#[test]
fn element_ids() {
    let head = "{strategies=[ElementIdStrategy(k)]} ";
    let source = "g.withStrategies(new ElementIdStrategy(idPropertyKey: 'k')).";
    check(&[
        (
            &format!("{source}V(1, 2).hasId(3).id()"),
            &format!(
                "{head}[GraphStep(vertex,[]), HasStep([k.within([1, 2])]), HasStep([k.eq(3)]), PropertiesStep([k],value)]"
            ),
        ),
        (&format!("{source}V()"), &format!("{head}[GraphStep(vertex,[])]")),
        (&format!("{source}addV().property(T.id, 7)"), &format!("{head}[AddVertexStartStep({{k=[7]}})]")),
        (&format!("{source}addV().property('k', 7)"), &format!("{head}[AddVertexStartStep({{k=[7]}})]")),
    ]);
    // Without an id, each gets a new one.
    let made = plan("g.withStrategies(ElementIdStrategy).addV()");
    assert!(made.contains("AddVertexStartStep({__id=[") && made.len() > 80, "{made}");
}

#[test]
fn productive_bys() {
    let head = "{strategies=[ProductiveByStrategy]} ";
    let null = "[ConstantStep(null)]";
    let a = "[ChooseStep(hasNext([IsStep(typeOf(MAP))]),[eq(true)->[SelectOneStep(last,a)], eq(false)->[PropertiesStep([a],value)]])]";
    check(&[
        (
            "g.withStrategies(ProductiveByStrategy).V().order().by('a')",
            &format!("{head}[GraphStep(vertex,[]), OrderGlobalStep([[[CoalesceStep([{a}, {null}])], asc]])]"),
        ),
        (
            "g.withStrategies(ProductiveByStrategy).V().project('x', 'y').by(out()).by(out().count())",
            &format!(
                "{head}[GraphStep(vertex,[]), ProjectStep([x, y],[[CoalesceStep([[VertexStep(OUT,vertex)], {null}])], [VertexStep(OUT,vertex), CountGlobalStep]])]"
            ),
        ),
        (
            "g.withStrategies(new ProductiveByStrategy(productiveKeys: ['a'])).V().dedup().by('a')",
            &format!("{head}[GraphStep(vertex,[]), DedupGlobalStep(value(a))]"),
        ),
    ]);
}

#[test]
fn strategies_stay_known_to_who_runs_the_plan() {
    let bytecode = super::read("g.withStrategies(new SeedStrategy(seed: 5), ReadOnlyStrategy).V()");
    let plan = lower(&bytecode).unwrap();
    use ficus_query::logical::Strategy;
    assert_eq!(plan.source.strategies, [Strategy::Seed(5), Strategy::ReadOnly]);
}
