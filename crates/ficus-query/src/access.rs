//! How a scan finds its elements: by an index, by label, or by looking at all.
//!
//! The conditions right behind `V()` or `E()` say what may be left out ([`Access`]); which index serves them best is decided
//! when the scan begins, against the snapshot it reads, so a plan stays right when indexes come and go. The conditions run
//! afterwards in any case: an access path only has to leave nothing out.

use std::fmt;
use std::sync::Arc;

use ficus_model::{Comparison, Direction, LabelId, P, TextComparison, Value};
use ficus_storage::{ElementKind, IndexInfo, IndexKind, IndexQuery, IndexTest, Snapshot};

use crate::logical::{HasContainer, HasKey, Name};

/// Alternatives one condition may have and still be looked up; beyond that a scan is not worse by much.
const ALTERNATIVES_MAX: usize = 1024;

/// Vertices that are passed over in the time that an edge takes to be read with its label.
const VERTICES_PER_EDGE: u64 = 8;

/// Of ten vertices, as many may have the only label of those with certain edges, if that is to be worth a scan of its own.
const TENTHS_OF_LABEL: u64 = 7;

/// What the conditions behind a scan allow to leave out.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Only elements of this label.
    pub label: Option<Name>,
    /// Only vertices with an edge in this direction that has one of the labels.
    pub edges: Option<(Direction, Vec<Name>)>,
    /// Only elements with a value under the key that passes one of the tests.
    pub tests: Vec<(Name, Vec<IndexTest>)>,
}

/// How a scan reads one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Path {
    /// There is no such label or key, so there are no elements.
    Nothing,
    /// All elements.
    All,
    /// Elements of a label.
    Label(LabelId),
    /// What these questions to an index find.
    Index {
        /// Its name.
        name: Arc<str>,
        /// The questions, one after the other.
        queries: Vec<IndexQuery>,
    },
}

impl Access {
    /// What these conditions allow to leave out.
    pub fn of<'a>(containers: impl IntoIterator<Item = &'a HasContainer>) -> Access {
        let mut access = Access::default();
        for container in containers {
            match (&container.key, &container.predicate) {
                (HasKey::Label, P::Compare(Comparison::Eq, Value::String(label))) if access.label.is_none() => {
                    access.label = Some(label.clone());
                }
                (HasKey::Label, P::Within(labels)) if access.label.is_none() => {
                    if let [Value::String(label)] = labels.as_slice() {
                        access.label = Some(label.clone());
                    }
                }
                (HasKey::Key(key), predicate) => {
                    if let Some(tests) = tests_of(predicate) {
                        access.tests.push((key.clone(), tests));
                    }
                }
                _ => {}
            }
        }
        access
    }

    /// True if it leaves nothing out.
    pub fn is_all(&self) -> bool {
        self.label.is_none() && self.tests.is_empty() && self.edges.is_none()
    }

    /// The same for who knows of a property what the store does not.
    pub fn without_tests(self) -> Access {
        Access { tests: Vec::new(), ..self }
    }

    /// The best way to read elements of a snapshot.
    pub fn path(&self, snapshot: &Snapshot, elements: ElementKind) -> Path {
        let label = match &self.label {
            None => None,
            Some(name) => match snapshot.label_id(name) {
                Some(label) => Some(label),
                None => return Path::Nothing,
            },
        };
        if self.tests.iter().any(|(key, _)| snapshot.key_id(key).is_none()) {
            return Path::Nothing;
        }
        let count = snapshot.size_hint(elements, label);
        let mut best: Option<(u32, Path)> = None;
        if !self.tests.is_empty() {
            for index in snapshot.indexes() {
                let Some((score, queries)) = self.serve(&index, elements, count) else { continue };
                let answers = queries.iter().all(|query| snapshot.can_answer(query));
                if answers && best.as_ref().is_none_or(|(other, _)| *other < score) {
                    best = Some((score, Path::Index { name: index.definition.name, queries }));
                }
            }
        }
        match (best, elements, label) {
            (Some((_, path)), _, _) => path,
            (None, ElementKind::Vertex, Some(label)) => Path::Label(label),
            // Edges of a label are found at the vertices that they leave, of which each costs a look.
            (None, ElementKind::Edge, Some(label))
                if snapshot.size_hint(ElementKind::Vertex, None)
                    <= snapshot.size_hint(ElementKind::Edge, None).saturating_mul(VERTICES_PER_EDGE) =>
            {
                Path::Label(label)
            }
            (None, ElementKind::Vertex, None) => self.path_of_edges(snapshot, count),
            _ => Path::All,
        }
    }

    /// The way to read the vertices that have the edges that are asked for.
    fn path_of_edges(&self, snapshot: &Snapshot, count: u64) -> Path {
        let Some((direction, labels)) = &self.edges else { return Path::All };
        let known: Vec<LabelId> = labels.iter().filter_map(|label| snapshot.label_id(label)).collect();
        match snapshot.labels_of_ends(*direction, &known).as_deref() {
            Some([]) => Path::Nothing,
            Some([label]) if snapshot.size_hint(ElementKind::Vertex, Some(*label)) <= count / 10 * TENTHS_OF_LABEL => {
                Path::Label(*label)
            }
            _ => Path::All,
        }
    }

    /// The questions by which an index serves the conditions, and how well; `None` if it does not.
    fn serve(&self, index: &IndexInfo, elements: ElementKind, count: u64) -> Option<(u32, Vec<IndexQuery>)> {
        let definition = &index.definition;
        if definition.elements != elements || definition.label.is_some() && definition.label != self.label {
            return None;
        }
        let mut equal = Vec::new();
        let mut tests = vec![IndexTest::Any];
        let mut score = 0;
        for (position, key) in definition.keys.iter().enumerate() {
            let own = || self.tests.iter().filter(|(own, _)| own == key).map(|(_, tests)| tests);
            let is_last = position + 1 == definition.keys.len();
            let single = own().find_map(|tests| match tests.as_slice() {
                [IndexTest::Equal(value)] => Some(value),
                _ => None,
            });
            if let Some(value) = single.filter(|value| !is_last && IndexQuery::may_lead(value)) {
                equal.push(value.clone());
                score += 16;
                continue;
            }
            let is_equality = |tests: &&Vec<IndexTest>| tests.iter().all(|test| matches!(test, IndexTest::Equal(_)));
            if let Some(best) = own().filter(is_equality).min_by_key(|tests| tests.len()) {
                tests = best.clone();
                score += if best.len() == 1 { 16 } else { 12 };
            } else if let Some(best) = own().min_by_key(|tests| tests.iter().map(width).sum::<usize>()) {
                tests = best.clone();
                score += 6;
            }
            break;
        }
        // A wide range over more than the label holds is no better than the label itself.
        let is_narrow = score >= 12 || definition.label == self.label || count.saturating_mul(4) >= index.entries;
        if score == 0 || !is_narrow || definition.kind == IndexKind::Hash && score < 12 {
            return None;
        }
        score += 2 * u32::from(definition.unique) + u32::from(definition.label.is_some());
        score += u32::from(definition.kind == IndexKind::Hash);
        let query = |test: IndexTest| IndexQuery { index: index.number, equal: equal.clone(), test, descending: false };
        Some((score, tests.into_iter().map(query).collect()))
    }
}

