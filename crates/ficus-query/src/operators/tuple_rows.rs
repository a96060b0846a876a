//! Rows on their way to `groupCount()` of maps, with the values of their keys made where others can help: as [`keyed_rows`] for `group()`.
//!
//! [`keyed_rows`]: crate::operators::keyed_rows

use ficus_model::Value;

use crate::context::{Cx, Result};
use crate::modulate::{Request, Subject};
use crate::operators::keyed_rows::{Key, MakeValues, PackRows};
use crate::operators::tuples::{Reader, Source, Tuple};
use crate::physical::{Builder, Chain};
use crate::traverser::{Traverser, marks};

struct Keys {
    /// Says what is to be evaluated.
    reader: Reader,
    bys: Vec<Key>,
    requests: Vec<Request>,
}

impl MakeValues for Keys {
    /// The values of a key, and how often it counts.
    fn width(&self) -> usize {
        self.reader.len() + 1
    }

    /// Also if a value is to be left out of the key, it takes more than a look.
    fn add(&mut self, row: &Traverser, pack: &mut Vec<Value>, cx: &mut Cx<'_>) -> Result<bool> {
        self.requests.clear();
        self.reader.requests(row, cx, &mut self.requests)?;
        if self.requests.len() != self.reader.len() {
            return Ok(true);
        }
        let start = pack.len();
        for request in &self.requests {
            let by = &mut self.bys[request.modulator];
            let found = match &request.subject {
                Subject::Current => by.first(&row.value, Some(row), cx)?,
                Subject::Value(value) => by.first(value, None, cx)?,
            };
            match found {
                Some(Some(value)) => pack.push(value),
                unknown => {
                    pack.truncate(start);
                    // A row that lacks a value is dropped, unless its map is one without that entry.
                    return Ok(unknown.is_some() && self.reader.source() != Source::Project);
                }
            }
        }
        pack.push(Value::Long(i64::try_from(row.bulk).unwrap_or(i64::MAX)));
        Ok(true)
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
    let id = builder.operator(chain, "Keys", false, move || {
        PackRows::new(Keys { reader: reader(), bys: bys.clone(), requests: Vec::new() })
    });
    builder.part_of_next(id);
}
