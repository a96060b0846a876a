//! One scenario against one server: the graph it names, its parameters, its traversal, what came back, and the checks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ficus_model::{Element, Tree, Value, ValueMap};
use ficus_wire::Format;

use crate::client::{Client, Failure, Options};
use crate::gherkin::{Scenario, Step};
use crate::matching;
use crate::notation::{Lookup, Term, Triplet, quote};
use crate::skips::Parameters;

/// How a scenario ended, when it did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Line of the step in the feature file.
    pub line: usize,
    /// The step.
    pub step: String,
    /// What was expected and what came.
    pub difference: String,
}

/// Where and how scenarios are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Such as `ws://127.0.0.1:8182/gremlin`.
    pub url: String,
    /// Serializer of the connection.
    pub format: Format,
    /// How parameters are passed.
    pub parameters: Parameters,
    /// What stands for `data` in the paths that `io()` reads, if not itself.
    pub data_path: Option<String>,
    /// A scenario that takes longer has failed.
    pub answer_time_max: Duration,
}

/// A connection, and what was learnt of the fixed graphs.
pub struct World {
    settings: Settings,
    client: Option<Client>,
    /// Elements by source and notation; the empty graph's are not kept.
    known: HashMap<(&'static str, String), Option<Value>>,
}

/// What a scenario has gathered so far.
#[derive(Default)]
struct State {
    source: Option<&'static str>,
    parameters: Vec<(String, Parameter)>,
    side_effects: Vec<(String, String)>,
    gremlin: Option<String>,
    outcome: Option<Result<Outcome, Failure>>,
}

/// A parameter as it reaches the server.
enum Parameter {
    /// Text to write in its place, or why there is none.
    Literal(Result<String, String>),
    /// A value to bind.
    Bound(Value),
}

/// What a traversal answered.
enum Outcome {
    List(Vec<Value>),
    Next(Value),
}

/// The source of the graph a scenario calls `name`.
fn source_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "empty" => "ggraph",
        "modern" => "gmodern",
        "classic" => "gclassic",
        "crew" => "gcrew",
        "grateful" => "ggrateful",
        "sink" => "gsink",
        _ => return None,
    })
}

impl World {
    /// A world that will connect when the first scenario needs it.
    pub fn new(settings: Settings) -> World {
        World { settings, client: None, known: HashMap::new() }
    }

    /// Runs one scenario to its end.
    pub fn run(&mut self, scenario: &Scenario) -> Result<(), Mismatch> {
        let mut state = State::default();
        for step in &scenario.steps {
            self.step(&mut state, step).map_err(|difference| Mismatch {
                line: step.line,
                step: step.text.clone(),
                difference,
            })?;
        }
        Ok(())
    }

