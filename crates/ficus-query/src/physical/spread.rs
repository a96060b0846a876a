//! Which parts of a plan may be worked on by several executors.
//!
//! A *run* is a line of nodes outside all children and loops for which every row stands alone: what comes of a row depends on that row only,
//! and making it has no effect that can be seen elsewhere. What such a run yields does not depend on how its input is cut, so it is put
//! into a [`Spread`]. Runs end at what knows several rows: `dedup`, `order`, `limit`, reductions, barriers, loops; and at effects, random
//! numbers, programs and services.
//!
//! Behind a node that makes many rows of one, the rest of the run is a spread of its own inside the first: if all rows come from one
//! vertex, the first has nothing to cut. The first that has enough to do takes what help there is.

use std::sync::Arc;

use ficus_dataflow::{Demand, Node as FlowNode, NodeName, Region, Spread, SpreadHistory};
use ficus_model::{Order, Scope};

use super::{Builder, Chain};
use crate::context::{Graphs, Result};
use crate::logical::{LabelledNode, Node, ScalarFunction, Traversal, visit};

/// Spreads inside each other at most. One costs some hundred nanoseconds per batch, and the first ones have the most to cut.
const LEVELS_MAX: usize = 3;

/// Nodes of a run at most: they are all gone through between two chunks.
const NODES_MAX: usize = 512;

/// What the builder knows of the line of nodes of a region that is to be spread, piece by piece.
#[derive(Default)]
pub(super) struct Pieces {
    list: Vec<Piece>,
    /// How deep in children the region is, and in no loop.
    depth: usize,
    /// The chain begins with a node that divides the scan behind it.
    has_ranges: bool,
    /// The chain has here a node that packs rows for the reduction behind it.
    packs: Option<usize>,
    /// That node does most of the work of the step behind it.
    packs_work: bool,
}

/// Dataflow nodes that were built together.
#[derive(Clone)]
struct Piece {
    /// The first of them in the chain, and the one behind the last.
    start: usize,
    end: usize,
    /// Whether every row stands alone.
    alone: bool,
    /// Whether there is enough work per row to be worth the while of others.
    heavy: bool,
    /// Whether one row may become many.
    expands: bool,
    /// Whether one row at most comes out of it.
    single: bool,
    /// Whether one row at most comes out of it if one goes in.
    stays_one: bool,
    /// As the plan shows it; empty if it does not, or texts are not kept.
    name: String,
}

/// Whether a traversal, of a query in which no effect of a row can be seen before the next row has its own, may change side effects while
/// steps around those that change them have rows. Else each changes them when all its rows have come, and none has left.
pub(super) fn has_open_effects(traversal: &Traversal) -> bool {
    let has = |node: &Node| visit::has_side_effect(node);
    let adds = |node: &Node| matches!(node, Node::Aggregate { .. });
    traversal.nodes.iter().map(|own| &own.node).any(|node| {
        let inside =
            |matches: &mut dyn FnMut(&Node) -> bool| visit::any_child(node, &mut |child| visit::any(child, matches));
        match node {
            Node::Aggregate { .. } => inside(&mut |node| has(node)),
            // Of the only row: of several it would be done row by row.
            Node::SideEffect { .. } => inside(&mut |node| has(node) && !adds(node)),
            node => has(node) || inside(&mut |node| has(node)),
        }
    })
}

impl Pieces {
    /// Whether these are the pieces of the region that is built at a place.
    pub fn are_of(&self, depth: usize, loop_depth: usize) -> bool {
        self.depth == depth && loop_depth == 0
    }

    /// Says that these nodes became those of the chain from `start` to `end`.
    pub fn note(&mut self, nodes: &[LabelledNode], start: usize, end: usize, keep_texts: bool) {
        // What was noted inside is part of it, and the last that was noted.
        while self.list.pop_if(|piece| piece.end > start).is_some() {}
        let all = |test: fn(&Node) -> bool| nodes.iter().all(|own| test(&own.node));
        let any = |test: fn(&Node) -> bool| nodes.iter().any(|own| test(&own.node));
        let is_scan = start == 0 && self.has_ranges;
        if is_scan {
            let own = Piece {
                start,
                end: 1,
                alone: false,
                heavy: false,
                expands: true,
                single: false,
                stays_one: false,
                name: String::new(),
            };
            self.list.push(own);
        }
        let is_packed = self.packs == Some(start);
        if is_packed {
            // What it makes of the rows of a chunk may be made of any chunks.
            let own = Piece {
                start,
                end: start + 1,
                alone: true,
                heavy: self.packs_work,
                expands: false,
                single: false,
                stays_one: false,
                name: String::new(),
            };
            self.list.push(own);
        }
        self.list.push(Piece {
            start: start + usize::from(is_scan || is_packed),
            end,
            alone: is_scan || all(stands_alone),
            // Conditions are looked at, and what fails them comes no further.
            heavy: is_scan && nodes.len() > 1 || any(is_heavy),
            expands: is_scan || any(expands),
            single: matches!(nodes, [own] if is_single(&own.node)),
            stays_one: all(|node| matches!(node, Node::SideEffect { .. } | Node::Aggregate { .. })),
            name: if keep_texts { shown(nodes) } else { String::new() },
        });
    }
}

