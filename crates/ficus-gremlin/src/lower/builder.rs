//! The line of nodes under construction, and the traversals inside it.
//!
//! A handler reads one instruction and pushes a node or, for a modulator, changes the last one. The builder knows what cannot
//! be seen from the nodes: whether the last `repeat()` has its body yet, how many `by()`s the last node was given, whether
//! one of the traversals around is repeated. It also cuts traversals with infix `and()` and `or()` into their parts.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use ficus_model::{Argument, Bytecode, Instruction};
use ficus_query::QueryError;
use ficus_query::logical::{LabelledNode, Name, Node, Traversal, visit};
use ficus_query::planning::Planning;

use super::arguments::Step;
use super::error::{LowerError, LowerErrorKind, Lowered};
use super::table;

/// Deepest nesting of traversals in traversals. Queries of people and frameworks stay below twenty; whatever walks the plan
/// later recurses as deep.
pub(super) const DEPTH_MAX: usize = 128;

/// Most instructions in a traversal with all that it nests. People write dozens, bulk writes chain tens of thousands; an instruction costs a few
/// hundred bytes of plan, and operators that every row passes.
pub(super) const INSTRUCTIONS_MAX: usize = 100_000;

/// What all traversals of one query share while they are lowered.
#[derive(Debug)]
pub(super) struct Lowering {
    planning: Planning,
    /// Whether `and()` and `or()` without arguments join what stands left and right of them.
    joins_infix: Cell<bool>,
}

/// Where a traversal stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// How many traversals are around it.
    pub(super) depth: usize,
    /// Whether one of the traversals around it belongs to a `repeat()`.
    pub(super) repeated: bool,
    /// Whether it is itself the body of a `repeat()`.
    pub(super) repeat_body: bool,
}

impl Context {
    /// That of the query itself.
    pub(super) const ROOT: Context = Context { depth: 0, repeated: false, repeat_body: false };

    pub(super) fn is_root(self) -> bool {
        self.depth == 0
    }

    fn child(self) -> Context {
        Context { depth: self.depth + 1, repeated: self.repeated, repeat_body: false }
    }
}

impl Lowering {
    pub(super) fn new(planning: &Planning) -> Lowering {
        Lowering { planning: planning.clone(), joins_infix: Cell::new(true) }
    }

    /// Fails if the query must stop.
    fn check(&self, step: &Instruction) -> Lowered {
        let stopped = |error: QueryError| {
            LowerError::new(LowerErrorKind::Stopped, &step.name, step.offset, error.message.to_string())
        };
        self.planning.check().map_err(stopped)
    }

    /// The traversal of a query.
    pub(super) fn root(&self, steps: &[Instruction]) -> Lowered<Traversal> {
        let count = count_with_nested(steps);
        if count > INSTRUCTIONS_MAX {
            let message = format!(
                "the traversal has {count} steps with those of the traversals inside it, more than the {INSTRUCTIONS_MAX} that it may have: send it in \
                 several requests, loop with repeat(), or unfold() a list or map of the data, sent as a parameter"
            );
            return Err(too_large(steps, message));
        }
        self.traversal(steps, Context::ROOT)
    }

    /// Takes infix connectives out of the language: from here on `and()` and `or()` without arguments are tests of nothing, of which
    /// the first lets all pass and the second none.
    pub(super) fn leave_infix(&self) {
        self.joins_infix.set(false);
    }

    /// Whether the instruction joins what stands left and right of it.
    fn is_infix(&self, instruction: &Instruction) -> bool {
        self.joins_infix.get() && instruction.args.is_empty() && matches!(&*instruction.name, "and" | "or")
    }

    /// The instructions between the infix connectives of `steps`, and whether these are `and` (else: `or`); `or` binds less
    /// tightly, so it splits first and the parts may still hold `and`s. None if there is no connective.
    fn split_infix<'s>(&self, steps: &'s [Instruction]) -> Option<(bool, Vec<&'s [Instruction]>)> {
        let mut infix = steps.iter().filter(|step| self.is_infix(step));
        let mut conjunctive = &*infix.next()?.name == "and";
        conjunctive &= infix.all(|step| &*step.name == "and");
        let word = if conjunctive { "and" } else { "or" };
        Some((conjunctive, steps.split(|step| self.is_infix(step) && &*step.name == word).collect()))
    }

    /// The traversal that `steps` make, infix connectives included.
    pub(super) fn traversal(&self, steps: &[Instruction], context: Context) -> Lowered<Traversal> {
        self.admit(steps, context)?;
        let mut builder = Builder::new(self, context, steps.len());
        if steps.iter().any(|step| self.is_infix(step)) {
            builder.connected(steps)?
        } else {
            builder.line(steps)?
        }
        builder.finish()
    }

    /// Checks the nesting; called once for each list of instructions.
    fn admit(&self, steps: &[Instruction], context: Context) -> Lowered {
        if context.depth > DEPTH_MAX {
            return Err(too_large(steps, format!("traversals are nested deeper than {DEPTH_MAX}")));
        }
        Ok(())
    }
}

