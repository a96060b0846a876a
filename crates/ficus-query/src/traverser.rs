//! The traverser: what flows through a query.

use std::sync::Arc;

use ficus_model::{Path, Value, allocated_bytes};
use hashbrown::HashSet;

use crate::large_values::LARGE_VALUE_BYTES;
use crate::logical::Name;
use crate::loops::{Around, Loop};

/// Step labels of one place in a path.
pub type Labels = Arc<[Name]>;

/// A location with its multiplicity and, where the plan needs them, its history, sack and loop counters.
///
/// 64 bytes. What is made and freed for each row is most of what queries that keep paths do, and rows in loops are as frequent. So the counter of the
/// innermost loop lies in place, and the last object of a path has a link only once another one follows it ([`marks::OPEN`]): the rows that a hop makes
/// of one vertex share the link of that vertex and are no allocations.
#[derive(Clone, Debug)]
pub struct Traverser {
    /// The current object.
    pub value: Value,
    /// How many equal traversers this one stands for.
    pub bulk: u64,
    /// The last link of its path, if that is kept; of what came before the object where the path is open.
    links: Option<Arc<PathLink>>,
    /// The rarer parts, if any; shared by what came of one row, until one of them changes.
    pub extra: Option<Arc<Extra>>,
    /// The counter of the innermost loop.
    pub innermost: Loop,
    /// Findings of tests on the way to a gate (`until`, `emit`, `choose`), and whose row it is where several inputs share a pipeline; see
    /// [`marks`].
    pub marks: u64,
}

/// Bits of [`Traverser::marks`].
pub mod marks {
    /// `until` holds.
    pub const UNTIL: u64 = 1;
    /// `emit` holds.
    pub const EMIT: u64 = 2;
    /// The object is a list of vertices, each of which a row would have; for one operator that knows of it.
    pub const PACKED: u64 = 4;
    /// The filter right behind lets it through: the hop in front has made its test.
    pub const PASSED: u64 = 8;
    /// The object is the vertex that the row's key belongs to, which a walk has come to already.
    pub const WALKED: u64 = 16;
    /// The object is the last one of the path, without labels, and has no link yet.
    pub const OPEN: u64 = 32;
    /// First bit of the option a `choose` found.
    pub const OPTION_SHIFT: u32 = 8;
    /// First bit of the number of the input that a row came of, in a shared pipeline; what comes of a row has its number.
    pub const INPUT_SHIFT: u32 = 56;
    /// The bits of that number.
    pub const INPUT: u64 = !0 << INPUT_SHIFT;
    /// What a row keeps when its other marks are taken away.
    pub const KEPT: u64 = INPUT | OPEN;
}

/// The rarer parts of a traverser.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra {
    /// Its sack.
    pub sack: Option<Value>,
    /// The name of the innermost loop, and the loops around it.
    pub around: Around,
}

impl Extra {
    /// As if nobody shared it: who does is another at the end than at the begin.
    fn kept_bytes(&self) -> usize {
        const COUNTERS: usize = 16;
        let sack = self.sack.as_ref().map_or(0, small_bytes);
        allocated_bytes(size_of::<Extra>() + COUNTERS) + sack + self.around.heap_bytes()
    }
}

/// What a value holds beside itself; large ones are counted elsewhere.
fn small_bytes(value: &Value) -> usize {
    let heap = match value {
        Value::String(text) => allocated_bytes(text.len() + 16),
        Value::Binary(bytes) => allocated_bytes(bytes.len() + 16),
        Value::List(list) => 64 + allocated_bytes(list.capacity() * size_of::<Value>()),
        // Hash and entry; and the table of positions, which is half empty at times.
        Value::Set(set) => 96 + allocated_bytes(set.capacity() * 32) + allocated_bytes(set.capacity() * 16 + 16),
        Value::Map(map) => 64 + map.heap_bytes(),
        Value::BulkSet(set) => {
            let counts = &set.counts;
            96 + allocated_bytes(counts.capacity() * 40) + allocated_bytes(counts.capacity() * 16 + 16)
        }
        Value::Path(path) => {
            80 + allocated_bytes(path.objects.len() * 24) + allocated_bytes(path.places_of_labels() * 16)
        }
        Value::Vertex(_) | Value::Edge(_) | Value::Int(_) | Value::Long(_) | Value::Double(_) | Value::Bool(_) => 0,
        _ => 64,
    };
    if heap < LARGE_VALUE_BYTES { heap } else { 0 }
}