fn shown(nodes: &[LabelledNode]) -> String {
    nodes.iter().map(|own| own.node.to_string()).collect::<Vec<_>>().join(", ")
}

impl Builder {
    /// As [`Builder::region`], with the runs of the traversal in spreads: of one that is entered by one row, outside all loops.
    pub(super) fn spread_region(&mut self, traversal: &Traversal) -> Result<Arc<Region<Graphs>>> {
        let outer = std::mem::replace(&mut self.pieces, Pieces { depth: self.depth + 1, ..Pieces::default() });
        let region = self.region(traversal);
        let pieces = std::mem::replace(&mut self.pieces, outer).list;
        let region = region?;
        let covered = pieces.windows(2).all(|pair| pair[0].end == pair[1].start)
            && pieces.last().is_some_and(|last| last.end == region.nodes.len());
        // Helpers read side effects as they are when they begin, so none may change while they work.
        if !covered || !self.may_spread || has_open_effects(traversal) {
            return Ok(region);
        }
        let mut shown = Vec::new();
        let chain = self.spread(&region, &pieces, &mut shown);
        // Arms come before what is around them.
        self.spreads.append(&mut shown);
        Ok(Arc::new(Region::with_policy(chain, region.policy)))
    }

    /// Whether the scan of vertices that is built next is worked on in ranges, by several executors; it is, if so.
    pub fn may_divide_scan(&mut self, chain: &Chain) -> bool {
        let divides = self.may_spread && self.at_top() && self.starts_query(chain) && !self.requirements.writes;
        self.pieces.has_ranges |= divides;
        divides
    }

    /// Whether what comes to the reduction that is built next is packed before, where the steps before it are worked on; it is, if so.
    pub fn may_pack(&mut self, chain: &Chain) -> bool {
        let packs = self.may_spread && !chain.is_empty() && self.pieces.are_of(self.depth, self.loop_depth);
        if packs {
            (self.pieces.packs, self.pieces.packs_work) = (Some(chain.len()), false);
        }
        packs
    }

    /// As [`Builder::may_pack`], of what does most of the work of the step that is built next: that alone is worth the help of others.
    pub fn may_pack_work(&mut self, chain: &Chain) -> bool {
        let packs = self.may_pack(chain);
        self.pieces.packs_work = packs;
        packs
    }

    /// A number for a step that works in parts.
    pub fn new_parts(&mut self) -> usize {
        self.parts += 1;
        self.parts - 1
    }

    /// Adds the nodes that work on the parts of the step `name`: in a spread, unless the query wants none.
    pub fn spread_parts(&mut self, name: &NodeName, nodes: Chain, chain: &mut Chain) {
        if !self.may_spread {
            return chain.extend(nodes);
        }
        if self.keep_texts {
            self.spreads.push(format!("parts of {name}"));
        }
        chain.push(self.spread_of(nodes));
    }

    /// The spread that has these nodes inside.
    fn spread_of(&mut self, nodes: Chain) -> FlowNode<Graphs> {
        let name = "Spread".into();
        let id = self.register(&name);
        self.auxiliary(id);
        let region = Arc::new(Region::with_policy(nodes, self.intra));
        let history = Arc::new(SpreadHistory::default());
        let factory = Arc::new(move || Box::new(Spread::new(id, region.clone(), history.clone())) as Box<_>);
        FlowNode { id, name, emits_on_empty: false, demand: Demand::AsWanted, factory }
    }

    /// The nodes of the pieces, runs of them in spreads.
    fn spread(&mut self, root: &Region<Graphs>, pieces: &[Piece], shown: &mut Vec<String>) -> Chain {
        let mut chain = Chain::new();
        let mut comes_from_one = true;
        for run in pieces.chunk_by(|a, b| a.alone && b.alone) {
            let nodes = run.last().map_or(0, |last| last.end - run[0].start);
            if run[0].alone && nodes <= NODES_MAX && run.iter().any(|piece| piece.heavy) {
                // Of one row there is nothing to cut before it has become many.
                let nodes = self.run(root, run, !comes_from_one, LEVELS_MAX, shown);
                chain.extend(nodes);
            } else {
                chain.extend(run.iter().flat_map(|piece| root.nodes[piece.start..piece.end].iter().cloned()));
            }
            let stays_one = comes_from_one && run.iter().all(|piece| piece.stays_one);
            comes_from_one = stays_one || run.last().is_some_and(|piece| piece.single);
        }
        chain
    }