/// The test that infix connectives make of their sides. A side without steps yields nothing, so that its test fails; as in TinkerPop one behind an
/// `and()` is none.
pub(super) fn join_infix(
    conjunctive: bool,
    sides: Vec<&[Instruction]>,
    lower: impl Fn(&[Instruction]) -> Lowered<Arc<Traversal>>,
) -> Lowered<Node> {
    let begins_empty = sides.first().is_some_and(|side| side.is_empty()) && sides.iter().any(|side| !side.is_empty());
    let mut traversals = Vec::with_capacity(sides.len());
    if conjunctive && begins_empty {
        let nothing = Node::Or { traversals: Vec::new() };
        traversals.push(Arc::new(Traversal { nodes: vec![nothing.into()] }));
    }
    for side in sides.into_iter().filter(|side| !side.is_empty()) {
        traversals.push(lower(side)?);
    }
    Ok(if conjunctive { Node::And { traversals } } else { Node::Or { traversals } })
}

fn too_large(steps: &[Instruction], message: String) -> LowerError {
    let (name, offset) = steps.first().map_or(("", None), |step| (&*step.name, step.offset));
    LowerError::new(LowerErrorKind::TooLarge, name, offset, message)
}

/// How many instructions these are with those of the traversals inside them, at any depth.
fn count_with_nested(steps: &[Instruction]) -> usize {
    let mut count = steps.len();
    let mut arguments: Vec<&Argument> = steps.iter().flat_map(|step| &step.args).collect();
    while let Some(argument) = arguments.pop() {
        match argument {
            Argument::Value(_) | Argument::Predicate(_) => {}
            Argument::Traversal(bytecode) => {
                count += bytecode.steps.len();
                arguments.extend(bytecode.steps.iter().flat_map(|step| &step.args));
            }
            Argument::Strategy { options, .. } => arguments.extend(options.iter().map(|(_, argument)| argument)),
            Argument::List(members) => arguments.extend(members),
            Argument::Map(entries) => arguments.extend(entries.iter().flat_map(|(key, value)| [key, value])),
            Argument::CardinalityValue(_, inner) => arguments.push(inner),
        }
    }
    count
}

/// The line of nodes under construction.
#[derive(Debug)]
pub(super) struct Builder<'q> {
    lowering: &'q Lowering,
    pub(super) context: Context,
    nodes: Vec<LabelledNode>,
    /// The labels that the last node has.
    last_labels: HashSet<Name>,
    /// How many `by()`s the last node was given.
    pub(super) bys: usize,
    /// Whether the last node is a `repeat()` without its body, or an `io()` without its mode.
    incomplete: Option<Incomplete>,
    /// The name of the last step that is no modulator.
    last_name: &'static str,
}

/// What the last node still lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incomplete {
    /// A `repeat()` has only its `until()`, `times()` or `emit()`.
    RepeatBody,
    /// An `io()` was not told to read or to write.
    IoMode,
}

impl<'q> Builder<'q> {
    fn new(lowering: &'q Lowering, context: Context, steps: usize) -> Builder<'q> {
        Builder {
            lowering,
            context,
            nodes: Vec::with_capacity(steps),
            last_labels: HashSet::new(),
            bys: 0,
            incomplete: None,
            last_name: "",
        }
    }

    /// A builder for a traversal one level further in, without nodes yet.
    pub(super) fn nested(&self) -> Builder<'q> {
        Builder::new(self.lowering, self.context.child(), 0)
    }

