//! `profile()`: lets rows through; what it yields comes from the counters of the runtime when the query is over.

use std::sync::Arc;

use ficus_dataflow::{Flow, NodeId, NodeProfile, Operator};
use ficus_model::Value;
use ficus_model::value::{Metrics, TraversalMetrics};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{Name, Node};
use crate::physical::{Builder, Chain, NodeInfo};
use crate::traverser::StepInfo;

struct ProfileOperator {
    side_effect: Option<Name>,
    step: StepInfo,
    nodes: Arc<[NodeInfo]>,
    own: NodeId,
}

impl ProfileOperator {
    fn metrics(&self, cx: &Cx<'_>) -> Value {
        let profile: &[NodeProfile] = cx.profile.as_deref().map_or(&[], Vec::as_slice);
        let mut metrics = traversal_metrics(&self.nodes, profile, self.own);
        metrics.metrics.extend(helpers(cx.control.cancel.times_helped()));
        Value::Metrics(Arc::new(metrics))
    }
}

/// How often another executor helped, if one did, in a line behind those of the steps. Times of steps are then those of all executors.
fn helpers(times_helped: u32) -> Option<Metrics> {
    (times_helped > 0).then(|| Metrics {
        id: "spread".into(),
        name: "Spread".into(),
        duration_ns: 0,
        counts: vec![("helpers".into(), times_helped.into())],
        annotations: Vec::new(),
        nested: Vec::new(),
    })
}

/// The counters of the nodes before `end`, in the shape TinkerPop shows them.
pub fn traversal_metrics(nodes: &[NodeInfo], profile: &[NodeProfile], end: NodeId) -> TraversalMetrics {
    let metrics = children(nodes, profile, None, end);
    let duration_ns: u64 = metrics.iter().map(|metric| metric.duration_ns).sum();
    let metrics = metrics
        .into_iter()
        .map(|mut metric| {
            let share = if duration_ns == 0 { 0.0 } else { metric.duration_ns as f64 * 100.0 / duration_ns as f64 };
            metric.annotations.push((Arc::from("percentDur"), Value::Double(share)));
            metric
        })
        .collect();
    TraversalMetrics { duration_ns, metrics }
}

fn children(nodes: &[NodeInfo], profile: &[NodeProfile], parent: Option<NodeId>, end: NodeId) -> Vec<Metrics> {
    let mut list = Vec::new();
    let mut before_ns = 0;
    for (number, node) in nodes.iter().enumerate() {
        if node.parent == parent && node.is_part {
            before_ns += profile.get(number).map_or(0, |counters| counters.duration_ns);
        }
        if node.parent != parent || !node.is_step || number >= end.0 as usize {
            continue;
        }
        let counters = profile.get(number).cloned().unwrap_or_default();
        let mut counts = vec![
            (Arc::from("traverserCount"), counters.messages as i64),
            (Arc::from("elementCount"), counters.rows as i64),
        ];
        if counters.instances > 0 {
            counts.push((Arc::from("instancesCreated"), counters.instances as i64));
            counts.push((Arc::from("instancesCancelled"), counters.cancelled as i64));
        }
        if counters.turns > 0 {
            counts.push((Arc::from("turns"), counters.turns as i64));
        }
        counts.extend(counters.notes.iter().map(|(name, value)| (Arc::from(*name), *value)));
        let id = NodeId(number as u32);
        list.push(Metrics {
            id: Arc::from(format!("{number}.0.0()")),
            name: Arc::from(node.name.to_string()),
            duration_ns: counters.duration_ns + std::mem::take(&mut before_ns),
            counts,
            annotations: Vec::new(),
            nested: children(nodes, profile, Some(id), end),
        });
    }
    list
}

impl Operator<Graphs> for ProfileOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Flow> {
        match self.side_effect {
            Some(_) => out.append(input),
            None => input.clear(),
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let metrics = self.metrics(cx);
        match &self.side_effect {
            Some(key) => cx.context.side_effects.put(key, metrics),
            None => out.push_back(cx.context.fresh_at(metrics, &self.step)),
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

/// Adds the operator. What comes before it in the plan is what it reports.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let Node::Profile { side_effect } = node else {
        return Err(QueryError::invalid(format!("{node} is not profile()")));
    };
    let nodes: Arc<[NodeInfo]> = builder.nodes().into();
    let own = builder.next_id();
    let (side_effect, step) = (side_effect.clone(), step.clone());
    builder.operator(chain, node, true, move || ProfileOperator {
        side_effect: side_effect.clone(),
        step: step.clone(),
        nodes: nodes.clone(),
        own,
    });
    Ok(())
}