/// Work units that making or reading a value is worth beside its row: a kibibyte costs about as much as a row. Charging them bounds what
/// large values take while they are on their way, since a turn ends after some mebibytes. Cost: O(1).
#[inline]
pub fn work_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() >> 10,
        Value::Binary(bytes) => bytes.len() >> 10,
        Value::List(list) => list.len() >> 5,
        Value::Set(set) => set.len() >> 4,
        Value::Map(map) => map.len() >> 4,
        Value::BulkSet(set) => set.counts.len() >> 4,
        Value::Path(path) => path.objects.len() >> 4,
        Value::Tree(tree) => tree.children.len(),
        _ => 0,
    }
}

/// One object of a path, linked to those before it; tails are shared between traversers.
#[derive(Debug)]
struct PathLink {
    /// What came before.
    previous: Option<Arc<PathLink>>,
    /// The object.
    value: Value,
    /// The labels given here; none if that is no label, as for most: a counter of references that all links share would be touched for each of them.
    labels: Option<Labels>,
}

/// One object of a path, as a traverser shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passed<'t> {
    /// The object.
    pub value: &'t Value,
    /// The labels given here.
    labels: Option<&'t Labels>,
}

impl<'t> Passed<'t> {
    /// The labels given here.
    pub fn labels(self) -> &'t [Name] {
        self.labels.map(|labels| &**labels).unwrap_or_default()
    }
}

impl PathLink {
    /// What it takes with its counters of references, and its object if that is small.
    fn kept_bytes(&self) -> usize {
        const COUNTERS: usize = 16;
        allocated_bytes(size_of::<PathLink>() + COUNTERS) + small_bytes(&self.value)
    }
}

impl PartialEq for PathLink {
    fn eq(&self, other: &PathLink) -> bool {
        let (mut a, mut b) = (self, other);
        loop {
            if std::ptr::eq(a, b) {
                return true;
            }
            if a.value != b.value || a.labels != b.labels {
                return false;
            }
            match (&a.previous, &b.previous) {
                (None, None) => return true,
                (Some(x), Some(y)) => (a, b) = (x, y),
                _ => return false,
            }
        }
    }
}

impl Drop for PathLink {
    /// Unlinks iteratively: a path can be longer than the stack is deep.
    fn drop(&mut self) {
        let mut next = self.previous.take();
        while let Some(link) = next {
            next = Arc::into_inner(link).and_then(|mut link| link.previous.take());
        }
    }
}

impl Traverser {
    /// A traverser with bulk 1 and no history.
    pub fn new(value: Value) -> Traverser {
        Traverser { value, bulk: 1, links: None, extra: None, innermost: Loop::NONE, marks: 0 }
    }

    /// The same, for so many traversers.
    #[inline]
    pub fn with_bulk(self, bulk: u64) -> Traverser {
        Traverser { bulk, ..self }
    }

    /// The same with these [`marks`] as well.
    #[inline]
    pub fn marked(self, marks: u64) -> Traverser {
        Traverser { marks: self.marks | marks, ..self }
    }

    /// The same history at a new object; extends the path if `tracking`. Who makes many rows of one calls [`Traverser::close_path`] before.
    #[inline]
    pub fn advance(&self, value: Value, step: &StepInfo) -> Traverser {
        let mut next = Traverser {
            value,
            bulk: self.bulk,
            links: self.closed(),
            extra: self.extra.clone(),
            innermost: self.innermost,
            marks: self.marks & marks::INPUT,
        };
        if step.tracking {
            next.extend_path(&step.labels);
        }
        next
    }

    /// As [`Traverser::advance`], reusing this traverser.
    #[inline]
    pub fn move_to(mut self, value: Value, step: &StepInfo) -> Traverser {
        self.put(value);
        if step.tracking {
            self.extend_path(&step.labels);
        }
        self
    }

    /// Exchanges the object for one that does not belong to the path.
    #[inline]
    pub fn put(&mut self, value: Value) {
        self.close_path();
        self.value = value;
    }

    /// A copy that stands for one traverser, as children of `by()` and friends see it.
    pub fn single(&self) -> Traverser {
        Traverser {
            value: self.value.clone(),
            bulk: 1,
            links: self.links.clone(),
            extra: self.extra.clone(),
            innermost: self.innermost,
            marks: self.marks & marks::OPEN,
        }
    }

