//! The vertex that the other ends of edges have to be, where the steps behind a hop name it: `out('knows').hasId(7)`, `both().where(eq('a'))`,
//! `outE().where(inV().as('b'))`.
//!
//! Of a vertex with millions of edges those to the one that is named are few, and the store finds them from the end that has fewer. So a hop
//! reads as always at first, and if there is much more it reads nothing but the edges between the two, in the same order. The steps behind it stay:
//! what is left out here is what they would drop. Where reads are recorded, since the query may write, it does so at once: what it then depends
//! on are the edges between the two, and not all that the vertex has.

use std::sync::Arc;

use ficus_model::{Comparison, Direction, Element, LabelId, P, Pop, Value, VertexId, decimal};
use ficus_storage::{BetweenCursor, HalfEdge, Transaction};

use crate::context::QueryContext;
use crate::logical::visit;
use crate::logical::{HasContainer, HasKey, LabelledNode, Name, Node, Reach, Traversal, WherePredicate};
use crate::operators::combine::found_under;
use crate::operators::edges_back::{Counted, EdgesBack};
use crate::operators::has::is_written_as_text_only;
use crate::operators::source::resolve_vertex;
use crate::traverser::Traverser;

/// Neighbours that a hop reads in the time in which those of two vertices are counted and the fewer are looked at.
const FEW: u64 = 1 << 10;

/// Half-edges that the store looks at in one go: some microseconds where they lie in a column, ten times that where not.
const LOOKS: usize = 1 << 14;

/// What such a go costs a turn, in rows.
pub const LOOKS_COST: usize = 1 << 8;

/// Ids of different kinds that may be meant by one.
type Candidates = Vec<Value>;

/// What names the vertex.
#[derive(Clone, Debug)]
enum EndName {
    /// It has one of these ids.
    Ids(Candidates),
    /// It is this vertex.
    Vertex(Value),
    /// It is what a row has under this label.
    Label(Name),
}

/// The vertex that a hop has to lead to.
#[derive(Debug)]
pub struct KnownEnd {
    name: EndName,
    /// Which it is, once that is known for the whole query.
    found: Option<Option<End>>,
    back: EdgesBack,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Vertex(VertexId),
    /// There is no such vertex.
    Nobody,
}

impl Clone for KnownEnd {
    /// A clone belongs to another instance, perhaps of another query.
    fn clone(&self) -> KnownEnd {
        KnownEnd::named(self.name.clone())
    }
}

impl KnownEnd {
    fn named(name: EndName) -> KnownEnd {
        KnownEnd { name, found: None, back: EdgesBack::default() }
    }

    /// The end that the steps behind a hop name, if they do. `goes_back`: what was before an edge on the way of a row need not be where the edge was
    /// found.
    pub fn of(hop: &LabelledNode, behind: &[LabelledNode], goes_back: bool) -> Option<KnownEnd> {
        let mut labels: Vec<&Name> = hop.labels.iter().collect();
        let name = match &hop.node {
            Node::Adjacent { reach: Reach::Vertex, .. } => named_by(&mut labels, behind),
            Node::Adjacent { reach: Reach::Edge, direction, .. } => {
                let is_other_end = |node: &Node| match node {
                    Node::OtherVertex => !goes_back,
                    Node::EdgeVertex { direction: end } => {
                        matches!((direction, end), (Direction::Out, Direction::In) | (Direction::In, Direction::Out))
                    }
                    _ => false,
                };
                named_behind_edges(&mut labels, behind, &is_other_end)
            }
            _ => None,
        };
        name.map(KnownEnd::named)
    }

    /// The end that these steps name, behind a loop with these labels whose body ends with a hop to vertices.
    pub fn behind_loop(labels: &[Name], behind: &[LabelledNode]) -> Option<KnownEnd> {
        named_by(&mut labels.iter().collect(), behind).map(KnownEnd::named)
    }

    /// The label under which the vertex is, if it is named so.
    pub fn label(&self) -> Option<&Name> {
        match &self.name {
            EndName::Label(label) => Some(label),
            _ => None,
        }
    }

    /// The vertex, or nobody, if the name says which it is and reads are not recorded.
    pub fn vertex(&mut self, row: Option<&Traverser>, context: &QueryContext) -> Option<Option<VertexId>> {
        if context.transaction.may_write() {
            return None;
        }
        self.find(row, context).map(|end| match end {
            End::Vertex(vertex) => Some(vertex),
            End::Nobody => None,
        })
    }

    /// How many edges lead to `end`, which is [`KnownEnd::vertex`], as [`EdgesBack::count`].
    pub fn edges_from(
        &mut self,
        hop: (VertexId, Direction, &[LabelId]),
        end: VertexId,
        context: &QueryContext,
        fetched: &mut Vec<VertexId>,
    ) -> Counted {
        self.back.count(hop, end, context, fetched)
    }

