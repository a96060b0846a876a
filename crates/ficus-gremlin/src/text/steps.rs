//! Every word of Gremlin that takes arguments, with every way to call it.
//!
//! [`STEPS`] may follow any step, [`SPAWN_STEPS`] follow the traversal source, [`SOURCE_METHODS`] configure it, and
//! [`PREDICATES`] stand where a predicate may. Looking a step up is one hash and, nearly always, one comparison.

use std::sync::Arc;

use super::signature::{Callable, Signature, many, parameter::*};

const fn callable(name: &'static str, signatures: &'static [Signature]) -> Callable {
    Callable { name, signatures }
}

/// The steps of a traversal.
pub(crate) static STEPS: &[Callable] = &[
    callable("V", &[&[many(ARGUMENT)]]),
    callable("E", &[&[many(ARGUMENT)]]),
    callable("id", &[&[]]),
    callable("addE", &[&[TEXT_ARGUMENT], &[INNER]]),
    callable("addV", &[&[], &[TEXT_ARGUMENT], &[INNER]]),
    callable("aggregate", &[&[TEXT]]),
    callable("all", &[&[PREDICATED]]),
    callable("and", &[&[many(INNER)]]),
    callable("any", &[&[PREDICATED]]),
    callable("as", &[&[TEXT, many(TEXT_OR_NULL)]]),
    callable("asBool", &[&[]]),
    callable("asDate", &[&[]]),
    callable("asNumber", &[&[], &[TYPE]]),
    callable("asString", &[&[], &[SCOPED]]),
    callable("barrier", &[&[], &[INT], &[BARRIER_TOKEN]]),
    callable("both", &[&[many(TEXT_ARGUMENT_OR_NULL)]]),
    callable("bothE", &[&[many(TEXT_ARGUMENT_OR_NULL)]]),
    callable("bothV", &[&[]]),
    callable("branch", &[&[INNER]]),
    callable(
        "by",
        &[&[], &[ORDERED], &[FUNCTION], &[FUNCTION, ORDERED], &[TEXT], &[TEXT, ORDERED], &[INNER], &[INNER, ORDERED]],
    ),
    callable("call", &[&[TEXT], &[TEXT, MAP_ARGUMENT], &[TEXT, INNER], &[TEXT, MAP_ARGUMENT, INNER]]),
    callable("cap", &[&[TEXT, many(TEXT_OR_NULL)]]),
    callable(
        "choose",
        &[
            &[FUNCTION],
            &[PREDICATED, INNER],
            &[PREDICATED, INNER, INNER],
            &[INNER],
            &[INNER, INNER],
            &[INNER, INNER, INNER],
        ],
    ),
    callable("coalesce", &[&[many(INNER)]]),
    callable("coin", &[&[DOUBLE]]),
    callable("combine", &[&[VALUE]]),
    callable("concat", &[&[INNER, many(INNER)], &[many(TEXT_OR_NULL)]]),
    callable("conjoin", &[&[TEXT]]),
    callable("connectedComponent", &[&[]]),
    callable("constant", &[&[VALUE]]),
    callable("count", &[&[], &[SCOPED]]),
    callable("cyclicPath", &[&[]]),
    callable("dateAdd", &[&[UNIT, INT]]),
    callable("dateDiff", &[&[INNER], &[DATE_LITERAL]]),
    callable("dedup", &[&[SCOPED, many(TEXT_OR_NULL)], &[many(TEXT_OR_NULL)]]),
    callable("difference", &[&[VALUE]]),
    callable("discard", &[&[]]),
    callable("disjunct", &[&[VALUE]]),
    callable("drop", &[&[]]),
    callable("element", &[&[]]),
    callable("elementMap", &[&[many(TEXT_OR_NULL)]]),
    callable("emit", &[&[], &[PREDICATED], &[INNER]]),
    callable("fail", &[&[], &[TEXT]]),
    callable("filter", &[&[PREDICATED], &[INNER]]),
    callable("flatMap", &[&[INNER]]),
    callable("fold", &[&[], &[VALUE, OPERATOR_TOKEN]]),
    callable("format", &[&[TEXT]]),
    callable("from", &[&[TEXT], &[INNER]]),
    callable("group", &[&[], &[TEXT]]),
    callable("groupCount", &[&[], &[TEXT]]),
    callable(
        "has",
        &[
            &[TEXT_OR_NULL],
            &[TEXT_OR_NULL, ARGUMENT],
            &[TEXT_OR_NULL, PREDICATED],
            &[TEXT_ARGUMENT_OR_NULL, TEXT_OR_NULL, ARGUMENT],
            &[TEXT_ARGUMENT_OR_NULL, TEXT_OR_NULL, PREDICATED],
            &[T_TOKEN, ARGUMENT],
            &[T_TOKEN, PREDICATED],
        ],
    ),
    callable("hasId", &[&[ARGUMENT, many(ARGUMENT)], &[PREDICATED]]),
    callable("hasKey", &[&[PREDICATED], &[TEXT_OR_NULL, many(TEXT_OR_NULL)]]),
    callable("hasLabel", &[&[PREDICATED], &[TEXT_ARGUMENT_OR_NULL, many(TEXT_ARGUMENT_OR_NULL)]]),
    callable("hasNot", &[&[TEXT_OR_NULL]]),
    callable("hasValue", &[&[ARGUMENT, many(ARGUMENT)], &[PREDICATED]]),
    callable("identity", &[&[]]),
    callable("in", &[&[many(TEXT_ARGUMENT_OR_NULL)]]),
    callable("inE", &[&[many(TEXT_ARGUMENT_OR_NULL)]]),
    callable("inV", &[&[]]),
    callable("index", &[&[]]),
    callable("inject", &[&[many(VALUE)]]),
    callable("intersect", &[&[VALUE]]),
    callable("is", &[&[ARGUMENT], &[PREDICATED]]),
    callable("key", &[&[]]),
    callable("label", &[&[]]),
    callable("length", &[&[], &[SCOPED]]),
    callable("limit", &[&[SCOPED, LONG_ARGUMENT], &[LONG_ARGUMENT]]),
    callable("local", &[&[INNER]]),
    callable("loops", &[&[], &[TEXT]]),
    callable("lTrim", &[&[], &[SCOPED]]),
    callable("map", &[&[INNER]]),
    callable("match", &[&[many(INNER)]]),
    callable("math", &[&[TEXT]]),
    callable("max", &[&[], &[SCOPED]]),
    callable("mean", &[&[], &[SCOPED]]),
    callable("merge", &[&[VALUE]]),
    callable("mergeE", &[&[], &[MAP_ARGUMENT_OR_NULL], &[INNER]]),
    callable("mergeV", &[&[], &[MAP_ARGUMENT_OR_NULL], &[INNER]]),
    callable("min", &[&[], &[SCOPED]]),
    callable("none", &[&[PREDICATED]]),
    callable("not", &[&[INNER]]),
    callable(
        "option",
        &[
            &[PREDICATED, INNER],
            &[MERGE_TOKEN, MAP_ARGUMENT_OR_NULL],
            &[MERGE_TOKEN, MAP_ARGUMENT_OR_NULL, CARDINALITY_TOKEN],
            &[MERGE_TOKEN, INNER],
            &[ARGUMENT, INNER],
            &[INNER],
        ],
    ),
    callable("optional", &[&[INNER]]),
    callable("or", &[&[many(INNER)]]),
    callable("order", &[&[], &[SCOPED]]),
    callable("otherV", &[&[]]),
    callable("out", &[&[many(TEXT_ARGUMENT_OR_NULL)]]),
    callable("outE", &[&[many(TEXT_ARGUMENT_OR_NULL)]]),
    callable("outV", &[&[]]),
    callable("pageRank", &[&[], &[DOUBLE]]),
    callable("path", &[&[]]),
    callable("peerPressure", &[&[]]),
    callable("product", &[&[VALUE]]),
    callable("profile", &[&[], &[TEXT]]),
    callable("project", &[&[TEXT, many(TEXT_OR_NULL)]]),
    callable("properties", &[&[many(TEXT_OR_NULL)]]),
    callable(
        "property",
        &[
            &[CARDINALITY_TOKEN, VALUE, ARGUMENT, many(ARGUMENT)],
            &[CARDINALITY_TOKEN, MAP_ARGUMENT_OR_NULL],
            &[VALUE, ARGUMENT, many(ARGUMENT)],
            &[MAP_ARGUMENT_OR_NULL],
        ],
    ),
    callable("propertyMap", &[&[many(TEXT_OR_NULL)]]),
    callable("range", &[&[SCOPED, LONG_ARGUMENT, LONG_ARGUMENT], &[LONG_ARGUMENT, LONG_ARGUMENT]]),
    callable("read", &[&[]]),
    callable("repeat", &[&[INNER], &[TEXT, INNER]]),
    callable("replace", &[&[TEXT_OR_NULL, TEXT_OR_NULL], &[SCOPED, TEXT_OR_NULL, TEXT_OR_NULL]]),
    callable("reverse", &[&[]]),
    callable("rTrim", &[&[], &[SCOPED]]),
    callable("sack", &[&[], &[OPERATOR_TOKEN]]),
    callable("sample", &[&[SCOPED, INT], &[INT]]),
    callable(
        "select",
        &[
            &[COLUMN_TOKEN],
            &[POP_TOKEN, TEXT],
            &[POP_TOKEN, TEXT, TEXT, many(TEXT_OR_NULL)],
            &[POP_TOKEN, INNER],
            &[TEXT],
            &[TEXT, TEXT, many(TEXT_OR_NULL)],
            &[INNER],
        ],
    ),
    callable("shortestPath", &[&[]]),
    callable("sideEffect", &[&[INNER]]),
    callable("simplePath", &[&[]]),
    callable("skip", &[&[SCOPED, LONG_ARGUMENT], &[LONG_ARGUMENT]]),
    callable("split", &[&[TEXT_OR_NULL], &[SCOPED, TEXT_OR_NULL]]),
    callable("subgraph", &[&[TEXT]]),
    callable("substring", &[&[INT], &[INT, INT], &[SCOPED, INT], &[SCOPED, INT, INT]]),
    callable("sum", &[&[], &[SCOPED]]),
    callable("tail", &[&[], &[SCOPED], &[LONG_ARGUMENT], &[SCOPED, LONG_ARGUMENT]]),
    callable("timeLimit", &[&[LONG]]),
    callable("times", &[&[INT]]),
    callable("to", &[&[DIRECTED, many(TEXT_ARGUMENT_OR_NULL)], &[TEXT], &[INNER]]),
    callable("toE", &[&[DIRECTED, many(TEXT_ARGUMENT_OR_NULL)]]),
    callable("toLower", &[&[], &[SCOPED]]),
    callable("toUpper", &[&[], &[SCOPED]]),
    callable("toV", &[&[DIRECTED]]),
    callable("tree", &[&[], &[TEXT]]),
    callable("trim", &[&[], &[SCOPED]]),
    callable("unfold", &[&[]]),
    callable("union", &[&[many(INNER)]]),
    callable("until", &[&[PREDICATED], &[INNER]]),
    callable("value", &[&[]]),
    callable("valueMap", &[&[many(TEXT_OR_NULL)], &[FLAG, many(TEXT_OR_NULL)]]),
    callable("values", &[&[many(TEXT_OR_NULL)]]),
    callable("where", &[&[PREDICATED], &[TEXT, PREDICATED], &[INNER]]),
    callable("with", &[&[OPTION_NAME], &[OPTION_NAME, OPTION_SETTING]]),
    callable("write", &[&[]]),
];