    fn submit(&mut self, gremlin: &str, options: &Options) -> Result<Vec<Value>, Failure> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(&self.settings.url, self.settings.format, self.settings.answer_time_max)?,
        };
        let outcome = client.submit(gremlin, options);
        // After a broken exchange the connection is of no use; the next request opens another.
        if !matches!(outcome, Err(Failure::Broken(_))) {
            self.client = Some(client);
        }
        outcome
    }

    fn step(&mut self, state: &mut State, step: &Step) -> Result<(), String> {
        let text = step.text.as_str();
        let doc = || step.doc.clone().ok_or_else(|| "the step has no doc string".to_owned());
        if let Some(name) = text.strip_prefix("the ").and_then(|rest| rest.strip_suffix(" graph")) {
            let source = source_of(name).ok_or_else(|| format!("no graph is called {name:?}"))?;
            if name == "empty" {
                self.submit("g.V().drop()", &Options::alias(source)).map_err(|failure| failure.to_string())?;
            }
            state.source = Some(source);
        } else if text == "the graph initializer of" {
            let options = Options::alias(state.source()?);
            self.submit(&doc()?, &options).map_err(|failure| format!("the graph initializer failed: {failure}"))?;
        } else if let Some(rest) = text.strip_prefix("using the parameter ") {
            let (name, term) = definition(rest)?;
            let mut lookup = self.lookup(state)?;
            let parameter = match lookup.world.settings.parameters {
                Parameters::Literal => Parameter::Literal(term.literal(&mut lookup)),
                Parameters::Binding => Parameter::Bound(term.value(&mut lookup)?),
            };
            state.parameters.push((name, parameter));
        } else if let Some(rest) = text.strip_prefix("using the side effect ") {
            let (name, term) = definition(rest)?;
            let literal = term.literal(&mut self.lookup(state)?)?;
            state.side_effects.push((name, literal));
        } else if text == "the traversal of" {
            state.gremlin = Some(doc()?);
        } else if text == "iterated to list" || text == "iterated next" {
            let gremlin = state.gremlin.clone().ok_or_else(|| "no traversal to iterate".to_owned())?;
            let answer = self.evaluate(state, &gremlin)?;
            state.outcome = Some(match answer {
                Err(Failure::Broken(reason)) => return Err(format!("connection: {reason}")),
                Err(refused) => Err(refused),
                Ok(values) if text == "iterated to list" => Ok(Outcome::List(values)),
                Ok(values) => match values.into_iter().next() {
                    Some(first) => Ok(Outcome::Next(first)),
                    None => return Err("no result to take next".into()),
                },
            });
        } else if let Some(kind) = text.strip_prefix("the result should be ") {
            self.check_result(state, kind, step)?;
        } else if let Some(count) = text.strip_prefix("the result should have a count of ") {
            let expected: usize = count.parse().map_err(|_| format!("not a count: {count:?}"))?;
            let actual = state.results()?;
            if actual.len() != expected {
                return Err(format!("expected {expected} results, found {}: {}", actual.len(), show_all(&actual)));
            }
        } else if let Some(rest) = text.strip_prefix("the graph should return ") {
            state.results()?;
            self.check_count_of(state, rest)?;
        } else if let Some(rest) = text.strip_prefix("the traversal will raise an error") {
            check_error(state, rest)?;
        } else if text == "an unsupported test" {
            return Err("the feature file itself calls this test unsupported".into());
        } else {
            return Err("a step that this runner does not know".into());
        }
        Ok(())
    }

    fn lookup<'a>(&'a mut self, state: &State) -> Result<GraphLookup<'a>, String> {
        Ok(GraphLookup { source: state.source()?, world: self })
    }

    /// Runs `gremlin` with the parameters and side effects of the scenario.
    fn evaluate(&mut self, state: &State, gremlin: &str) -> Result<Result<Vec<Value>, Failure>, String> {
        let mut gremlin = gremlin.to_owned();
        if let Some(data_path) = &self.settings.data_path {
            gremlin = gremlin.replace("g.io(\"data/", &format!("g.io(\"{data_path}/"));
        }
        let mut bindings = ValueMap::default();
        let mut literals = HashMap::new();
        for (name, parameter) in &state.parameters {
            match parameter {
                Parameter::Literal(literal) => drop(literals.insert(name.as_str(), literal.clone()?)),
                Parameter::Bound(value) => drop(bindings.insert(Value::String(name.as_str().into()), value.clone())),
            }
        }
        let mut gremlin = substitute(&gremlin, &literals);
        if let Some(dot) = gremlin.find('.') {
            let effects =
                state.side_effects.iter().map(|(name, value)| format!(".withSideEffect({},{value})", quote(name)));
            gremlin.insert_str(dot, &effects.collect::<String>());
        }
        let options = Options { bindings, ..Options::alias(state.source()?) };
        Ok(self.submit(&gremlin, &options))
    }

    fn check_result(&mut self, state: &State, kind: &str, step: &Step) -> Result<(), String> {
        match kind {
            "empty" => {
                let actual = state.results()?;
                return if actual.is_empty() {
                    Ok(())
                } else {
                    Err(format!("expected no results, found {}", show_all(&actual)))
                };
            }
            "a tree with a structure of" => return self.check_tree(state, step),
            "a subgraph with the following" => return self.check_subgraph(state, step),
            _ => {}
        }
        let expected = self.table(state, step)?;
        let actual = state.results()?;
        let fits = match kind {
            "ordered" => matching::ordered(&expected, &actual),
            "unordered" => matching::unordered(&expected, &actual),
            "of" => matching::among(&expected, &actual),
            _ => return Err(format!("no check is called {kind:?}")),
        };
        if fits {
            return Ok(());
        }
        Err(format!(
            "expected {} {kind}:\n  {}\nfound {}:\n  {}",
            expected.len(),
            show_all(&expected),
            actual.len(),
            show_all(&actual)
        ))
    }

    /// The values of the first column of the step's table, header left out.
    fn table(&mut self, state: &State, step: &Step) -> Result<Vec<Value>, String> {
        let cells = step.table.iter().skip(1).filter_map(|row| row.first());
        let mut lookup = self.lookup(state)?;
        cells.map(|cell| Term::parse(cell)?.value(&mut lookup)).collect()
    }

    fn check_count_of(&mut self, state: &State, rest: &str) -> Result<(), String> {
        let parts = rest.split_once(" for count of ").and_then(|(count, gremlin)| Some((count, quoted(gremlin)?)));
        let (count, gremlin) = parts.ok_or_else(|| format!("expected N for count of \"…\", found {rest:?}"))?;
        let expected: i64 = count.parse().map_err(|_| format!("not a count: {count:?}"))?;
        let answer = self.evaluate(state, &format!("{gremlin}.count()"))?.map_err(|failure| failure.to_string())?;
        if answer == [Value::Long(expected)] {
            return Ok(());
        }
        Err(format!("expected {expected} for the count of {gremlin}, found {}", show_all(&answer)))
    }

    fn check_tree(&mut self, state: &State, step: &Step) -> Result<(), String> {
        let Outcome::Next(Value::Tree(tree)) = state.outcome()? else {
            return Err(format!("expected a tree, found {}", show_all(&state.results()?)));
        };
        let text = step.doc.clone().unwrap_or_default();
        let mut expected = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            // Three spaces per level.
            let depth = (line.len() - line.trim_start().len()) / 3;
            let term = Term::parse(line.trim().trim_start_matches("|--").trim())?;
            expected.push((depth, term.value(&mut self.lookup(state)?)?));
        }
        let mut lines = expected.as_slice();
        check_branches(tree, &mut lines, 0).map_err(|difference| format!("{difference}; the whole tree is {tree:?}"))
    }

    fn check_subgraph(&mut self, state: &State, step: &Step) -> Result<(), String> {
        let Outcome::Next(Value::Graph(graph)) = state.outcome()? else {
            return Err(format!("expected a subgraph, found {}", show_all(&state.results()?)));
        };
        let of_vertices = step.table.first().and_then(|row| row.first()).is_some_and(|header| header == "vertices");
        let actual = if of_vertices { &graph.vertices } else { &graph.edges };
        let expected = self.table(state, step)?;
        let missing = expected.iter().find(|wanted| !actual.iter().any(|found| same_with_properties(wanted, found)));
        if missing.is_none() && expected.len() == actual.len() {
            return Ok(());
        }
        Err(format!("expected in the subgraph:\n  {}\nfound:\n  {actual:?}", show_all(&expected)))
    }
}

