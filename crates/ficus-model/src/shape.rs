//! Keys that many maps share, and the maker of such maps.
//!
//! A step that makes a map of each row, such as `valueMap()` or `project()`, gives nearly all of them the same keys in the same order. Those lie in one
//! [`Shape`] then, and a map is a reference to it and its values: half the memory, one counter of references touched instead of one for each key, and
//! nothing hashed however many keys there are.

use std::iter::Zip;
use std::slice;
use std::sync::Arc;
use std::vec;

use indexmap::IndexSet;

use crate::map::{ValueMap, place_among};
use crate::{Value, ValueHashing};

/// Keys in their order, each once; none of them holds other values.
#[derive(Debug)]
pub struct Shape {
    keys: Box<[Value]>,
    /// Of more than [`ValueMap::FEW`] keys.
    places: Option<IndexSet<Value, ValueHashing>>,
}

impl Shape {
    /// Most keys: what shapes hold is on no query's account.
    const KEYS_MAX: usize = 64;

    /// Longest text among keys.
    const TEXT_MAX: usize = 256;

    /// Of keys that differ. `None` if they are not worth it.
    fn new(keys: Vec<Value>) -> Option<Shape> {
        let is_small = |key: &Value| match key {
            Value::String(text) => text.len() <= Shape::TEXT_MAX,
            key => key.is_flat(),
        };
        let fits = (1..=Shape::KEYS_MAX).contains(&keys.len()) && keys.iter().all(is_small);
        fits.then(|| {
            let places = (keys.len() > ValueMap::FEW).then(|| keys.iter().cloned().collect());
            Shape { keys: keys.into(), places }
        })
    }

    pub(crate) fn keys(&self) -> &[Value] {
        &self.keys
    }

    /// Where a key is.
    #[inline]
    pub(crate) fn place_of(&self, key: &Value) -> Option<usize> {
        match &self.places {
            None => place_among(self.keys.iter(), key),
            Some(places) => places.get_index_of(key),
        }
    }
}

/// Values under the keys of a shape, one for each.
#[derive(Clone, Debug)]
pub(crate) struct Shaped {
    pub(crate) shape: Arc<Shape>,
    pub(crate) values: Vec<Value>,
}

impl Shaped {
    #[inline]
    pub(crate) fn iter(&self) -> Zip<slice::Iter<'_, Value>, slice::Iter<'_, Value>> {
        self.shape.keys.iter().zip(&self.values)
    }

    pub(crate) fn into_entries(self) -> ShapedEntries {
        ShapedEntries { values: self.values.into_iter().enumerate(), shape: self.shape }
    }
}

/// The entries that a map with shared keys consisted of.
#[derive(Clone, Debug)]
pub struct ShapedEntries {
    values: std::iter::Enumerate<vec::IntoIter<Value>>,
    shape: Arc<Shape>,
}

impl ShapedEntries {
    #[inline]
    fn entry(&self, (place, value): (usize, Value)) -> (Value, Value) {
        (self.shape.keys[place].clone(), value)
    }
}

impl Iterator for ShapedEntries {
    type Item = (Value, Value);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.values.next()?;
        Some(self.entry(next))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.values.size_hint()
    }
}

impl DoubleEndedIterator for ShapedEntries {
    fn next_back(&mut self) -> Option<Self::Item> {
        let next = self.values.next_back()?;
        Some(self.entry(next))
    }
}

impl ExactSizeIterator for ShapedEntries {}

/// Makes maps one after the other, of which most have the keys of one before them.
///
/// It knows a few shapes. The map being made follows one of them as long as its keys are the shape's, and is an ordinary one from the first key on that
/// no shape has there; its keys are a new shape when it is done. So that one whose maps are all different neither makes a shape for each nor holds more
/// memory than is accounted for, shapes that maps still have are not replaced, and the first map of all makes none.
#[derive(Clone, Debug, Default)]
pub struct MapMaker {
    /// The one that is followed first.
    shapes: Vec<Arc<Shape>>,
    /// Under the first keys of that shape; of the map being made, if it follows one.
    values: Vec<Value>,
    /// The map being made, if it follows none.
    own: Option<ValueMap>,
    has_made_one: bool,
}

impl MapMaker {
    /// Shapes that it knows.
    const SHAPES_MAX: usize = 8;