/// What a traversal source may be followed by to start a traversal.
pub(crate) static SPAWN_STEPS: &[Callable] = &[
    callable("V", &[&[many(ARGUMENT)]]),
    callable("E", &[&[many(ARGUMENT)]]),
    callable("addV", &[&[], &[TEXT_ARGUMENT], &[INNER]]),
    callable("addE", &[&[TEXT_ARGUMENT], &[INNER]]),
    callable("mergeV", &[&[MAP_ARGUMENT_OR_NULL], &[INNER]]),
    callable("mergeE", &[&[MAP_ARGUMENT_OR_NULL], &[INNER]]),
    callable("inject", &[&[many(VALUE)]]),
    callable("io", &[&[TEXT]]),
    callable("call", &[&[], &[TEXT], &[TEXT, MAP_ARGUMENT], &[TEXT, INNER], &[TEXT, MAP_ARGUMENT, INNER]]),
    callable("union", &[&[many(INNER)]]),
];

/// What configures a traversal source.
pub(crate) static SOURCE_METHODS: &[Callable] = &[
    callable("withBulk", &[&[FLAG]]),
    callable("withPath", &[&[]]),
    callable("withSack", &[&[VALUE], &[VALUE, OPERATOR_TOKEN]]),
    callable("withSideEffect", &[&[TEXT, VALUE], &[TEXT, VALUE, OPERATOR_TOKEN]]),
    callable("withStrategies", &[&[STRATEGY_INSTANCE, many(STRATEGY_INSTANCE)]]),
    callable("withoutStrategies", &[&[STRATEGY_CLASS, many(STRATEGY_CLASS)]]),
    callable("with", &[&[TEXT], &[TEXT, VALUE]]),
];