impl State {
    fn source(&self) -> Result<&'static str, String> {
        self.source.ok_or_else(|| "the scenario has not named its graph".to_owned())
    }

    fn outcome(&self) -> Result<&Outcome, String> {
        match &self.outcome {
            None => Err("the traversal was not iterated".into()),
            Some(Err(failure)) => Err(format!("the traversal failed: {failure}")),
            Some(Ok(outcome)) => Ok(outcome),
        }
    }

    /// The list, or what the one result holds.
    fn results(&self) -> Result<Vec<Value>, String> {
        Ok(match self.outcome()? {
            Outcome::List(values) => values.clone(),
            Outcome::Next(value) => matching::members(value),
        })
    }
}

/// Finds elements by asking the server.
struct GraphLookup<'a> {
    source: &'static str,
    world: &'a mut World,
}

impl GraphLookup<'_> {
    fn first(&mut self, gremlin: String) -> Result<Option<Value>, String> {
        let key = (self.source, gremlin);
        if let Some(known) = self.world.known.get(&key) {
            return Ok(known.clone());
        }
        let answer = self.world.submit(&key.1, &Options::alias(self.source));
        let answer = answer.map_err(|failure| format!("looking up an element with {}: {failure}", key.1))?;
        let first = answer.into_iter().next();
        if self.source != "ggraph" {
            self.world.known.insert(key, first.clone());
        }
        Ok(first)
    }
}

