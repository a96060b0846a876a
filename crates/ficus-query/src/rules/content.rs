//! What there is in a plan, told by one walk: most queries are small, and most rules are about something that they do not have.

use crate::logical::{Node, Reduction, Traversal, visit};

/// Kinds of things that a plan may hold, at any depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content(u32);

impl Content {
    /// Labels of steps.
    pub const NAMED: Content = Content(1);
    /// Sub-queries.
    pub const NESTED: Content = Content(1 << 1);
    /// `out()`, `outE()` and the like.
    pub const HOP: Content = Content(1 << 2);
    /// `inV()`, `otherV()` and the like.
    pub const EDGE_END: Content = Content(1 << 3);
    /// Two or more of both.
    pub const HOPS: Content = Content(1 << 4);
    /// `has()`.
    pub const HAS: Content = Content(1 << 5);
    /// Filters by sub-queries: `filter()`, `not()`, `and()`, `or()`.
    pub const TEST: Content = Content(1 << 6);
    /// `where()` of labels.
    pub const WHERE_PREDICATE: Content = Content(1 << 7);
    /// `where()` of a traversal that begins or ends at labels.
    pub const WHERE_TRAVERSAL: Content = Content(1 << 8);
    /// `dedup()`.
    pub const DEDUP: Content = Content(1 << 9);
    /// `limit()`, `range()`, `skip()`, `tail()`.
    pub const CUT: Content = Content(1 << 10);
    /// `path()`.
    pub const PATH: Content = Content(1 << 11);
    /// `simplePath()`, `cyclicPath()`.
    pub const PATH_FILTER: Content = Content(1 << 12);
    /// `label()`.
    pub const LABEL: Content = Content(1 << 13);
    /// `count()`.
    pub const COUNT: Content = Content(1 << 14);
    /// `group()`.
    pub const GROUP: Content = Content(1 << 15);
    /// `groupCount()`.
    pub const GROUP_COUNT: Content = Content(1 << 16);
    /// `cap()`.
    pub const CAP: Content = Content(1 << 17);
    /// `union()`.
    pub const UNION: Content = Content(1 << 18);
    /// `repeat()`.
    pub const REPEAT: Content = Content(1 << 19);
    /// `match()`.
    pub const MATCH: Content = Content(1 << 20);

    /// That of a traversal. Cost: a look at each node, some nanoseconds.
    pub fn of(traversal: &Traversal) -> Content {
        let mut content = Content::default();
        content.add(traversal);
        content
    }

    /// Both.
    pub const fn or(self, other: Content) -> Content {
        Content(self.0 | other.0)
    }

    /// Whether there is anything of `wanted`.
    pub const fn has_any(self, wanted: Content) -> bool {
        self.0 & wanted.0 != 0
    }

    fn add(&mut self, traversal: &Traversal) {
        for own in &traversal.nodes {
            if !own.labels.is_empty() {
                *self = self.or(Content::NAMED);
            }
            let kind = Content::of_node(&own.node);
            let leads_on = Content::HOP.or(Content::EDGE_END);
            if kind.has_any(leads_on) && self.has_any(leads_on) {
                *self = self.or(Content::HOPS);
            }
            *self = self.or(kind);
            visit::for_each_child(&own.node, &mut |child| {
                *self = self.or(Content::NESTED);
                self.add(child);
            });
        }
    }

    const fn of_node(node: &Node) -> Content {
        match node {
            Node::Adjacent { .. } => Content::HOP,
            Node::EdgeVertex { .. } | Node::OtherVertex => Content::EDGE_END,
            Node::Has { .. } => Content::HAS,
            Node::Filter { .. } | Node::Not { .. } | Node::And { .. } | Node::Or { .. } => Content::TEST,
            Node::WherePredicate { .. } => Content::WHERE_PREDICATE,
            Node::WhereTraversal { .. } => Content::WHERE_TRAVERSAL,
            Node::Dedup { .. } => Content::DEDUP,
            Node::Range { .. } | Node::Tail { .. } => Content::CUT,
            Node::Path { .. } => Content::PATH,
            Node::PathFilter { .. } => Content::PATH_FILTER,
            Node::Label => Content::LABEL,
            Node::Reduce { reduction: Reduction::Count } => Content::COUNT,
            Node::Group { .. } => Content::GROUP,
            Node::GroupCount { .. } => Content::GROUP_COUNT,
            Node::Cap { .. } => Content::CAP,
            Node::Union { .. } => Content::UNION,
            Node::Repeat(_) => Content::REPEAT,
            Node::Match { .. } => Content::MATCH,
            _ => Content(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ficus_model::Direction;

    use super::*;
    use crate::logical::Reach;

    #[test]
    fn what_is_inside_counts_as_what_is_outside() {
        let hop = || Node::Adjacent { direction: Direction::Out, labels: Vec::new(), reach: Reach::Vertex };
        let of = |nodes: Vec<Node>| Content::of(&Traversal { nodes: nodes.into_iter().map(Into::into).collect() });
        assert_eq!(of(vec![Node::Id]), Content::default());
        assert_eq!(of(vec![hop(), Node::Label]), Content::HOP.or(Content::LABEL));
        let inside = Arc::new(Traversal { nodes: vec![hop().into()] });
        let nested = Content::HOP.or(Content::NESTED).or(Content::TEST);
        assert_eq!(of(vec![Node::Filter { traversal: inside.clone() }]), nested);
        let both = nested.or(Content::EDGE_END).or(Content::HOPS);
        assert_eq!(of(vec![Node::OtherVertex, Node::Not { traversal: inside }]), both);
        let mut named = Traversal { nodes: vec![Node::Id.into()] };
        named.nodes[0].labels.push("a".into());
        assert_eq!(Content::of(&named), Content::NAMED);
    }
}
