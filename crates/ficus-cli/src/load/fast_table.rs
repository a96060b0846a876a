//! Reads the rows of a table straight into chunks, without a [`Record`](super::record::Record) for each.
//!
//! Only the frequent case is handled here: a row without quotes, with the right number of fields, whose texts are values of
//! their columns. Every other row goes to [`TablePlan::read_row`], which alone knows what is wrong with it, and comes back as
//! records or rejections. Both roads give the same; a test compares them.

use std::sync::Arc;

use ficus_model::{Cardinality, OffsetDateTime, Shared, Value, VertexId};
use ficus_storage::{ChunkWord, IdPrefixes, LoadId, LoadProperty, LoadValue, StoreError, VertexDirectory};
use memchr::memchr;

use super::id_reader::{IdReader, IdReaders, int, long};
use super::piece::{Collected, Origin, Piece, PieceBuilder};
use super::record::{Pass, ReadError, Sink};
use super::references::References;
use super::row_chunks::Chunk;
use super::rows::{Dialect, ROW_BYTES_MAX, RowStatus, Rows};
use super::table::{EdgePlan, IdPlan, LabelPlan, PropertyPlan, Shape, TableKind, TablePlan, VertexPlan};
use crate::column_type::ColumnType;

/// How the rows of one file are read in one pass.
pub struct TableReader<'a> {
    /// What columns mean.
    pub plan: &'a TablePlan,
    /// How rows are written.
    pub dialect: Dialect,
    /// What is wanted.
    pub pass: Pass,
    /// The file.
    pub name: Arc<str>,
    /// Finds vertices, once all are known.
    pub directory: Option<&'a VertexDirectory>,
    /// Prefixes of the ids of the load.
    pub prefixes: &'a Arc<IdPrefixes>,
}

/// Counts lines on the way through a piece.
#[derive(Default)]
struct Lines {
    at: usize,
    count: u64,
}

impl Lines {
    /// Lines that end before a place, which may not lie before the last one asked for.
    fn before(&mut self, bytes: &[u8], at: usize) -> u64 {
        self.count += memchr::memchr_iter(b'\n', &bytes[self.at..at]).count() as u64;
        self.at = at;
        self.count
    }
}

/// Finds the ends of the fields of the line at `start`; gives where the next line begins. A line with too many fields is not
/// split to its end.
fn split_line(bytes: &[u8], start: usize, delimiter: u8, columns: usize, ends: &mut Vec<usize>) -> usize {
    ends.clear();
    for at in memchr::memchr2_iter(delimiter, b'\n', &bytes[start..]) {
        let at = start + at;
        if bytes[at] == b'\n' {
            let is_carriage_return = at > start && bytes[at - 1] == b'\r';
            ends.push(if is_carriage_return { at - 1 } else { at });
            return at + 1;
        }
        ends.push(at);
        if ends.len() > columns {
            let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length + 1);
            ends.push(end);
            return end;
        }
    }
    let is_carriage_return = bytes.len() > start && bytes[bytes.len() - 1] == b'\r';
    ends.push(bytes.len() - usize::from(is_carriage_return));
    bytes.len()
}

/// Splits the next row, which has quotes, and writes its fields one after the other with a byte between them.
fn unquote(rows: &mut Rows<&[u8]>, columns: usize, fields: &mut String, ends: &mut Vec<usize>) -> Result<(), Unusual> {
    fields.clear();
    ends.clear();
    if !matches!(rows.next_row(), Ok(RowStatus::Row)) || rows.len() != columns {
        return Err(Unusual);
    }
    for field in (0..columns).filter_map(|column| rows.field(column)) {
        // An empty text in quotes is a value; elsewhere an empty field is none.
        if field.quoted && field.bytes.is_empty() {
            return Err(Unusual);
        }
        fields.push_str(field.text().map_err(|_| Unusual)?);
        ends.push(fields.len());
        fields.push(' ');
    }
    Ok(())
}

/// A row is not of the frequent kind.
pub struct Unusual;

