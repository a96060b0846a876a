//! The arguments of a step that may be traversals, as it is built.

use crate::elements::{KeyRef, LabelSet};
use crate::logical::{By, LabelledNode, Node, Reduction, Traversal, ValueOrTraversal};
use crate::modulate::Modulator;
use crate::physical::requirements::is_one;
use crate::probe::Probe;

/// Modulators being compiled, with the traversals that become arms.
#[derive(Clone, Default)]
pub struct Modulators<'a> {
    pub(super) compiled: Vec<Modulator>,
    pub(super) arms: Vec<&'a Traversal>,
}

impl<'a> Modulators<'a> {
    /// None yet.
    pub fn new() -> Modulators<'a> {
        Modulators::default()
    }

    /// The only modulator, if it needs no arm.
    pub fn simple(&self) -> Option<&Modulator> {
        match self.compiled.as_slice() {
            [only] if self.arms.is_empty() => Some(only),
            _ => None,
        }
    }

    /// The modulator with this index, if it needs no arm.
    pub fn simple_at(&self, index: usize) -> Option<&Modulator> {
        self.compiled.get(index).filter(|own| !matches!(own, Modulator::Arm { .. }))
    }

    /// All modulators, if none needs an arm.
    pub fn all_simple(&self) -> Option<&[Modulator]> {
        self.arms.is_empty().then_some(self.compiled.as_slice())
    }

    /// The modulators of a list of `by()`s; none given: one identity.
    pub fn of(bys: &'a [By]) -> Modulators<'a> {
        let mut modulators = Modulators::new();
        for by in bys {
            modulators.by(by);
        }
        if bys.is_empty() {
            modulators.push(Modulator::Identity);
        }
        modulators
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.compiled.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// Adds one; returns its index.
    pub fn push(&mut self, modulator: Modulator) -> usize {
        self.compiled.push(modulator);
        self.compiled.len() - 1
    }

    /// Adds a `by()`; returns its index.
    pub fn by(&mut self, by: &'a By) -> usize {
        let modulator = match by {
            By::Identity => Modulator::Identity,
            By::Key(name) => Modulator::Key(KeyRef::new(name.clone())),
            By::Token(token) => Modulator::Token(*token),
            By::Column(column) => Modulator::Column(*column),
            By::Traversal(traversal) => match traversal.nodes.as_slice() {
                [LabelledNode { node: Node::Constant { value }, .. }] => Modulator::Constant(value.clone()),
                _ => return self.traversal(traversal),
            },
        };
        self.push(modulator)
    }

    /// Adds a traversal; returns its index.
    pub fn traversal(&mut self, traversal: &'a Traversal) -> usize {
        self.arms.push(traversal);
        let probe = Probe::compile(traversal).map(Box::new);
        self.push(Modulator::Arm { arm: self.arms.len() - 1, probe })
    }

    /// Puts what `simpler` makes of traversals in their place; returns these.
    pub(super) fn replace_arms(&mut self, simpler: fn(&Traversal) -> Option<Modulator>) -> Vec<&'a Traversal> {
        let (mut replaced, mut arms) = (Vec::new(), Vec::new());
        for modulator in &mut self.compiled {
            let Modulator::Arm { arm, .. } = modulator else { continue };
            let traversal = self.arms[*arm];
            match simpler(traversal) {
                Some(simpler) => {
                    *modulator = simpler;
                    replaced.push(traversal);
                }
                None => {
                    *arm = arms.len();
                    arms.push(traversal);
                }
            }
        }
        self.arms = arms;
        replaced
    }

    /// Adds a value or traversal; returns its index.
    pub fn value(&mut self, value: &'a ValueOrTraversal) -> usize {
        match value {
            ValueOrTraversal::Value(value) => self.push(Modulator::Constant(value.clone())),
            ValueOrTraversal::Traversal(traversal) => self.traversal(traversal),
        }
    }
}

/// The degree that a traversal is which counts neighbours or edges, and nothing else.
pub(super) fn degree(traversal: &Traversal) -> Option<Modulator> {
    match traversal.nodes.as_slice() {
        [
            LabelledNode { node: Node::Adjacent { direction, labels, .. }, labels: named },
            LabelledNode { node: Node::Reduce { reduction: Reduction::Count }, .. },
        ] if named.is_empty() => {
            let labels = LabelSet::new(labels.as_slice().into());
            Some(Modulator::Degree { direction: *direction, labels })
        }
        _ => None,
    }
}

/// The look-up that a traversal is which names one vertex, and nothing else: `V(id)`, as in `addE().to(V(id))`.
pub(super) fn look_up(traversal: &Traversal) -> Option<Modulator> {
    match traversal.nodes.as_slice() {
        [LabelledNode { node: Node::Vertices { ids, all: false }, .. }] if is_one(ids) => {
            Some(Modulator::Vertex(ids[0].clone()))
        }
        _ => None,
    }
}