    /// The nodes of a run: in a spread if `here`, and with one behind the first piece that makes many rows of one.
    fn run(
        &mut self,
        root: &Region<Graphs>,
        run: &[Piece],
        here: bool,
        levels: usize,
        shown: &mut Vec<String>,
    ) -> Vec<FlowNode<Graphs>> {
        if levels == 0 || !run.iter().any(|piece| piece.heavy) {
            return run.iter().flat_map(|piece| root.nodes[piece.start..piece.end].iter().cloned()).collect();
        }
        if here && self.keep_texts {
            let names = run.iter().map(|piece| piece.name.as_str()).filter(|name| !name.is_empty());
            shown.push(names.collect::<Vec<_>>().join(", "));
        }
        let first_many = run.iter().position(|piece| piece.expands).map_or(run.len(), |position| position + 1);
        let (front, behind) = run.split_at(first_many);
        let mut nodes: Vec<_> =
            front.iter().flat_map(|piece| root.nodes[piece.start..piece.end].iter().cloned()).collect();
        nodes.extend(self.run(root, behind, true, levels - usize::from(here), shown));
        if !here {
            return nodes;
        }
        vec![self.spread_of(nodes)]
    }
}

/// Whether what comes of a row depends on that row only, and nothing else comes of it.
fn stands_alone(node: &Node) -> bool {
    let own = match node {
        Node::Adjacent { .. }
        | Node::AdjacentFrom { .. }
        | Node::Recall { .. }
        | Node::EdgeVertex { .. }
        | Node::OtherVertex
        | Node::Properties { .. }
        | Node::PropertyMap { .. }
        | Node::ElementMap { .. }
        | Node::Id
        | Node::Label
        | Node::Key
        | Node::ValueOf
        | Node::Element
        | Node::Has { .. }
        | Node::HasProperty { .. }
        | Node::Is { .. }
        | Node::WherePredicate { .. }
        | Node::WhereTraversal { .. }
        | Node::Filter { .. }
        | Node::Not { .. }
        | Node::And { .. }
        | Node::Or { .. }
        | Node::Collection { .. }
        | Node::PathFilter { .. }
        | Node::Identity
        | Node::Constant { .. }
        | Node::Scalar { .. }
        | Node::Format { .. }
        | Node::Math { .. }
        | Node::Map { .. }
        | Node::FlatMap { .. }
        | Node::Local { .. }
        | Node::Unfold
        | Node::Path { .. }
        | Node::Project { .. }
        | Node::Select { .. }
        | Node::SelectColumn { .. }
        | Node::SelectTraversal { .. }
        | Node::Sack
        | Node::SackWith { .. }
        | Node::Coalesce { .. }
        | Node::Optional { .. } => true,
        Node::Order { scope, .. } => *scope == Scope::Local,
        // Its arms see all rows.
        Node::Union { branches, start } => !start && branches.iter().all(|branch| rows_stand_alone(branch)),
        _ => false,
    };
    own && is_pure(node) && !visit::any_child(node, &mut |child| visit::any(child, &mut |inner| !is_pure(inner)))
}

/// As [`stands_alone`], of all nodes of a traversal.
pub fn rows_stand_alone(traversal: &Traversal) -> bool {
    traversal.nodes.iter().all(|own| stands_alone(&own.node))
}

/// Whether a node has no effect, draws nothing and asks nobody but the graph, its children aside.
fn is_pure(node: &Node) -> bool {
    match node {
        Node::Call { .. }
        | Node::Io { .. }
        | Node::Inject { .. }
        | Node::VertexProgram(_)
        | Node::Coin { .. }
        | Node::Sample { .. }
        | Node::TimeLimit { .. }
        | Node::Fail { .. }
        | Node::SideEffect { .. }
        | Node::Cap { .. }
        | Node::Profile { .. }
        | Node::Drop
        | Node::AddProperty { .. }
        | Node::Scalar { function: ScalarFunction::SampleLocal { .. } } => false,
        // One that asks for a pass waits for others.
        Node::KHop(walk) => walk.alone,
        Node::Order { keys, .. } => keys.iter().all(|key| key.order != Order::Shuffle),
        _ => !visit::is_mutation(node) && !visit::has_side_effect(node),
    }
}

/// Whether a row may take long: it is a hop or has children.
fn is_heavy(node: &Node) -> bool {
    let reads = matches!(
        node,
        Node::Adjacent { .. } | Node::AdjacentFrom { .. } | Node::PropertyMap { .. } | Node::ElementMap { .. }
    );
    reads || !visit::is_leaf(node)
}

fn expands(node: &Node) -> bool {
    matches!(
        node,
        Node::Adjacent { .. }
            | Node::EdgeVertex { .. }
            | Node::Properties { .. }
            | Node::FlatMap { .. }
            | Node::Local { .. }
            | Node::Unfold
            | Node::Coalesce { .. }
            | Node::Optional { .. }
            | Node::Union { .. }
    )
}

/// Whether one row at most comes out of a node, whatever goes in.
fn is_single(node: &Node) -> bool {
    match node {
        Node::Vertices { ids, all: false } | Node::Edges { ids, all: false } => ids.len() == 1,
        Node::Inject { values } => values.len() == 1,
        Node::Fold { .. } | Node::Reduce { .. } => true,
        Node::Group { side_effect, .. } | Node::GroupCount { side_effect, .. } => side_effect.is_none(),
        _ => false,
    }
}
