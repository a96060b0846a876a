//! A helper: a task on another executor that works on chunks of a spread region until there are none, or its executor is wanted.

use std::sync::Arc;

use super::exchange::{Exchange, Holder, Take};
use crate::chunks::hand_over;
use crate::inbox::Waker;
use crate::region::{RegionFlow, RegionInstance};
use crate::{
    Control, Cx, Delivery, Demand, Domain, Flow, Node, NodeId, Operator, Outcome, Plan, Queue, Region, Remains, Sink,
    Task,
};

/// A helper is served as a query that has had so much work before: those who come by themselves go first.
const WORK_UNITS_BEFORE: u64 = 64 * 4096;

/// The task of a helper; `profiled_nodes`: of so many nodes it counts what it does.
#[expect(clippy::too_many_arguments, reason = "they are what a task is made of")]
pub(super) fn task<D: Domain>(
    exchange: &Arc<Exchange<D>>,
    node: NodeId,
    region: &Arc<Region<D>>,
    batch_rows_limit: usize,
    profiled_nodes: Option<u32>,
    context: D::Context,
    control: Control,
    waker: Waker<D>,
) -> Task<D> {
    let number = exchange.enlist(waker);
    let factory = {
        let (exchange, region) = (exchange.clone(), region.clone());
        Arc::new(move || {
            let region = RegionInstance::new(region.clone());
            let helper = Helper { number, exchange: exchange.clone(), region, chunk: None, out: Queue::new() };
            Box::new(helper) as Box<dyn Operator<D>>
        })
    };
    // Its input are chunks, so it does all its work at EOS.
    let nodes = vec![Node { id: node, name: "spread".into(), emits_on_empty: true, demand: Demand::AsWanted, factory }];
    // If the query is profiled, its nodes are counted here under the numbers that they have there.
    let node_count = (node.0 + 1).max(profiled_nodes.unwrap_or(0));
    let plan = Plan { root: Arc::new(Region::new(nodes)), node_count, batch_rows_limit };
    let sink = Box::new(Leaves { number, exchange: exchange.clone() });
    Task::new(Arc::new(plan), [], context, sink, control, profiled_nodes.is_some()).after(WORK_UNITS_BEFORE)
}

struct Helper<D: Domain> {
    number: u32,
    exchange: Arc<Exchange<D>>,
    region: RegionInstance<D>,
    chunk: Option<Chunk>,
    out: Queue<D::Message>,
}

/// A chunk under work.
pub(super) struct Chunk {
    pub number: u64,
    pub rows: usize,
    pub duration_ns: u64,
}

impl<D: Domain> Helper<D> {
    fn work(&mut self, cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        while !self.exchange.is_over() {
            if cx.exhausted() {
                return Ok(Flow::More);
            }
            let Some(chunk) = &mut self.chunk else {
                if cx.waker.keeps_others_waiting() {
                    return Ok(Flow::Ready);
                }
                match self.exchange.take(Holder::Helper(self.number), Some(cx.waker), cx) {
                    Take::Chunk(number, mut rows) => {
                        self.chunk = Some(Chunk { number, rows: rows.len(), duration_ns: 0 });
                        self.region.input().append(&mut rows);
                        self.region.close();
                    }
                    Take::Later => {
                        cx.park();
                        return Ok(Flow::More);
                    }
                    Take::Never => return Ok(Flow::Ready),
                }
                continue;
            };
            if !self.exchange.has_room(chunk.number, Some(cx.waker)) {
                cx.park();
                return Ok(Flow::More);
            }
            let started_ns = cx.control.clock.now_ns();
            cx.in_chunk = true;
            let flow = self.region.run(&mut self.out, cx);
            chunk.duration_ns += cx.control.clock.now_ns().saturating_sub(started_ns);
            self.exchange.report(cx);
            // What came before an error comes out before it.
            self.exchange.put(chunk.number, &mut self.out, cx)?;
            if flow? == RegionFlow::Finished {
                self.exchange.done(chunk.number, chunk.rows, chunk.duration_ns);
                self.chunk = None;
                self.region.next_chunk();
            }
        }
        Ok(Flow::Ready)
    }
}

impl<D: Domain> Operator<D> for Helper<D> {
    fn process(
        &mut self,
        _input: &mut Queue<D::Message>,
        _out: &mut Queue<D::Message>,
        _cx: &mut Cx<'_, D>,
    ) -> Result<Flow, D::Error> {
        Ok(Flow::Ready)
    }

    fn finish(&mut self, _out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        let quota = cx.quota;
        let flow = self.work(cx);
        cx.control.cancel.add_units_elsewhere(u64::try_from(quota - cx.quota).unwrap_or(0));
        flow
    }

    fn release(&mut self, cx: &mut Cx<'_, D>) {
        self.region.release(cx);
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        hand_over(&mut self.out, remains);
        self.region.surrender(remains);
    }

    fn reset(&mut self) {
        self.region.reset();
        self.out.clear();
    }
}

/// Says that a helper has left.
struct Leaves<D: Domain> {
    number: u32,
    exchange: Arc<Exchange<D>>,
}

impl<D: Domain> Sink<D> for Leaves<D> {
    fn deliver(
        &mut self,
        _rows: &mut Queue<D::Message>,
        _context: &mut D::Context,
        _waker: &Waker<D>,
    ) -> Result<Delivery, D::Error> {
        Ok(Delivery::Accepted)
    }

    fn complete(self: Box<Self>, _context: D::Context, outcome: Outcome<D>) {
        self.exchange.left(self.number, outcome.result);
    }
}