    /// Forgets the neighbours of the end, and gives back what they take.
    pub fn forget_neighbours(&mut self) {
        self.back.forget();
    }

    /// The vertex; `None` if the name does not say which it is.
    fn find(&mut self, row: Option<&Traverser>, context: &QueryContext) -> Option<End> {
        if let Some(found) = self.found {
            return found;
        }
        let found = match &self.name {
            EndName::Label(label) => {
                // Where the object itself is a vertex, its own entries are not a place to look.
                return match found_under(context, &Value::Null, row, Pop::Last, label)? {
                    Value::Vertex(vertex) => Some(End::Vertex(vertex)),
                    _ => None,
                };
            }
            EndName::Vertex(vertex) => Some(resolve_vertex(context, vertex).map_or(End::Nobody, End::Vertex)),
            EndName::Ids(candidates) => {
                let mut found = End::Nobody;
                let mut is_one = true;
                for vertex in candidates.iter().filter_map(|id| context.transaction.find_vertex(id)) {
                    is_one &= found == End::Nobody || found == End::Vertex(vertex);
                    found = End::Vertex(vertex);
                }
                is_one.then_some(found)
            }
        };
        // What a query writes it may find, and what it reads then has to be recorded each time.
        if !context.transaction.may_write() {
            self.found = Some(found);
        }
        found
    }
}

/// The edges between a vertex and the end that a hop from it has to lead to.
pub struct Between {
    end: End,
    cursor: BetweenCursor,
}

impl Between {
    /// To a vertex.
    pub fn to(end: VertexId) -> Between {
        Between::with(End::Vertex(end))
    }

    fn with(end: End) -> Between {
        Between { end, cursor: BetweenCursor::default() }
    }

    /// For a hop of which nothing was read yet, if reads are recorded.
    pub fn at_once(known: Option<&mut KnownEnd>, row: Option<&Traverser>, context: &QueryContext) -> Option<Between> {
        let known = known.filter(|_| context.transaction.may_write())?;
        known.find(row, context).map(Between::with)
    }

    /// For a hop that has read the first of many neighbours, to be read instead of all; `None` if these are not so many that it pays.
    pub fn instead(
        known: Option<&mut KnownEnd>,
        row: Option<&Traverser>,
        context: &QueryContext,
        (vertex, direction, labels): (VertexId, Direction, &[LabelId]),
    ) -> Option<Between> {
        let transaction = &context.transaction;
        let known =
            known.filter(|_| !transaction.may_write() && transaction.degree(vertex, direction, labels) >= FEW)?;
        known.find(row, context).map(Between::with)
    }

    /// Appends some of the half-edges; true if there may be more.
    pub fn read(
        &mut self,
        transaction: &Transaction,
        vertex: VertexId,
        direction: Direction,
        labels: &[LabelId],
        out: &mut Vec<HalfEdge>,
    ) -> bool {
        match self.end {
            End::Nobody => false,
            End::Vertex(end) => transaction.half_edges_to(vertex, direction, labels, end, &mut self.cursor, LOOKS, out),
        }
    }
}

/// Whether a hop in a traversal, or in those inside it, has its end named, for walks in place.
pub fn is_named_in(traversal: &Traversal) -> bool {
    let mut found = false;
    visit::walk_traversals(traversal, &mut |own| {
        let mut nodes = own.nodes.iter().enumerate();
        found |= nodes.any(|(place, node)| KnownEnd::of(node, &own.nodes[place + 1..], false).is_some());
    });
    found
}

/// The vertex that those have to be that come to these steps and pass. `labels` are theirs.
fn named_by<'n>(labels: &mut Vec<&'n Name>, nodes: &'n [LabelledNode]) -> Option<EndName> {
    for own in nodes {
        if let Some(name) = named_by_test(labels, &own.node) {
            return Some(name);
        }
        if !matches!(own.node, Node::Has { .. } | Node::HasProperty { .. }) {
            return None;
        }
        labels.extend(&own.labels);
    }
    None
}

fn named_by_test(labels: &mut Vec<&Name>, test: &Node) -> Option<EndName> {
    match test {
        Node::Has { containers } => containers.iter().find_map(id_of).and_then(candidates).map(EndName::Ids),
        Node::Is { predicate: P::Compare(Comparison::Eq, value) } => match value {
            Value::Vertex(_) => Some(EndName::Vertex(value.clone())),
            Value::Element(element) if matches!(**element, Element::Vertex(_)) => Some(EndName::Vertex(value.clone())),
            _ => None,
        },
        Node::WherePredicate { start: None, predicate: WherePredicate::Compare(Comparison::Eq, label), bys }
            if bys.is_empty() && !labels.contains(&label) =>
        {
            Some(EndName::Label(label.clone()))
        }
        Node::Filter { traversal } => named_by(&mut labels.clone(), &traversal.nodes),
        Node::And { traversals } => {
            traversals.iter().find_map(|traversal| named_by(&mut labels.clone(), &traversal.nodes))
        }
        _ => None,
    }
}

