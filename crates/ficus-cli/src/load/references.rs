//! Foreign keys of vertex tables, kept while vertices are read and turned into edges once all vertices are known, so that the
//! file is not read a second time.
//!
//! Only the frequent case is kept: one number per key and row, whose vertex exists. A file with anything else, a rejected row
//! among it, is read again for its edges, by the readers that know how to report what is wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ficus_model::VertexId;
use ficus_storage::{EdgeChunk, IdPrefixes, LoadId, StoreError, VertexDirectory};

use super::table::{ForeignKey, IdForm};
use crate::column_type::ColumnType;

/// Stands where a row names no vertex.
const NOTHING: u64 = u64::MAX;

/// The foreign keys of the rows of one piece of a file: for each row a number per key.
#[derive(Default)]
pub struct References {
    numbers: Vec<u64>,
}

impl References {
    /// A place for the keys of a table, if they are numbers.
    pub fn of(keys: &[ForeignKey], prefixes: &IdPrefixes) -> Option<References> {
        let is_number = |form: &IdForm| match &form.space {
            Some(_) => form.prefix(prefixes).is_some(),
            None => matches!(form.kind, ColumnType::Int | ColumnType::Long),
        };
        (!keys.is_empty() && keys.iter().all(|key| !key.several && is_number(&key.other))).then(References::default)
    }

    /// Adds what a row says in the column of the next key; false if it cannot be kept.
    pub fn push(&mut self, id: Option<LoadId<'_>>) -> bool {
        self.numbers.push(match id {
            None => NOTHING,
            Some(LoadId::Numbered(_, number)) => number,
            Some(LoadId::Long(number)) if number >= 0 => number as u64,
            Some(LoadId::Int(number)) if number >= 0 => number as u64,
            Some(_) => return false,
        });
        true
    }

    /// The edges, if all vertices exist; `first` is the vertex of the first row.
    fn edges(
        &self,
        first: VertexId,
        keys: &[ForeignKey],
        directory: &VertexDirectory,
    ) -> Result<Option<EdgeChunk>, StoreError> {
        let mut chunk = EdgeChunk::new();
        let mut plans = Vec::with_capacity(keys.len());
        for key in keys {
            plans.push((key, key.other.prefix(directory.prefixes()), chunk.label(&key.label)?));
        }
        for (row, numbers) in self.numbers.chunks(keys.len()).enumerate() {
            let own = VertexId(first.0 + row as u64);
            for (number, (key, prefix, label)) in numbers.iter().zip(&plans) {
                if *number == NOTHING {
                    continue;
                }
                let id = prefix.map_or(LoadId::Long(*number as i64), |prefix| LoadId::Numbered(prefix, *number));
                let Some(other) = directory.find(id) else { return Ok(None) };
                let (out, in_) = if key.outgoing { (own, other) } else { (other, own) };
                chunk.begin(*label, out, in_, LoadId::Made)?;
                chunk.end();
            }
        }
        Ok(Some(chunk))
    }
}

/// What the pieces of one file refer to, in their order.
#[derive(Default)]
pub struct FileReferences {
    pieces: Vec<(VertexId, References)>,
    /// True if something could not be kept.
    is_lost: bool,
}

impl FileReferences {
    /// Adds a piece whose first vertex is `first`; `None` if something in it could not be kept.
    pub fn add(&mut self, first: VertexId, references: Option<References>) {
        match references {
            Some(references) if !self.is_lost => self.pieces.push((first, references)),
            _ => *self = FileReferences { pieces: Vec::new(), is_lost: true },
        }
    }

    /// The edges of all rows in their order; `None` if the file has to be read again.
    pub fn edges(
        self,
        keys: &[ForeignKey],
        directory: &VertexDirectory,
        threads: usize,
    ) -> Result<Option<Vec<EdgeChunk>>, StoreError> {
        if self.is_lost || self.pieces.is_empty() {
            return Ok(None);
        }
        let next = AtomicUsize::new(0);
        // Locked while a thread takes a piece or puts down its edges.
        let pieces = Mutex::new(self.pieces.into_iter().map(Some).collect::<Vec<_>>());
        let count = pieces.lock().unwrap_or_else(PoisonError::into_inner).len();
        let made = Mutex::new((0..count).map(|_| None).collect::<Vec<_>>());
        let outcome = Mutex::new(Ok(()));
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, count) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let taken =
                            pieces.lock().unwrap_or_else(PoisonError::into_inner).get_mut(number).map(Option::take);
                        let Some(Some((first, references))) = taken else { return };
                        match references.edges(first, keys, directory) {
                            Ok(Some(chunk)) => {
                                made.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(chunk)
                            }
                            Ok(None) => next.store(count, Ordering::Relaxed),
                            Err(error) => {
                                *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
                                next.store(count, Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
        });
        outcome.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        Ok(made.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect())
    }
}
