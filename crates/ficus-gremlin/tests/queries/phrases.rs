//! Random queries that make sense on the modern graph: every step is given what it can work on.
//!
//! Left out is what may rightly depend on the order of rows: limits of unordered rows, lists in the order of arrival,
//! sums of fractions, random steps, and reads of what the same query writes.

use ficus_gremlin::text::generate::Generator;

/// What a step takes or yields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Vertex,
    Edge,
    Text,
    Whole,
    Fraction,
    Other,
}

use Kind::*;

/// In templates, `{v}` stands for an anonymous traversal from vertex to vertices, `{t}` for one from a vertex to anything.
const STARTS: &[(&str, Kind)] = &[
    ("V()", Vertex),
    ("V().outE('knows', 'created').groupCount().by(T.label)", Other),
    ("V().inE().label().groupCount()", Other),
    ("V().label().groupCount()", Other),
    ("V().hasLabel('person').values('age').dedup()", Whole),
    ("V().values('name').groupCount()", Other),
    ("V().properties().key().dedup()", Text),
    ("V().hasLabel('person', 'software').label().dedup()", Text),
    ("E().label().dedup().count()", Whole),
    ("E().inV()", Vertex),
    ("E().outV().as('x').both()", Vertex),
    (
        "V().match(__.as('p').{v}.as('q'), __.as('q').has('name', 'lop'), __.where('p', neq('q'))).select('p', 'q')",
        Other,
    ),
    ("V(1)", Vertex),
    ("V(1, 4, 6)", Vertex),
    ("V(4).as('o').{v}.where(neq('o'))", Vertex),
    ("V().hasId(1).as('o').{v}.where(__.{v}.where(eq('o')))", Vertex),
    ("V(6).as('o').{v}.{v}.where(__.{v}.as('o'))", Vertex),
    ("V().as('o').{v}.{v}.where(__.in().as('o'))", Vertex),
    ("V(1).repeat(__.both().simplePath()).emit().times(3).dedup().id()", Whole),
    ("V(4).repeat(__.both('created').simplePath()).emit().has('name').dedup().id()", Whole),
    ("V(1).emit().repeat(__.out().simplePath()).times(2).in().dedup().id()", Whole),
    ("V(2).repeat(__.both().simplePath()).until(__.hasId(5)).path().limit(1).count(Scope.local)", Whole),
    ("V().values('age').order().limit(2)", Whole),
    ("V().has('name').values('age').order().by(Order.desc).limit(3)", Whole),
    ("E().values('weight').order().by(Order.desc).limit(2)", Whole),
    ("V().both().values('age').order().tail(3)", Whole),
    ("V().both().both().simplePath().id()", Whole),
    ("V().as('x').both().simplePath().as('y').out().has('name').both().simplePath().select('x', 'y').by(T.id)", Whole),
    ("V().bothE().otherV().both().simplePath().groupCount()", Whole),
    ("V().repeat(__.both().simplePath()).times(4).count()", Whole),
    (
        "V(6).repeat(__.both().simplePath()).until(__.or(__.has('name', 'vadas'), __.loops().is(4))).has('name', 'vadas').limit(1)",
        Vertex,
    ),
    ("V().hasLabel('person')", Vertex),
    ("V().has('name', 'josh')", Vertex),
    ("V().hasId(1, 4)", Vertex),
    ("V().where(__.out('created').has('name', 'lop'))", Vertex),
    ("E()", Edge),
    ("E().hasLabel('created')", Edge),
    ("E().hasLabel('knows', 'created').has('weight', lt(0.9))", Edge),
    ("E().hasLabel('knows').hasNot('since')", Edge),
    ("V().hasLabel('person').has('age')", Vertex),
    ("V().hasLabel(within('person', 'software')).hasLabel('software')", Vertex),
    ("V().count()", Whole),
    ("E().hasLabel('knows').count()", Whole),
    ("V().has('age', gt(28)).count()", Whole),
    ("V().groupCount().by(T.label)", Other),
    ("E().groupCount().by(T.label)", Other),
    ("V().hasNot('age').groupCount().by('name')", Other),
    ("V().values('age').sum()", Whole),
    ("V().hasLabel('person').values('age').mean()", Fraction),
    ("V().has('age').union(__.count(), __.values('age').max(), __.{v}.count())", Whole),
    ("V().or(__.has('name', 'josh'), __.has('name', within('lop', 'peter')))", Vertex),
    ("V().and(__.hasLabel('person'), __.has('age', gt(28)))", Vertex),
    ("V(1, 4).V().hasLabel('person').values('age').max()", Whole),
    ("E().values('weight').max()", Fraction),
    ("union({s}, {s})", Vertex),
    ("inject(1, 2, 2)", Whole),
    ("inject('marko', 'lop', 'lop')", Text),
];