impl From<StoreError> for Unusual {
    fn from(_: StoreError) -> Unusual {
        Unusual
    }
}

impl TableReader<'_> {
    /// Reads a piece of the file that ends where a row ends.
    pub fn read(&self, chunk: Chunk) -> Result<Piece, ReadError> {
        let Chunk { bytes: raw, lines_left_out } = chunk;
        let mut builder = PieceBuilder::new(self.directory, self.prefixes);
        if self.pass == Pass::Vertices {
            builder.references = References::of(self.plan.foreign_keys(), self.prefixes);
        }
        match std::str::from_utf8(&raw) {
            Ok(text) => RowWalk::new(self, text, &mut builder).run()?,
            Err(_) => {
                let mut lines = Lines::default();
                let mut at = 0;
                while at < raw.len() {
                    let lines_before = lines.before(&raw, at);
                    at = self.read_unusual(&raw, at, lines_before, &mut builder)?;
                }
            }
        }
        Ok(builder.finish(Origin::Rows { raw, dialect: self.dialect, lines_left_out }))
    }

    /// Reads one row as records; gives where the next begins.
    fn read_unusual(
        &self,
        raw: &[u8],
        start: usize,
        lines_before: u64,
        builder: &mut PieceBuilder<'_>,
    ) -> Result<usize, ReadError> {
        builder.references = None;
        let mut collected = Collected::default();
        let mut sink = Sink::new(self.name.clone(), &mut collected);
        let mut rows = Rows::new(&raw[start..], self.dialect);
        self.plan.read_row(&mut rows, self.pass, &mut sink)?;
        let next = raw.len() - rows.input().len();
        sink.flush()?;
        let row = start as u32 + rows.skipped() as u32;
        for mut batch in collected.0 {
            for number in 0..batch.items.len() {
                batch.items[number].line += lines_before;
                builder.item(&batch, number, row);
            }
        }
        Ok(next)
    }
}

/// The fields of one row; each begins one byte behind the end of the one before.
#[derive(Clone, Copy)]
struct Fields<'a> {
    text: &'a str,
    start: usize,
    ends: &'a [usize],
}

impl<'a> Fields<'a> {
    fn get(self, column: usize) -> &'a str {
        let start = column.checked_sub(1).map_or(self.start, |before| self.ends[before] + 1);
        &self.text[start..self.ends[column]]
    }
}

/// A walk over the rows of a piece.
struct RowWalk<'a, 'b> {
    reader: &'a TableReader<'a>,
    text: &'a str,
    builder: &'a mut PieceBuilder<'b>,
    /// Where the current row begins.
    start: usize,
    id_text: String,
    ids: IdReaders<'a>,
    /// Ids of edges are texts as they come.
    no_prefixes: IdPrefixes,
    keys: Vec<ChunkWord>,
    /// The label of the last row, and the text that stood for it.
    label: Option<(String, ChunkWord)>,
}

impl<'a, 'b> RowWalk<'a, 'b> {
    fn new(reader: &'a TableReader<'a>, text: &'a str, builder: &'a mut PieceBuilder<'b>) -> RowWalk<'a, 'b> {
        let ids = IdReaders::new(reader.plan, reader.prefixes);
        let (id_text, no_prefixes, keys) = Default::default();
        RowWalk { reader, text, builder, start: 0, id_text, ids, no_prefixes, keys, label: None }
    }

