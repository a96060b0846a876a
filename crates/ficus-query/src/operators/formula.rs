//! `math()` and `format()`: a formula or template over the current object, labelled objects and modulated values.

use std::sync::Arc;

use ficus_dataflow::{NodeName, Queue};
use ficus_model::{Pop, Value};

use crate::context::{Cx, QueryContext, Result};
use crate::elements::KeyRef;
use crate::error::QueryError;
use crate::functions::format::{Piece, Template};
use crate::functions::{Expression, math};
use crate::logical::{By, Node};
use crate::modulate::{ModulatedLogic, Modulator, Request, Subject};
use crate::operators::combine::found_under;
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::{StepInfo, Traverser};

struct MathLogic {
    expression: Arc<Expression>,
    modulators: usize,
    step: StepInfo,
}

impl ModulatedLogic for MathLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        for (position, name) in self.expression.variables().iter().enumerate() {
            let subject = if &**name == "_" {
                Subject::Current
            } else {
                Subject::Value(cx.context.scope_value(traverser, name).unwrap_or(Value::Null))
            };
            list.push(Request { modulator: position % self.modulators, subject });
        }
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        _cx: &mut Cx<'_>,
    ) -> Result<()> {
        let Some(values) = results.drain(..).collect::<Option<Vec<Value>>>() else { return Ok(()) };
        let numbers = self
            .expression
            .variables()
            .iter()
            .zip(&values)
            .map(|(name, value)| Ok(math::variable_value(name, value)?))
            .collect::<Result<Vec<f64>>>()?;
        let value = Value::Double(self.expression.evaluate(&numbers)?);
        out.push_back(traverser.move_to(value, &self.step));
        Ok(())
    }
}

/// A `math()` without sub-queries, on the spot.
#[derive(Clone)]
pub struct Formula {
    expression: Arc<Expression>,
    modulators: Vec<Modulator>,
    /// Empty between evaluations.
    numbers: Vec<f64>,
    found: Vec<Value>,
}

impl Formula {
    /// `None` if a `by()` is a sub-query, or it is no expression.
    pub fn compile(expression: &str, bys: &[By]) -> Option<Formula> {
        let expression = Arc::new(Expression::parse(expression).ok()?);
        let modulators = Modulators::of(bys).all_simple()?.to_vec();
        Some(Formula { expression, modulators, numbers: Vec::new(), found: Vec::new() })
    }

    /// Whether it looks at nothing but the current object.
    pub fn reads_no_labels(&self) -> bool {
        self.expression.variables().iter().all(|name| &**name == "_")
    }

    /// Its value for an object; `None` if a `by()` yields nothing. `way` is where it looks for labels.
    ///
    /// Errors: a variable is no number; division by zero.
    pub fn value(&mut self, value: &Value, way: Option<&Traverser>, context: &QueryContext) -> Result<Option<Value>> {
        self.found.clear();
        for (position, name) in self.expression.variables().iter().enumerate() {
            let place = position % self.modulators.len();
            let modulator = &mut self.modulators[place];
            let found = if &**name == "_" {
                modulator.evaluate(value, context)?
            } else {
                let under = found_under(context, value, way, Pop::Last, name).unwrap_or(Value::Null);
                modulator.evaluate(&under, context)?
            };
            let Some(found) = found else { return Ok(None) };
            self.found.push(found);
        }
        self.numbers.clear();
        for (name, value) in self.expression.variables().iter().zip(&self.found) {
            self.numbers.push(math::variable_value(name, value)?);
        }
        Ok(Some(Value::Double(self.expression.evaluate(&self.numbers)?)))
    }
}

/// Holes of a template that are filled between two looks at whether the query has to stop.
const HOLES_BETWEEN_LOOKS: usize = 1024;

struct FormatLogic {
    template: Arc<Template>,
    modulators: usize,
    step: StepInfo,
}

impl ModulatedLogic for FormatLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        let holes = self.template.pieces().iter().filter(|piece| matches!(piece, Piece::By)).count();
        list.extend((0..holes).map(|position| Request::current(position % self.modulators)));
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let context = &*cx.context;
        let mut modulated = results.drain(..);
        let mut holes = 0usize;
        let filled = self.template.fill(context, |piece| -> Result<Option<Value>> {
            holes += 1;
            if holes.is_multiple_of(HOLES_BETWEEN_LOOKS) {
                context.check()?;
            }
            let value = match piece {
                Piece::Variable(name) => context
                    .only_value(&traverser.value, &mut KeyRef::new(name.clone()))?
                    .or_else(|| context.scope_value(&traverser, name)),
                _ => modulated.next().flatten(),
            };
            // A null is as good as nothing.
            Ok(value.filter(|value| !matches!(value, Value::Null)))
        })?;
        drop(modulated);
        cx.charge(holes / 8);
        if let Some(text) = filled {
            let text = cx.context.made(text)?;
            out.push_back(traverser.move_to(text, &self.step));
        }
        Ok(())
    }
}

/// Adds the operator of a formula.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (NodeName::from(node), step.clone());
    match node {
        Node::Math { expression, bys } => {
            let expression = Arc::new(Expression::parse(expression)?);
            let mut modulators = Modulators::of(bys);
            if modulators.is_empty() {
                modulators.push(Modulator::Identity);
            }
            let count = modulators.len();
            builder.modulated(chain, &name, false, modulators, move || MathLogic {
                expression: expression.clone(),
                modulators: count,
                step: step.clone(),
            })
        }
        Node::Format { template, bys } => {
            let template = Arc::new(Template::parse(template));
            let modulators = Modulators::of(bys);
            let count = modulators.len();
            builder.modulated(chain, &name, false, modulators, move || FormatLogic {
                template: template.clone(),
                modulators: count,
                step: step.clone(),
            })
        }
        _ => Err(QueryError::invalid(format!("{node} is not a formula"))),
    }
}
