//! Tests of many vertices at once.
//!
//! A hop has fetched some hundred messages, and each is to be tested by `where(out('hasTag').where(within('interests')))`. One by one
//! that is a walk for each, of a few steps that wait for memory. Here the tags of all of them are fetched first, in a loop that does
//! nothing else, so that the processor waits for many at once; then the verdicts on the tags are looked up, and only of tags that are
//! not known yet is there a test, again of all of them at once.
//!
//! A test of many looks at more than tests one by one, which end at the first that fits; so vertices with many neighbours are left to
//! those. So is everything, if a step fails: one by one might have ended before that.

use std::ops::ControlFlow;

use ficus_model::{Comparison, Value, VertexId};
use ficus_storage::HalfEdgeCursor;

use super::walk::{Row, walk};
use super::{Fetched, Halt, Probe, Rule, Segment, Step, Surroundings, Tried};
use crate::context::Cx;
use crate::logical::{Reach, WherePredicate};

/// Fewer vertices than this are tested one by one.
const FEW: usize = 8;

/// Neighbours of one vertex that are fetched; of those that have more, the test is made one by one.
const NEIGHBOURS_MAX: usize = 16;

type Verdicts = Vec<Option<bool>>;

/// Says of vertices whether they pass a filter, where that can be told of many at once; one verdict for each, or none at all.
pub(super) fn filter(
    rule: Rule,
    probes: &mut [Probe],
    vertices: &[VertexId],
    verdicts: &mut Verdicts,
    around: &mut Surroundings<'_>,
) -> Result<(), Halt> {
    let [probe] = probes else { return Ok(()) };
    let looked = around.looked;
    match probe.find_edges_back(vertices, verdicts, around) {
        Ok(false) => {}
        flow => return settle(rule, flow.map(|_| ()), looked, verdicts, around),
    }
    if vertices.len() < FEW || probe.verdicts.is_none() {
        return Ok(());
    }
    let wants_all = std::mem::replace(&mut around.wants_all, false);
    let flow = probe.find(vertices, verdicts, around);
    around.wants_all = wants_all;
    settle(rule, flow, looked, verdicts, around)
}

/// Makes of what a test found what the filter lets pass.
fn settle(
    rule: Rule,
    found: Result<(), Halt>,
    looked: usize,
    verdicts: &mut Verdicts,
    around: &mut Surroundings<'_>,
) -> Result<(), Halt> {
    if found.is_err() {
        // Whoever asks one by one gets the same, or an answer before that.
        around.looked = looked;
        verdicts.clear();
    }
    if rule == Rule::None {
        verdicts.iter_mut().flatten().for_each(|found| *found = !*found);
    }
    Ok(())
}

/// What a look ahead has cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looked {
    /// Elements that were looked at.
    pub items: usize,
    /// Of these, those of walks from the vertices on.
    pub forward: usize,
    /// A test was too long, failed, or depends on more than the vertex now: there is no use in looking on.
    pub in_vain: bool,
}

impl Probe {
    /// Whether what the test finds may depend on the vertex alone, for [`Probe::find_ahead`].
    pub fn keeps_verdicts(&self) -> bool {
        self.verdicts.is_some()
    }