    fn run(mut self) -> Result<(), ReadError> {
        let text = self.text;
        let bytes = text.as_bytes();
        let Dialect { delimiter, quote, comment } = self.reader.dialect;
        let columns = self.reader.plan.columns.len();
        let quote = quote.filter(|quote| memchr(*quote, bytes).is_some());
        let has_keys = self.intern_keys().is_ok();
        let mut lines = Lines::default();
        let mut ends = Vec::new();
        let mut quoted = Rows::new(bytes, self.reader.dialect);
        let mut unquoted = String::new();
        while self.start < bytes.len() {
            let mut next = split_line(bytes, self.start, delimiter, columns, &mut ends);
            let line = &bytes[self.start..ends.last().copied().unwrap_or(next)];
            if line.is_empty() || comment.is_some_and(|comment| line[0] == comment) {
                self.start = next;
                continue;
            }
            // What is longer than a row may be was cut when the file was taken apart.
            let taken = if !has_keys || line.len() > ROW_BYTES_MAX {
                Err(Unusual)
            } else if quote.is_some_and(|quote| memchr(quote, line).is_some()) {
                quoted.restart(&bytes[self.start..]);
                unquote(&mut quoted, columns, &mut unquoted, &mut ends).and_then(|()| {
                    next = bytes.len() - quoted.input().len();
                    self.row(Fields { text: &unquoted, start: 0, ends: &ends })
                })
            } else if ends.len() == columns {
                self.row(Fields { text, start: self.start, ends: &ends })
            } else {
                Err(Unusual)
            };
            if taken.is_err() {
                let lines_before = lines.before(bytes, self.start);
                next = self.reader.read_unusual(bytes, self.start, lines_before, self.builder)?;
            }
            self.start = next;
        }
        Ok(())
    }

    fn intern_keys(&mut self) -> Result<(), Unusual> {
        let properties: &[PropertyPlan] = match (&self.reader.plan.kind, self.reader.pass) {
            (TableKind::Vertices(plan), Pass::Vertices) => &plan.properties,
            (TableKind::Edges(plan), Pass::Edges) => &plan.properties,
            _ => &[],
        };
        for property in properties {
            if property.key.is_empty() {
                return Err(Unusual);
            }
            self.keys.push(match self.reader.pass {
                Pass::Vertices => self.builder.vertices.key(&property.key)?,
                Pass::Edges => self.builder.edges.key(&property.key)?,
            });
        }
        Ok(())
    }

    /// Takes a row; if it is unusual nothing of it is kept.
    fn row(&mut self, fields: Fields<'_>) -> Result<(), Unusual> {
        let plan = &self.reader.plan.kind;
        match (plan, self.reader.pass) {
            (TableKind::Vertices(plan), Pass::Vertices) => self.vertex(plan, fields),
            (TableKind::Vertices(plan), Pass::Edges) => self.foreign_edges(plan, fields),
            (TableKind::Edges(plan), Pass::Vertices) => self.implied(plan, fields),
            (TableKind::Edges(plan), Pass::Edges) => self.edge(plan, fields),
        }
    }

    fn vertex(&mut self, plan: &VertexPlan, fields: Fields<'_>) -> Result<(), Unusual> {
        let label = self.label(&plan.label, fields)?;
        let text = fields.get(plan.id.column);
        let mut scratch = std::mem::take(&mut self.id_text);
        let chunk = &mut self.builder.vertices;
        let begun = self.ids.own.with(text, &mut scratch, |id| chunk.begin(label, id));
        self.id_text = scratch;
        begun??;
        for (index, property) in plan.properties.iter().enumerate() {
            let text = fields.get(property.column);
            if text.is_empty() {
                continue;
            }
            let key = self.keys[index];
            let separator = self.reader.plan.list_separator;
            if put_vertex_property(&mut self.builder.vertices, key, property, text, separator).is_err() {
                self.builder.vertices.abandon();
                return Err(Unusual);
            }
        }
        self.builder.vertices.end();
        self.builder.vertex_places.push(self.start as u32);
        self.keep_references(plan, fields);
        Ok(())
    }

    /// Keeps the foreign keys of a row, or gives up to keep those of the whole piece.
    fn keep_references(&mut self, plan: &VertexPlan, fields: Fields<'_>) {
        let Some(references) = &mut self.builder.references else { return };
        let scratch = &mut self.id_text;
        let is_kept =
            plan.foreign_keys.iter().zip(&self.ids.others).all(|(key, reader)| match fields.get(key.column) {
                "" => references.push(None),
                text => matches!(reader.with(text, scratch, |id| references.push(Some(id))), Ok(true)),
            });
        if !is_kept {
            self.builder.references = None;
        }
    }