/// The predicates; `not` is also a step, its argument decides.
pub(crate) static PREDICATES: &[Callable] = &[
    callable("eq", &[&[ARGUMENT]]),
    callable("neq", &[&[ARGUMENT]]),
    callable("lt", &[&[ARGUMENT]]),
    callable("lte", &[&[ARGUMENT]]),
    callable("gt", &[&[ARGUMENT]]),
    callable("gte", &[&[ARGUMENT]]),
    callable("inside", &[&[ARGUMENT, ARGUMENT]]),
    callable("outside", &[&[ARGUMENT, ARGUMENT]]),
    callable("between", &[&[ARGUMENT, ARGUMENT]]),
    callable("within", &[&[many(ARGUMENT)]]),
    callable("without", &[&[many(ARGUMENT)]]),
    callable("not", &[&[PREDICATED]]),
    callable("typeOf", &[&[TYPE], &[TEXT]]),
    callable("startingWith", &[&[TEXT_ARGUMENT]]),
    callable("notStartingWith", &[&[TEXT_ARGUMENT]]),
    callable("endingWith", &[&[TEXT_ARGUMENT]]),
    callable("notEndingWith", &[&[TEXT_ARGUMENT]]),
    callable("containing", &[&[TEXT_ARGUMENT]]),
    callable("notContaining", &[&[TEXT_ARGUMENT]]),
    callable("regex", &[&[TEXT_ARGUMENT]]),
    callable("notRegex", &[&[TEXT_ARGUMENT]]),
];