const AT_VERTEX: &[(&str, Kind)] = &[
    ("out()", Vertex),
    ("in()", Vertex),
    ("both()", Vertex),
    ("out('created')", Vertex),
    ("in('created')", Vertex),
    ("both('knows')", Vertex),
    ("outE()", Edge),
    ("bothE('created')", Edge),
    ("inE('knows')", Edge),
    ("id()", Whole),
    ("label()", Text),
    ("values('name')", Text),
    ("values('age')", Whole),
    ("valueMap('name')", Other),
    ("elementMap()", Other),
    ("outE().hasLabel('knows')", Edge),
    ("bothE('created', 'knows').hasLabel('created', 'likes').has('weight', gt(0.3))", Edge),
    ("as('x').inE().as('e').hasLabel(within('knows', 'created')).outV().as('y').select('x', 'e', 'y')", Other),
    ("outE('created').hasLabel('knows')", Edge),
    ("bothE().groupCount().by(T.label)", Other),
    ("both('created').groupCount().by(T.label)", Other),
    ("both().hasLabel('person').groupCount().by(T.label)", Other),
    ("outE().has('weight', lt(0.9)).label()", Text),
    ("bothE('knows', 'created').label().dedup()", Text),
    ("{v}.in().label()", Text),
    ("as('x').both().label().as('l').select('x', 'l').by(T.id).by()", Other),
    ("valueMap('name').count()", Whole),
    ("properties('name', 'age').count()", Whole),
    ("as('x').{v}.as('y').out().as('z').select('x', 'z').count()", Whole),
    ("as('x').inject(1).select('x').count()", Whole),
    ("outE().id().count()", Whole),
    ("{v}.project('n', 'a').by('name').by('age').count()", Whole),
    ("inE('created').outV()", Vertex),
    ("bothE('knows').otherV().as('x').outE().inV()", Vertex),
    ("has('age', gt(28))", Vertex),
    ("has('name', within('marko', 'lop', 'peter'))", Vertex),
    ("or(__.has('age', lt(28)), __.has('lang', 'java'), __.hasLabel('person').not(__.has('name', 'josh')))", Vertex),
    ("not(__.or(__.hasNot('age'), __.has('age', within(27, 32))))", Vertex),
    ("has('age', lt(28).or(gt(34)))", Vertex),
    ("hasLabel('person')", Vertex),
    ("hasNot('age')", Vertex),
    ("dedup()", Vertex),
    ("dedup().hasId(neq(3))", Vertex),
    ("union(__.{v}, __.identity()).dedup().hasLabel('person').hasId(within(1, 2, 4))", Vertex),
    ("both().dedup().hasLabel('software').values('lang')", Text),
    ("dedup().by(T.label).values('lang')", Text),
    ("as('x')", Vertex),
    ("as('y')", Vertex),
    ("as('x').both().as('y').dedup('x', 'y')", Vertex),
    ("as('x').{v}.where(neq('x'))", Vertex),
    ("as('x').{v}.{v}.where(eq('x'))", Vertex),
    ("as('x').both().both('knows').where(eq('x')).count()", Whole),
    ("both().hasId(3)", Vertex),
    ("where(__.both('knows').hasId(4))", Vertex),
    ("as('x').out().inE().where(__.outV().as('x'))", Edge),
    ("bothE().where(__.otherV().hasId(1))", Edge),
    ("outE('created').inV().hasId(3)", Vertex),
    ("as('x').both().as('y').both().where(neq('x')).where(neq('y')).count()", Whole),
    ("as('x').{v}.as('y').select('x', 'y')", Other),
    // Rows are told apart by what these labels name and by nothing else, see `keeps_the_first`.
    ("as('w').out().as('u').select('w', 'u').dedup()", Other),
    ("as('w').both().both().as('u').dedup('w', 'u')", Vertex),
    ("as('w').both().both().as('u').dedup('u', 'w').by(T.id).select('u')", Vertex),
    ("as('w').both().as('u').select('u', 'w').by('age').by('name').dedup()", Other),
    ("as('w').both().both().where(neq('w')).as('u').select('u', 'w').dedup().count()", Whole),
    ("as('w').out().both().as('u').dedup('w', 'u').by('age').select('u')", Vertex),
    ("as('w').both().both().as('u').dedup('u', 'w').count()", Whole),
    ("as('x').both().has('age').as('y').select('n', 'y').by('name').groupCount()", Other),
    ("both().project('l', 'a').by(T.label).by('age').groupCount()", Other),
    ("both().project('v', 'a').by().by('age').dedup().select('v')", Vertex),
    ("as('w').both().select('w').dedup()", Vertex),
    ("as('w').out().in('created').select('w').dedup()", Vertex),
    ("as('w').both().has('age', gt(28)).outE('created').inV().as('u').select('w').dedup().values('name')", Text),
    ("as('w').out().as('u').in().where(neq('w')).select('w', 'u').dedup()", Other),
    ("as('w').hasLabel('person').as('u').both().both().where(neq('u')).dedup('w').count()", Whole),
    ("as('w').both().not(__.has('age', lt(30))).in().dedup('w').select('w').by('name')", Text),
    ("as('w').where({t}).out().where(__.in().count().is(gt(1))).select('w').id().dedup()", Whole),
    ("as('w').both('knows').out().select('w').out().dedup()", Vertex),
    ("as('x').{v}.as('y').select('x', 'y').groupCount()", Other),
    ("as('x').{v}.as('y').select('y', 'x').by('age').by(T.label).groupCount()", Other),
    ("as('x').{v}.as('y').select('y', 'x', 'n').by('name').groupCount()", Other),
    ("as('x').{v}.as('y').groupCount().by(__.select('x', 'y'))", Other),
    ("as('x').{v}.as('y').groupCount().by(__.select(first, 'x', 'y').by({t}).by('age')).unfold()", Other),
    ("groupCount().by(__.project('n', 'c').by('age').by(__.{v}.count()))", Other),
    ("project('l', 'a').by(T.label).by('age').groupCount()", Other),
    ("project('l', 'a', 'n').by(T.label).by(__.{v}.values('name')).by('lang').groupCount()", Other),
    ("project('l', 'a').by(T.label).by('age').dedup()", Other),
    ("project('v').by(__.{v}).dedup().select('v').count()", Whole),
    ("as('w').outE().as('u').select('w', 'u').groupCount().select(keys).unfold().select('u').id()", Whole),
    ("values('name', 'age').as('x').map(__.constant(1L)).as('y').select('x', 'y').groupCount()", Other),
    ("as('x').{v}.select('x')", Vertex),
    ("as('x').{v}.as('y').where('x', lt('y')).by('name')", Vertex),
    ("as('x').{v}.where(__.{v}.as('x'))", Vertex),
    ("where({t})", Vertex),
    ("filter({t})", Vertex),
    ("not({t})", Vertex),
    ("and({t}, {t})", Vertex),
    ("or({t}, {t})", Vertex),
    ("union(__.{v}, __.{v})", Vertex),
    ("union(__.{v}, __.identity())", Vertex),
    ("coalesce(__.{v}, __.{v})", Vertex),
    ("choose({t}, __.{v}, __.{v})", Vertex),
    ("choose(__.label()).option('person', __.{v}).option(none, __.{v})", Vertex),
    ("optional(__.{v})", Vertex),
    ("local(__.{v})", Vertex),
    ("local(__.{v}.count())", Whole),
    ("local(__.{v}.dedup())", Vertex),
    ("map(__.{v}.count())", Whole),
    ("flatMap(__.{v})", Vertex),
    ("repeat(__.{v}).times(2)", Vertex),
    ("repeat(__.{v}).emit().times(2)", Vertex),
    ("emit().repeat(__.{v}).times(2)", Vertex),
    ("times(2).repeat(__.{v})", Vertex),
    ("repeat(__.{v}).until(__.or({t}, __.loops().is(3)))", Vertex),
    ("until(__.or({t}, __.loops().is(2))).repeat(__.{v})", Vertex),
    ("repeat(__.{v}).emit({t}).times(2)", Vertex),
    ("repeat(__.both().simplePath()).times(3)", Vertex),
    ("repeat(__.union(__.{v}, __.{v})).times(2)", Vertex),
    ("repeat(__.union(__.{v}, __.identity())).emit().times(2)", Vertex),
    ("repeat(__.optional(__.{v})).times(2)", Vertex),
    ("local(__.repeat(__.{v}).emit().times(2))", Vertex),
    ("flatMap(__.repeat(__.{v}).times(2))", Vertex),
    ("optional(__.repeat(__.both()).times(3))", Vertex),
    ("coalesce(__.repeat(__.{v}).emit({t}).times(2), __.{v})", Vertex),
    ("where(__.repeat(__.union(__.{v}, __.{v})).until(__.or({t}, __.loops().is(3))))", Vertex),
    ("choose(__.repeat(__.{v}).until(__.or({t}, __.loops().is(3))), __.{v}, __.{v})", Vertex),
    ("repeat(__.{v}.dedup()).times(2)", Vertex),
    ("repeat(__.{v}).times(2).path().count(Scope.local)", Whole),
    ("simplePath()", Vertex),
    ("cyclicPath()", Vertex),
    ("path()", Other),
    ("path().by('name')", Other),
    ("repeat(__.{v}).times(2).path().count()", Whole),
    ("tree().count(Scope.local)", Whole),
    ("aggregate('s')", Vertex),
    ("aggregate('s').by('name')", Vertex),
    ("groupCount('m').by(T.label)", Vertex),
    ("group('g').by(T.label).by(__.count())", Vertex),
    ("barrier()", Vertex),
    ("order().by('name')", Vertex),
    ("order().by(__.{v}.count(), desc).by('name')", Vertex),
    ("sideEffect(__.{v}.aggregate('s'))", Vertex),
    ("order().by('name').limit(3).id()", Whole),
    ("order().by('age', desc).by('name').limit(2).values('age')", Whole),
    ("{v}.order().by('age').by('name').limit(2).values('name')", Text),
    ("where(__.out('created').has('name', 'lop'))", Vertex),
    ("not(__.in('created').has('name', within('marko', 'peter')))", Vertex),
    ("repeat(__.out()).times(2).dedup()", Vertex),
    ("repeat(__.both('knows')).emit().times(2).dedup().count()", Whole),
    ("repeat(__.{v}).times(2).dedup()", Vertex),
    ("repeat(__.both().where(__.out())).times(2).dedup()", Vertex),
    ("outE('created').has('weight', gt(0.3))", Edge),
    ("as('f').out().group().by().by(__.select('f').fold()).select(values).unfold().unfold().id()", Whole),
    ("as('f').{v}.group().by('name').by(__.select('f').fold()).select(values).unfold().unfold().id()", Whole),
    ("group().by(T.label).by(__.count())", Other),
    ("group().by(T.label).by(__.{v}.count())", Other),
    ("group().by('name').by(__.count())", Other),
    ("group().by(__.out('created').count()).by(__.count()).unfold()", Other),
    ("group().by('name').by(__.values('age').sum())", Other),
    ("group().by(T.label).by(__.{v}.values('age').mean())", Other),
    ("group().by(T.label).by(__.values('name').max())", Other),
    ("group().by('lang').by(__.{v}.limit(1).count())", Other),
    ("group('m').by(T.label).by(__.values('age').min()).cap('m')", Other),
    ("group('m').by(T.label).by(__.{v}.count()).cap('m')", Other),
    ("groupCount('m').by(T.label).cap('m')", Other),
    ("tree('m').cap('m').count(Scope.local)", Other),
    ("aggregate('m').by(T.label).cap('m').unfold()", Other),
    ("as('r').{v}.out().both().where(eq('r'))", Vertex),
    ("as('r').both().as('s').both().where(eq('r')).select('s')", Vertex),
    ("groupCount().by(T.id)", Other),
    ("groupCount().by(__.out('created').values('name'))", Other),
    ("groupCount().by(__.both('knows').has('age', gt(28)).out().id())", Other),
    ("dedup().by(__.out('knows')).count()", Whole),
    ("dedup().by(__.both('created').values('lang')).count()", Whole),
    ("properties().key()", Text),
    ("properties().key().groupCount()", Other),
    ("properties().count()", Whole),
    ("both().dedup().count()", Whole),
    ("{v}.values('age').groupCount()", Other),
    ("both().values('name').dedup()", Text),
    ("{v}.out().id().dedup()", Whole),
    ("group().by(T.label).by(__.outE().groupCount().by(T.label))", Other),
    ("group().by('name').by(__.both().dedup().count())", Other),
    ("groupCount().by('name')", Other),
    ("groupCount()", Other),
    ("groupCount().unfold().select(keys)", Vertex),
    ("project('a', 'b').by(__.{v}.count()).by('name')", Other),
    ("project('a', 'b').by('age').by(__.{v}.values('name').max())", Other),
    ("match(__.as('p').{v}.as('q'), __.as('q').in('created').as('r')).select('p', 'r')", Other),
    ("match(__.as('p').{v}.as('q'), __.not(__.as('q').has('age', gt(30)))).select('q')", Vertex),
    ("match(__.as('p').{v}.as('q'), __.as('q').{v}.as('r'), __.as('p').{v}.as('r'))", Other),
    ("match(__.as('p').{v}.as('q'), __.as('q').has('name', 'lop'), __.where('p', neq('q'))).select('p', 'q')", Other),
    ("match(__.as('p').out().has('age').as('q'), __.as('q').in('knows').has('name', 'marko').as('r'))", Other),
    ("match(__.as('p').out().as('q'), __.as('p').both().as('r'), __.as('r').in().as('q')).count()", Whole),
    ("match(__.as('p').both().as('q'), __.as('q').out().as('p'), __.as('q').has('age', gt(28))).select('q')", Vertex),
    (
        "match(__.as('p').{v}.as('q'), __.where('p', neq('q')), __.not(__.as('p').out().as('q'))).select('p', 'q').by('name')",
        Other,
    ),
    (
        "match(__.as('p').{v}.as('q'), __.as('q').values('name').as('n'), __.as('p').{v}.as('r')).dedup('q', 'r').count()",
        Whole,
    ),
    (
        "match(__.as('p').{v}, __.as('p').has('age').as('q'), __.as('q').outE().as('e'), __.as('e').inV().as('p'))",
        Other,
    ),
    ("fold().count(Scope.local)", Whole),
    ("fold().unfold()", Other),
    ("valueMap('name', 'age').fold().unfold().select('name')", Other),
    ("elementMap('name').fold().unfold().select('name')", Text),
    ("has('age').groupCount().by(__.values('age').math('floor(_ / 5)'))", Other),
    ("has('age').as('x').{v}.has('age').where(__.math('_ - x').by('age').is(gt(0)))", Vertex),
    ("has('age').as('x').{v}.has('age').as('y').filter(__.where('x', gt('y')).by('age')).id()", Whole),
    ("as('x').{v}.as('y').where('x', neq('y')).by('name').id()", Whole),
    ("map(__.{v}.valueMap('name').by(__.unfold()).fold().unfold().select('name').order().fold())", Other),
    ("project('m', 'n').by(__.elementMap('name')).by(__.{v}.values('name').order().fold().unfold().limit(1))", Other),
    ("flatMap(__.properties('name', 'age').value())", Other),
    ("map(__.{v}.values('age').fold().max(Scope.local))", Whole),
    ("map(__.{v}.values('age').order().fold().range(Scope.local, 0, 2).sum(Scope.local))", Whole),
    ("groupCount().by(__.sack())", Other),
    ("as('x').where(__.{v}.where(__.{v}.as('x')))", Vertex),
    ("order().by('name').id().limit(3)", Whole),
    ("order().by('name').values('age').limit(2)", Whole),
    ("as('x').{v}.order().by('name').select('x').by('name').count()", Whole),
    ("count()", Whole),
    ("sack()", Other),
    ("sack(sum).by(__.{v}.count())", Vertex),
    ("constant('c')", Text),
    ("hasId(1, 3, 4)", Vertex),
    ("property('seen', true)", Vertex),
];

