//! The local forms of counting, reducing, sorting and cutting: what a step does inside one value.

use std::cmp::Ordering;

use ficus_model::{ElementResolver, Order, Value, compare, number, sort_in_steps};

use super::members::{self, MemberRefs, iterate, list_of, map_of_entries, refs, set_of, spell_out, until_stopped};
use super::{FunctionError, FunctionResult};
use crate::random::Random;

/// What `index()` makes of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexer {
    /// A list of pairs of member and position.
    List,
    /// A map from position to member.
    Map,
}

impl Indexer {
    /// From the value of `with(WithOptions.indexer, …)`: 0 is the list, 1 the map.
    pub fn from_option(value: &Value) -> FunctionResult<Indexer> {
        match value {
            Value::Int(0) => Ok(Indexer::List),
            Value::Int(1) => Ok(Indexer::Map),
            _ => Err(FunctionError::new(
                "WithOptions.indexer requires a single Integer argument (possible values are: WithOptions.[list|map])",
            )),
        }
    }
}

/// `index()`: members with their positions; a single value counts as a collection of itself.
pub fn index(value: &Value, indexer: Indexer) -> FunctionResult {
    let members = spell_out(iterate(value))?;
    let room = members.len();
    let positions = members.into_iter().zip(0..);
    Ok(match indexer {
        Indexer::List => {
            list_of(positions.map(|(member, position)| Value::from(vec![member, Value::Int(position)])), room)
        }
        Indexer::Map => map_of_entries(positions.map(|(member, position)| (Value::Int(position), member)), room),
    })
}

/// `count(local)`, a long.
pub fn count(value: &Value) -> Value {
    Value::Long(i64::try_from(members::count(value)).unwrap_or(i64::MAX))
}

/// How many members a value has, multiplicities counted; 1 if it is no collection.
pub fn count_members(value: &Value) -> u64 {
    members::count(value)
}

/// `sum(local)`; `None` of an empty collection, which filters the traverser. `null`s are passed over, all else has to be a number, also alone.
pub fn sum(value: &Value) -> FunctionResult<Option<Value>> {
    let mut total: Option<Value> = None;
    for (member, count) in iterate(value) {
        let part = match (&member, count) {
            (_, 0) => continue,
            // A lone member is given back as it is, in its type.
            (_, 1) => {
                number::check_operand(&member)?;
                member
            }
            _ => number::times_bulk(&member, i64::try_from(count).unwrap_or(i64::MAX))?,
        };
        total = Some(match total {
            None | Some(Value::Null) => part,
            Some(total) => number::add(&total, &part)?,
        });
    }
    Ok(total)
}

/// `mean(local)`, of what [`sum`] makes of the members, in their types; `None` of an empty collection. `null`s are passed over, and nothing but
/// `null`s means `null`.
pub fn mean(value: &Value) -> FunctionResult<Option<Value>> {
    let total = match sum(value)? {
        Some(total) if !matches!(total, Value::Null) => total,
        nothing => return Ok(nothing),
    };
    let numbers = iterate(value).filter(|(member, _)| !matches!(member, Value::Null));
    let count = numbers.fold(0u64, |all, (_, count)| all.saturating_add(count));
    Ok(Some(number::div_floating(&total, &Value::Long(i64::try_from(count).unwrap_or(i64::MAX)))?))
}

/// `min(local)`; `None` of an empty collection.
pub fn min(value: &Value) -> FunctionResult<Option<Value>> {
    pick(value, number::min)
}

/// `max(local)`; `None` of an empty collection.
pub fn max(value: &Value) -> FunctionResult<Option<Value>> {
    pick(value, number::max)
}

fn pick(
    value: &Value,
    better: fn(&Value, &Value) -> Result<Value, ficus_model::ModelError>,
) -> FunctionResult<Option<Value>> {
    let mut members = iterate(value).filter(|(_, count)| *count > 0).map(|(member, _)| member);
    let Some(first) = members.next() else {
        return Ok(None);
    };
    Ok(Some(members.try_fold(first, |best, member| better(&member, &best))?))
}

/// `dedup(local)`: always a set.
pub fn dedup(value: &Value) -> Value {
    let members = iterate(value).filter(|(_, count)| *count > 0).map(|(member, _)| member);
    set_of(members, members::places(value))
}