    /// Appends the current object to the path.
    #[inline]
    pub fn extend_path(&mut self, labels: &Labels) {
        self.close_path();
        if labels.is_empty() {
            self.marks |= marks::OPEN;
        } else {
            self.link(Some(labels.clone()));
        }
    }

    /// Gives the last object of the path its link, if it has none: all that comes of this row shares it then.
    #[inline]
    pub fn close_path(&mut self) {
        if self.marks & marks::OPEN != 0 {
            self.link(None);
        }
    }

    /// Adds a link for the object, with these labels; the path is closed then.
    #[inline]
    fn link(&mut self, labels: Option<Labels>) {
        self.marks &= !marks::OPEN;
        self.links = Some(Arc::new(PathLink { previous: self.links.take(), value: self.value.clone(), labels }));
    }

    /// The links of the path with one for its last object.
    #[inline]
    fn closed(&self) -> Option<Arc<PathLink>> {
        let links = self.links.clone();
        match self.marks & marks::OPEN {
            0 => links,
            _ => Some(Arc::new(PathLink { previous: links, value: self.value.clone(), labels: None })),
        }
    }

    /// Forgets the path.
    pub fn forget_path(&mut self) {
        self.links = None;
        self.marks &= !marks::OPEN;
    }

    /// Adds labels to the last object of the path, as `as()` after a filter does.
    pub fn add_labels(&mut self, labels: &Labels) {
        let is_closed = self.marks & marks::OPEN == 0;
        match self.links.as_ref() {
            // Where only labelled objects are kept, the last one may be behind the current object.
            Some(last) if is_closed && last.value == self.value => {
                let mut all: Vec<Name> = last.labels.as_deref().unwrap_or_default().to_vec();
                for label in labels.iter() {
                    if !all.contains(label) {
                        all.push(label.clone());
                    }
                }
                let (previous, value) = (last.previous.clone(), last.value.clone());
                self.links = Some(Arc::new(PathLink { previous, value, labels: Some(all.into()) }));
            }
            _ => self.link(Some(labels.clone())),
        }
    }

    /// Takes all labels but these from the path, and the objects that have none then. Cost: that of the path, which is made anew behind the first that changes.
    pub fn keep_labels(&mut self, kept: &[Name]) {
        let is_kept = |label: &&Name| kept.contains(label);
        if self.way().all(|passed| !passed.labels().is_empty() && passed.labels().iter().all(|own| is_kept(&own))) {
            return;
        }
        let way: Vec<Passed<'_>> = self.way().collect();
        let mut links = None;
        for passed in way.into_iter().rev() {
            let labels: Labels = passed.labels().iter().filter(is_kept).cloned().collect();
            if !labels.is_empty() {
                let value = passed.value.clone();
                links = Some(Arc::new(PathLink { previous: links, value, labels: Some(labels) }));
            }
        }
        self.forget_path();
        self.links = links;
    }

    /// The path from its first object to the current one.
    pub fn path(&self) -> Path {
        let (length, is_labelled) =
            self.way().fold((0, false), |(length, any), passed| (length + 1, any || passed.labels.is_some()));
        let mut objects = Vec::with_capacity(length);
        objects.extend(self.way().map(|passed| passed.value.clone()));
        objects.reverse();
        if !is_labelled {
            return Path::unlabelled(objects);
        }
        let mut labels: Vec<_> = self.way().map(|passed| passed.labels.cloned()).collect();
        labels.reverse();
        Path::labelled(objects, labels)
    }

    /// Whether no object of the path comes twice. Cost: a comparison for each pair of few objects, a look-up for each of many.
    pub fn has_simple_path(&self) -> bool {
        /// So many are compared with each other.
        const COMPARED_MAX: usize = 16;
        let mut objects = self.way().map(|passed| passed.value);
        let mut few = [&Value::Null; COMPARED_MAX];
        for count in 0..COMPARED_MAX {
            let Some(object) = objects.next() else { return true };
            if few[..count].contains(&object) {
                return false;
            }
            few[count] = object;
        }
        let mut seen: HashSet<&Value> = few.into_iter().collect();
        objects.all(|object| seen.insert(object))
    }

