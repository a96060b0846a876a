//! What a value contains: the members of collections and paths, the entries of maps, a single value itself.

use std::cell::RefCell;

use ficus_dataflow::Control;
use ficus_model::{Shared, Tree, Value, ValueMap};

use super::{FunctionError, FunctionResult};

/// Members a function spells out at most: a bulk set of few bytes can stand for any number.
pub const MEMBERS_MAX: usize = ficus_model::MEMBERS_MAX;

thread_local! {
    /// What stops the function that runs on this thread.
    static WATCH: RefCell<Option<Control>> = const { RefCell::new(None) };
}

/// Members passed between two looks at whether the query must stop.
const LOOK_INTERVAL: u32 = 8192;

/// Runs a function over members so that it ends early once the query must stop; what it gives then is wrong, so the caller has to look whether
/// it must stop before using it. Functions are pure and know no query: this is how they hear of its end all the same.
pub fn watched<R>(control: &Control, function: impl FnOnce() -> R) -> R {
    struct Unwatch(Option<Control>);
    impl Drop for Unwatch {
        fn drop(&mut self) {
            WATCH.set(self.0.take());
        }
    }
    let _unwatch = Unwatch(WATCH.replace(Some(control.clone())));
    function()
}

/// Whether the query that calls the function must stop.
pub fn is_stopped() -> bool {
    WATCH.with_borrow(|watch| watch.as_ref().is_some_and(|control| control.check().is_err()))
}

/// Ends a run of members when the query must stop.
pub fn until_stopped<T>(members: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let mut left = LOOK_INTERVAL;
    members.take_while(move |_| {
        left -= 1;
        if left > 0 {
            return true;
        }
        left = LOOK_INTERVAL;
        !is_stopped()
    })
}

/// Members with their multiplicities.
pub type Members<'v> = Box<dyn Iterator<Item = (Value, u64)> + 'v>;

/// The members of a list, set, bulk set or path; `None` for anything else.
pub fn iterable(value: &Value) -> Option<Members<'_>> {
    Some(match value {
        Value::List(list) => Box::new(until_stopped(list.iter().map(|member| (member.clone(), 1)))),
        Value::Set(set) => Box::new(until_stopped(set.iter().map(|member| (member.clone(), 1)))),
        Value::BulkSet(set) => {
            Box::new(until_stopped(set.counts.iter().map(|(member, count)| (member.clone(), *count))))
        }
        Value::Path(path) => Box::new(until_stopped(path.objects.iter().map(|object| (object.clone(), 1)))),
        _ => return None,
    })
}

/// The members of a collection or path, the entries of a map or tree, or the value itself. What `unfold()` yields.
pub fn iterate(value: &Value) -> Members<'_> {
    match value {
        Value::Map(map) => Box::new(until_stopped(map.iter().map(|(key, value)| (entry(key, value.clone()), 1)))),
        Value::Tree(tree) => Box::new(tree.children.iter().map(|(key, child)| (entry(key, subtree(child)), 1))),
        _ => iterable(value).unwrap_or_else(|| Box::new(std::iter::once((value.clone(), 1)))),
    }
}

/// What a map or tree has under a key; `None` if that is neither, or has nothing there.
pub fn under(value: &Value, key: &Value) -> Option<Value> {
    match value {
        Value::Map(map) => map.get(key).cloned(),
        Value::Tree(tree) => tree.children.get(key).map(subtree),
        _ => None,
    }
}

/// A tree as the map of what is below its roots.
pub fn map_of(tree: &Tree) -> Value {
    tree.children.iter().map(|(key, child)| (key.clone(), subtree(child))).collect::<ValueMap>().into()
}

fn entry(key: &Value, value: Value) -> Value {
    Value::Entry(Shared::new((key.clone(), value)))
}

fn subtree(child: &Tree) -> Value {
    Value::Tree(Shared::new(child.clone()))
}

/// Spells members out into a list. Errors: more than [`MEMBERS_MAX`].
pub fn spell_out(members: Members<'_>) -> FunctionResult<Vec<Value>> {
    spell_out_before(members, 0)
}

/// As [`spell_out`], with room for so many more behind them: a list that doubles is copied, and there twice meanwhile.
pub fn spell_out_before(members: Members<'_>, more: usize) -> FunctionResult<Vec<Value>> {
    let known = members.size_hint().1.unwrap_or(0);
    let mut list = Vec::with_capacity(known.saturating_add(more).min(MEMBERS_MAX));
    for (member, count) in members {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > 1 {
            check_count(list.len().saturating_add(count))?;
        }
        list.extend(std::iter::repeat_n(member, count));
    }
    Ok(list)
}

/// Refuses to build collections of too many members.
pub fn check_count(count: usize) -> FunctionResult<()> {
    if count > MEMBERS_MAX {
        return Err(FunctionError::new(format!("a collection of more than {MEMBERS_MAX} members is not built")));
    }
    Ok(())
}

/// How many members [`iterate`] has, multiplicities counted.
pub fn count(value: &Value) -> u64 {
    match value {
        Value::List(list) => list.len() as u64,
        Value::Set(set) => set.len() as u64,
        Value::BulkSet(set) => set.counts.values().fold(0, |sum, count| sum.saturating_add(*count)),
        Value::Path(path) => path.objects.len() as u64,
        Value::Map(map) => map.len() as u64,
        Value::Tree(tree) => tree.children.len() as u64,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_values::*;
    use super::*;

    #[test]
    fn values_have_members() {
        let members = |value: &Value| spell_out(iterate(value)).unwrap();
        assert_eq!(members(&int(1)), [int(1)]);
        assert_eq!(members(&Value::Null), [Value::Null]);
        assert_eq!(members(&list(&[1, 2])), [int(1), int(2)]);
        assert_eq!(members(&bulk_set(&[(1, 2), (2, 1)])), [int(1), int(1), int(2)]);
        assert_eq!(members(&map(&[("a", 1)])), [Value::Entry(Shared::new((text("a"), int(1))))]);
        assert!(iterable(&map(&[("a", 1)])).is_none());
        assert!(iterable(&text("a")).is_none());
        assert_eq!(count(&bulk_set(&[(1, u64::MAX), (2, 1)])), u64::MAX);
        assert!(spell_out(iterate(&bulk_set(&[(1, 1 << 40)]))).is_err());
    }
}