/// What `order(local)` sorts: the members of a collection or the entries of a map; `None` if it leaves the value alone.
pub fn sortable(value: &Value) -> FunctionResult<Option<Vec<Value>>> {
    match value {
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Map(_) | Value::Tree(_) => {
            spell_out(iterate(value)).map(Some)
        }
        _ => Ok(None),
    }
}

/// The result of `order(local)` from the sorted items of [`sortable`]: a map of a map or tree, else a list.
pub fn rebuild_sorted(original: &Value, items: Vec<Value>) -> Value {
    if !matches!(original, Value::Map(_) | Value::Tree(_)) {
        return items.into();
    }
    let room = items.len();
    let entries = items.into_iter().filter_map(|item| match item {
        Value::Entry(entry) => Some((entry.0.clone(), entry.1.clone())),
        _ => None,
    });
    map_of_entries(entries, room)
}

/// Compares the keys that `by()` modulators gave two items, each in its direction; a `shuffle` among others says nothing.
pub fn compare_keys(a: &[Value], b: &[Value], orders: &[Order], resolver: &dyn ElementResolver) -> Ordering {
    let mut result = Ordering::Equal;
    for ((a, b), order) in a.iter().zip(b).zip(orders) {
        result = match order {
            Order::Asc => compare::order(a, b, resolver),
            Order::Desc => compare::order(b, a, resolver),
            Order::Shuffle => Ordering::Equal,
        };
        if result != Ordering::Equal {
            break;
        }
    }
    result
}

/// Sorts items by their keys, stably; a last `shuffle` shuffles instead.
pub fn sort_keyed<K: AsRef<[Value]>, T>(
    items: &mut [(K, T)],
    orders: &[Order],
    resolver: &dyn ElementResolver,
    random: &mut Random,
) {
    if orders.last() == Some(&Order::Shuffle) {
        // Fisher and Yates, from the end.
        for last in (1..items.len()).rev() {
            items.swap(last, random.below(last + 1));
        }
    } else {
        sort_by_keys(items, orders, resolver);
    }
}

/// Sorts items by their keys, stably.
pub fn sort_by_keys<K: AsRef<[Value]>, T>(items: &mut [(K, T)], orders: &[Order], resolver: &dyn ElementResolver) {
    let mut keys = items.iter().flat_map(|(keys, _)| keys.as_ref());
    if !keys.any(Value::holds_others) {
        items.sort_by(|(a, _), (b, _)| compare_keys(a.as_ref(), b.as_ref(), orders, resolver));
        return;
    }
    // Once the query must stop, comparisons of what holds many others end early and say anything, at which the standard library might panic.
    let mut places: Vec<usize> = (0..items.len()).collect();
    let keys_at = |place: usize| items[place].0.as_ref();
    let compare = |a: &usize, b: &usize| compare_keys(keys_at(*a), keys_at(*b), orders, resolver);
    if !sort_in_steps(&mut places, compare, || !resolver.is_stopped()) {
        return;
    }
    let mut goes_to = vec![0; items.len()];
    for (to, from) in places.into_iter().enumerate() {
        goes_to[from] = to;
    }
    for place in 0..items.len() {
        while goes_to[place] != place {
            let to = goes_to[place];
            items.swap(place, to);
            goes_to.swap(place, to);
        }
    }
}

/// `order(local)` without modulators that need a traversal: members (or entries) by themselves.
pub fn order(value: &Value, order: Order, resolver: &dyn ElementResolver, random: &mut Random) -> FunctionResult {
    let Some(items) = sortable(value)? else {
        return Ok(value.clone());
    };
    let mut keyed: Vec<(Vec<Value>, Value)> = items.into_iter().map(|item| (vec![item.clone()], item)).collect();
    sort_keyed(&mut keyed, &[order], resolver, random);
    Ok(rebuild_sorted(value, keyed.into_iter().map(|(_, item)| item).collect()))
}

/// Refuses ranges that end before they begin; to be called before any value is there. -1 means open.
pub fn check_range(low: i64, high: i64) -> FunctionResult<()> {
    if low != -1 && high != -1 && low > high {
        return Err(FunctionError::new(format!("Not a legal range: [{low}, {high}]")));
    }
    Ok(())
}

