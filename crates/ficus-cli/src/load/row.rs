//! A row of a table and its cells, whether they are texts or have types already.

use std::borrow::Cow;
use std::io::BufRead;

use ficus_model::{Shared, Value};

use super::rows::{Field, Rows};
use crate::column_type::{ColumnType, text_form};

/// What a row has in a column.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    /// The text of a field.
    Text(Field<'a>),
    /// A value of a type.
    Typed(&'a Value),
    /// Something that is no value, and why.
    Broken(&'a str),
}

impl<'a> Cell<'a> {
    /// The cell as text; of a value, its text form.
    pub fn text(self) -> Result<Cow<'a, str>, String> {
        match self {
            Cell::Text(field) => field.text().map(Cow::Borrowed),
            Cell::Typed(Value::String(text)) => Ok(Cow::Borrowed(text)),
            Cell::Typed(value) => text_form(value)
                .map(|(_, text)| Cow::Owned(text))
                .ok_or_else(|| format!("a {} has no text", value.type_name())),
            Cell::Broken(reason) => Err(reason.to_owned()),
        }
    }

    /// The cell as a value: text is read as `kind`; a value of another type keeps it if `kind` is text, else its text is read as well.
    pub fn value(self, kind: ColumnType) -> Result<Value, String> {
        match self {
            Cell::Typed(Value::List(values)) => {
                let members = values.iter().map(|value| Cell::Typed(value).value(kind));
                Ok(Value::List(Shared::new(members.collect::<Result<_, _>>()?)))
            }
            Cell::Typed(value)
                if kind == ColumnType::String || text_form(value).is_some_and(|(own, _)| own == kind) =>
            {
                Ok(value.clone())
            }
            cell => kind.parse(&cell.text()?),
        }
    }

    /// The items of a list value: of a text its parts, empty ones too, but none of an empty text.
    pub fn items(self, separator: char) -> Result<Vec<Cell<'a>>, String> {
        match self {
            Cell::Text(field) if !field.bytes.is_empty() => {
                let items = field.text()?.split(separator);
                Ok(items.map(|item| Cell::Text(Field { bytes: item.as_bytes(), ..field })).collect())
            }
            cell => cell.parts(separator),
        }
    }

    /// The cells of its members: of a list its values, of a text its parts that are not empty.
    pub fn parts(self, separator: char) -> Result<Vec<Cell<'a>>, String> {
        match self {
            Cell::Text(field) => {
                let parts = field.text()?.split(separator).filter(|part| !part.is_empty());
                Ok(parts.map(|part| Cell::Text(Field { bytes: part.as_bytes(), ..field })).collect())
            }
            Cell::Typed(Value::List(values)) => Ok(values.iter().map(Cell::Typed).collect()),
            cell => Ok(vec![cell]),
        }
    }

    /// True for an empty text.
    pub fn is_empty(self) -> bool {
        match self {
            Cell::Text(field) => field.bytes.is_empty(),
            Cell::Typed(Value::String(text)) => text.is_empty(),
            Cell::Typed(_) | Cell::Broken(_) => false,
        }
    }
}

/// A row of a table.
pub trait Row {
    /// What is in a column; `None` for nothing.
    fn cell(&self, column: usize) -> Option<Cell<'_>>;
    /// The line in the file, or the number of the row, from 1.
    fn line(&self) -> u64;
    /// Where the column begins in the row, from 1; 0 if it has none.
    fn place(&self, column: usize) -> u32;
}

impl<R: BufRead> Row for Rows<R> {
    fn cell(&self, column: usize) -> Option<Cell<'_>> {
        // An empty field is null unless it stood in quotes.
        let field = self.field(column).filter(|field| field.quoted || !field.bytes.is_empty());
        field.map(Cell::Text)
    }

    fn line(&self) -> u64 {
        Rows::line(self)
    }

    fn place(&self, column: usize) -> u32 {
        self.field(column).map_or(0, |field| field.column)
    }
}
