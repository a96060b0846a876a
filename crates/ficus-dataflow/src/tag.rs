//! Scope tags: the path that names a scope instance.

use std::fmt;

/// The numbers of the enclosing scope instances, outermost first. Ingress appends one, egress removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeTag(Vec<u64>);

impl ScopeTag {
    /// The tag of everything outside any scope.
    pub fn root() -> ScopeTag {
        ScopeTag::default()
    }

    /// Enters instance `number` of an inner scope.
    pub fn push(&mut self, number: u64) {
        self.0.push(number);
    }

    /// Leaves the innermost scope.
    ///
    /// # Panics
    /// If there is none: ingress and egress come in pairs.
    pub fn pop(&mut self) {
        assert!(self.0.pop().is_some(), "egress without ingress");
    }

    /// How many scopes enclose the current place.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// The numbers, outermost first.
    pub fn numbers(&self) -> &[u64] {
        &self.0
    }
}

impl fmt::Display for ScopeTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<")?;
        for (position, number) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            write!(f, "{number}")?;
        }
        f.write_str(">")
    }
}