const TABLE_SIZE: usize = 1024;
const EMPTY: u8 = u8::MAX;

/// Where the search for `name` begins: a mix of its length and four of its bytes.
const fn bucket(name: &[u8]) -> usize {
    let length = name.len();
    if length == 0 {
        return 0;
    }
    let mix = (length as u32).wrapping_mul(0x9E37)
        ^ (name[0] as u32).wrapping_mul(0x85EB_CA6B)
        ^ (name[length - 1] as u32).wrapping_mul(0xC2B2_AE35)
        ^ (name[length / 2] as u32).wrapping_mul(0x27D4_EB2F)
        ^ (name[length / 3] as u32).wrapping_mul(0x1656_67B1);
    ((mix ^ (mix >> 15)) as usize) % TABLE_SIZE
}

const fn build(callables: &[Callable]) -> [u8; TABLE_SIZE] {
    let mut table = [EMPTY; TABLE_SIZE];
    let mut index = 0;
    while index < callables.len() {
        let mut slot = bucket(callables[index].name.as_bytes());
        while table[slot] != EMPTY {
            slot = (slot + 1) % TABLE_SIZE;
        }
        table[slot] = index as u8;
        index += 1;
    }
    table
}

static STEP_TABLE: [u8; TABLE_SIZE] = build(STEPS);

static PREDICATE_TABLE: [u8; TABLE_SIZE] = build(PREDICATES);

fn look_up(name: &str, table: &[u8; TABLE_SIZE], callables: &[Callable]) -> Option<usize> {
    let mut slot = bucket(name.as_bytes());
    loop {
        let index = table[slot];
        if index == EMPTY {
            return None;
        }
        if callables[index as usize].name == name {
            return Some(index as usize);
        }
        slot = (slot + 1) % TABLE_SIZE;
    }
}

/// The index in [`STEPS`] of the step called `name`.
pub(crate) fn step_index(name: &str) -> Option<usize> {
    look_up(name, &STEP_TABLE, STEPS)
}

/// The index in [`PREDICATES`] of the predicate called `name`.
pub(crate) fn predicate_index(name: &str) -> Option<usize> {
    look_up(name, &PREDICATE_TABLE, PREDICATES)
}

/// The index in [`SPAWN_STEPS`] of the spawn step called `name`.
pub(crate) fn spawn_index(name: &str) -> Option<usize> {
    SPAWN_STEPS.iter().position(|step| step.name == name)
}

/// The index in [`SOURCE_METHODS`] of the method called `name`.
pub(crate) fn source_index(name: &str) -> Option<usize> {
    if name.starts_with("with") { SOURCE_METHODS.iter().position(|method| method.name == name) } else { None }
}

/// One shared name per step, spawn step and source method, so that naming an instruction allocates nothing.
pub(crate) struct Names {
    steps: Vec<Arc<str>>,
    spawn_steps: Vec<Arc<str>>,
    source_methods: Vec<Arc<str>>,
}

/// Which table a name is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// [`STEPS`].
    Steps,
    /// [`SPAWN_STEPS`].
    SpawnSteps,
    /// [`SOURCE_METHODS`].
    SourceMethods,
}

impl Table {
    /// The entries.
    pub(crate) fn callables(self) -> &'static [Callable] {
        match self {
            Table::Steps => STEPS,
            Table::SpawnSteps => SPAWN_STEPS,
            Table::SourceMethods => SOURCE_METHODS,
        }
    }
}

impl Names {
    fn new() -> Names {
        let share = |callables: &[Callable]| callables.iter().map(|callable| callable.name.into()).collect();
        Names { steps: share(STEPS), spawn_steps: share(SPAWN_STEPS), source_methods: share(SOURCE_METHODS) }
    }

    fn get(&self, table: Table, index: usize) -> Arc<str> {
        let names = match table {
            Table::Steps => &self.steps,
            Table::SpawnSteps => &self.spawn_steps,
            Table::SourceMethods => &self.source_methods,
        };
        names[index].clone()
    }
}

thread_local! {
    // Per thread, so that parsing threads do not share the counters of the most common names.
    static NAMES: Names = Names::new();
}

/// The shared name of entry `index` of `table`.
pub(crate) fn shared_name(table: Table, index: usize) -> Arc<str> {
    NAMES.with(|names| names.get(table, index))
}
