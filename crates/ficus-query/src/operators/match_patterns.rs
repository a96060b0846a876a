//! `match()`: finds all bindings of labels that satisfy the patterns.
//!
//! One instance per traverser holds a stack of partial matches. The top one is extended by a pattern whose start is bound
//! (checks before patterns that bind), which is an arm of the scope; its rows become new partial matches. Depth first, so
//! that the stack stays as small as the widest pattern on the way, and the first match leaves early.

use std::collections::HashSet;
use std::sync::Arc;

use ficus_dataflow::{BranchLogic, BranchOptions, Turn};
use ficus_model::{MapMaker, Shared, Value};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{MatchPattern, Name, Node, Traversal, visit};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// A pattern with the arm that runs it.
#[derive(Clone)]
enum Pattern {
    Path {
        arm: usize,
        start: Name,
        end: Option<Name>,
        negated: bool,
        /// Whether it makes something of all its rows, so that of several equal ones that come in one is worked on, for all.
        gathers: bool,
    },
    Where {
        arm: usize,
        labels: Vec<Name>,
    },
    Or(Vec<Vec<usize>>),
}

/// Patterns of one scope: after each match they are all looked at, and for each the way back to what is bound.
const PATTERNS_MAX: usize = 1000;

/// Of patterns that are looked at, so many are paid as a row.
const RANKED_PER_UNIT: usize = 4;

#[derive(Clone)]
struct MatchScope {
    patterns: Arc<Vec<Pattern>>,
    /// The patterns every match has to satisfy.
    top: Vec<usize>,
    /// Labels in the order of the result.
    labels: Arc<[(Name, Value)]>,
    maker: MapMaker,
    /// Labels that patterns start at: with one of them bound before, it begins there.
    starts: Arc<[Name]>,
    /// Where it begins otherwise.
    start: Name,
    step: StepInfo,
}

struct Partial {
    traverser: Traverser,
    remaining: Vec<usize>,
}

impl Partial {
    /// What it counts for while it waits; `remaining` does not change meanwhile.
    fn bytes(&self) -> isize {
        let bytes = size_of::<Partial>() + self.traverser.kept_bytes() + self.remaining.len() * size_of::<usize>();
        // Half of a list that grows is free.
        2 * bytes as isize
    }
}

#[derive(Default)]
struct Matching {
    input: Option<Traverser>,
    stack: Vec<Partial>,
    /// What the running arm extends, and by which pattern.
    extending: Option<(Partial, usize)>,
    extended: Vec<Partial>,
}

/// How soon a pattern should run: checks first.
fn rank(pattern: &Pattern, traverser: &Traverser) -> Option<u8> {
    let bound = |label: &Name| traverser.labelled(label).is_some();
    match pattern {
        Pattern::Where { labels, .. } => labels.iter().all(bound).then_some(0),
        Pattern::Path { start, .. } if !bound(start) => None,
        Pattern::Path { negated: true, end, .. } => end.as_ref().is_none_or(bound).then_some(0),
        Pattern::Path { end: None, .. } => Some(1),
        Pattern::Path { end: Some(end), .. } => Some(if bound(end) { 2 } else { 3 }),
        Pattern::Or(_) => Some(4),
    }
}

impl MatchScope {
    fn go_on(&mut self, state: &mut Matching, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        loop {
            let Some(mut partial) = state.stack.pop() else { return Ok(Turn::Close) };
            cx.context.memory.adjust(-partial.bytes())?;
            if partial.remaining.is_empty() {
                self.emit(partial.traverser, state, out, cx)?;
                continue;
            }
            cx.charge(partial.remaining.len() / RANKED_PER_UNIT);
            let chosen = (0..partial.remaining.len())
                .filter_map(|position| {
                    Some((rank(&self.patterns[partial.remaining[position]], &partial.traverser)?, position))
                })
                .min();
            let Some((_, position)) = chosen else {
                return Err(QueryError::invalid(
                    "The provided match pattern is unsolvable: no pattern starts at a label that others bind",
                ));
            };
            let pattern = partial.remaining.remove(position);
            match &self.patterns[pattern] {
                Pattern::Or(alternatives) => {
                    for alternative in alternatives.iter().rev() {
                        let mut remaining = alternative.clone();
                        remaining.extend(&partial.remaining);
                        self.push(state, Partial { traverser: partial.traverser.clone(), remaining }, cx)?;
                    }
                }
                Pattern::Where { arm, .. } => {
                    let message = partial.traverser.single();
                    let arm = *arm;
                    state.extending = Some((partial, pattern));
                    return Ok(Turn::Enter { arm, message });
                }
                Pattern::Path { arm, start, gathers, .. } => {
                    let mut message = partial.traverser.single();
                    if !gathers {
                        message.bulk = partial.traverser.bulk;
                    }
                    if let Some(value) = partial.traverser.labelled(start) {
                        message.put(value.clone());
                    }
                    let arm = *arm;
                    state.extending = Some((partial, pattern));
                    return Ok(Turn::Enter { arm, message });
                }
            }
        }
    }

