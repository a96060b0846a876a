//! `choose()` in place: what is chosen, and the walk of the option.

use std::sync::Arc;

use ficus_model::matching::CompiledPredicate;
use ficus_model::{P, Pick, Value};

use super::{Halt, Probe, Surroundings};
use crate::logical::{PickToken, Traversal};
use crate::operators::choose::OPTIONS_MAX;

/// When an option is taken.
#[derive(Clone)]
enum Token {
    Predicate(CompiledPredicate),
    Pick(Pick),
}

/// The choice of a `choose()`, and its options.
#[derive(Clone)]
pub(super) struct Choice {
    /// What chooses.
    by: Probe,
    /// What is chosen is whether it yields something.
    boolean: bool,
    /// In order.
    options: Vec<(Token, Probe)>,
}

impl Choice {
    /// `None` if a scope has to run it: an option gathers rows, or is taken by a traversal or in any case.
    pub(super) fn compile(
        choice: &Traversal,
        boolean: bool,
        options: &[(PickToken, Arc<Traversal>)],
    ) -> Option<Choice> {
        let by = if boolean { Probe::compile_test(choice)? } else { Probe::compile(choice)? };
        if options.len() >= OPTIONS_MAX {
            return None;
        }
        let mut own = Vec::with_capacity(options.len());
        for (token, traversal) in options {
            let token = match token {
                PickToken::Value(value) => Token::Predicate(P::eq(value.clone()).compile().ok()?),
                PickToken::Predicate(predicate) => Token::Predicate(predicate.compile().ok()?),
                PickToken::Pick(pick @ (Pick::None | Pick::Unproductive)) => Token::Pick(*pick),
                PickToken::Pick(_) | PickToken::Traversal(_) => return None,
            };
            let probe = Probe::compile(traversal).filter(|probe| !probe.is_gathering())?;
            own.push((token, probe));
        }
        Some(Choice { by, boolean, options: own })
    }

    /// The option that a row takes; `None` if it goes on as it is.
    pub(super) fn arm(&mut self, value: &Value, around: &mut Surroundings<'_>) -> Result<Option<&mut Probe>, Halt> {
        let choice = if self.boolean {
            Some(Value::Bool(self.by.exists(value, around)?))
        } else {
            let mut first = None;
            let _ = self.by.rows(value.clone(), 1, around, &mut |value, _, _| {
                first = Some(value);
                Ok(std::ops::ControlFlow::Break(()))
            })?;
            first
        };
        let mut taken = None;
        if let Some(choice) = &choice {
            for (option, (token, _)) in self.options.iter().enumerate() {
                if let Token::Predicate(predicate) = token
                    && predicate.test(choice, around.context).map_err(crate::QueryError::from)?
                {
                    taken = Some(option);
                    break;
                }
            }
        }
        let unmatched = if choice.is_some() { Pick::None } else { Pick::Unproductive };
        let is_unmatched = |(token, _): &(Token, Probe)| matches!(token, Token::Pick(pick) if *pick == unmatched);
        let taken = taken.or_else(|| self.options.iter().position(is_unmatched));
        Ok(taken.map(|option| &mut self.options[option].1))
    }

    pub(super) fn probes(&self) -> impl Iterator<Item = &Probe> {
        std::iter::once(&self.by).chain(self.options.iter().map(|(_, probe)| probe))
    }

    pub(super) fn probes_mut(&mut self) -> impl Iterator<Item = &mut Probe> {
        std::iter::once(&mut self.by).chain(self.options.iter_mut().map(|(_, probe)| probe))
    }
}
