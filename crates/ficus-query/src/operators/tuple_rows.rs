//! Rows on their way to `groupCount()` of maps, with the values of their keys made where others can help: as [`keyed_rows`] for `group()`.
//!
//! [`keyed_rows`]: crate::operators::keyed_rows

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Shared, Value};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::modulate::{Request, Subject};
use crate::operators::keyed_rows::Key;
use crate::operators::tuples::{Reader, Source, Tuple};
use crate::physical::{Builder, Chain};
use crate::traverser::{Traverser, marks};

/// Keys in one row at most.
const KEYS: usize = 64;

struct PackKeys {
    /// Says what is to be evaluated.
    reader: Reader,
    bys: Vec<Key>,
    requests: Vec<Request>,
    /// The values of a key and how often it counts, one behind the other.
    pack: Vec<Value>,
}

impl PackKeys {
    fn flush(&mut self, out: &mut Traversers) {
        if !self.pack.is_empty() {
            let value = Value::List(Shared::new(std::mem::take(&mut self.pack)));
            out.push_back(Traverser { marks: marks::PACKED, ..Traverser::new(value) });
        }
    }

    /// Packs the key of a row; `false`, and nothing is packed, if that takes more than a look, or if a value is to be left out of it.
    fn add(&mut self, row: &Traverser, cx: &mut Cx<'_>) -> Result<bool> {
        self.requests.clear();
        self.reader.requests(row, cx, &mut self.requests)?;
        if self.requests.len() != self.reader.len() {
            return Ok(true);
        }
        let start = self.pack.len();
        for request in &self.requests {
            let by = &mut self.bys[request.modulator];
            let found = match &request.subject {
                Subject::Current => by.first(&row.value, Some(row), cx)?,
                Subject::Value(value) => by.first(value, None, cx)?,
            };
            match found {
                Some(Some(value)) => self.pack.push(value),
                unknown => {
                    self.pack.truncate(start);
                    // A row that lacks a value is dropped, unless its map is one without that entry.
                    return Ok(unknown.is_some() && self.reader.source() != Source::Project);
                }
            }
        }
        self.pack.push(Value::Long(i64::try_from(row.bulk).unwrap_or(i64::MAX)));
        Ok(true)
    }
}

impl Operator<Graphs> for PackKeys {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if !cx.in_chunk && self.pack.is_empty() {
            out.append(input);
            return Ok(Flow::Ready);
        }
        while let Some(row) = input.pop_front() {
            cx.charge(1);
            if !self.add(&row, cx)? {
                // Keys are counted in the order of their coming.
                self.flush(out);
                out.push_back(row);
            }
            if self.pack.len() >= KEYS * (self.reader.len() + 1) {
                self.flush(out);
            }
            if cx.should_yield(out) {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Flow> {
        self.flush(out);
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.pack.clear();
    }
}

/// The values that a row has packed, for keys of `width` of them, each followed by how often it counts; `None` if it is one like others.
pub fn keys_in(row: &Traverser, width: usize) -> Option<impl Iterator<Item = (&[Value], u64)>> {
    let Value::List(values) = &row.value else { return None };
    let keys = (row.marks & marks::PACKED != 0).then(|| values.chunks_exact(width + 1))?;
    Some(keys.filter_map(|own| match own.split_last() {
        Some((Value::Long(bulk), values)) => Some((values, u64::try_from(*bulk).unwrap_or(0))),
        _ => None,
    }))
}

/// Adds the operator in front of a count of maps, if others may help with what comes to it and all values are made by a look.
pub(super) fn build(
    builder: &mut Builder,
    tuple: &Tuple<'_>,
    reader: impl Fn() -> Reader + Send + Sync + 'static,
    chain: &mut Chain,
) {
    let bys: Option<Vec<Key>> = tuple.bys().iter().map(|by| Key::of(builder, by)).collect();
    let Some(bys) = bys.filter(|bys| bys.iter().any(Key::is_walk)) else { return };
    if builder.requirements().writes || !builder.may_pack_work(chain) {
        return;
    }
    let id = builder.operator(chain, "Keys", false, move || PackKeys {
        reader: reader(),
        bys: bys.clone(),
        requests: Vec::new(),
        pack: Vec::new(),
    });
    builder.part_of_next(id);
}