    /// The map of these entries; of several with one key the last, at the place of the first.
    pub fn make<'k>(&mut self, entries: impl Iterator<Item = (&'k Value, Value)>) -> ValueMap {
        self.begin();
        entries.for_each(|(key, value)| self.put(key, value));
        self.finish()
    }

    /// Begins a map. What was put into one that has not been finished is gone.
    #[inline]
    pub fn begin(&mut self) {
        self.values.clear();
        self.own = None;
    }

    /// Puts a value under a key, behind the others if the key is new, as [`ValueMap::insert`] does.
    #[inline]
    pub fn put(&mut self, key: &Value, value: Value) {
        if let Some(value) = self.put_new(key, value) {
            *self.value_under(key) = value;
        }
    }

    /// Puts a value under a key that is new; hands it back if there is one already ([`MapMaker::value_under`]).
    #[inline]
    pub fn put_new(&mut self, key: &Value, value: Value) -> Option<Value> {
        if self.own.is_none()
            && let Some(shape) = self.shapes.first()
            && let Some(own) = shape.keys.get(self.values.len())
            && is_same(own, key)
        {
            if self.values.is_empty() {
                self.values.reserve_exact(shape.keys.len());
            }
            self.values.push(value);
            return None;
        }
        self.put_elsewhere(key, value)
    }

    #[cold]
    fn put_elsewhere(&mut self, key: &Value, value: Value) -> Option<Value> {
        if self.own.is_none() && self.place_so_far(key).is_some() {
            return Some(value);
        }
        if self.own.is_none() && self.follow(|shape, place| shape.get(place).is_some_and(|own| own == key)) {
            self.values.push(value);
            return None;
        }
        let own = self.own.get_or_insert_with(|| {
            let mut own = ValueMap::with_capacity(self.values.len() + 1);
            let keys = self.shapes.first().into_iter().flat_map(|shape| shape.keys.iter().cloned());
            own.extend(keys.zip(self.values.drain(..)));
            own
        });
        if own.contains_key(key) {
            return Some(value);
        }
        own.insert(key.clone(), value);
        None
    }

    /// Where a key is in the map that follows a shape.
    fn place_so_far(&self, key: &Value) -> Option<usize> {
        let shape = self.shapes.first()?;
        shape.place_of(key).filter(|place| *place < self.values.len())
    }

    /// Puts the shape in front that has the keys so far and of which this holds, if there is one.
    fn follow(&mut self, holds: impl Fn(&[Value], usize) -> bool) -> bool {
        let count = self.values.len();
        let so_far = self.shapes.first().map_or(&[][..], |shape| &shape.keys[..count]);
        let fits = |shape: &Arc<Shape>| shape.keys.starts_with(so_far) && holds(&shape.keys, count);
        let Some(place) = self.shapes.iter().position(fits) else { return false };
        self.shapes[..=place].rotate_right(1);
        true
    }

    /// The value under a key that has been put into the map being made.
    ///
    /// # Panics
    ///
    /// If it has not.
    pub fn value_under(&mut self, key: &Value) -> &mut Value {
        let found = match self.own {
            Some(ref mut own) => own.get_mut(key),
            None => self.place_so_far(key).map(|place| &mut self.values[place]),
        };
        found.expect("asked of a key that has been put")
    }

    /// The map that has been begun.
    pub fn finish(&mut self) -> ValueMap {
        let own = match self.own.take() {
            Some(own) => own,
            None if self.values.is_empty() => return ValueMap::default(),
            None => {
                let count = self.values.len();
                // Most are as long as the one that they follow.
                if self.shapes[0].keys.len() == count || self.follow(|shape, _| shape.len() == count) {
                    let (shape, mut values) = (self.shapes[0].clone(), std::mem::take(&mut self.values));
                    values.shrink_to_fit();
                    return ValueMap::shaped(Shaped { shape, values });
                }
                self.shapes[0].keys.iter().cloned().zip(self.values.drain(..)).collect()
            }
        };
        if !std::mem::replace(&mut self.has_made_one, true) {
            return own;
        }
        self.made_shape_of(own)
    }

    /// The map with its keys in a shape, which the next ones may follow; as it is if there cannot be one more.
    fn made_shape_of(&mut self, map: ValueMap) -> ValueMap {
        if self.shapes.len() == MapMaker::SHAPES_MAX {
            let unused = |shape: &Arc<Shape>| Arc::strong_count(shape) == 1;
            let Some(place) = self.shapes.iter().rposition(unused) else { return map };
            self.shapes.remove(place);
        }
        let Some(shape) = Shape::new(map.keys().cloned().collect()) else { return map };
        let shape = Arc::new(shape);
        self.shapes.insert(0, shape.clone());
        let mut values = Vec::with_capacity(map.len());
        values.extend(map.into_iter().map(|(_, value)| value));
        ValueMap::shaped(Shaped { shape, values })
    }
}