    /// The objects of the path, last first.
    #[inline]
    pub fn way(&self) -> impl Iterator<Item = Passed<'_>> {
        let last = (self.marks & marks::OPEN != 0).then_some(Passed { value: &self.value, labels: None });
        let links = std::iter::successors(self.links.as_deref(), |link| link.previous.as_deref());
        last.into_iter().chain(links.map(|link| Passed { value: &link.value, labels: link.labels.as_ref() }))
    }

    /// Whether both came the same way, if they are at equal objects.
    pub fn came_as(&self, other: &Traverser) -> bool {
        match (self.marks ^ other.marks) & marks::OPEN {
            0 => self.links == other.links,
            _ => self.way().eq(other.way()),
        }
    }

    /// Whether it has no memory but that of its object.
    #[inline]
    pub fn is_bare(&self) -> bool {
        self.links.is_none() && self.extra.is_none()
    }

    /// The last object labelled `label`.
    pub fn labelled(&self, label: &str) -> Option<&Value> {
        self.way().find(|passed| passed.labels().iter().any(|own| &**own == label)).map(|passed| passed.value)
    }

    /// Whether it is its object and bulk, and nothing else: no path, sack or loops.
    pub fn has_no_history(&self) -> bool {
        self.is_bare() && self.marks & marks::OPEN == 0 && self.innermost.is_none()
    }

    /// Whether it and another one have no history, and count as often.
    pub fn differs_in_value_only(&self, other: &Traverser) -> bool {
        self.has_no_history() && other.has_no_history() && self.bulk == other.bulk && self.marks == other.marks
    }

    /// The sack, if the query has one.
    pub fn sack(&self) -> Option<&Value> {
        self.extra.as_ref().and_then(|extra| extra.sack.as_ref())
    }

    /// Sets the sack.
    pub fn set_sack(&mut self, sack: Value) {
        match self.extra.as_mut().and_then(Arc::get_mut) {
            Some(own) => own.sack = Some(sack),
            // The sack that goes need not be copied before it does.
            None => {
                let around = self.extra.as_ref().map(|shared| shared.around.clone()).unwrap_or_default();
                self.extra = Some(Arc::new(Extra { sack: Some(sack), around }));
            }
        }
    }

    /// Finished iterations of the innermost loop, or of the one called `name`.
    pub fn loops(&self, name: Option<&str>) -> Option<u32> {
        match name {
            None => self.innermost.count(),
            Some(name) => self.extra.as_ref()?.around.named(self.innermost, name)?.count(),
        }
    }

    /// Finished iterations of all loops that it is in, of the innermost one first.
    pub fn all_loops(&self) -> Vec<u32> {
        match &self.extra {
            Some(extra) => extra.around.counts(self.innermost).collect(),
            None => self.innermost.count().into_iter().collect(),
        }
    }

    /// Enters a loop that the plan knows by a number, from 1 on.
    pub fn enter_loop(&mut self, scope: u32, name: Option<&Name>) {
        let from = std::mem::replace(&mut self.innermost, Loop::begin(scope));
        if !from.is_none() || name.is_some() {
            Arc::make_mut(self.extra.get_or_insert_default()).around.enter(from, name.cloned());
        }
    }

    /// Leaves the innermost loop.
    pub fn leave_loop(&mut self) {
        self.innermost = Loop::NONE;
        if let Some(extra) = self.extra.as_mut().map(Arc::make_mut) {
            self.innermost = extra.around.leave();
            if extra.around.is_empty() && extra.sack.is_none() {
                self.extra = None;
            }
        }
    }

    /// About how many bytes the traverser holds for itself: its object if that is small, and the last link of its path, which it shares
    /// with none or few. Large values are counted where they are made, see [`crate::large_values`]. Cost: O(1).
    pub fn kept_bytes(&self) -> usize {
        let link = self.links.as_deref().map_or(0, PathLink::kept_bytes);
        size_of::<Traverser>() + small_bytes(&self.value) + link + self.extra.as_deref().map_or(0, Extra::kept_bytes)
    }

    /// Whether two traversers may be merged into one with the sum of their bulks.
    pub fn mergeable(&self, other: &Traverser) -> bool {
        self.value == other.value
            && self.innermost == other.innermost
            && self.came_as(other)
            && self.extra == other.extra
    }
}

/// What every moving operator knows of its step: its labels, and whether the plan keeps paths.
#[derive(Debug)]
pub struct StepInfo {
    /// Labels given by `as()`.
    pub labels: Labels,
    /// Whether paths are kept.
    pub tracking: bool,
}

