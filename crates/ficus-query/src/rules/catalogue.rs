//! The names of all rules, what they do, and which of them a query lets the optimiser apply.

use std::fmt;

use ficus_model::Value;

use crate::logical::{LogicalPlan, SourceOptions};
use crate::options;
use crate::physical::requirements::draws_from_seed;

/// When a rule is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It rewrites the logical plan, in the order of the table.
    Logical,
    /// It chooses how a step reads the graph, while the physical plan is built.
    Access,
    /// It has one operator do the work of several steps, or tell another what is not wanted, while the physical plan is built. Not applied with
    /// `ficus.inPlace = false`.
    Fusing,
}

impl Stage {
    /// The category that `explain()` shows: those of TinkerPop, `O` for optimisations of any provider and `P` for those of one.
    pub const fn category(self) -> &'static str {
        match self {
            Stage::Logical => "O",
            Stage::Access | Stage::Fusing => "P",
        }
    }
}

/// What there is to know of a rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleInfo {
    /// Which it is.
    pub rule: Rule,
    /// As `explain()` and options name it.
    pub name: &'static str,
    /// When it is applied.
    pub stage: Stage,
    /// What it does.
    pub about: &'static str,
}

macro_rules! rules {
    ($($stage:ident $rule:ident $about:literal;)*) => {
        /// Something the optimiser may do to a plan without changing its answer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule {
            $(#[doc = $about] $rule,)*
        }

        /// All rules, those of the logical plan first, in the order in which they are applied.
        pub const RULES: &[RuleInfo] = &[
            $(RuleInfo { rule: Rule::$rule, name: stringify!($rule), stage: Stage::$stage, about: $about },)*
        ];
    };
}

