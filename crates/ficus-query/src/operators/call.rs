//! `call()`: runs a service of the registry.

use std::collections::VecDeque;
use std::sync::Arc;

use ficus_dataflow::{Flow, Queue};
use ficus_model::{Shared, Value, ValueMap};

use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::logical::{Name, Node};
use crate::modulate::{ModulatedLogic, Request};
use crate::physical::{Builder, Chain, Modulators};
use crate::services::{LaterValues, Reply, ServiceRegistry};
use crate::traverser::{StepInfo, Traverser};

/// The service that lists the others.
pub const LIST_SERVICE: &str = "--list";

/// Stands for the key of a traversal that computes a whole map of parameters; no parameter can have this name.
const WHOLE_MAP: &str = "\u{0}";

struct CallLogic {
    service: Name,
    keys: Arc<[Name]>,
    start: bool,
    /// Services that would write are refused.
    read_only: bool,
    step: StepInfo,
    /// Calls that are answered later, in the order they were made.
    later: VecDeque<(Traverser, Box<dyn LaterValues>)>,
}

/// What `call('--list')` yields: names, or with `verbose` a map per service; `service` narrows it to one, `all` adds those of
/// the system itself.
fn list(registry: &ServiceRegistry, parameters: &ValueMap) -> Vec<Value> {
    let parameter = |key: &str| parameters.get(&Value::String(Arc::from(key)));
    let verbose = matches!(parameter("verbose"), Some(Value::Bool(true)));
    let wanted = match parameter("service") {
        Some(Value::String(name)) => Some(name.clone()),
        _ => None,
    };
    let all = matches!(parameter("all"), Some(Value::Bool(true)));
    let text = |text: &str| Value::String(Arc::from(text));
    registry
        .iter()
        .filter(|service| match wanted.as_deref() {
            Some(wanted) => wanted == service.name(),
            None => all || service.is_listed(),
        })
        .map(|service| {
            if !verbose {
                return text(service.name());
            }
            let mut types = ValueMap::default();
            for (is_so, name) in [(service.can_start(), "Start"), (service.can_stream(), "Streaming")] {
                if is_so {
                    types.insert(text(name), Value::List(Shared::default()));
                }
            }
            let described: ValueMap =
                service.parameters().into_iter().map(|(key, meaning)| (text(key), text(meaning))).collect();
            let mut map = ValueMap::default();
            map.insert(text("name"), text(service.name()));
            map.insert(text("type:[requirements]:"), Value::Map(Shared::new(types)));
            map.insert(text("params"), Value::Map(Shared::new(described)));
            Value::Map(Shared::new(map))
        })
        .collect()
}

impl ModulatedLogic for CallLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.extend((0..self.keys.len()).map(Request::current));
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let mut parameters = ValueMap::default();
        for (key, value) in self.keys.iter().zip(results.drain(..)) {
            match (&**key == WHOLE_MAP, value) {
                (true, Some(Value::Map(map))) => parameters.extend(map.iter().map(|(k, v)| (k.clone(), v.clone()))),
                (true, _) => return Err(QueryError::invalid("the parameters of call() are a Map")),
                (false, value) => {
                    parameters.insert(Value::String(key.clone()), value.unwrap_or(Value::Null));
                }
            }
        }
        let services = cx.context.services.clone();
        let values = if &*self.service == LIST_SERVICE {
            list(&services, &parameters)
        } else {
            let service = services.get(&self.service).ok_or_else(|| {
                QueryError::invalid(format!(
                    "Unrecognized service: {}; call('--list') names those there are",
                    self.service
                ))
            })?;
            if self.start && !service.can_start() || !self.start && !service.can_stream() {
                return Err(QueryError::invalid(format!(
                    "service {} cannot be used {}",
                    self.service,
                    if self.start { "to begin a traversal" } else { "in the middle of a traversal" }
                )));
            }
            if self.read_only && service.writes(&parameters) {
                return Err(QueryError::invalid(format!(
                    "The provided traversal has a mutating step and thus is not read only: call({}) would write",
                    self.service
                )));
            }
            let input = (!self.start).then(|| traverser.value.clone());
            match service.call(cx, input.as_ref(), &parameters)? {
                Reply::Values(values) => values,
                Reply::Later(values) => {
                    self.later.push_back((traverser, values));
                    return Ok(());
                }
            }
        };
        for value in values {
            out.push_back(traverser.advance(value, &self.step));
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some((traverser, values)) = self.later.front_mut() {
            while !cx.should_pause(out)
                && let Some(value) = values.next(cx)?
            {
                out.push_back(traverser.advance(value, &self.step));
            }
            if cx.should_pause(out) {
                return Ok(Flow::More);
            }
            values.release(cx.context);
            self.later.pop_front();
        }
        Ok(Flow::Ready)
    }

    fn release(&mut self, context: &mut QueryContext) {
        self.later.iter_mut().for_each(|(_, values)| values.release(context));
        self.later.clear();
    }

    fn reset(&mut self) {
        self.later.clear();
    }
}

/// Adds the operator.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let Node::Call { service, parameters, parameter_traversal, settings, start } = node else {
        return Err(QueryError::invalid(format!("{node} is not call()")));
    };
    let mut modulators = Modulators::new();
    let mut keys: Vec<Name> = Vec::new();
    for (key, value) in parameters {
        modulators.value(value);
        keys.push(key.clone());
    }
    if let Some(traversal) = parameter_traversal {
        modulators.traversal(traversal);
        keys.push(Arc::from(WHOLE_MAP));
    }
    for (key, value) in settings {
        modulators.value(value);
        keys.push(key.clone());
    }
    let keys: Arc<[Name]> = keys.into();
    let service = service.clone().unwrap_or_else(|| Arc::from(LIST_SERVICE));
    let (start, read_only, step) = (*start, builder.read_only(), step.clone());
    builder.modulated(chain, node, false, modulators, move || CallLogic {
        service: service.clone(),
        keys: keys.clone(),
        start,
        read_only,
        step: step.clone(),
        later: VecDeque::new(),
    })
}
