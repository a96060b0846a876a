//! Services: named procedures a traversal can `call()`.

mod parameters;
pub mod programs;
pub mod reference;
pub mod schema;

use std::collections::BTreeMap;
use std::sync::Arc;

use ficus_model::{Value, ValueMap};

use crate::context::{Cx, QueryContext, Result};

/// A procedure in the registry.
pub trait Service: Send + Sync {
    /// Its name, as `call()` uses it.
    fn name(&self) -> &str;

    /// Whether it can begin a traversal.
    fn can_start(&self) -> bool {
        true
    }

    /// Whether it can follow other steps, once per traverser.
    fn can_stream(&self) -> bool {
        false
    }

    /// Whether `call('--list')` names it without being asked for `all`; those of the system itself are not.
    fn is_listed(&self) -> bool {
        true
    }

    /// Parameters and their meaning, for `call('--list')` with `verbose`.
    fn parameters(&self) -> Vec<(&'static str, &'static str)>;

    /// Whether a call with these parameters changes the graph or what is declared of it; `ReadOnlyStrategy` refuses such calls.
    fn writes(&self, _parameters: &ValueMap) -> bool {
        false
    }

    /// Runs it; `input` is the traverser's object unless the service begins the traversal. What takes long is answered later.
    fn call(&self, cx: &mut Cx<'_>, input: Option<&Value>, parameters: &ValueMap) -> Result<Reply>;
}

/// What a call gives.
pub enum Reply {
    /// All it has to say.
    Values(Vec<Value>),
    /// Values come later, or are made as they are wanted.
    Later(Box<dyn LaterValues>),
}

/// Values on their way.
pub trait LaterValues: Send {
    /// The next value; `None` once there are no more, or for now: then it has [parked](ficus_dataflow::Cx::park) the operator and will have it
    /// woken.
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Option<Value>>;

    /// Hands back what it holds of the query's memory.
    fn release(&mut self, context: &mut QueryContext);
}

/// The services of a server.
#[derive(Default)]
pub struct ServiceRegistry {
    services: BTreeMap<String, Arc<dyn Service>>,
}

impl ServiceRegistry {
    /// A registry with the services every server has.
    pub fn standard() -> ServiceRegistry {
        let mut registry = ServiceRegistry::default();
        registry.register(Arc::new(reference::DegreeCentrality));
        registry.register(Arc::new(reference::Search));
        schema::services().for_each(|service| registry.register(Arc::new(service)));
        programs::services().for_each(|service| registry.register(Arc::new(service)));
        registry.register(Arc::new(programs::KHopService));
        registry
    }

    /// Adds a service; the last one under a name counts.
    pub fn register(&mut self, service: Arc<dyn Service>) {
        self.services.insert(service.name().to_owned(), service);
    }

    /// Finds a service.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Service>> {
        self.services.get(name)
    }

    /// All services by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Service>> {
        self.services.values()
    }
}
