//! The options a query can be given by `g.with(key, value)`: one table of names, what they take and what they do.
//!
//! Front ends check every option against it, so that none is ignored in silence; `docs/options.md` shows the same table, and a test holds the two
//! together. Keys of others (drivers and providers have many) pass; keys that begin with `ficus.` are ours, so one that is not in the table is a mistake.

use std::fmt;

use ficus_model::Value;

use crate::logical::{Name, SourceOptions};
use crate::rules::Rule;

/// Sub-queries may be evaluated in place, and one operator may do the work of several nodes.
pub const IN_PLACE: &str = "ficus.inPlace";
/// Which of the query's own operators goes first.
pub const INTRA_POLICY: &str = "ficus.intraPolicy";
/// Executors that have nothing to do may help.
pub const SPREAD: &str = "ficus.spread";
/// Walks of several hops may become searches.
pub const K_HOP: &str = "ficus.khop";
/// Sub-queries have scopes.
pub const SCOPES: &str = "ficus.scopes";
/// What a scope instance still had to do is cancelled when its answer is known.
pub const EARLY_CANCELLATION: &str = "ficus.earlyCancellation";
/// The rules of the optimiser, all of them.
pub const RULES: &str = "ficus.rules";
/// What was found by the deadline is the answer.
pub const PARTIAL: &str = "ficus.partial";
/// The state of the past to read.
pub const AS_OF: &str = "ficus.asOf";
/// How elements go into results.
pub const MATERIALIZE_PROPERTIES: &str = "materializeProperties";

const OURS: &str = "ficus.";
const RULE: &str = "ficus.rule.";
const SCOPE: &str = "ficus.scope.";
const POLICY: &str = "policy";
const MAX_INSTANCES: &str = "maxInstances";
const INSIDE: &str = "intraPolicy";

const POLICIES: Takes = Takes::OneOf(&["fifo", "bfs", "dfs"]);

/// Instances of a scope alive at once, at most: as many as a batch has rows.
pub const INSTANCES_MAX: usize = crate::physical::BATCH_ROWS;

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// `true` or `false`.
    Switch,
    /// An integer in this range.
    Integer(i64, i64),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// Any text.
    Text,
    /// A moment, or a commit timestamp.
    State,
}