const AT_EDGE: &[(&str, Kind)] = &[
    ("inV()", Vertex),
    ("outV()", Vertex),
    ("bothV()", Vertex),
    ("values('weight')", Fraction),
    ("has('weight', gt(0.4))", Edge),
    ("id()", Whole),
    ("label()", Text),
    ("dedup()", Edge),
    ("dedup().by(T.label).label()", Text),
    ("as('x').inV().select('x')", Edge),
    ("where(__.inV().has('age'))", Edge),
    ("where(__.outV().hasId(1))", Edge),
    ("order().by('weight').by(T.id)", Edge),
    ("groupCount().by('weight')", Other),
    ("as('x').inV().as('y').select('x', 'y').by('weight').by('name').groupCount()", Other),
    ("as('w').inV().out().select('w').dedup()", Edge),
    ("as('w').bothV().as('u').select('w', 'u').dedup()", Other),
    ("groupCount()", Other),
    ("path()", Other),
    ("count()", Whole),
];

const AT_TEXT: &[(&str, Kind)] = &[
    ("dedup()", Text),
    ("order()", Text),
    ("order().limit(2)", Text),
    ("order().by(desc).tail(2)", Text),
    ("order().range(1, 3)", Text),
    ("length()", Whole),
    ("toUpper()", Text),
    ("concat('-')", Text),
    ("is(neq('lop'))", Text),
    ("groupCount()", Other),
    ("group().by(__.length()).by(__.count())", Other),
    ("aggregate('s')", Text),
    ("max()", Text),
    ("min()", Text),
    ("barrier()", Text),
    ("count()", Whole),
    ("order().fold()", Other),
];