rules! {
    Logical TestsInLine "Tests inside `where()` and `and()` stand behind one another, also predicates as `where(neq(a).and(neq(b)))`, and `or()` of conditions on one key is one condition.";
    Logical AlreadyDistinct "`dedup()` of elements of which each comes once, as those of `V()`, `E()`, filters, and `outE()` or `inE()` of such vertices, or of their ids, is left out, and `dedup().by(id)` of elements is `dedup()`.";
    Logical PathsNotCounted "`path()` in front of `count()` is left out.";
    Logical ValuesNotCounted "What makes one value of each element, such as `label()`, `id()` and `valueMap()`, or of each row, as `select()` of its labels, is left out in front of `count()`, and properties are counted as values.";
    Logical UnreadLabels "Rows carry nothing under labels that no step reads.";
    Logical EarlyLimit "`limit()`, `range()`, `skip()` and `tail()` go in front of steps that make one row of each, such as `valueMap()`, `project()` and `select()` of labels; between `order()` and `values(key)` as many elements that have the key are enough as values are wanted.";
    Logical ScansApart "`union()` of counts and the like behind `V()` or `E()` is the union of scans, each with one of them.";
    Logical CapsAsRows "`group()`, `groupCount()` and `tree()` as side effects that only the `cap()` right behind them asks for are rows.";
    Logical GroupsAsCounts "`group().by(key).by(count())` is `groupCount().by(key)`.";
    Logical KeysAhead "What `groupCount().by(…)` counts is made by a `map()` in front of it if that takes long, which several executors may do.";
    Logical EdgeLabelsInHop "`outE().hasLabel(label)` is `outE(label)`.";
    Logical EdgesAsHops "`outE().inV()` is `out()`.";
    Logical EndsOfAll "`E().inV()` is `V().out()`.";
    Logical EdgesOfAll "`V().outE()` and `V().inE()` in front of `count()`, `groupCount().by(label)` or `label().groupCount()` are `E()`, of whose labels the store knows the numbers (`KeptCounts`).";
    Logical LabelsOfAll "`label().groupCount()` of all elements, or of those of some labels, is `groupCount().by(label)`, and `label().dedup()` at the end its keys: counters of the store (`KeptCounts`).";
    Logical LabelsOfHops "`groupCount().by(label)` behind a hop is `label().groupCount()`.";
    Logical EndsAsTests "`where(as(label)….as(other))` goes on from the vertex under the one label, as `select(label)` does, and tests whether what it comes to is that under the other, as `where(eq(other))` does.";
    Logical WaysAsTests "Steps in front of `select(label)` and `dedup()` of which only matters whether they come to something are a `where()`, which stops at the first that does.";
    Logical StartById "`where(eq(label))` and `where(neq(label))` with the label of the only start, `V(id)`, compare ids.";
    Logical SimplePathsAsSets "Of simple paths from one vertex, of which only the ends are wanted once each or the first that finds something, one goes on from each vertex.";
    Logical RepeatToKHop "A walk of several hops whose ends are wanted once each, walks of 1, 2, … hops side by side in a `union()`, or a loop that remembers in a side effect where it has been, becomes a search over sets of vertices (`docs/analytics.md`).";
    Logical DistinctInLoops "Of equal rows that an iteration of `repeat()` yields one goes on, and of the whole loop if no test counts its iterations, where nothing behind it can tell one from many.";
    Logical RepeatWrittenOut "A loop that all rows leave after the same number of iterations is written out as a line of steps, where rows keep their way, or after at most three that have to come back to a label.";
    Logical SimplePathsAsTests "`simplePath()` behind a line of hops becomes tests of these: none leads to a vertex where the way has been (`where(neq(label))`).";
    Logical MergeEqualInLoops "Equal rows of an iteration of `repeat()` become one that counts as often, in sub-queries as well.";
    Logical MergeEqualBetweenHops "Equal rows between two hops become one that counts as often.";
    Logical MatchFromTest "`match()` of all vertices begins at a label whose vertices have a given value under a key, and goes back from there.";
    Logical MatchToLine "`match()` becomes a line of hops and tests.";
    Logical WhereHere "`where(label, eq(other))` and `neq` compare what rows are at, if that is under one of the labels, with what is under the other, as `where(eq(label))` does.";
    Logical ClosedRings "A hop behind another that has to lead back to the vertex under a label (`where(eq(label))`) is looked up among the neighbours of that vertex.";
    Logical EdgeTests "A test of whether an edge leads to the vertex under a label, or none (`where(out().as(label))`, `where(as(label).out().as(other))`, `not(…)`), is looked up among the neighbours of that vertex.";
    Access IdLookup "`V()` and `E()` with an id behind them look it up, and so does the target of `shortestPath()`.";
    Access AccessPaths "`V()` and `E()` read a label or an index instead of all elements (`docs/schema.md`), and `V()` in front of a hop the only label whose vertices have such edges.";
    Access SortedEdges "Of edges in the order of a sort key, those in the range that is wanted are read.";
    Access KeptCounts "`count()` and `groupCount().by(label)` of all elements, or of those of some labels, ask the counters of the store.";
    Access CountDegrees "`count()` behind a hop adds up degrees.";
    Access EdgesBetween "Behind a hop that leads to one known vertex (`hasId(id)`, `where(eq(label))`, `where(inV().hasId(id))`), the edges between the two are looked up if the first has many; in sub-queries they are told by the neighbours of the known vertex. The last hop of a loop in front of such a test is one too (`repeat(both()).times(3).hasId(id)`).";
    Fusing FilterInScan "Conditions behind `V()` and `E()` are tested before there are rows, in columns where these tell.";
    Fusing FoldInScan "`count()`, `groupCount().by(key)`, `out().count()` and the like (`CountDegrees`), `groupCount()` and `dedup()` of `values(key)`, and `count()`, `sum()`, `min()`, `max()` and `mean()` of them, of all or by groups of a key, are made while a scan goes on, without rows.";
    Fusing FilterInHop "Tests behind a hop are made before its ends become rows; several in a row, and those in columns first.";
    Fusing TestsAsConditions "`or()`, `not()`, `and()` and `where()` of nothing but conditions on keys, labels and ids are conditions themselves, which columns tell of many vertices at once.";
    Fusing TestInHop "A filter by a sub-query right behind a hop is made by the hop, of many ends at once and before they become rows, as far as that is quickly told.";
    Fusing TestsOfMany "A filter by a sub-query tests rows that wait at it together, as far as that is quickly told.";
    Fusing WalksOfMany "`groupCount()` and `dedup()` by a few hops, with a value, id or label at the end, make these for many rows together, as far as that is quickly told, and know rows with the same key by the vertex that they come to.";
    Fusing EdgesInHop "`outE()` to `inV()`, with conditions on the edges between, is one hop.";
    Fusing LabelsInHop "`label()` behind a hop makes a row of each label with the number of ends that have it, told by the order of half-edges or a column.";
    Fusing KeysOfProperties "`properties().key()`, and all properties in front of `count()`, read no values; keys that are gathered behind it are counted together.";
    Fusing DistinctInHop "A hop in front of `dedup()`, also of `dedup().by()` that asks for nothing but the end, of `values()` or `id()` and `dedup()`, or of `count()`, leaves out, or adds up, ends that it has had.";
    Fusing FirstOfOrder "`order()` in front of `limit()` or `tail()` keeps as many rows as are wanted; `groupCount()` of several values in front of both makes no maps of the other keys.";
    Fusing BoundOfOrder "`order()` that keeps only its first or last rows (`FirstOfOrder`) tells the step that brings them, or brings what has the values that are ordered, how far it has come, so that later ones are never made.";
    Fusing KnownToPass "A test by a sub-query is looked at from its end; once all vertices that pass are known, the hop or scan before it takes only these.";
    Fusing PackedGroups "A hop hands `group().by().by(select(label).fold())` its ends packed, without a row for each.";
    Fusing PackedEnds "A hop hands `dedup()`, `groupCount()` of vertices or by a key, and `groupCount()` and `dedup()` of several labels, or of the entries of `project()` (`PackedTuples`), its ends packed, without a row for each.";
    Fusing FoldOfEnds "`values(key)` behind a hop in front of `count()`, `sum()`, `min()`, `max()`, `mean()` or `groupCount()`, and `group().by(key).by(values(other).sum())` and the like, take the ends packed, without a row for each, and read columns for many of them together.";
    Fusing LabelsInGroup "`group()` that gathers what rows have under a label needs no region for each group.";
    Fusing CountByVertex "`groupCount()` counts vertices by their numbers, and `groupCount().by(key)` reads the key of each once.";
    Fusing PackedTuples "`groupCount()` and `dedup()` of several labels, or of the entries of `project()`, know keys by a few words, and make maps of those that leave.";
    Fusing MapsInFold "`fold()` of `valueMap()` and `elementMap()` makes the maps when all elements are there, one for each.";
    Fusing AggregateOnly "`aggregate()` whose rows nobody wants, as in front of `cap()`, lets none through.";
    Fusing ForgottenWays "Behind the last step that looks at paths or labels rows forget them, in front of steps that keep many rows, where nobody sees whether equal ones became one.";
    Fusing InPlace "Sub-queries that are likely to be short are walked in place, without a scope.";
}