impl Takes {
    fn fits(self, value: &Value) -> bool {
        match self {
            Takes::Switch => matches!(value, Value::Bool(_)),
            Takes::Integer(low, high) => integer(value).is_some_and(|number| (low..=high).contains(&number)),
            Takes::OneOf(words) => matches!(value, Value::String(text) if words.contains(&&**text)),
            Takes::Text => matches!(value, Value::String(_)),
            Takes::State => matches!(value, Value::DateTime(_)) || integer(value).is_some_and(|number| number >= 0),
        }
    }
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Takes::Switch => f.write_str("true or false"),
            Takes::Integer(low, i64::MAX) => write!(f, "an integer from {low} on"),
            Takes::Integer(low, high) => write!(f, "an integer from {low} to {high}"),
            Takes::OneOf(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
                f.write_str(&quoted.join(" or "))
            }
            Takes::Text => f.write_str("a text"),
            Takes::State => f.write_str("a date with time, datetime('2026-01-31T12:00:00Z'), or a commit timestamp"),
        }
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Byte(number) => Some((*number).into()),
        Value::Short(number) => Some((*number).into()),
        Value::Int(number) => Some((*number).into()),
        Value::Long(number) => Some(*number),
        _ => None,
    }
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceOption {
    /// Its key; `<label>` stands for a step label.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What holds without it.
    pub default: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// All options, in order of name.
pub const OPTIONS: &[SourceOption] = &[
    SourceOption {
        name: "evaluationTimeout",
        takes: Takes::Integer(0, i64::MAX),
        default: "the server's",
        about: "Milliseconds the query may take, up to the server's cap; 0: as long as the cap allows.",
    },
    SourceOption {
        name: "ficus.analysis",
        takes: Takes::Text,
        default: "none",
        about: "A mark by which `ficus analyze` finds its query in the list of queries.",
    },
    SourceOption {
        name: AS_OF,
        takes: Takes::State,
        default: "now",
        about: "The state of the past that is read (`docs/protocol.md`).",
    },
    SourceOption {
        name: EARLY_CANCELLATION,
        takes: Takes::Switch,
        default: "true",
        about: "`false` lets scope instances run to their ends although their answers are known: to measure what cancelling is worth.",
    },
    SourceOption {
        name: IN_PLACE,
        takes: Takes::Switch,
        default: "true",
        about: "`false` gives every sub-query its scope, also where it would be evaluated in place, and each step an operator of its own (`docs/dataflow.md`).",
    },
    SourceOption {
        name: INTRA_POLICY,
        takes: POLICIES,
        default: "`dfs`",
        about: "Which operator outside sub-queries goes first, of those with rows to work on and room for what comes of them (`docs/dataflow.md`).",
    },
    SourceOption {
        name: K_HOP,
        takes: Takes::Switch,
        default: "by `engine.khop`",
        about: "`true` makes a search of a walk of several hops where that is possible, `false` streams it as it is written (`docs/analytics.md`).",
    },
    SourceOption {
        name: PARTIAL,
        takes: Takes::Switch,
        default: "false",
        about: "`true` answers at the deadline with what was found until then (`docs/protocol.md`).",
    },
    SourceOption {
        name: "ficus.rule.<name>",
        takes: Takes::Switch,
        default: "by `ficus.rules`",
        about: "`false` leaves one rule of the optimiser out, `true` applies it where `ficus.rules` leaves all out (`docs/optimiser.md`).",
    },
    SourceOption {
        name: RULES,
        takes: Takes::Switch,
        default: "true",
        about: "`false` runs the query as it is written, without any rule of the optimiser (`docs/optimiser.md`).",
    },
    SourceOption {
        name: "ficus.scope.<label>.intraPolicy",
        takes: POLICIES,
        default: "`dfs`",
        about: "Which operator inside an instance of the scope, or in the body of the loop, goes first (`docs/dataflow.md`).",
    },
    SourceOption {
        name: "ficus.scope.<label>.maxInstances",
        takes: Takes::Integer(1, INSTANCES_MAX as i64),
        default: "1; with `bfs` and `dfs` 256",
        about: "How many instances of the scope live at once; more than one without a policy means `bfs` (`docs/dataflow.md`).",
    },
    SourceOption {
        name: "ficus.scope.<label>.policy",
        takes: POLICIES,
        default: "the planner's",
        about: "Which instance of the scope, or which iteration of the loop, goes first (`docs/dataflow.md`).",
    },
    SourceOption {
        name: SCOPES,
        takes: Takes::Switch,
        default: "true",
        about: "`false` sends all rows of a sub-query through one shared pipeline and cancels nothing early: to measure what scopes are worth.",
    },
    SourceOption {
        name: SPREAD,
        takes: Takes::Switch,
        default: "true",
        about: "`false` keeps the query on one executor (`docs/dataflow.md`).",
    },
    SourceOption {
        name: MATERIALIZE_PROPERTIES,
        takes: Takes::OneOf(&["all", "tokens"]),
        default: "`all`",
        about: "`tokens` answers with elements without their properties.",
    },
    SourceOption {
        name: "scriptEvaluationTimeout",
        takes: Takes::Integer(0, i64::MAX),
        default: "the server's",
        about: "The older name of `evaluationTimeout`.",
    },
];

/// What is wrong with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no such option.
    Unknown,
    /// It takes something else.
    Takes(Takes),
}

/// The label and the setting that a key of the form `ficus.scope.<label>.<setting>` names.
pub fn of_scope(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix(SCOPE)?.rsplit_once('.').filter(|(label, _)| !label.is_empty())
}

/// The rule that a key of the form `ficus.rule.<name>` names.
pub fn of_rule(key: &str) -> Option<Rule> {
    key.strip_prefix(RULE).and_then(Rule::of)
}

/// Whether `value` is what the option `key` takes. Keys that are not ours are let through.
///
/// Errors: what is wrong with it.
pub fn check(key: &str, value: &Value) -> Result<(), Problem> {
    let general = of_scope(key)
        .map(|(_, setting)| format!("{SCOPE}<label>.{setting}"))
        .or_else(|| of_rule(key).map(|_| format!("{RULE}<name>")));
    let is_template = general.is_none() && key.contains('<');
    let name = general.as_deref().unwrap_or(key);
    match OPTIONS.iter().find(|option| option.name == name && !is_template) {
        Some(option) if option.takes.fits(value) => Ok(()),
        Some(option) => Err(Problem::Takes(option.takes)),
        None if key.get(..OURS.len()).is_some_and(|start| start.eq_ignore_ascii_case(OURS)) => Err(Problem::Unknown),
        None => Ok(()),
    }
}

/// Which instance of a scope goes first, or which operator inside an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopePolicy {
    /// The oldest until it ends; of a loop, the rows in the order in which they came; of operators, the one that has had rows for longest.
    Fifo,
    /// All in turn; iteration by iteration; the first operator.
    Bfs,
    /// The newest; the latest iteration; the last operator.
    Dfs,
}

impl ScopePolicy {
    fn of(name: &str) -> Option<ScopePolicy> {
        [ScopePolicy::Fifo, ScopePolicy::Bfs, ScopePolicy::Dfs].into_iter().find(|own| own.name() == name)
    }

    /// As options and `explain()` name it.
    pub const fn name(self) -> &'static str {
        match self {
            ScopePolicy::Fifo => "fifo",
            ScopePolicy::Bfs => "bfs",
            ScopePolicy::Dfs => "dfs",
        }
    }
}

