//! Ids and integers from the text of a column, without an allocation for the frequent kinds.

use ficus_storage::{IdPrefix, IdPrefixes, LoadId};

use super::fast_table::Unusual;
use super::table::{IdForm, TableKind, TablePlan};
use crate::column_type::ColumnType;

/// Makes ids from the text of a column.
#[derive(Clone, Copy)]
pub struct IdReader<'a> {
    form: &'a IdForm,
    /// The prefix of the ids of a space.
    prefix: Option<IdPrefix>,
    prefixes: &'a IdPrefixes,
}

impl<'a> IdReader<'a> {
    /// Reads ids of a form; the prefixes are those of the load.
    pub fn new(form: &'a IdForm, prefixes: &'a IdPrefixes) -> IdReader<'a> {
        IdReader { form, prefix: form.prefix(prefixes), prefixes }
    }
}

impl IdReader<'_> {
    /// Hands an id to `take`.
    pub fn with<T>(&self, text: &str, scratch: &mut String, take: impl FnOnce(LoadId<'_>) -> T) -> Result<T, Unusual> {
        if text.is_empty() {
            return Err(Unusual);
        }
        let is_as_written = matches!(self.form.kind, ColumnType::String | ColumnType::Long);
        if is_as_written && let Some(id) = self.prefix.and_then(|prefix| self.prefixes.numbered(prefix, text)) {
            return Ok(take(id));
        }
        Ok(match (&self.form.space, self.form.kind) {
            (Some(space), ColumnType::String) => {
                scratch.clear();
                scratch.push_str(space);
                scratch.push(':');
                scratch.push_str(text);
                take(LoadId::Text(scratch))
            }
            (Some(_), _) => take(LoadId::Value(&self.form.id(text).map_err(|_| Unusual)?)),
            (None, ColumnType::String) => take(LoadId::Text(text)),
            (None, ColumnType::Long) => take(LoadId::Long(long(text).ok_or(Unusual)?)),
            (None, ColumnType::Int) => take(LoadId::Int(int(text).ok_or(Unusual)?)),
            (None, kind) => take(LoadId::Value(&kind.parse(text).map_err(|_| Unusual)?)),
        })
    }
}

/// Readers of the columns of a table that hold ids of vertices.
pub struct IdReaders<'a> {
    /// Of the vertex of a row; in a table of edges of their source.
    pub own: IdReader<'a>,
    /// Of the target of edges.
    pub target: IdReader<'a>,
    /// Of foreign keys.
    pub others: Vec<IdReader<'a>>,
}

impl<'a> IdReaders<'a> {
    /// Readers of the columns of a table.
    pub fn new(plan: &'a TablePlan, prefixes: &'a IdPrefixes) -> IdReaders<'a> {
        let reader = |form: &'a IdForm| IdReader::new(form, prefixes);
        match &plan.kind {
            TableKind::Vertices(vertices) => {
                let own = reader(&vertices.id.form);
                let others = vertices.foreign_keys.iter().map(|key| reader(&key.other)).collect();
                IdReaders { own, target: own, others }
            }
            TableKind::Edges(edges) => {
                IdReaders { own: reader(&edges.out.form), target: reader(&edges.r#in.form), others: Vec::new() }
            }
        }
    }
}

/// Digits that always fit 64 bits.
const SAFE_DIGITS: usize = 18;

/// An integer without spaces around it.
pub fn long(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > SAFE_DIGITS {
        return text.parse().ok();
    }
    let mut number = 0i64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return text.parse().ok();
        }
        number = number * 10 + i64::from(digit);
    }
    Some(if negative { -number } else { number })
}

/// As [`long`], of 32 bits.
pub fn int(text: &str) -> Option<i32> {
    i32::try_from(long(text)?).ok()
}