impl Rule {
    /// What there is to know of it.
    pub const fn info(self) -> &'static RuleInfo {
        &RULES[self as usize]
    }

    /// The rule of a name.
    pub fn of(name: &str) -> Option<Rule> {
        RULES.iter().find(|info| info.name == name).map(|info| info.rule)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

/// The rules that may be applied to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSet(u64);

const _: () = assert!(RULES.len() <= u64::BITS as usize);

/// Rules that leave rows where they are, with all that they carry. Queries that draw random numbers from a seed know no others: a row more or
/// less in front of a step that draws would give those behind it other numbers. Nor do those without bulk, where `barrier()` counts rows that
/// are equal once: which are equal is told by the ways and labels that they carry.
const ROWS_KEPT: [Rule; 6] =
    [Rule::IdLookup, Rule::AccessPaths, Rule::KeptCounts, Rule::CountDegrees, Rule::FilterInScan, Rule::AggregateOnly];

impl RuleSet {
    /// Those that may be applied to a plan.
    pub fn of_plan(plan: &LogicalPlan) -> RuleSet {
        let mut set = RuleSet::of(&plan.source);
        if draws_from_seed(plan) || plan.source.without_bulk {
            RULES.iter().filter(|info| !ROWS_KEPT.contains(&info.rule)).for_each(|info| set.set(info.rule, false));
        }
        set
    }

    /// Those that the options of a query leave on: `ficus.rules` for all, `ficus.rule.<name>` for one, and `ficus.inPlace` for those that fuse.
    fn of(source: &SourceOptions) -> RuleSet {
        if source.options.is_empty() {
            return RuleSet(u64::MAX >> (u64::BITS as usize - RULES.len()));
        }
        let all = source.is_on(options::RULES);
        let fuses = source.is_on(options::IN_PLACE);
        let mut set = RuleSet(0);
        for info in RULES.iter().filter(|info| fuses || info.stage != Stage::Fusing) {
            set.set(info.rule, all);
        }
        for (key, value) in &source.options {
            if let (Some(rule), Value::Bool(on)) = (options::of_rule(key), value)
                && (fuses || rule.info().stage != Stage::Fusing)
            {
                set.set(rule, *on);
            }
        }
        set
    }

    fn set(&mut self, rule: Rule, on: bool) {
        let bit = 1u64 << rule as u32;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }

    /// Whether a rule may be applied.
    pub const fn has(self, rule: Rule) -> bool {
        self.0 & (1u64 << rule as u32) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(options: &[(&str, bool)]) -> RuleSet {
        let options = options.iter().map(|(key, on)| ((*key).into(), Value::Bool(*on))).collect();
        RuleSet::of(&SourceOptions { options, ..SourceOptions::default() })
    }

    fn count(set: RuleSet) -> usize {
        RULES.iter().filter(|info| set.has(info.rule)).count()
    }

    #[test]
    fn options_leave_rules_on_and_off() {
        assert_eq!(count(set(&[])), RULES.len());
        assert_eq!(count(set(&[("ficus.rules", false)])), 0);
        let one_off = set(&[("ficus.rule.CountDegrees", false)]);
        assert_eq!((count(one_off), one_off.has(Rule::CountDegrees)), (RULES.len() - 1, false));
        // One alone, wherever it stands.
        for options in [
            [("ficus.rules", false), ("ficus.rule.InPlace", true)],
            [("ficus.rule.InPlace", true), ("ficus.rules", false)],
        ] {
            assert_eq!((count(set(&options)), set(&options).has(Rule::InPlace)), (1, true));
        }
        let separate = set(&[("ficus.inPlace", false), ("ficus.rule.InPlace", true)]);
        assert!(separate.has(Rule::IdLookup) && separate.has(Rule::MatchToLine) && !separate.has(Rule::InPlace));
    }

    #[test]
    fn the_document_lists_the_same() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/optimiser.md");
        let document = std::fs::read_to_string(path).expect("docs/optimiser.md exists");
        let mut expected = String::from("| Rule | Category | What it does |\n|---|---|---|\n");
        for RuleInfo { name, stage, about, .. } in RULES {
            expected += &format!("| `{name}` | {} | {about} |\n", stage.category());
        }
        let listed: Vec<&str> = document.lines().filter(|line| line.starts_with('|')).collect();
        let wanted: Vec<&str> = expected.lines().collect();
        assert_eq!(listed, wanted, "docs/optimiser.md differs from the table; it should hold:\n{expected}");
    }
}