const AT_WHOLE: &[(&str, Kind)] = &[
    ("sum()", Whole),
    ("max()", Whole),
    ("min()", Whole),
    ("mean()", Fraction),
    ("fold(0, sum)", Whole),
    ("is(gt(2))", Whole),
    ("math('_ + 1')", Fraction),
    ("dedup()", Whole),
    ("order().limit(2)", Whole),
    ("groupCount()", Other),
    ("aggregate('s')", Whole),
    ("choose(__.is(gt(2)), __.constant('high'), __.constant('low'))", Text),
    ("count()", Whole),
];

const AT_FRACTION: &[(&str, Kind)] =
    &[("max()", Fraction), ("min()", Fraction), ("is(gt(0.3))", Fraction), ("dedup()", Fraction), ("count()", Whole)];

const AT_OTHER: &[(&str, Kind)] =
    &[("count()", Whole), ("dedup()", Other), ("groupCount()", Other), ("barrier()", Other), ("identity()", Other)];

const TO_VERTEX: &[&str] = &[
    "out()",
    "in()",
    "both()",
    "out('created')",
    "in('created')",
    "both('knows')",
    "outE().inV()",
    "bothE().otherV()",
    "out().in()",
    "both().dedup()",
    "both().simplePath()",
    "hasLabel('person')",
    "has('age', lt(33))",
    "optional(__.out('created'))",
    "where(__.out())",
    "union(__.out(), __.in())",
    "repeat(__.out()).times(2)",
    "coalesce(__.out('knows'), __.in('created'))",
];