    fn push(&self, state: &mut Matching, partial: Partial, cx: &mut Cx<'_>) -> Result<()> {
        let counted = cx.context.memory.adjust(partial.bytes());
        state.stack.push(partial);
        counted?;
        Ok(())
    }

    fn emit(&mut self, traverser: Traverser, state: &Matching, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<()> {
        if state.input.is_some() {
            let labels = self.labels.iter();
            let bindings = labels.filter_map(|(label, key)| Some((key, traverser.labelled(label)?.clone())));
            let bindings = self.maker.make(bindings);
            let map = cx.context.made(Value::Map(Shared::new(bindings)))?;
            out.push_back(traverser.move_to(map, &self.step));
        }
        Ok(())
    }
}

/// Labels the object the traverser is at.
fn bind(traverser: &mut Traverser, label: &Name) {
    let at_head = traverser.way().next().is_some_and(|passed| *passed.value == traverser.value);
    if at_head {
        traverser.add_labels(&[label.clone()].into());
    } else {
        traverser.extend_path(&[label.clone()].into());
    }
}

impl BranchLogic<Graphs> for MatchScope {
    type State = Matching;

    fn open(
        &mut self,
        input: Traverser,
        state: &mut Matching,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        let mut traverser = input.clone();
        if !self.starts.iter().any(|label| traverser.labelled(label).is_some()) {
            bind(&mut traverser, &self.start);
        }
        state.input = Some(input);
        self.push(state, Partial { traverser, remaining: self.top.clone() }, cx)?;
        self.go_on(state, out, cx)
    }

    fn receive(
        &mut self,
        mut message: Traverser,
        state: &mut Matching,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        let Some((partial, pattern)) = &state.extending else { return Ok(Turn::Close) };
        if let Pattern::Path { gathers: true, .. } = &self.patterns[*pattern] {
            message.bulk = message.bulk.saturating_mul(partial.traverser.bulk);
        }
        match &self.patterns[*pattern] {
            Pattern::Where { .. } => {
                let (partial, _) = state.extending.take().expect("checked above");
                self.push(state, partial, cx)?;
                return self.go_on(state, out, cx);
            }
            Pattern::Path { end, negated, .. } => {
                let fits = match end {
                    None => true,
                    Some(end) => partial.traverser.labelled(end).is_none_or(|bound| *bound == message.value),
                };
                match (fits, *negated) {
                    (false, _) => {}
                    (true, true) => {
                        state.extending = None;
                        return self.go_on(state, out, cx);
                    }
                    (true, false) => {
                        // A reduction in the pattern forgets the way; what was bound before stays bound.
                        let keeps_bindings = match &self.patterns[*pattern] {
                            Pattern::Path { start, .. } => message.labelled(start).is_some(),
                            _ => true,
                        };
                        let mut traverser = if keeps_bindings {
                            message
                        } else {
                            let mut rebuilt = partial.traverser.clone();
                            rebuilt.put(message.value);
                            rebuilt.bulk = message.bulk;
                            rebuilt
                        };
                        match end {
                            Some(end) if partial.traverser.labelled(end).is_none() => bind(&mut traverser, end),
                            _ => {}
                        }
                        let remaining = partial.remaining.clone();
                        let partial = Partial { traverser, remaining };
                        let counted = cx.context.memory.adjust(partial.bytes());
                        state.extended.push(partial);
                        counted?;
                    }
                }
            }
            Pattern::Or(_) => {}
        }
        Ok(Turn::Continue)
    }

    fn release_instance(&mut self, state: &mut Matching, cx: &mut Cx<'_>) {
        let bytes: isize = state.stack.iter().chain(&state.extended).map(Partial::bytes).sum();
        // Handing back cannot pass a limit.
        let _ = cx.context.memory.adjust(-bytes);
        state.stack.clear();
        state.extended.clear();
    }

