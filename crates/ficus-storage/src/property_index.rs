//! The entry of the sets that find elements by a hash: labels, user ids, hash indexes.
//!
//! Elements of one hash come in ascending id, which is insertion order. Different values may share a hash, so who looks
//! up confirms each candidate by the element's own values.

/// A hash and an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexEntry {
    /// Hash of the key; a label's number in the label index.
    pub(crate) hash: u64,
    /// The element's internal id.
    pub(crate) element: u64,
}
