//! What a value contains: the members of collections and paths, the entries of maps, a single value itself.

use std::cell::RefCell;

use ficus_dataflow::Control;
use ficus_model::value::ValueHashing;
use ficus_model::{Shared, Tree, Value, ValueMap, ValueSet};

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

/// Members where they are, with their multiplicities. Who needs no copies makes none: each is a counter that is touched, twice.
pub type MemberRefs<'v> = Box<dyn Iterator<Item = (&'v Value, u64)> + 'v>;

/// The members of a list, set, bulk set or path where they are; `None` for anything else.
pub fn refs(value: &Value) -> Option<MemberRefs<'_>> {
    Some(match value {
        Value::List(list) => Box::new(until_stopped(list.iter().map(|member| (member, 1)))),
        Value::Set(set) => Box::new(until_stopped(set.iter().map(|member| (member, 1)))),
        Value::BulkSet(set) => Box::new(until_stopped(set.counts.iter().map(|(member, count)| (member, *count)))),
        Value::Path(path) => Box::new(until_stopped(path.objects.iter().map(|object| (object, 1)))),
        _ => return None,
    })
}

/// The members of a list, set, bulk set or path; `None` for anything else.
pub fn iterable(value: &Value) -> Option<Members<'_>> {
    refs(value).map(|members| -> Members<'_> { Box::new(members.map(|(member, count)| (member.clone(), count))) })
}

/// The set of these. With room for all of them from the beginning, since a set that doubles moves all that it has in one go; of room that is not used
/// the memory is not touched.
pub fn set_of(members: impl Iterator<Item = Value>, room: usize) -> Value {
    let mut set = ValueSet::with_capacity_and_hasher(room, ValueHashing::default());
    set.extend(until_stopped(members));
    // Hardly any of it is used: moving that is nothing.
    if set.len() < room / 16 {
        set.shrink_to_fit();
    }
    Value::Set(Shared::new(set))
}

/// The map of these; as [`set_of`].
pub fn map_of_entries(entries: impl Iterator<Item = (Value, Value)>, room: usize) -> Value {
    let mut map = ValueMap::with_capacity(room);
    map.extend(until_stopped(entries));
    if map.len() < room / 16 {
        map.shrink_to_fit();
    }
    Value::Map(Shared::new(map))
}

/// The list of these, of which there are so many.
pub fn list_of(members: impl Iterator<Item = Value>, room: usize) -> Value {
    let mut list = Vec::with_capacity(room);
    list.extend(until_stopped(members));
    Value::from(list)
}

/// How many different values a value holds, at most: those of which a bulk set has several count once.
pub fn places(value: &Value) -> usize {
    match value {
        Value::List(list) => list.len(),
        Value::Set(set) => set.len(),
        Value::BulkSet(set) => set.counts.len(),
        Value::Path(path) => path.objects.len(),
        Value::Map(map) => map.len(),
        Value::Tree(tree) => tree.children.len(),
        _ => 1,
    }
}

/// The members of a collection or path, the entries of a map or tree, or the value itself. What `unfold()` yields.
pub fn iterate(value: &Value) -> Members<'_> {
    match value {
        Value::Map(map) => Box::new(until_stopped(map.iter().map(|(key, value)| (entry(key, value.clone()), 1)))),
        Value::Tree(tree) => {
            Box::new(until_stopped(tree.children.iter().map(|(key, child)| (entry(key, subtree(child)), 1))))
        }
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
    map_of_entries(tree.children.iter().map(|(key, child)| (key.clone(), subtree(child))), tree.children.len())
}

fn entry(key: &Value, value: Value) -> Value {
    Value::Entry(Shared::new((key.clone(), value)))
}

fn subtree(child: &Tree) -> Value {
    Value::Tree(Shared::new(child.clone()))
}

/// Spells members out into a list. Errors: more than [`MEMBERS_MAX`].
pub fn spell_out<T: Clone>(members: impl Iterator<Item = (T, u64)>) -> FunctionResult<Vec<T>> {
    spell_out_as(members, 0, |member| member)
}

/// Copies of members as a list, with room for so many more behind them: a list that doubles is copied, and there twice meanwhile.
pub fn spell_out_before(members: MemberRefs<'_>, more: usize) -> FunctionResult<Vec<Value>> {
    spell_out_as(members, more, Value::clone)
}

fn spell_out_as<M, T: Clone>(
    members: impl Iterator<Item = (M, u64)>,
    more: usize,
    as_member: impl Fn(M) -> T,
) -> FunctionResult<Vec<T>> {
    let known = members.size_hint().1.unwrap_or(0);
    let mut list = Vec::with_capacity(known.saturating_add(more).min(MEMBERS_MAX));
    add_spelled_out(&mut list, members.map(|(member, count)| (as_member(member), count)))?;
    Ok(list)
}

/// As [`spell_out`], behind what is there.
pub fn spell_out_behind(list: &mut Vec<Value>, members: MemberRefs<'_>) -> FunctionResult<()> {
    add_spelled_out(list, members.map(|(member, count)| (member.clone(), count)))
}

fn add_spelled_out<T: Clone>(list: &mut Vec<T>, members: impl Iterator<Item = (T, u64)>) -> FunctionResult<()> {
    for (member, count) in members {
        if count == 1 {
            list.push(member);
            continue;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        check_count(list.len().saturating_add(count))?;
        list.extend(until_stopped(std::iter::repeat_n(member, count)));
    }
    Ok(())
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