/// `range(local)` and `limit(local)`: members from `low` up to and without `high` (-1: to the end). Maps stay maps, trees
/// become maps, sets stay sets, other collections and paths become lists, all else stays as it is.
pub fn range(value: &Value, low: i64, high: i64) -> FunctionResult {
    check_range(low, high)?;
    // Members are taken up to the end only, so a huge count costs nothing.
    let low_index = u64::try_from(low).unwrap_or(0);
    let high_index = if high == -1 { u64::MAX } else { u64::try_from(high).unwrap_or(0) };
    if let Value::Tree(tree) = value {
        return range(&members::map_of(tree), low, high);
    }
    if let Value::Map(map) = value {
        let (skip, take) = (to_usize(low_index), to_usize(high_index.saturating_sub(low_index)));
        let entries = map.iter().skip(skip).take(take).map(|(key, value)| (key.clone(), value.clone()));
        return Ok(map_of_entries(entries, take.min(map.len().saturating_sub(skip))));
    }
    let Some(members) = refs(value) else {
        return Ok(value.clone());
    };
    let wanted = to_usize(high_index.saturating_sub(low_index)).min(members::places(value));
    let cut = cut(members, low_index, high_index);
    Ok(match value {
        Value::Set(_) | Value::BulkSet(_) => set_of(cut.map(|(member, _)| member.clone()), wanted),
        _ => list_of(cut.map(|(member, _)| member.clone()), wanted),
    })
}

