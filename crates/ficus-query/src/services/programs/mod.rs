//! `ficus.pagerank` and its kin: programs over a projection of the whole graph.
//!
//! A call begins its program on the threads of analytics and waits, costing nothing, until it has ended; then it yields a map for each vertex, or writes
//! the values to a property, as part of the query's transaction, and yields how many. What the transaction itself has written is seen: then its
//! projection is made for it alone.

mod algorithm;
pub mod background;
pub mod id_order;
mod job;
mod k_hop;

use ficus_model::{Value, ValueMap};

use super::parameters::Parameters;
use super::{Reply, Service};
use crate::context::{Cx, Result};
use algorithm::Algorithm;
use job::Job;
pub use k_hop::KHopService;

/// One service of this family.
pub struct ProgramService(Algorithm);

/// All services of this family.
pub fn services() -> impl Iterator<Item = ProgramService> {
    Algorithm::ALL.into_iter().map(ProgramService)
}

impl Service for ProgramService {
    fn name(&self) -> &str {
        self.0.service_name()
    }

    fn is_listed(&self) -> bool {
        false
    }

    fn parameters(&self) -> Vec<(&'static str, &'static str)> {
        self.0.parameters()
    }

    fn writes(&self, parameters: &ValueMap) -> bool {
        parameters.get(&Value::String("write".into())).is_some_and(|key| *key != Value::Null)
    }

    fn call(&self, cx: &mut Cx<'_>, _input: Option<&Value>, parameters: &ValueMap) -> Result<Reply> {
        let given = Parameters::of(self, parameters)?;
        let request = self.0.request(&given, cx.context)?;
        Ok(Reply::Later(Box::new(Job::begin(self.0, request, cx)?)))
    }
}