impl Lookup for GraphLookup<'_> {
    fn vertex(&mut self, name: &str) -> Result<Option<Value>, String> {
        self.first(format!("g.V().has(\"name\",{})", quote(name)))
    }

    fn edge(&mut self, edge: &Triplet) -> Result<Value, String> {
        let Triplet(out, label, target) = edge;
        let (from, over, to) = (quote(out), quote(label), quote(target));
        let found =
            self.first(format!("g.V().has(\"name\",{from}).outE({over}).where(__.inV().has(\"name\",{to}))"))?;
        found.ok_or_else(|| format!("no edge {out}-{label}->{target}"))
    }

    fn vertex_property(&mut self, vertex: &str, key: &str, value: &str) -> Result<Value, String> {
        let found =
            self.first(format!("g.V().has(\"name\",{}).properties({}).hasValue({value})", quote(vertex), quote(key)))?;
        found.ok_or_else(|| format!("vertex {vertex} has no property {key} with value {value}"))
    }
}

/// `NAME defined as "TERM"`
fn definition(text: &str) -> Result<(String, Term), String> {
    let parts = text.split_once(" defined as ").and_then(|(name, term)| Some((name, quoted(term)?)));
    let (name, term) = parts.ok_or_else(|| format!("expected NAME defined as \"…\", found {text:?}"))?;
    Ok((name.to_owned(), Term::parse(&term)?))
}

/// The text inside of double quotes, `\"` made to `"`.
fn quoted(text: &str) -> Option<String> {
    Some(text.trim().strip_prefix('"')?.strip_suffix('"')?.replace("\\\"", "\""))
}

/// Replaces the names that stand outside of string literals.
fn substitute(gremlin: &str, literals: &HashMap<&str, String>) -> String {
    let mut text = String::with_capacity(gremlin.len());
    let mut rest = gremlin;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => string_length(rest, first),
            c if c.is_alphabetic() || c == '_' => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
            }
            // Digits go with what follows, so that the suffix of a number is no name.
            c if c.is_ascii_digit() => rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        text.push_str(literals.get(token).map_or(token, String::as_str));
        rest = after;
    }
    text
}

/// Bytes of the string literal that `text` starts with, quotes included.
fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// `` or ` with message containing|starting|ending text of "…"`; case does not matter.
fn check_error(state: &State, rest: &str) -> Result<(), String> {
    let message = match &state.outcome {
        Some(Err(Failure::Refused { message, .. })) => message,
        Some(Err(broken)) => return Err(format!("expected an error from the server, but {broken}")),
        Some(Ok(_)) => return Err(format!("expected an error, found {}", show_all(&state.results()?))),
        None => return Err("the traversal was not iterated".into()),
    };
    if rest.is_empty() {
        return Ok(());
    }
    let parts = rest.strip_prefix(" with message ").and_then(|rest| rest.split_once(" text of "));
    let (comparison, wanted) = parts
        .and_then(|(comparison, wanted)| Some((comparison, quoted(wanted)?)))
        .ok_or_else(|| format!("expected with message … text of \"…\", found {rest:?}"))?;
    let (found, lower) = (message.to_lowercase(), wanted.to_lowercase());
    let fits = match comparison {
        "containing" => found.contains(&lower),
        "starting" => found.starts_with(&lower),
        "ending" => found.ends_with(&lower),
        _ => return Err(format!("no comparison of messages is called {comparison:?}")),
    };
    if fits { Ok(()) } else { Err(format!("expected a message {comparison} {wanted:?}, found {message:?}")) }
}