    fn implied(&mut self, plan: &EdgePlan, fields: Fields<'_>) -> Result<(), Unusual> {
        let label = self.builder.implied.label(plan.implied_label.as_deref().ok_or(Unusual)?)?;
        let ends = [fields.get(plan.out.column), fields.get(plan.r#in.column)];
        if ends.iter().any(|end| end.is_empty()) {
            return Err(Unusual);
        }
        for (end, reader) in ends.into_iter().zip([self.ids.own, self.ids.target]) {
            let chunk = &mut self.builder.implied;
            // A flaw is reported when the row is read as an edge.
            if let Ok(begun) = reader.with(end, &mut self.id_text, |id| chunk.begin(label, id)) {
                begun?;
                chunk.end();
            }
        }
        Ok(())
    }

    fn foreign_edges(&mut self, plan: &VertexPlan, fields: Fields<'_>) -> Result<(), Unusual> {
        if plan.foreign_keys.iter().all(|key| fields.get(key.column).is_empty()) {
            return Ok(());
        }
        let own = self.find(self.ids.own, fields.get(plan.id.column))?.ok_or(Unusual)?;
        let kept = self.builder.edges.len();
        for (number, key) in plan.foreign_keys.iter().enumerate() {
            let text = fields.get(key.column);
            let reader = self.ids.others[number];
            if text.is_empty() {
                continue;
            }
            let place = |walk: &mut Self, part: &str| -> Result<(), Unusual> {
                let other = walk.find(reader, part)?.ok_or(Unusual)?;
                let (out, in_) = if key.outgoing { (own, other) } else { (other, own) };
                let label = walk.builder.edges.label(&key.label)?;
                walk.builder.edges.begin(label, out, in_, LoadId::Made)?;
                walk.builder.edges.end();
                walk.builder.edge_places.push(walk.start as u32);
                Ok(())
            };
            let placed = if key.several {
                let mut parts = text.split(self.reader.plan.list_separator).filter(|part| !part.is_empty());
                parts.try_for_each(|part| place(self, part))
            } else {
                place(self, text)
            };
            if placed.is_err() {
                while self.builder.edges.len() > kept {
                    self.builder.edges.abandon();
                    self.builder.edge_places.pop();
                }
                return Err(Unusual);
            }
        }
        Ok(())
    }

    fn edge(&mut self, plan: &EdgePlan, fields: Fields<'_>) -> Result<(), Unusual> {
        let out = self.find(self.ids.own, fields.get(plan.out.column))?.ok_or(Unusual)?;
        let in_ = self.find(self.ids.target, fields.get(plan.r#in.column))?.ok_or(Unusual)?;
        let label = self.label(&plan.label, fields)?;
        self.one_edge(plan, fields, label, out, in_, plan.id.as_ref())?;
        if plan.symmetric && self.one_edge(plan, fields, label, in_, out, None).is_err() {
            self.builder.edges.abandon();
            self.builder.edge_places.pop();
            return Err(Unusual);
        }
        Ok(())
    }

    fn one_edge(
        &mut self,
        plan: &EdgePlan,
        fields: Fields<'_>,
        label: ChunkWord,
        out: VertexId,
        in_: VertexId,
        id: Option<&IdPlan>,
    ) -> Result<(), Unusual> {
        match id {
            None => self.builder.edges.begin(label, out, in_, LoadId::Made)?,
            Some(plan) => {
                let text = fields.get(plan.column);
                let chunk = &mut self.builder.edges;
                let reader = IdReader::new(&plan.form, &self.no_prefixes);
                reader.with(text, &mut self.id_text, |id| chunk.begin(label, out, in_, id))??;
            }
        }
        for (index, property) in plan.properties.iter().enumerate() {
            let text = fields.get(property.column);
            if text.is_empty() {
                continue;
            }
            let chunk = &mut self.builder.edges;
            let separator = self.reader.plan.list_separator;
            let key = self.keys[index];
            let put = match property.shape {
                Shape::One | Shape::Member(_) => {
                    with_value(property.kind, text, |value| chunk.property(key, value).map_err(Unusual::from))
                }
                Shape::Array | Shape::Multi(_) => list_of(property.kind, text, separator)
                    .and_then(|list| Ok(chunk.property(key, LoadValue::Value(&list))?)),
            };
            if put.is_err() {
                chunk.abandon();
                return Err(Unusual);
            }
        }
        self.builder.edges.end();
        self.builder.edge_places.push(self.start as u32);
        Ok(())
    }

    fn label(&mut self, plan: &LabelPlan, fields: Fields<'_>) -> Result<ChunkWord, Unusual> {
        let text = match plan {
            LabelPlan::Fixed(_) => "",
            LabelPlan::Column { column, .. } => match fields.get(*column) {
                "" => return Err(Unusual),
                text => text,
            },
        };
        if let Some((last, word)) = &self.label
            && last == text
        {
            return Ok(*word);
        }
        let label = plan.label(text);
        if label.is_empty() {
            return Err(Unusual);
        }
        let word = match self.reader.pass {
            Pass::Vertices => self.builder.vertices.label(&label)?,
            Pass::Edges => self.builder.edges.label(&label)?,
        };
        self.label = Some((text.to_owned(), word));
        Ok(word)
    }

    fn find(&mut self, reader: IdReader<'_>, text: &str) -> Result<Option<VertexId>, Unusual> {
        let directory = self.reader.directory.ok_or(Unusual)?;
        reader.with(text, &mut self.id_text, |id| directory.find(id))
    }
}

/// Hands a value to `take`, made from the text of a column.
fn with_value(
    kind: ColumnType,
    text: &str,
    take: impl FnOnce(LoadValue<'_>) -> Result<(), Unusual>,
) -> Result<(), Unusual> {
    match kind {
        ColumnType::String => take(LoadValue::Text(text)),
        ColumnType::Long => take(LoadValue::Long(long(text).ok_or(Unusual)?)),
        ColumnType::Int => take(LoadValue::Int(int(text).ok_or(Unusual)?)),
        ColumnType::EpochMillis => {
            let millis = long(text).ok_or(Unusual)?;
            take(LoadValue::DateTime(OffsetDateTime {
                epoch_seconds: millis.div_euclid(1000),
                nanos: millis.rem_euclid(1000) as u32 * 1_000_000,
                offset_seconds: 0,
            }))
        }
        kind => take(LoadValue::Value(&kind.parse(text).map_err(|_| Unusual)?)),
    }
}

fn put_vertex_property(
    chunk: &mut ficus_storage::VertexChunk,
    key: ChunkWord,
    plan: &PropertyPlan,
    text: &str,
    separator: char,
) -> Result<(), Unusual> {
    let mut put = |value: LoadValue<'_>, cardinality: Cardinality| -> Result<(), Unusual> {
        Ok(chunk.property(key, LoadProperty { value, cardinality, id: None, meta: &[] })?)
    };
    match plan.shape {
        Shape::One => with_value(plan.kind, text, |value| put(value, Cardinality::Single)),
        Shape::Member(cardinality) => with_value(plan.kind, text, |value| put(value, cardinality)),
        Shape::Array => put(LoadValue::Value(&list_of(plan.kind, text, separator)?), Cardinality::Single),
        Shape::Multi(cardinality) => text
            .split(separator)
            .filter(|part| !part.is_empty())
            .try_for_each(|part| with_value(plan.kind, part, |value| put(value, cardinality))),
    }
}

fn list_of(kind: ColumnType, text: &str, separator: char) -> Result<Value, Unusual> {
    // An empty item is a text or, in lists of another type, no value.
    let items = text.split(separator);
    let values = items.map(|item| kind.parse(item).map_err(|_| Unusual)).collect::<Result<Vec<Value>, Unusual>>()?;
    Ok(Value::List(Shared::new(values)))
}