/// Most steps of a query.
const STEPS_MAX: u64 = 6;

/// A query.
pub fn phrase(random: &mut Generator) -> String {
    const SOURCES: [&str; 8] =
        ["g", "g", "g", "g", "g.withSack(1)", "g.withSack(1, sum)", "g.withBulk(false)", "g.withPath()"];
    let mut text = SOURCES[random.below(8) as usize].to_owned();
    let mut kind = add(random, STARTS, &mut text);
    for _ in 0..=random.below(STEPS_MAX) {
        kind = add(random, steps_at(kind), &mut text);
    }
    for key in ["s", "m", "g"] {
        let is_filled =
            ["aggregate('", "groupCount('", "group('"].iter().any(|step| text.contains(&format!("{step}{key}'")));
        if is_filled && random.below(2) == 0 {
            text.push_str(&format!(".cap('{key}')"));
            break;
        }
    }
    text
}

fn steps_at(kind: Kind) -> &'static [(&'static str, Kind)] {
    match kind {
        Vertex => AT_VERTEX,
        Edge => AT_EDGE,
        Text => AT_TEXT,
        Whole => AT_WHOLE,
        Fraction => AT_FRACTION,
        Other => AT_OTHER,
    }
}

fn add(random: &mut Generator, choices: &[(&str, Kind)], text: &mut String) -> Kind {
    let (template, kind) = choices[random.below(choices.len() as u64) as usize];
    text.push('.');
    text.push_str(&filled(random, template));
    kind
}

/// The template with its gaps filled. What fills a gap has none, so this ends.
fn filled(random: &mut Generator, template: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (gap, after) = after.split_once('}').expect("gaps are closed");
        let to_vertex = TO_VERTEX[random.below(TO_VERTEX.len() as u64) as usize];
        match gap {
            "v" => text.push_str(to_vertex),
            "s" => text.push_str(["__.V(1)", "__.V()", "__.V(4, 3)"][random.below(3) as usize]),
            _ => {
                let last =
                    ["", ".values('age')", ".has('age', gt(30))", ".count().is(gt(1))"][random.below(4) as usize];
                text.push_str(&format!("__.{to_vertex}{last}"));
            }
        }
        rest = after;
    }
    text.push_str(rest);
    text
}