/// Checks that `tree` has exactly the branches that the lines from `depth` on describe, and takes those lines.
fn check_branches(tree: &Tree, lines: &mut &[(usize, Value)], depth: usize) -> Result<(), String> {
    let mut branches = 0;
    while let Some(((line_depth, value), rest)) = lines.split_first() {
        if *line_depth < depth {
            break;
        }
        if *line_depth > depth {
            return Err(format!("a line of the expected tree is indented too far: {}", matching::show(value)));
        }
        let child = tree.children.iter().find(|(found, _)| matching::same(value, found));
        let Some((_, child)) = child else { return Err(format!("no branch {}", matching::show(value))) };
        *lines = rest;
        branches += 1;
        check_branches(child, lines, depth + 1)?;
    }
    if branches == tree.children.len() {
        return Ok(());
    }
    let found = tree.children.keys().map(matching::show).collect::<Vec<_>>().join(", ");
    Err(format!("expected {branches} branches at depth {depth}, found {found}"))
}

/// Equal ids and labels, and every property of the wanted element on the found one; an edge also between equal vertices.
fn same_with_properties(wanted: &Value, found: &Arc<Element>) -> bool {
    let Value::Element(wanted) = wanted else { return false };
    match (&**wanted, &**found) {
        (Element::Vertex(wanted), Element::Vertex(found)) => {
            let has = |key: &str, value: &Value| found.properties.iter().any(|p| &*p.key == key && &p.value == value);
            wanted.id == found.id
                && wanted.label == found.label
                && wanted.properties.iter().all(|property| has(&property.key, &property.value))
        }
        (Element::Edge(wanted), Element::Edge(found)) => {
            let has = |key: &str, value: &Value| found.properties.iter().any(|p| &*p.key == key && &p.value == value);
            (&wanted.id, &wanted.label, &wanted.out_id, &wanted.in_id)
                == (&found.id, &found.label, &found.out_id, &found.in_id)
                && wanted.properties.iter().all(|property| has(&property.key, &property.value))
        }
        _ => false,
    }
}

fn show_all(values: &[Value]) -> String {
    const SHOWN_MAX: usize = 40;
    let mut text = values.iter().take(SHOWN_MAX).map(matching::show).collect::<Vec<_>>().join(" | ");
    if values.len() > SHOWN_MAX {
        text.push_str(&format!(" … {} more", values.len() - SHOWN_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_replaced_outside_of_strings_and_as_whole_words() {
        let literals = HashMap::from([("xx1", "[1]".to_owned()), ("l", "2".to_owned())]);
        let check = |text: &str, expected: &str| assert_eq!(substitute(text, &literals), expected);
        check("g.V(xx1).has(\"xx1\",'a\\'xx1', xx12, l, 10l)", "g.V([1]).has(\"xx1\",'a\\'xx1', xx12, 2, 10l)");
    }

    #[test]
    fn a_tree_is_checked_branch_by_branch() {
        let leaf = Tree::default;
        let text = |text: &str| Value::String(text.into());
        let inner = Tree { children: [(text("b"), leaf()), (text("c"), leaf())].into_iter().collect() };
        let tree = Tree { children: [(text("a"), inner)].into_iter().collect() };
        let check = |lines: &[(usize, &str)]| {
            let lines: Vec<_> = lines.iter().map(|(depth, name)| (*depth, text(name))).collect();
            check_branches(&tree, &mut lines.as_slice(), 0).is_ok()
        };
        assert!(check(&[(0, "a"), (1, "c"), (1, "b")]));
        assert!(!check(&[(0, "a"), (1, "b")]));
        assert!(!check(&[(0, "a"), (1, "b"), (1, "c"), (0, "d")]));
        assert!(!check(&[(0, "a"), (1, "b"), (1, "x")]));
    }
}
