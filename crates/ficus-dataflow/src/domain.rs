//! What flows: the types a user of the runtime brings.

use std::collections::VecDeque;

use crate::{Flat, Heavy, Interrupt, NodeName};

/// A run of messages between two nodes, oldest first.
pub type Queue<M> = VecDeque<M>;

/// Which messages are flat.
pub(crate) struct FlatMessages<D>(std::marker::PhantomData<D>);

impl<D: Domain> Flat<D::Message> for FlatMessages<D> {
    #[inline]
    fn is_flat(message: &D::Message) -> bool {
        D::is_flat(message)
    }
}

/// The types a dataflow works on.
pub trait Domain: Sized + 'static {
    /// One row.
    type Message: Send + Clone + 'static;
    /// What all operators of one query share: its snapshot, parameters, side effects.
    type Context: Send + 'static;
    /// What can go wrong in an operator, or stop it.
    type Error: From<Interrupt> + Send + 'static;

    /// How many logical rows a message stands for; shown in profiles.
    fn weight(_message: &Self::Message) -> u64 {
        1
    }

    /// What a message counts for while it is retained, in units of the domain's own, such as bytes. The same message always has the
    /// same size. Cost: it is asked twice per retained message.
    fn size(_message: &Self::Message) -> usize {
        1
    }

    /// Whether a message holds no memory or count, so that its drop does nothing; see [`crate::Flat`].
    fn is_flat(_message: &Self::Message) -> bool {
        !std::mem::needs_drop::<Self::Message>()
    }

    /// Told when the runtime holds messages of `size` more (or less, if negative) in a place that has no bound of its own: a
    /// loop's frontier, a barrier's arms. May refuse, which fails the query; the count stands all the same, and whatever
    /// way the query or the scope instance ends, as much is given back as was taken. Giving back cannot be refused.
    fn retain(_context: &mut Self::Context, _size: isize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Asked when a query ends: the parts of the context that are not wanted any more, if freeing what the query holds takes so long
    /// that nobody is to wait for it. What its operators surrender is then freed when the executor has nothing else to do, they and these parts by a
    /// thread of its own, without [`crate::Operator::release`]. `is_large`: the query has done much or has many operators, so that it takes long whatever
    /// the context says.
    fn take_heavy(_context: &mut Self::Context, _is_large: bool) -> Option<Heavy> {
        None
    }

    /// A context for a part of the same query on another executor: what reads see is the same, and so are its limits and its accounts. None
    /// if the query cannot be at two places, because the context holds what its parts would have to agree on.
    fn share(_context: &Self::Context) -> Option<Self::Context> {
        None
    }

    /// The error of an operator, with the name of its node; asked where it arises, and then of each node around.
    fn at_node(error: Self::Error, _name: &NodeName) -> Self::Error {
        error
    }

    /// The error a panic inside an operator becomes. It fails its own query and nothing else.
    fn panicked(message: String) -> Self::Error;
}
