//! Whether values are among the members of a collection, for steps that ask of one collection again and again.
//!
//! Each question takes note of some more of the collection's members, and goes through the others as long as there are any. So a question costs no more
//! than going through all members, and many questions little more than their number.

use std::sync::Weak;

use ficus_model::compare::equals;
use ficus_model::{Membership, Shared, Value};

use crate::budget::Held;
use crate::context::{QueryContext, Result};

/// Collections that are smaller are gone through.
const LOOKED_UP_FROM: usize = 16;

/// The members that a question takes note of: so many, and one part in so many of all.
const NOTED_AT_ONCE: usize = 4 << 10;
const NOTED_PART: usize = 64;

/// Collections of which a query knows members at a time.
const COLLECTIONS_MAX: usize = 8;

/// How many different members a collection has; `None`: not a collection.
fn count(collection: &Value) -> Option<usize> {
    match collection {
        Value::List(list) => Some(list.len()),
        Value::Set(set) => Some(set.len()),
        Value::BulkSet(bag) => Some(bag.counts.len()),
        Value::Path(path) => Some(path.objects.len()),
        _ => None,
    }
}

fn member(collection: &Value, place: usize) -> Option<&Value> {
    match collection {
        Value::List(list) => list.get(place),
        Value::Set(set) => set.get_index(place),
        Value::BulkSet(bag) => bag.counts.get_index(place).map(|(member, _)| member),
        Value::Path(path) => path.objects.get(place),
        _ => None,
    }
}

/// The members at the front of one collection, which may grow at its end and not change otherwise.
#[derive(Debug, Default)]
pub struct KnownMembers {
    membership: Membership,
    held: Held,
}

impl KnownMembers {
    /// Whether a value is equal to a member.
    ///
    /// Errors: `Budget` or `ServerMemory` if there is no room to take note of members; that of the query if it has to stop.
    pub fn contains(&mut self, collection: &Value, value: &Value, context: &QueryContext) -> Result<bool> {
        let count = count(collection).unwrap_or(0);
        if let (Value::String(_), Value::Set(_) | Value::BulkSet(_)) = (value, collection) {
            // Equal texts are the same member.
            return Ok(match collection {
                Value::BulkSet(bag) => bag.counts.contains_key(value),
                Value::Set(set) => set.contains(value),
                _ => false,
            });
        }
        let at = |place: usize| member(collection, place);
        if self.membership.count() > count {
            *self = KnownMembers::default();
        }
        let known = self.membership.count();
        let noted = (known + NOTED_AT_ONCE.max(count / NOTED_PART)).min(count);
        if noted > known {
            self.held.add(&context.memory, (noted - known) * Membership::MEMBER_BYTES)?;
            for member in (known..noted).filter_map(at) {
                self.membership.push(member, at);
            }
        }
        if self.membership.contains(value, at, context) {
            return Ok(true);
        }
        if noted < count {
            context.check()?;
        }
        Ok((noted..count).filter_map(at).any(|member| equals(value, member, context)))
    }
}

/// The collections that were asked about last, by where they are.
#[derive(Debug, Default)]
pub struct Memberships(Vec<(usize, Weak<dyn Send + Sync>, KnownMembers)>);

impl Memberships {
    /// Whether a value is equal to a member of a collection; `None` if that is none.
    ///
    /// Errors: as [`KnownMembers::contains`].
    pub fn contain(context: &QueryContext, collection: &Value, value: &Value) -> Result<Option<bool>> {
        let Some(count) = count(collection) else { return Ok(None) };
        if count < LOOKED_UP_FROM {
            let mut members = (0..count).filter_map(|place| member(collection, place));
            return Ok(Some(members.any(|member| equals(value, member, context))));
        }
        let place = match collection {
            Value::List(list) => Shared::place(list),
            Value::Set(set) => Shared::place(set),
            Value::BulkSet(bag) => Shared::place(bag),
            Value::Path(path) => Shared::place(path),
            _ => return Ok(None),
        };
        let Memberships(known) = &mut *context.memberships.borrow_mut();
        let position = match known.iter().position(|(known, ..)| *known == place) {
            Some(position) => position,
            None => {
                // As long as it is referred to, nothing else can be where it is, and it is elsewhere when it changes.
                let reference = match collection {
                    Value::List(list) => Shared::downgrade(list),
                    Value::Set(set) => Shared::downgrade(set),
                    Value::BulkSet(bag) => Shared::downgrade(bag),
                    Value::Path(path) => Shared::downgrade(path),
                    _ => return Ok(None),
                };
                if known.len() == COLLECTIONS_MAX {
                    known.remove(0);
                }
                known.push((place, reference, KnownMembers::default()));
                // Most are asked about once.
                let mut members = (0..count).filter_map(|place| member(collection, place));
                return Ok(Some(members.any(|member| equals(value, member, context))));
            }
        };
        known[position].2.contains(collection, value, context).map(Some)
    }
}