/// How much a test lets through, by its kind.
fn width(test: &IndexTest) -> usize {
    match test {
        IndexTest::Equal(_) => 1,
        IndexTest::StartingWith(_) => 4,
        IndexTest::Between { low: Some(_), high: Some(_) } => 8,
        IndexTest::Between { .. } => 64,
        IndexTest::Any => 1024,
    }
}

/// Tests of which one holds wherever the predicate holds; `None` if no index helps.
fn tests_of(predicate: &P) -> Option<Vec<IndexTest>> {
    let between = |low: Option<&Value>, high: Option<&Value>| {
        let known = |value: &&Value| !matches!(value, Value::Null);
        let bounded = low.iter().chain(high.iter()).all(known);
        bounded.then(|| vec![IndexTest::Between { low: low.cloned(), high: high.cloned() }])
    };
    match predicate {
        P::Compare(_, Value::Null) => None,
        P::Compare(Comparison::Eq, value) => Some(vec![IndexTest::Equal(value.clone())]),
        P::Compare(Comparison::Gt | Comparison::Gte, value) => between(Some(value), None),
        P::Compare(Comparison::Lt | Comparison::Lte, value) => between(None, Some(value)),
        P::Text(TextComparison::StartingWith, text) => Some(vec![IndexTest::StartingWith(text.clone())]),
        P::Within(values) if values.len() <= ALTERNATIVES_MAX => {
            let mut tests: Vec<IndexTest> = Vec::with_capacity(values.len());
            for value in values.iter().filter(|value| !matches!(value, Value::Null)) {
                let test = IndexTest::Equal(value.clone());
                if values.len() > 16 || !tests.contains(&test) {
                    tests.push(test);
                }
            }
            Some(tests)
        }
        // All must hold of one value: ends of one range come together, else any of them will do.
        P::And(parts) => {
            let (mut low, mut high, mut other) = (None, None, None);
            for part in parts {
                match part {
                    P::Compare(Comparison::Gt | Comparison::Gte, value) if low.is_none() => low = Some(value),
                    P::Compare(Comparison::Lt | Comparison::Lte, value) if high.is_none() => high = Some(value),
                    part => other = other.or_else(|| tests_of(part)),
                }
            }
            let range = if low.is_some() || high.is_some() { between(low, high) } else { None };
            match (other, range) {
                (Some(other), Some(range)) => {
                    let wide = |tests: &[IndexTest]| tests.iter().map(width).sum::<usize>();
                    Some(if wide(&other) <= wide(&range) { other } else { range })
                }
                (other, range) => other.or(range),
            }
        }
        P::Or(parts) => {
            let mut tests = Vec::new();
            for part in parts {
                tests.extend(tests_of(part)?);
            }
            (tests.len() <= ALTERNATIVES_MAX).then_some(tests)
        }
        _ => None,
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Nothing => f.write_str("nothing: no such label, key or edge"),
            Path::All => f.write_str("scan of all"),
            Path::Label(_) => f.write_str("scan of the label"),
            Path::Index { name, queries } => {
                write!(f, "index {name}")?;
                let describe = |query: &IndexQuery| {
                    let mut parts: Vec<String> = query.equal.iter().map(|value| format!("= {value}")).collect();
                    parts.push(match &query.test {
                        IndexTest::Equal(value) => format!("= {value}"),
                        IndexTest::Between { low: Some(low), high: Some(high) } => format!("{low} to {high}"),
                        IndexTest::Between { low: Some(low), .. } => format!("from {low}"),
                        IndexTest::Between { high: Some(high), .. } => format!("to {high}"),
                        IndexTest::StartingWith(text) => format!("starting with {text}"),
                        _ => "all".to_string(),
                    });
                    parts.join(", ")
                };
                match queries.as_slice() {
                    [query] => write!(f, " [{}]", describe(query)),
                    several => write!(f, " [{} look-ups]", several.len()),
                }
            }
        }
    }
}