    /// See [`Lowering::split_infix`].
    pub(super) fn split_infix<'s>(&self, steps: &'s [Instruction]) -> Option<(bool, Vec<&'s [Instruction]>)> {
        self.lowering.split_infix(steps)
    }

    /// Lowers instructions without infix connectives.
    pub(super) fn line(&mut self, steps: &[Instruction]) -> Lowered {
        for instruction in steps {
            self.lowering.check(instruction)?;
            let step = Step::new(instruction);
            let entry = table::find(step)?;
            (entry.lower)(self, step)?;
            if !entry.modulates {
                self.last_name = entry.name;
            }
        }
        Ok(())
    }

    /// Lowers instructions of which some are infix connectives. A connective takes all that stands left and right of it
    /// but steps that bring in traversers: `g.V()`, `inject()` and `profile()` stay where they are.
    fn connected(&mut self, steps: &[Instruction]) -> Lowered {
        let mut rest = steps;
        while !rest.is_empty() {
            let at_start = self.context.is_root() && self.nodes.is_empty();
            if is_fixed(&rest[0], at_start) {
                let modulators = rest[1..].iter().take_while(|step| matches!(&*step.name, "as" | "with")).count();
                let (fixed, after) = rest.split_at(1 + modulators);
                self.line(fixed)?;
                rest = after;
                continue;
            }
            let length = rest.iter().position(|step| is_fixed(step, false)).unwrap_or(rest.len());
            let (region, after) = rest.split_at(length);
            match self.lowering.split_infix(region) {
                None => self.line(region)?,
                Some((conjunctive, parts)) => {
                    let node = join_infix(conjunctive, parts, |part| self.lower_child(part))?;
                    self.last_name = if conjunctive { "and" } else { "or" };
                    self.push(Step::new(&region[0]), node)?;
                }
            }
            rest = after;
        }
        Ok(())
    }

    /// Ends the traversal.
    pub(super) fn finish(mut self) -> Lowered<Traversal> {
        self.complete()?;
        Ok(Traversal { nodes: self.nodes })
    }

    fn complete(&mut self) -> Lowered {
        match self.incomplete.take() {
            None => Ok(()),
            Some(Incomplete::RepeatBody) => Err(LowerError::illegal(
                "repeat",
                "The repeat()-traversal was not defined: until(), times() and emit() need a repeat() beside them",
            )),
            Some(Incomplete::IoMode) => {
                Err(LowerError::illegal("io", "IO mode was not set to read() or write(): add one of them after io()"))
            }
        }
    }

    // ---- nodes -------------------------------------------------------------------------------------------------

    /// Adds a node, made of `step`.
    pub(super) fn push(&mut self, step: Step<'_>, node: Node) -> Lowered {
        if self.incomplete.is_some() {
            self.complete()?;
        }
        if self.context.repeat_body && (visit::is_reducing(&node) || matches!(node, Node::Cap { .. })) {
            return Err(step.illegal(format!(
                "The parent of a reducing/supplying barrier can not be repeat()-step: {}() cannot stand in repeat() \
                 directly, wrap it in local() or move it behind the loop",
                step.name()
            )));
        }
        self.bys = 0;
        self.last_labels.clear();
        self.nodes.push(node.into());
        Ok(())
    }

    /// Adds labels to the last node, each once.
    pub(super) fn label_last(&mut self, names: Vec<Name>) {
        if let Some(last) = self.nodes.last_mut() {
            last.labels.extend(names.into_iter().filter(|name| self.last_labels.insert(name.clone())));
        }
    }

    /// Adds a node that lacks something which a later modulator must bring.
    pub(super) fn push_incomplete(&mut self, step: Step<'_>, node: Node, lacks: Incomplete) -> Lowered {
        self.push(step, node)?;
        self.incomplete = Some(lacks);
        Ok(())
    }

    pub(super) fn incomplete(&self) -> Option<Incomplete> {
        self.incomplete
    }

    /// Notes that the last node now has what it lacked.
    pub(super) fn completed(&mut self) {
        self.incomplete = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether a step that is lowered now begins the query.
    pub(super) fn is_start(&self) -> bool {
        self.nodes.is_empty() && self.context.is_root()
    }

    pub(super) fn last(&mut self) -> Option<&mut Node> {
        self.nodes.last_mut().map(|labelled| &mut labelled.node)
    }

    pub(super) fn nodes(&mut self) -> &mut Vec<LabelledNode> {
        &mut self.nodes
    }

    /// The name of the step that a modulator would modulate, for messages.
    pub(super) fn last_name(&self) -> &'static str {
        if self.last_name.is_empty() { "start" } else { self.last_name }
    }

    // ---- traversals inside -------------------------------------------------------------------------------------

    /// Lowers a child.
    pub(super) fn child(&self, bytecode: &Arc<Bytecode>) -> Lowered<Arc<Traversal>> {
        self.check_anonymous(bytecode)?;
        self.lower_child(&bytecode.steps)
    }

    /// Lowers a child that is part of a `repeat()`.
    pub(super) fn repeated_child(&self, bytecode: &Arc<Bytecode>, body: bool) -> Lowered<Arc<Traversal>> {
        self.check_anonymous(bytecode)?;
        let context = Context { repeated: true, repeat_body: body, ..self.context.child() };
        self.lowering.traversal(&bytecode.steps, context).map(Arc::new)
    }

    pub(super) fn children(&self, bytecodes: &[&Arc<Bytecode>]) -> Lowered<Vec<Arc<Traversal>>> {
        bytecodes.iter().map(|bytecode| self.child(bytecode)).collect()
    }

    pub(super) fn lower_child(&self, steps: &[Instruction]) -> Lowered<Arc<Traversal>> {
        self.lowering.traversal(steps, self.context.child()).map(Arc::new)
    }

    /// Checks the bounds for a child whose instructions the caller lowers itself.
    pub(super) fn admit_child(&self, steps: &[Instruction]) -> Lowered {
        self.lowering.admit(steps, self.context.child())
    }

    pub(super) fn check_anonymous(&self, bytecode: &Bytecode) -> Lowered {
        match bytecode.source.first() {
            None => Ok(()),
            Some(instruction) => Err(Step::new(instruction).illegal(format!(
                "{}() configures a traversal source, which a traversal inside another has not: move it to the outermost g",
                instruction.name
            ))),
        }
    }
}

/// Whether an infix connective leaves the step where it is.
fn is_fixed(instruction: &Instruction, at_start: bool) -> bool {
    match &*instruction.name {
        "V" | "E" => at_start,
        "inject" | "profile" => true,
        _ => false,
    }
}
