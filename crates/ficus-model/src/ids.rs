//! Internal identities. A user's own ids are [`crate::Value`]s; the store maps them to these.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

id!(
    /// A vertex of one graph: packs tablet (low bits) and slot. Never reused while a snapshot may see it.
    VertexId, u64
);
id!(
    /// An edge of one graph. The store finds its ends and label from it in O(1).
    EdgeId, u64
);
id!(
    /// An interned vertex or edge label of one graph.
    LabelId, u32
);
id!(
    /// An interned property key of one graph.
    KeyId, u32
);