/// Whether a key is that of a shape: most are one text.
#[inline]
fn is_same(own: &Value, key: &Value) -> bool {
    match (own, key) {
        (Value::String(own), Value::String(key)) => Arc::ptr_eq(own, key) || own == key,
        (own, key) => own == key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &str) -> Vec<Value> {
        names.chars().map(|name| Value::from(name.to_string())).collect()
    }

    fn make(maker: &mut MapMaker, names: &str) -> ValueMap {
        let map = maker.make(keys(names).iter().zip((0..).map(Value::Int)));
        assert!(map.keys().eq(&keys(names)), "{map:?} of {names}");
        assert!(map.values().cloned().eq((0..map.len() as i32).map(Value::Int)), "{map:?} of {names}");
        map
    }

    #[test]
    fn maps_with_the_keys_of_one_before_share_them() {
        let mut maker = MapMaker::default();
        assert!(!make(&mut maker, "abc").shares_keys(), "one map is no reason for a shape");
        let first = make(&mut maker, "abc");
        // More than few keys, and those that begin alike; in any order.
        let names = ["abc", "abd", "ab", "abcdefghijkl", "xyz", "abcdefghijklm", "b"];
        let made: Vec<ValueMap> = names.iter().map(|names| make(&mut maker, names)).collect();
        for (names, made) in names.iter().zip(&made).rev() {
            let map = make(&mut maker, names);
            assert!(map.shares_keys() && map == *made, "{names}");
            assert_eq!(map.capacity(), map.len());
            for (place, key) in keys(names).iter().enumerate() {
                assert_eq!(map.get(key), Some(&Value::Int(place as i32)));
            }
            assert_eq!(map.get(&Value::from("absent")), None);
        }
        assert!(first.shares_keys() && maker.shapes.len() == names.len());
        assert_eq!(maker.make(std::iter::empty()), ValueMap::default());
    }

    #[test]
    fn a_key_that_comes_again_has_its_last_value_at_its_first_place() {
        let mut maker = MapMaker::default();
        for _ in 0..3 {
            let entries = keys("abcacd").into_iter().zip((0..).map(Value::Int)).collect::<Vec<_>>();
            let map = maker.make(entries.iter().map(|(key, value)| (key, value.clone())));
            assert_eq!(map, keys("abcd").into_iter().zip([3, 1, 4, 5].map(Value::Int)).collect());
            assert!(map.keys().eq(&keys("abcd")));
            // One that is handed back, and one that is given up.
            maker.begin();
            let key = &keys("a")[0];
            assert_eq!(maker.put_new(key, Value::Int(1)), None);
            assert_eq!(maker.put_new(key, Value::Int(2)), Some(Value::Int(2)));
            assert_eq!(maker.value_under(key), &Value::Int(1));
            maker.put(&keys("z")[0], Value::Null);
            assert_eq!(maker.value_under(key), &Value::Int(1));
        }
    }

    #[test]
    fn maps_that_all_differ_make_few_shapes() {
        let mut maker = MapMaker::default();
        let text = |number: i32| Value::from(number.to_string());
        let made: Vec<ValueMap> =
            (0..100).map(|number| maker.make([(&text(number), Value::Null)].into_iter())).collect();
        assert_eq!(made.iter().filter(|map| map.shares_keys()).count(), MapMaker::SHAPES_MAX);
        // Those that no map has any more make room.
        drop(made);
        let map = maker.make([(&text(100), Value::Null)].into_iter());
        assert!(map.shares_keys() && maker.shapes.len() == MapMaker::SHAPES_MAX);
    }

    #[test]
    fn keys_that_hold_values_or_are_long_or_many_are_no_shape() {
        let (many, long) = (Shape::KEYS_MAX as i32 + 1, "x".repeat(Shape::TEXT_MAX + 1));
        let lists = vec![Value::from(vec![Value::Int(1)])];
        for keys in [(0..many).map(Value::Int).collect(), vec![Value::from(long)], lists] {
            let mut maker = MapMaker::default();
            for _ in 0..3 {
                let map = maker.make(keys.iter().zip((0..).map(Value::Int)));
                assert!(!map.shares_keys() && map.keys().eq(&keys));
            }
        }
    }

    #[test]
    fn what_is_changed_has_keys_of_its_own() {
        let mut maker = MapMaker::default();
        make(&mut maker, "abc");
        let map = make(&mut maker, "abc");
        let changed = |change: &dyn Fn(&mut ValueMap)| {
            let mut changed = map.clone();
            change(&mut changed);
            changed
        };
        // Values are its own.
        let other = changed(&|map| _ = map.insert(keys("b")[0].clone(), Value::Null));
        assert!(other.shares_keys() && other.get(&keys("b")[0]) == Some(&Value::Null) && other != map);
        let all = changed(&|map| map.retain(|_, _| true));
        assert!(all.shares_keys() && all == map);
        for (rest, gone) in [("bc", "a"), ("ac", "b"), ("ab", "c")] {
            let some = changed(&|map| map.retain(|key, _| *key != keys(gone)[0]));
            assert!(!some.shares_keys() && some.keys().eq(&keys(rest)), "{some:?}");
        }
        let more = changed(&|map| _ = map.insert(keys("d")[0].clone(), Value::Int(3)));
        assert!(!more.shares_keys() && more.keys().eq(&keys("abcd")) && map.keys().eq(&keys("abc")));
    }
}
