//! Words that the shell completes.

/// Steps and methods of gremlin-lang.
pub const STEPS: &[&str] = &[
    "V",
    "E",
    "addE",
    "addV",
    "aggregate",
    "all",
    "and",
    "any",
    "as",
    "asBool",
    "asDate",
    "asNumber",
    "asString",
    "barrier",
    "both",
    "bothE",
    "bothV",
    "branch",
    "by",
    "call",
    "cap",
    "choose",
    "coalesce",
    "coin",
    "combine",
    "concat",
    "conjoin",
    "connectedComponent",
    "constant",
    "count",
    "cyclicPath",
    "dateAdd",
    "dateDiff",
    "dedup",
    "difference",
    "discard",
    "disjunct",
    "drop",
    "element",
    "elementMap",
    "emit",
    "explain",
    "fail",
    "filter",
    "flatMap",
    "fold",
    "format",
    "from",
    "group",
    "groupCount",
    "has",
    "hasId",
    "hasKey",
    "hasLabel",
    "hasNext",
    "hasNot",
    "hasValue",
    "id",
    "identity",
    "in",
    "inE",
    "inV",
    "index",
    "inject",
    "intersect",
    "is",
    "iterate",
    "key",
    "label",
    "length",
    "limit",
    "local",
    "loops",
    "lTrim",
    "map",
    "match",
    "math",
    "max",
    "mean",
    "merge",
    "mergeE",
    "mergeV",
    "min",
    "next",
    "none",
    "not",
    "option",
    "optional",
    "or",
    "order",
    "otherV",
    "out",
    "outE",
    "outV",
    "pageRank",
    "path",
    "peerPressure",
    "product",
    "profile",
    "project",
    "properties",
    "property",
    "propertyMap",
    "range",
    "read",
    "repeat",
    "replace",
    "reverse",
    "rTrim",
    "sack",
    "sample",
    "select",
    "shortestPath",
    "sideEffect",
    "simplePath",
    "skip",
    "split",
    "subgraph",
    "substring",
    "sum",
    "tail",
    "timeLimit",
    "times",
    "to",
    "toE",
    "toList",
    "toLower",
    "toSet",
    "toUpper",
    "toV",
    "tree",
    "trim",
    "tx",
    "unfold",
    "union",
    "until",
    "value",
    "valueMap",
    "values",
    "where",
    "with",
    "withBulk",
    "withPath",
    "withSack",
    "withSideEffect",
    "withStrategies",
    "withoutStrategies",
    "write",
];

/// Commands with what they do.
pub const COMMANDS: &[(&str, &str)] = &[
    (":help", "this list"),
    (":source NAME", "the traversal source that g stands for"),
    (":timeout MS", "milliseconds a query may run; 0 for the server's default"),
    (":format FORM", "table, json or text"),
    (":quit", "leave; Ctrl-D does the same"),
];

/// What may follow the last word of `before`, with the byte where that word begins.
pub fn completions(before: &str, sources: &[String]) -> (usize, Vec<String>) {
    if let Some(rest) = before.strip_prefix(":source ") {
        let start = before.len() - rest.len();
        return (start, sources.iter().filter(|name| name.starts_with(rest)).cloned().collect());
    }
    if let Some(rest) = before.strip_prefix(":format ") {
        let start = before.len() - rest.len();
        let forms = ["table", "json", "text"];
        return (start, forms.iter().filter(|name| name.starts_with(rest)).map(|name| (*name).to_owned()).collect());
    }
    if before.starts_with(':') {
        let names = COMMANDS.iter().map(|(name, _)| name.split(' ').next().unwrap_or_default());
        return (0, names.filter(|name| name.starts_with(before)).map(str::to_owned).collect());
    }
    let start = before.rfind(|letter: char| !letter.is_alphanumeric()).map_or(0, |at| at + 1);
    let word = &before[start..];
    let follows_a_dot = before[..start].ends_with('.');
    if !follows_a_dot && word.is_empty() {
        return (start, Vec::new());
    }
    (start, STEPS.iter().filter(|step| step.starts_with(word)).map(|step| format!("{step}(")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completes_steps_commands_and_sources() {
        let sources = ["g".to_owned(), "gmodern".to_owned()];
        let cases: &[(&str, usize, &[&str])] = &[
            ("g.V().outE", 6, &["outE("]),
            ("g.V().has(__.simp", 13, &["simplePath("]),
            (":so", 0, &[":source"]),
            (":source gm", 8, &["gmodern"]),
            (":format t", 8, &["table", "text"]),
            ("g.V() ", 6, &[]),
        ];
        for (before, start, words) in cases {
            let (found_start, found) = completions(before, &sources);
            assert_eq!(
                (found_start, found),
                (*start, words.iter().map(|word| (*word).to_owned()).collect()),
                "{before}"
            );
        }
    }
}