    fn arm_ended(&mut self, state: &mut Matching, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        if let Some((partial, pattern)) = state.extending.take()
            && let Pattern::Path { negated: true, .. } = &self.patterns[pattern]
        {
            self.push(state, partial, cx)?;
        }
        // The first row is worked on first.
        while let Some(partial) = state.extended.pop() {
            state.stack.push(partial);
        }
        self.go_on(state, out, cx)
    }
}

/// Collects patterns and their arms.
#[derive(Default)]
struct Compiler<'a> {
    patterns: Vec<Pattern>,
    arms: Vec<&'a Traversal>,
    starts: Vec<Name>,
    ends: Vec<Name>,
}

impl<'a> Compiler<'a> {
    fn add(&mut self, pattern: &'a MatchPattern, into: &mut Vec<usize>) -> Result<()> {
        let compiled = match pattern {
            MatchPattern::And(patterns) => {
                for pattern in patterns {
                    self.add(pattern, into)?;
                }
                return Ok(());
            }
            MatchPattern::Or(patterns) => {
                let mut alternatives = Vec::new();
                for pattern in patterns {
                    let mut alternative = Vec::new();
                    self.add(pattern, &mut alternative)?;
                    alternatives.push(alternative);
                }
                Pattern::Or(alternatives)
            }
            MatchPattern::Path { start, traversal, end } => self.path(start, traversal, end.as_ref(), false),
            MatchPattern::Not(inner) => match &**inner {
                MatchPattern::Path { start, traversal, end } => self.path(start, traversal, end.as_ref(), true),
                _ => {
                    return Err(QueryError::invalid(
                        "not() inside match() takes a single pattern that begins with as(); split it into several not()",
                    ));
                }
            },
            MatchPattern::Where(traversal, labels) => {
                self.arms.push(traversal);
                Pattern::Where { arm: self.arms.len() - 1, labels: labels.clone() }
            }
        };
        self.patterns.push(compiled);
        into.push(self.patterns.len() - 1);
        Ok(())
    }

    fn path(&mut self, start: &Name, traversal: &'a Traversal, end: Option<&Name>, negated: bool) -> Pattern {
        self.arms.push(traversal);
        if !negated {
            self.starts.push(start.clone());
            self.ends.extend(end.cloned());
        }
        let gathers = traversal.nodes.iter().any(|own| {
            visit::is_reducing(&own.node)
                || matches!(own.node, Node::Range { .. } | Node::Tail { .. } | Node::Sample { .. } | Node::Dedup { .. })
        });
        Pattern::Path { arm: self.arms.len() - 1, start: start.clone(), end: end.cloned(), negated, gathers }
    }
}

/// Adds the scope.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let Node::Match { patterns, conjunctive } = node else {
        return Err(QueryError::invalid(format!("{node} is not match()")));
    };
    let mut compiler = Compiler::default();
    let mut top = Vec::new();
    if *conjunctive {
        for pattern in patterns {
            compiler.add(pattern, &mut top)?;
        }
    } else {
        let mut alternatives = Vec::new();
        for pattern in patterns {
            let mut alternative = Vec::new();
            compiler.add(pattern, &mut alternative)?;
            alternatives.push(alternative);
        }
        compiler.patterns.push(Pattern::Or(alternatives));
        top.push(compiler.patterns.len() - 1);
    }
    if compiler.patterns.len() > PATTERNS_MAX {
        return Err(QueryError::invalid(format!(
            "match() has {} patterns, more than the {PATTERNS_MAX} that it may have where some of them gather rows, change something or are alternatives: \
             write several match() one behind the other",
            compiler.patterns.len()
        )));
    }
    let ends: HashSet<&Name> = compiler.ends.iter().collect();
    let start = compiler
        .starts
        .iter()
        .find(|start| !ends.contains(*start))
        .or(compiler.starts.first())
        .cloned()
        .ok_or_else(|| QueryError::invalid("match() needs at least one pattern that begins with as()"))?;
    let mut told = HashSet::new();
    let labels = compiler.starts.iter().chain(&compiler.ends).filter(|label| told.insert(*label));
    let labels = labels.map(|label| (label.clone(), Value::String(label.clone()))).collect();
    let scope = MatchScope {
        patterns: Arc::new(compiler.patterns),
        top,
        labels,
        maker: MapMaker::default(),
        starts: compiler.starts.into(),
        start,
        step: step.clone(),
    };
    builder.branch(chain, node, false, &compiler.arms, BranchOptions::default(), move || scope.clone())
}