/// As [`named_by`], of edges to whose other ends the steps go, or ask for.
fn named_behind_edges<'n>(
    labels: &mut Vec<&'n Name>,
    nodes: &'n [LabelledNode],
    is_other_end: &dyn Fn(&Node) -> bool,
) -> Option<EndName> {
    let [own, behind @ ..] = nodes else { return None };
    match &own.node {
        Node::Has { .. } | Node::HasProperty { .. } => {
            labels.extend(&own.labels);
            named_behind_edges(labels, behind, is_other_end)
        }
        node if is_other_end(node) => {
            labels.extend(&own.labels);
            named_by(labels, behind)
        }
        Node::Filter { traversal } => named_behind_edges(&mut labels.clone(), &traversal.nodes, is_other_end),
        Node::And { traversals } => {
            let named = |own: &Arc<Traversal>| named_behind_edges(&mut labels.clone(), &own.nodes, is_other_end);
            traversals.iter().find_map(named)
        }
        // Where there is nothing under the label, no edge passes, which is found out by looking at them.
        Node::WhereTraversal { start: None, traversal, end: Some(label) } => match traversal.nodes.as_slice() {
            [end] if is_other_end(&end.node) && !labels.contains(&label) => Some(EndName::Label(label.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// The id that a condition asks for.
fn id_of(container: &HasContainer) -> Option<&Value> {
    match (&container.key, &container.predicate) {
        (HasKey::Id, P::Compare(Comparison::Eq, id)) => Some(id),
        (HasKey::Id, P::Within(ids)) => match ids.as_slice() {
            [id] => Some(id),
            _ => None,
        },
        _ => None,
    }
}

/// All ids that pass as this one; `None` if there may be others.
fn candidates(id: &Value) -> Option<Candidates> {
    let integer = match id {
        Value::Byte(id) => i64::from(*id),
        Value::Short(id) => i64::from(*id),
        Value::Int(id) => i64::from(*id),
        Value::Long(id) => *id,
        Value::Uuid(_) => return Some(vec![id.clone()]),
        Value::String(text) => return candidates_of_text(text),
        _ => return None,
    };
    // All numbers that are equal pass, and are ids of their own.
    let mut ids = vec![id.clone(), Value::Double(integer as f64), Value::Float(integer as f32)];
    ids.extend(decimal_id(&integer.to_string()));
    Some(ids)
}

/// All ids that are written so.
fn candidates_of_text(text: &Name) -> Option<Candidates> {
    let own = Value::String(text.clone());
    if is_written_as_text_only(text) {
        return Some(vec![own]);
    }
    if let Ok(uuid) = text.parse() {
        return Some(vec![own, Value::Uuid(uuid)]);
    }
    let mut characters = text.chars();
    let character = characters.next().filter(|_| characters.next().is_none()).map(Value::Char);
    if !text.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        return character.map(|character| vec![own, character]);
    }
    let integer: i64 = text.parse().ok().filter(|integer: &i64| integer.to_string() == **text)?;
    let mut ids = vec![own, Value::Long(integer)];
    ids.extend(decimal_id(text));
    ids.extend(character);
    Some(ids)
}

fn decimal_id(text: &str) -> Option<Value> {
    decimal::parse(text).map(|decimal| Value::BigDecimal(Arc::new(decimal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_may_be_meant_are_looked_for_or_none_are() {
        let of = |id: Value| candidates(&id).map(|ids| ids.len());
        let text = |text: &str| Value::String(text.into());
        assert_eq!(of(text("person:7")), Some(1));
        assert_eq!((of(text("17")), of(text("7")), of(text("x"))), (Some(3), Some(4), Some(2)));
        assert_eq!(of(text("550e8400-e29b-41d4-a716-446655440000")), Some(2));
        for open in ["017", "+7", "1.0", "true", "PT1H", "-", "NaN", "", "2024-01-01T00:00Z", "0x01ff"] {
            assert_eq!(of(text(open)), None, "{open}");
        }
        for only in ["person:7", "alice", "Bob", "tag:6", "ä1"] {
            assert_eq!(of(text(only)), Some(1), "{only}");
        }
        assert_eq!((of(Value::Int(7)), of(Value::Double(7.0)), of(Value::Null)), (Some(4), None, None));
    }
}