/// What the query says about the scope under a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeSetting {
    /// The label, of the step that has the scope or of the first step in it.
    pub label: Name,
    /// Its policy, if the query names one.
    pub policy: Option<ScopePolicy>,
    /// Instances at once, if the query says.
    pub max_instances: Option<usize>,
    /// The policy inside, if the query names one.
    pub intra: Option<ScopePolicy>,
}

/// The policy of the query's own operators, if it names one.
pub fn intra_policy(source: &SourceOptions) -> Option<ScopePolicy> {
    source.options.iter().rev().find_map(|(key, value)| match value {
        Value::String(policy) if **key == *INTRA_POLICY => ScopePolicy::of(policy),
        _ => None,
    })
}

/// All that the query says about its scopes, one entry per label.
pub fn scope_settings(source: &SourceOptions) -> Vec<ScopeSetting> {
    let mut settings: Vec<ScopeSetting> = Vec::new();
    for (key, value) in &source.options {
        let Some((label, name)) = of_scope(key) else { continue };
        let position = settings.iter().position(|setting| &*setting.label == label).unwrap_or_else(|| {
            settings.push(ScopeSetting { label: Name::from(label), policy: None, max_instances: None, intra: None });
            settings.len() - 1
        });
        let setting = &mut settings[position];
        match (name, value) {
            (POLICY, Value::String(policy)) => setting.policy = ScopePolicy::of(policy),
            (INSIDE, Value::String(policy)) => setting.intra = ScopePolicy::of(policy),
            (MAX_INSTANCES, count) => {
                setting.max_instances = integer(count).and_then(|count| usize::try_from(count).ok());
            }
            _ => {}
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked_by_name_type_and_range() {
        let text = |text: &str| Value::from(text);
        for (key, value, expected) in [
            ("ficus.inPlace", Value::Bool(false), Ok(())),
            ("ficus.inPlace", text("no"), Err(Problem::Takes(Takes::Switch))),
            ("ficus.inplace", Value::Bool(false), Err(Problem::Unknown)),
            ("Ficus.spread", Value::Bool(false), Err(Problem::Unknown)),
            ("ficus.", Value::Bool(false), Err(Problem::Unknown)),
            ("ficus.scope.w.policy", text("dfs"), Ok(())),
            ("ficus.scope.a.b.policy", text("dfs"), Ok(())),
            ("ficus.scope..policy", text("dfs"), Err(Problem::Unknown)),
            ("ficus.scope.w.intraPolicy", text("bfs"), Ok(())),
            ("ficus.scope.w.intraPolicy", Value::Int(1), Err(Problem::Takes(POLICIES))),
            ("ficus.intraPolicy", text("fifo"), Ok(())),
            ("ficus.intraPolicy", text("lifo"), Err(Problem::Takes(POLICIES))),
            ("ficus.scope.w.maxInstances", Value::Long(256), Ok(())),
            ("ficus.scope.w.maxInstances", Value::Int(257), Err(Problem::Takes(Takes::Integer(1, 256)))),
            ("ficus.scope.w.maxInstances", Value::Int(0), Err(Problem::Takes(Takes::Integer(1, 256)))),
            ("ficus.scope.w.limit", Value::Int(1), Err(Problem::Unknown)),
            ("ficus.rule.CountDegrees", Value::Bool(false), Ok(())),
            ("ficus.rule.CountDegrees", text("off"), Err(Problem::Takes(Takes::Switch))),
            ("ficus.rule.countDegrees", Value::Bool(false), Err(Problem::Unknown)),
            ("ficus.rule.<name>", Value::Bool(false), Err(Problem::Unknown)),
            ("ficus.rules", Value::Bool(false), Ok(())),
            ("evaluationTimeout", Value::Int(-1), Err(Problem::Takes(Takes::Integer(0, i64::MAX)))),
            ("ficus.asOf", Value::Long(12), Ok(())),
            ("ficus.asOf", Value::Long(-12), Err(Problem::Takes(Takes::State))),
            ("somebodyElses", text("x"), Ok(())),
        ] {
            assert_eq!(check(key, &value), expected, "{key}");
        }
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(OPTIONS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn the_document_lists_the_same() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
        let document = std::fs::read_to_string(path).expect("docs/options.md exists");
        let mut expected = String::from("| Option | Takes | Without it | What it does |\n|---|---|---|---|\n");
        for SourceOption { name, takes, default, about } in OPTIONS {
            expected += &format!("| `{name}` | {takes} | {default} | {about} |\n");
        }
        let listed: Vec<&str> = document.lines().filter(|line| line.starts_with('|')).collect();
        let wanted: Vec<&str> = expected.lines().collect();
        assert_eq!(listed, wanted, "docs/options.md differs from the table; it should hold:\n{expected}");
    }
}
