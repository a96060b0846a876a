//! `choose()` and `branch()`: a branch scope finds the options of a traverser and notes them in its marks, a fork sends it
//! there. What makes the choice is a look in place where that is short.

use ficus_dataflow::{Arms, BranchLogic, BranchOptions, ForkLogic, Turn};
use ficus_model::matching::CompiledPredicate;
use ficus_model::{P, Pick, Value};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{Node, PickToken, Traversal};
use crate::physical::{Builder, Chain};
use crate::probe::Probe;
use crate::traverser::{Traverser, marks};

/// Options one `branch()` may have: their numbers are bits of the marks.
pub const OPTIONS_MAX: usize = 48;

/// When an option is taken.
#[derive(Clone)]
enum Condition {
    Predicate(CompiledPredicate),
    /// Yields something on the choice; index of its arm.
    Arm(usize),
    Pick(Pick),
    /// Nothing else was taken, and the row goes on as it is.
    Pass,
}

#[derive(Clone)]
struct ChoiceScope {
    boolean: bool,
    conditions: Vec<Condition>,
    /// What makes the choice, and arms of conditions, in place; by arm.
    probes: Vec<Option<Probe>>,
    /// Whether only the first matching option counts.
    first_only: bool,
}

#[derive(Default)]
struct Choosing {
    input: Option<Traverser>,
    choice: Option<Value>,
    taken: u64,
    /// The option whose arm is being tried.
    next: usize,
}

impl ChoiceScope {
    /// Makes the choice of a row in place; `None` if a scope has to make it.
    fn choose(&mut self, input: &Traverser, cx: &mut Cx<'_>) -> Result<Option<Option<Value>>> {
        let Some(Some(probe)) = self.probes.first_mut() else { return Ok(None) };
        Ok(match self.boolean {
            true => probe.finds(input, cx)?.paid(cx).map(|found| Some(Value::Bool(found))),
            false => probe.first(&input.value, Some(input), cx)?.paid(cx),
        })
    }

    fn decide(
        &mut self,
        choice: Option<Value>,
        state: &mut Choosing,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        state.choice = choice;
        self.go_on(state, out, cx)
    }

    fn go_on(&mut self, state: &mut Choosing, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        if let Some(choice) = &state.choice {
            while state.next < self.conditions.len() && !(self.first_only && state.taken != 0) {
                let option = state.next;
                match &self.conditions[option] {
                    Condition::Predicate(predicate) => {
                        let context: &QueryContext = cx.context;
                        if predicate.test(choice, context)? {
                            state.taken |= 1 << option;
                        }
                    }
                    Condition::Arm(arm) => {
                        let message = cx.context.fresh(choice.clone());
                        let tried = match &mut self.probes[*arm] {
                            Some(probe) => probe.finds(&message, cx)?.paid(cx),
                            None => None,
                        };
                        match tried {
                            Some(found) => state.taken |= u64::from(found) << option,
                            None => return Ok(Turn::Enter { arm: *arm, message }),
                        }
                    }
                    Condition::Pick(_) | Condition::Pass => {}
                }
                state.next += 1;
            }
        }
        let unmatched = if state.choice.is_some() { Pick::None } else { Pick::Unproductive };
        // All of them: choose() has one at most.
        let options_of = |pick: Pick| {
            let has_pick = |condition: &Condition| matches!(condition, Condition::Pick(own) if *own == pick);
            let options = self.conditions.iter().enumerate().filter(|(_, condition)| has_pick(condition));
            options.fold(0u64, |taken, (option, _)| taken | 1 << option)
        };
        if state.taken == 0 {
            let passes = u64::from(matches!(self.conditions.first(), Some(Condition::Pass)));
            let fallbacks = [options_of(unmatched), passes, options_of(Pick::None)];
            state.taken = fallbacks.into_iter().find(|taken| *taken != 0).unwrap_or(0);
        }
        state.taken |= options_of(Pick::Any);
        if let Some(mut input) = state.input.take() {
            input.marks |= state.taken << marks::OPTION_SHIFT;
            out.push_back(input);
        }
        Ok(Turn::Close)
    }
}

impl BranchLogic<Graphs> for ChoiceScope {
    type State = Choosing;

    fn open(
        &mut self,
        input: Traverser,
        state: &mut Choosing,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        if let Some(choice) = self.choose(&input, cx)? {
            state.input = Some(input);
            return self.decide(choice, state, out, cx);
        }
        let message = input.single();
        state.input = Some(input);
        Ok(Turn::Enter { arm: 0, message })
    }

    fn receive(
        &mut self,
        message: Traverser,
        state: &mut Choosing,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        if state.choice.is_some() {
            state.taken |= 1 << state.next;
            state.next += 1;
            return self.go_on(state, out, cx);
        }
        let choice = if self.boolean { Value::Bool(true) } else { message.value };
        self.decide(Some(choice), state, out, cx)
    }

    fn arm_ended(&mut self, state: &mut Choosing, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        if state.choice.is_some() {
            state.next += 1;
            return self.go_on(state, out, cx);
        }
        self.decide(self.boolean.then_some(Value::Bool(false)), state, out, cx)
    }
}

/// Sends a traverser to the options in its marks.
struct ToTaken;

impl ForkLogic<Graphs> for ToTaken {
    fn route(&mut self, mut message: Traverser, arms: &mut Arms<'_, Graphs>, _cx: &mut Cx<'_>) -> Result<()> {
        let mut taken = (message.marks & !marks::INPUT) >> marks::OPTION_SHIFT;
        message.marks &= marks::INPUT | ((1 << marks::OPTION_SHIFT) - 1);
        while taken != 0 {
            let option = taken.trailing_zeros() as usize;
            taken &= taken - 1;
            if taken == 0 {
                arms.send(option, message);
                break;
            }
            arms.send(option, message.clone());
        }
        Ok(())
    }
}

/// Adds the scope and the fork.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let Node::Choose { choice, boolean, options, pass_unmatched } = node else {
        return Err(QueryError::invalid(format!("{node} is not choose()")));
    };
    if options.len() >= OPTIONS_MAX {
        return Err(QueryError::invalid(format!(
            "choose() and branch() take at most {} options; this one has {}",
            OPTIONS_MAX - 1,
            options.len()
        )));
    }
    let mut tests: Vec<&Traversal> = vec![choice];
    let mut conditions = Vec::with_capacity(options.len() + 1);
    let mut arms: Vec<&Traversal> = Vec::with_capacity(options.len() + 1);
    let pass_through = Traversal::default();
    if *pass_unmatched {
        conditions.push(Condition::Pass);
        arms.push(&pass_through);
    }
    arms.extend(options.iter().map(|(_, traversal)| traversal.as_ref()));
    for (token, _) in options {
        conditions.push(match token {
            PickToken::Value(value) => Condition::Predicate(P::eq(value.clone()).compile()?),
            PickToken::Predicate(predicate) => Condition::Predicate(predicate.compile()?),
            PickToken::Traversal(traversal) => {
                tests.push(traversal);
                Condition::Arm(tests.len() - 1)
            }
            PickToken::Pick(pick) => Condition::Pick(*pick),
        });
    }
    let probes = builder.choice_probes(&tests, *boolean);
    let scope = ChoiceScope { boolean: *boolean, conditions, probes, first_only: *pass_unmatched };
    let branch_options = BranchOptions { arm_rows_limit: 1, ..BranchOptions::default() };
    builder.branch(chain, "choice", false, &tests, branch_options, move || scope.clone())?;
    builder.fork(chain, node, &arms, false, || ToTaken)
}