fn to_usize(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The members whose positions lie in `low..high`, multiplicities cut to fit.
fn cut(members: MemberRefs<'_>, low: u64, high: u64) -> impl Iterator<Item = (&Value, u64)> {
    let mut position = 0u64;
    members
        .map(move |(member, count)| {
            let start = position;
            position = position.saturating_add(count);
            (member, start, position)
        })
        .take_while(move |(_, start, _)| *start < high)
        .map(move |(member, start, end)| (member, end.min(high).saturating_sub(start.max(low))))
        .filter(|(_, count)| *count > 0)
}

/// `tail(local)`: the last `limit` members; the same results as [`range`].
pub fn tail(value: &Value, limit: i64) -> FunctionResult {
    let size = i64::try_from(members::count(value)).unwrap_or(i64::MAX);
    // Not `range`, to which a low end of -1 would be legal but a high one of -1 open.
    range(value, size.saturating_sub(limit).max(0).min(size), size)
}

/// `sample(local)`: so many members at random; a smaller collection stays as it is, a larger one becomes a list.
pub fn sample(value: &Value, amount: usize, random: &mut Random) -> FunctionResult {
    let is_sampled = matches!(value, Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Map(_));
    if !is_sampled || members::count(value) <= amount as u64 {
        return Ok(value.clone());
    }
    match (value, refs(value)) {
        (Value::Map(map), _) => {
            let drawn = draw(until_stopped(map.iter()).collect(), amount, random);
            let room = drawn.len();
            Ok(map_of_entries(drawn.into_iter().map(|(key, value)| (key.clone(), value.clone())), room))
        }
        (_, Some(members)) => {
            let drawn = draw(spell_out(members)?, amount, random);
            let room = drawn.len();
            Ok(list_of(drawn.into_iter().cloned(), room))
        }
        (_, None) => Ok(value.clone()),
    }
}

/// So many of these at random, in the order in which they are drawn: each number says which of those that are left, as from a seed in TinkerPop.
fn draw<T: Copy>(items: Vec<T>, amount: usize, random: &mut Random) -> Vec<T> {
    let mut left = Left::new(items.len());
    until_stopped(0..amount.min(items.len())).map(|_| items[left.take(random.below(left.count))]).collect()
}

/// Which places are left, so that one is found by its number among them in logarithmic time.
///
/// Source: Fenwick, "A new data structure for cumulative frequency tables", Software: Practice and Experience 24 (3), 1994.
struct Left {
    count: usize,
    /// From 1 on: how many are left of the places that end with this one, as many as the lowest bit of its number says.
    sums: Vec<usize>,
}

impl Left {
    /// All of so many.
    fn new(count: usize) -> Left {
        let lowest_bit = |place: usize| place & place.wrapping_neg();
        Left { count, sums: (0..=count).map(lowest_bit).collect() }
    }

    /// Takes the one of this number, which is less than their count, and says which place it is.
    fn take(&mut self, number: usize) -> usize {
        let (mut place, mut number) = (0, number);
        let mut step = self.sums.len().next_power_of_two();
        while step > 0 {
            if let Some(sum) = self.sums.get_mut(place + step) {
                if *sum <= number {
                    (place, number) = (place + step, number - *sum);
                } else {
                    // It is among these.
                    *sum -= 1;
                }
            }
            step /= 2;
        }
        self.count -= 1;
        place
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::{InternalIds, Path, Shared};

    use super::super::test_values::*;
    use super::*;

    fn path(objects: &[i32]) -> Value {
        Value::Path(Shared::new(Path::unlabelled(objects.iter().map(|object| int(*object)).collect())))
    }

    #[test]
    fn index_numbers_members() {
        let pairs = |pairs: &[(Value, i32)]| {
            pairs.iter().map(|(member, position)| Value::from(vec![member.clone(), int(*position)])).collect::<Value>()
        };
        assert_eq!(index(&list(&["a", "b"]), Indexer::List).unwrap(), pairs(&[(text("a"), 0), (text("b"), 1)]));
        assert_eq!(index(&list(&["a", "b"]), Indexer::Map).unwrap(), map(&[(0, "a"), (1, "b")]));
        assert_eq!(index(&int(29), Indexer::List).unwrap(), pairs(&[(int(29), 0)]));
        assert_eq!(index(&list::<i32>(&[]), Indexer::List).unwrap(), list::<i32>(&[]));
        assert_eq!(Indexer::from_option(&int(1)), Ok(Indexer::Map));
        assert!(Indexer::from_option(&Value::Long(1)).is_err());
    }

    #[test]
    fn reductions_of_one_value() {
        type Reduction = fn(&Value) -> FunctionResult<Option<Value>>;
        let nulls = Value::from(vec![Value::Null, Value::Null]);
        let some_nulls = Value::from(vec![Value::Null, int(10), Value::Null, int(5)]);
        let cases: [(&str, Reduction, Value, Option<Value>); 19] = [
            ("sum", sum, list(&[1, 2, 3]), Some(int(6))),
            ("sum", sum, some_nulls.clone(), Some(int(15))),
            ("sum", sum, nulls.clone(), Some(Value::Null)),
            ("sum", sum, list::<i32>(&[]), None),
            ("sum", sum, int(5), Some(int(5))),
            ("sum", sum, bulk_set(&[(3, 4), (1, 1)]), Some(int(13))),
            ("sum", sum, list(&[i32::MAX, 1]), Some(Value::Long(1 << 31))),
            ("mean", mean, list(&[1, 2]), Some(Value::Double(1.5))),
            ("mean", mean, some_nulls.clone(), Some(Value::Double(7.5))),
            ("mean", mean, nulls.clone(), Some(Value::Null)),
            ("mean", mean, list::<i32>(&[]), None),
            ("mean", mean, bulk_set(&[(1, 3), (5, 1)]), Some(Value::Double(2.0))),
            ("min", min, list(&["b", "a"]), Some(text("a"))),
            ("min", min, some_nulls.clone(), Some(int(5))),
            ("min", min, nulls, Some(Value::Null)),
            ("max", max, some_nulls, Some(int(10))),
            ("max", max, Value::from(vec![int(1), Value::Double(0.5)]), Some(Value::Double(1.0))),
            ("max", max, list::<i32>(&[]), None),
            ("max", max, list(&["x"]), Some(text("x"))),
        ];
        for (name, reduction, value, expected) in cases {
            assert_eq!(reduction(&value).unwrap(), expected, "{name} of {value:?}");
        }
        assert!(sum(&list(&["a", "b"])).is_err());
        assert!(mean(&list(&["a"])).is_err());
        assert!(sum(&bulk_set(&[(1, u64::MAX), (2, 1)])).is_err());
        assert_eq!(count(&bulk_set(&[(1, 5)])), Value::Long(5));
        assert_eq!(count(&map(&[("a", 1)])), Value::Long(1));
        assert_eq!(count(&Value::Null), Value::Long(1));
        assert_eq!(dedup(&list(&[1, 2, 1])), set(&[1, 2]));
        assert_eq!(dedup(&bulk_set(&[(1, 5)])), set(&[1]));
    }

    #[test]
    fn ranges_cut_collections() {
        let letters = list(&["a", "b", "c"]);
        for (value, low, high, expected) in [
            (letters.clone(), 0, 1, list(&["a"])),
            (letters.clone(), 1, -1, list(&["b", "c"])),
            (letters.clone(), 4, 5, list::<i32>(&[])),
            (letters.clone(), -1, 2, list(&["a", "b"])),
            (letters.clone(), 0, 0, list::<i32>(&[])),
            (letters.clone(), -5, -5, list::<i32>(&[])),
            (letters.clone(), -1, -2, list::<i32>(&[])),
            (set(&[1, 2, 3]), 1, 2, set(&[2])),
            (path(&[1, 2, 3]), 1, 3, list(&[2, 3])),
            (map(&[("a", 1), ("b", 2)]), 1, 2, map(&[("b", 2)])),
            (bulk_set(&[(1, 1 << 60), (2, 1)]), 0, 2, set(&[1])),
            (text("abc"), 0, 1, text("abc")),
            (Value::Null, 0, 1, Value::Null),
        ] {
            assert_eq!(range(&value, low, high).unwrap(), expected, "{value:?} {low} {high}");
        }
        assert_eq!(range(&letters, 3, 2).unwrap_err().message(), "Not a legal range: [3, 2]");
        for (value, limit, expected) in [
            (letters.clone(), 1, list(&["c"])),
            (letters.clone(), 5, letters.clone()),
            (letters, 0, list::<i32>(&[])),
            (path(&[1, 2]), 1, list(&[2])),
            (map(&[("a", 1), ("b", 2)]), 1, map(&[("b", 2)])),
            (int(1), 1, int(1)),
        ] {
            assert_eq!(tail(&value, limit).unwrap(), expected, "{value:?} {limit}");
        }
    }

    #[test]
    fn order_sorts_members_and_entries() {
        let mut random = Random::seeded(1);
        let mut sorted = |value: &Value, by: Order| order(value, by, &InternalIds, &mut random).unwrap();
        assert_eq!(sorted(&list(&[3, 1, 2]), Order::Asc), list(&[1, 2, 3]));
        assert_eq!(sorted(&set(&[3, 1, 2]), Order::Desc), list(&[3, 2, 1]));
        let Value::Map(map_sorted) = sorted(&map(&[("b", 1), ("a", 2)]), Order::Asc) else {
            panic!("a map stays a map")
        };
        assert_eq!(map_sorted.keys().cloned().collect::<Vec<_>>(), [text("a"), text("b")]);
        assert_eq!(sorted(&path(&[2, 1]), Order::Asc), path(&[2, 1]));
        assert_eq!(sorted(&text("ba"), Order::Asc), text("ba"));
        let shuffled = sorted(&list(&[1, 2, 3, 4, 5, 6, 7, 8]), Order::Shuffle);
        assert_ne!(shuffled, list(&[1, 2, 3, 4, 5, 6, 7, 8]), "this seed does not keep the order");
        assert_eq!(sorted(&shuffled, Order::Asc), list(&[1, 2, 3, 4, 5, 6, 7, 8]));
    }

    #[test]
    fn several_keys_decide_in_turn() {
        let keys = |a: i32, b: &str| vec![int(a), text(b)];
        let mut items = vec![(keys(1, "x"), 0), (keys(2, "x"), 1), (keys(1, "y"), 2), (keys(1, "x"), 3)];
        sort_keyed(&mut items, &[Order::Desc, Order::Asc], &InternalIds, &mut Random::seeded(1));
        assert_eq!(items.iter().map(|(_, item)| *item).collect::<Vec<_>>(), [1, 0, 3, 2]);
    }

    #[test]
    fn what_is_left_is_taken_by_its_number() {
        let mut random = Random::seeded(3);
        for count in 1..40 {
            let (mut left, mut list) = (Left::new(count), (0..count).collect::<Vec<_>>());
            while !list.is_empty() {
                let number = random.below(list.len());
                assert_eq!(left.take(number), list.remove(number), "{number} of {count}");
                assert_eq!(left.count, list.len());
            }
        }
    }

    #[test]
    fn samples_are_members() {
        let mut random = Random::seeded(7);
        let all = list(&[1, 2, 3]);
        assert_eq!(sample(&all, 3, &mut random).unwrap(), all);
        assert_eq!(sample(&set(&[1]), 3, &mut random).unwrap(), set(&[1]));
        for _ in 0..20 {
            let Value::List(two) = sample(&all, 2, &mut random).unwrap() else { panic!("a list") };
            assert!(two.len() == 2 && two[0] != two[1]);
        }
        let Value::Map(one) = sample(&map(&[("a", 1), ("b", 2)]), 1, &mut random).unwrap() else { panic!("a map") };
        assert_eq!(one.len(), 1);
        assert_eq!(sample(&int(1), 0, &mut random).unwrap(), int(1));
    }
}