    /// Whether a filter by this test and rule lets vertices pass, for somebody who asks before there are rows. There is a verdict for each vertex up to
    /// the one at which `items_max` elements had been looked at; `None` of those of which the filter itself has to say it. Never fails: an error is the filter's to tell, at
    /// the row that it arises from.
    pub fn find_ahead(
        &mut self,
        rule: Rule,
        vertices: &[VertexId],
        verdicts: &mut Verdicts,
        items_max: usize,
        cx: &Cx<'_>,
    ) -> Looked {
        verdicts.clear();
        let mut looked = Looked::default();
        let version = self.verdicts.as_ref().and_then(|verdicts| verdicts.version(cx.context));
        if version.is_none() {
            return Looked { in_vain: true, ..looked };
        }
        let mut around = Surroundings::of(None, self.patience, cx);
        let flow = filter(rule, std::slice::from_mut(self), vertices, verdicts, &mut around);
        (looked.items, looked.forward) = (around.cost(), around.looked);
        if flow.is_err() {
            verdicts.clear();
        }
        verdicts.resize(vertices.len(), None);
        for (place, vertex) in vertices.iter().enumerate() {
            if verdicts[place].is_some() {
                continue;
            }
            if looked.items >= items_max {
                verdicts.truncate(place);
                break;
            }
            let mut around = Surroundings::of(None, self.patience, cx);
            let found = self.exists(&Value::Vertex(*vertex), &mut around);
            match self.tried(found, &around) {
                Ok(Tried::Answer(found, items)) => {
                    (looked.items, looked.forward) = (looked.items + items, looked.forward + around.looked);
                    verdicts[place] = Some(found == (rule != Rule::None));
                }
                Ok(Tried::TooLong(items)) => {
                    looked = Looked { items: looked.items + items, in_vain: true, ..looked };
                    verdicts.truncate(place);
                    break;
                }
                Err(_) => {
                    looked.in_vain = true;
                    verdicts.truncate(place);
                    break;
                }
            }
        }
        looked
    }

    /// As [`Probe::find`], of a test of nothing but whether an edge leads to a known vertex; false if it is another.
    fn find_edges_back(
        &mut self,
        vertices: &[VertexId],
        verdicts: &mut Verdicts,
        around: &mut Surroundings<'_>,
    ) -> Result<bool, Halt> {
        let [Segment { steps, end: None, .. }] = self.segments.as_mut_slice() else { return Ok(false) };
        let [
            Step::Hop { direction, labels, reach: Reach::Vertex, edges: None, filter: None, known: Some(known) },
            Step::Compare(WherePredicate::Compare(Comparison::Eq, _)),
        ] = steps.as_mut_slice()
        else {
            return Ok(false);
        };
        let (Some(labels), Some(Some(end))) =
            (labels.ids(around.context), known.vertex(around.traverser, around.context))
        else {
            return Ok(false);
        };
        let mut fetched = self.buffers.pop().unwrap_or_default();
        for vertex in vertices {
            let counted = known.edges_from((*vertex, *direction, labels), end, around.context, &mut fetched.vertices);
            around.pay(counted.looked)?;
            verdicts.push(counted.edges.map(|edges| edges > 0));
        }
        self.buffers.push(fetched);
        Ok(true)
    }

    /// Whether the test finds something for each of these vertices.
    fn find(
        &mut self,
        vertices: &[VertexId],
        verdicts: &mut Verdicts,
        around: &mut Surroundings<'_>,
    ) -> Result<(), Halt> {
        if let Some(passing) = self.backward.as_ref().and_then(|backward| backward.passing(around.context)) {
            verdicts.extend(vertices.iter().map(|vertex| Some(passing.contains(*vertex))));
            return Ok(());
        }
        verdicts.extend(vertices.iter().map(|vertex| self.known(*vertex, around.context)));
        let unknown: Vec<usize> = (0..vertices.len()).filter(|index| verdicts[*index].is_none()).collect();
        let [only] = self.segments.as_mut_slice() else { return Ok(()) };
        let asked: Vec<VertexId> = unknown.iter().map(|index| vertices[*index]).collect();
        let (mut found, before) = (Verdicts::new(), around.looked);
        decide(&mut only.steps, &asked, &mut found, &mut self.buffers, around)?;
        let looks = (around.looked - before) / asked.len().max(1);
        for ((index, vertex), found) in unknown.into_iter().zip(asked).zip(found) {
            verdicts[index] = found;
            if let Some(found) = found {
                around.beside += self.learn(vertex, found, looks, around.context);
            }
        }
        Ok(())
    }
}