impl Clone for StepInfo {
    /// With labels of its own: every row refers to them, and executors that work on one query would wait for each other's counters.
    fn clone(&self) -> StepInfo {
        StepInfo { labels: self.labels.iter().cloned().collect(), tracking: self.tracking }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A traverser that came over these numbers.
    fn over(numbers: impl IntoIterator<Item = i64>) -> Traverser {
        let step = StepInfo { labels: Labels::default(), tracking: true };
        let start = Traverser::new(Value::Null);
        numbers.into_iter().fold(start, |traverser, number| traverser.move_to(Value::Long(number), &step))
    }

    #[test]
    fn a_path_is_simple_if_nothing_comes_twice() {
        for length in [0, 1, 2, 3, 15, 16, 17, 18, 40] {
            assert!(over(0..length).has_simple_path(), "{length} objects");
            for (again, place) in [(0, length), (length / 2, length), (length - 1, length), (length - 1, 0)] {
                let mut numbers: Vec<i64> = (0..length).collect();
                if length > 0 {
                    numbers.insert(place as usize, again);
                    assert!(!over(numbers).has_simple_path(), "{again} again at {place} of {length} objects");
                }
            }
        }
        // As TinkerPop compares them.
        assert!(
            over([1]).move_to(Value::Int(1), &StepInfo { labels: Labels::default(), tracking: true }).has_simple_path()
        );
    }

    #[test]
    fn what_comes_of_one_row_shares_its_way() {
        let step = StepInfo { labels: Labels::default(), tracking: true };
        let mut row = over([1, 2]);
        let alone = row.advance(Value::Long(3), &step);
        row.close_path();
        let (one, other) = (row.advance(Value::Long(3), &step), row.advance(Value::Long(4), &step));
        assert!(Arc::ptr_eq(one.links.as_ref().unwrap(), other.links.as_ref().unwrap()));
        assert!(alone.mergeable(&one) && one.path() == over([1, 2, 3]).path());
        assert!(!one.mergeable(&other) && other.path() == over([1, 2, 4]).path());
        // The same way, of which one knows the last object by itself and the other by a link.
        let (mut closed, open) = (one.clone(), one.single());
        closed.close_path();
        assert!(closed.mergeable(&open) && open.mergeable(&closed) && closed.path() == open.path());
        assert!(closed.kept_bytes() >= open.kept_bytes());
        closed.add_labels(&Labels::from([Name::from("x")]));
        assert!(!closed.mergeable(&open) && closed.labelled("x") == Some(&Value::Long(3)));
        // Another object in its place leaves the path what it is.
        for mut row in [one, closed] {
            row.put(Value::Long(9));
            assert_eq!(row.path().objects, [Value::Long(1), Value::Long(2), Value::Long(3)]);
            row.forget_path();
            assert!(row.has_no_history() && row.way().count() == 0);
        }
        let mut labelled = other.clone();
        labelled.add_labels(&Labels::from([Name::from("x")]));
        labelled.keep_labels(&[Name::from("x")]);
        assert_eq!((labelled.path().objects, other.way().count()), (vec![Value::Long(4)], 3));
    }

    #[test]
    fn rows_that_came_of_one_share_its_sack_until_one_has_another() {
        let step = StepInfo { labels: Labels::default(), tracking: false };
        let mut row = Traverser::new(Value::Null);
        row.set_sack(Value::Long(1));
        let (one, mut other) = (row.advance(Value::Long(1), &step), row.advance(Value::Long(2), &step));
        let shared = |a: &Traverser, b: &Traverser| Arc::ptr_eq(a.extra.as_ref().unwrap(), b.extra.as_ref().unwrap());
        assert!(shared(&row, &one) && shared(&one, &other));
        other.set_sack(Value::Long(2));
        assert_eq!((one.sack(), other.sack()), (Some(&Value::Long(1)), Some(&Value::Long(2))));
        other.enter_loop(1, None);
        other.enter_loop(2, None);
        let inner = other.single();
        other.leave_loop();
        assert_eq!((inner.all_loops(), other.all_loops()), (vec![0, 0], vec![0]));
        assert_eq!((inner.sack(), other.sack()), (Some(&Value::Long(2)), Some(&Value::Long(2))));
    }

    #[test]
    fn paths_begin_with_their_first_object() {
        let mut traverser = over([1, 2]);
        traverser.add_labels(&Labels::from([Name::from("x")]));
        let path = traverser.path();
        assert_eq!(path.objects, [Value::Long(1), Value::Long(2)]);
        assert_eq!(path.labels().map(<[Name]>::len).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(over([1, 2]).path().labels().map(<[Name]>::len).collect::<Vec<_>>(), [0, 0]);
    }
}