/// Whether these steps find something from each vertex on; `None` for those that are to be asked one by one. Not for steps that remember
/// rows.
fn decide(
    steps: &mut [Step],
    asked: &[VertexId],
    found: &mut Verdicts,
    buffers: &mut Vec<Fetched>,
    around: &mut Surroundings<'_>,
) -> Result<(), Halt> {
    if steps.is_empty() {
        found.resize(asked.len(), Some(true));
        return Ok(());
    }
    let [Step::Hop { direction, labels, reach: Reach::Vertex, edges: None, filter, .. }, rest @ ..] = steps else {
        for vertex in asked {
            let row = Row { value: Value::Vertex(*vertex), bulk: 1, origin: None };
            let flow = walk(steps, row, buffers, around, &mut |_, _, _| Ok(ControlFlow::Break(())))?;
            found.push(Some(flow.is_break()));
        }
        return Ok(());
    };
    found.resize(asked.len(), Some(false));
    let Some(labels) = labels.ids(around.context) else { return Ok(()) };
    // Neighbours, each with the place of whose it is.
    let mut reached: Vec<(VertexId, u32)> = Vec::with_capacity(2 * asked.len());
    let mut fetched = buffers.pop().unwrap_or_default();
    let transaction = &around.context.transaction;
    transaction.visit_hops(asked, *direction, labels, |place, ends| {
        match ends {
            Some(ends) if ends.iter().map(|own| own.len()).sum::<usize>() <= NEIGHBOURS_MAX => {
                ends.into_iter().for_each(|own| own.for_each(|neighbour| reached.push((neighbour, place as u32))));
            }
            Some(_) => found[place] = None,
            None => {
                let (mut cursor, own) = (HalfEdgeCursor::default(), &mut fetched.vertices);
                own.clear();
                match transaction.copy_neighbours(asked[place], *direction, labels, &mut cursor, NEIGHBOURS_MAX, own) {
                    true => found[place] = None,
                    false => reached.extend(own.iter().map(|neighbour| (*neighbour, place as u32))),
                }
            }
        }
        ControlFlow::Continue(())
    });
    buffers.push(fetched);
    around.pay(asked.len() + reached.len())?;
    if let Some(filter) = filter
        && !filter.prefilter(around.context, &mut reached)
    {
        let mut kept = Vec::with_capacity(reached.len());
        for (neighbour, place) in reached {
            if filter.test(&Value::Vertex(neighbour), around.context)? {
                kept.push((neighbour, place));
            }
        }
        reached = kept;
    }
    let [Step::Verdict(known), rest @ ..] = rest else {
        let asked: Vec<VertexId> = reached.iter().map(|(neighbour, _)| *neighbour).collect();
        let mut verdicts = Verdicts::new();
        decide(rest, &asked, &mut verdicts, buffers, around)?;
        reached.into_iter().zip(verdicts).for_each(|((_, place), verdict)| note(found, place, verdict));
        return Ok(());
    };
    let is_of_now = known.is_of_now(around.context);
    let mut unknown: Vec<(VertexId, u32)> = Vec::new();
    for (neighbour, place) in reached {
        match if is_of_now { known.look(neighbour) } else { None } {
            Some(verdict) => note(found, place, Some(verdict)),
            None => unknown.push((neighbour, place)),
        }
    }
    unknown.retain(|(_, place)| found[*place as usize] == Some(false));
    unknown.sort_unstable();
    let mut asked: Vec<VertexId> = unknown.iter().map(|(neighbour, _)| *neighbour).collect();
    asked.dedup();
    let mut verdicts = Verdicts::new();
    decide(rest, &asked, &mut verdicts, buffers, around)?;
    let mut answers = asked.iter().zip(&verdicts).peekable();
    for (neighbour, place) in unknown {
        while answers.next_if(|(vertex, _)| **vertex < neighbour).is_some() {}
        if let Some((_, verdict)) = answers.peek() {
            note(found, place, **verdict);
        }
    }
    for (vertex, verdict) in asked.into_iter().zip(verdicts) {
        if let Some(verdict) = verdict {
            known.put(vertex, verdict, around.context);
        }
    }
    Ok(())
}

/// Adds what a neighbour of the vertex at a place came to: one that fits is enough, and one that is not known leaves it open.
fn note(found: &mut Verdicts, place: u32, verdict: Option<bool>) {
    let own = &mut found[place as usize];
    match verdict {
        Some(true) => *own = Some(true),
        Some(false) => {}
        None => *own = own.filter(|found| *found),
    }
}
