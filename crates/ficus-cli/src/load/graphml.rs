//! GraphML as TinkerPop writes it: `labelV` and `labelE` keys, attribute types boolean, int, long, float, double, string.
//!
//! The file is streamed: nothing but the current node or edge is in memory. Ids are strings unless the command line
//! gives another type. Nodes and edges may stand in any order.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use ficus_model::Value;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::record::{EdgeRecord, Pass, PropertyRecord, ReadError, Record, Sink, VertexRecord};
use crate::column_type::ColumnType;

/// Text of one data element may not be longer than this, and no tag or comment either.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// The longest node or edge accepted, with all its data.
const ELEMENT_BYTES_MAX: usize = 256 << 20;
/// Most keys that may be declared.
const KEYS_MAX: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Node,
    Edge,
}

/// A `<key>` declaration.
struct Key {
    name: Arc<str>,
    kind: ColumnType,
    /// `node`, `edge` or `all`.
    domain: String,
    default: Option<String>,
}

/// The node or edge that is being read.
struct Open {
    kind: Kind,
    line: u64,
    column: u32,
    attributes: HashMap<String, String>,
    data: Vec<(String, String)>,
    /// Bytes of these.
    bytes: usize,
}

/// Reads all records of `pass`; ids are of the type `id_kind`.
pub fn read(input: &mut dyn BufRead, pass: Pass, id_kind: ColumnType, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let mut reader = Reader::from_reader(LineCounter { input, line: 1, column: 1, piece: 0 });
    let mut document = Document { id_kind, pass, keys: HashMap::new(), open: None, text: None, default_of: None };
    let mut buffer = Vec::new();
    loop {
        let (line, column) = (reader.get_ref().line, reader.get_ref().column);
        buffer.clear();
        reader.get_mut().piece = 0;
        let event = reader.read_event_into(&mut buffer);
        let line_after = reader.get_ref().line;
        if reader.get_ref().is_too_long() {
            let limit = TEXT_BYTES_MAX >> 20;
            let what =
                format!("a text, a tag or a comment that begins here is longer than {limit} MiB; does it not end?");
            return Err(ReadError::file(line, what));
        }
        let event = event.map_err(|error| ReadError::file(line_after, format!("not well-formed XML: {error}")))?;
        match event {
            Event::Eof => break,
            Event::Start(element) => document.start(&element, line, column, false, sink)?,
            Event::Empty(element) => document.start(&element, line, column, true, sink)?,
            Event::End(element) => document.end(element.local_name().as_ref(), line_after, sink)?,
            Event::Text(text) => document.text(&text, line_after)?,
            Event::CData(text) => document.text(&text, line_after)?,
            Event::GeneralRef(reference) => {
                let resolved = match reference.resolve_char_ref() {
                    Ok(Some(letter)) => Some(letter.to_string()),
                    Ok(None) => quick_xml::escape::resolve_predefined_entity(&reference).map(str::to_owned),
                    Err(_) => None,
                };
                let resolved =
                    resolved.ok_or_else(|| ReadError::file(line_after, "an entity that XML does not predefine"))?;
                document.text(&resolved, line_after)?;
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    if document.open.is_some() {
        let line = reader.get_ref().line;
        return Err(ReadError::file(line, "the file ends inside a node or an edge; was it cut off?"));
    }
    Ok(())
}

struct Document {
    id_kind: ColumnType,
    pass: Pass,
    keys: HashMap<String, Key>,
    open: Option<Open>,
    /// The key and the text of the `<data>` that is open.
    text: Option<(String, String)>,
    /// The key whose `<default>` may follow, and whether it is open.
    default_of: Option<(String, bool)>,
}

impl Document {
    fn start(
        &mut self,
        element: &BytesStart<'_>,
        line: u64,
        column: u32,
        empty: bool,
        sink: &mut Sink<'_>,
    ) -> Result<(), ReadError> {
        let name = element.local_name();
        let attributes = || attributes(element).map_err(|reason| ReadError::file(line, reason));
        match name.as_ref() {
            "key" => {
                let attributes = attributes()?;
                let id = attributes.get("id").ok_or_else(|| ReadError::file(line, "a <key> without id"))?;
                let kind = attributes.get("attr.type").map_or("string", String::as_str);
                let kind = ColumnType::from_name(kind)
                    .map_err(|reason| ReadError::file(line, format!("key '{id}': {reason}")))?;
                let name = Arc::from(attributes.get("attr.name").unwrap_or(id).as_str());
                let domain = attributes.get("for").cloned().unwrap_or_else(|| "all".into());
                if self.keys.len() >= KEYS_MAX {
                    return Err(ReadError::file(line, format!("more than {KEYS_MAX} keys are declared")));
                }
                self.keys.insert(id.clone(), Key { name, kind, domain, default: None });
                self.default_of = (!empty).then(|| (id.clone(), false));
            }
            "default" => {
                if let Some((_, open)) = &mut self.default_of {
                    *open = true;
                }
            }
            "node" | "edge" => {
                let kind = if name.as_ref() == "node" { Kind::Node } else { Kind::Edge };
                if self.open.is_some() {
                    return Err(ReadError::file(
                        line,
                        "a node or edge inside another; nested graphs are not supported",
                    ));
                }
                self.open = Some(Open { kind, line, column, attributes: attributes()?, data: Vec::new(), bytes: 0 });
                if empty {
                    self.finish(sink)?;
                }
            }
            "data" if self.open.is_some() => {
                let attributes = attributes()?;
                let key = attributes.get("key").ok_or_else(|| ReadError::file(line, "a <data> without key"))?;
                self.text = Some((key.clone(), String::new()));
                if empty {
                    self.close_data(line)?;
                }
            }
            "hyperedge" | "port" => {
                return Err(ReadError::file(
                    line,
                    format!("<{}> has no counterpart in a property graph", name.as_ref()),
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, text: &str, line: u64) -> Result<(), ReadError> {
        let has_room = |before: usize, what: &str| match before + text.len() > TEXT_BYTES_MAX {
            true => Err(ReadError::file(line, format!("{what} longer than {} MiB", TEXT_BYTES_MAX >> 20))),
            false => Ok(()),
        };
        if let Some((_, data)) = &mut self.text {
            has_room(data.len(), "a data element")?;
            data.push_str(text);
        } else if let Some((key, true)) = &self.default_of
            && let Some(key) = self.keys.get_mut(key)
        {
            let default = key.default.get_or_insert_default();
            has_room(default.len(), "a default")?;
            default.push_str(text);
        }
        Ok(())
    }

    fn end(&mut self, name: &str, line: u64, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        match name {
            "key" | "default" => self.default_of = None,
            "data" => self.close_data(line)?,
            "node" | "edge" => self.finish(sink)?,
            _ => {}
        }
        Ok(())
    }

    fn close_data(&mut self, line: u64) -> Result<(), ReadError> {
        if let (Some(data), Some(open)) = (self.text.take(), &mut self.open) {
            open.bytes += data.0.len() + data.1.len() + size_of_val(&data);
            if open.bytes > ELEMENT_BYTES_MAX {
                let limit = ELEMENT_BYTES_MAX >> 20;
                return Err(ReadError::file(line, format!("a node or an edge with more than {limit} MiB of data")));
            }
            open.data.push(data);
        }
        Ok(())
    }

    fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let wanted = if self.pass == Pass::Vertices { Kind::Node } else { Kind::Edge };
        if open.kind != wanted {
            return Ok(());
        }
        sink.begin_row(summary(&open).as_bytes())?;
        let found = match open.kind {
            Kind::Node => self.vertex(&open).map(Record::Vertex),
            Kind::Edge => self.edge(&open).map(Record::Edge),
        };
        match found {
            Ok(record) => sink.record(record, open.line, open.column),
            Err(reason) => sink.reject(reason, open.line, open.column),
        }
        Ok(())
    }

    fn id(&self, open: &Open, attribute: &str) -> Result<Value, String> {
        let text = open.attributes.get(attribute).ok_or_else(|| format!("it has no attribute '{attribute}'"))?;
        self.id_kind.parse(text).map_err(|reason| format!("attribute '{attribute}': {reason}"))
    }

    fn vertex(&self, open: &Open) -> Result<VertexRecord, String> {
        let id = self.id(open, "id")?;
        let (label, properties) = self.properties(open, "labelV", super::neo4j::DEFAULT_LABEL)?;
        let properties = properties.into_iter().map(|(key, value)| PropertyRecord::single(key, value)).collect();
        Ok(VertexRecord { id, label, properties, implied: false })
    }

    fn edge(&self, open: &Open) -> Result<EdgeRecord, String> {
        let id = open.attributes.contains_key("id").then(|| self.id(open, "id")).transpose()?;
        let (out_id, in_id) = (self.id(open, "source")?, self.id(open, "target")?);
        let (label, properties) = self.properties(open, "labelE", "edge")?;
        Ok(EdgeRecord { id, label, out_id, in_id, properties })
    }

    /// The label and the properties of the open element.
    #[allow(clippy::type_complexity, reason = "a pair that one caller takes apart at once")]
    fn properties(
        &self,
        open: &Open,
        label_key: &str,
        default_label: &str,
    ) -> Result<(Arc<str>, Vec<(Arc<str>, Value)>), String> {
        let mut label: Option<Arc<str>> = None;
        let mut properties: Vec<(Arc<str>, Value)> = Vec::with_capacity(open.data.len());
        for (id, text) in &open.data {
            if id == label_key {
                label = Some(Arc::from(text.as_str()));
                continue;
            }
            let key = self.keys.get(id).ok_or_else(|| format!("data of the key '{id}', which is not declared"))?;
            let value = key.kind.parse(text).map_err(|reason| format!("property '{}': {reason}", key.name))?;
            if properties.iter().any(|(name, _)| *name == key.name) {
                return Err(format!("property '{}' is given twice", key.name));
            }
            properties.push((key.name.clone(), value));
        }
        let domain = if open.kind == Kind::Node { "node" } else { "edge" };
        for (id, key) in self.keys.iter().filter(|(_, key)| key.domain == domain || key.domain == "all") {
            let Some(text) = &key.default else { continue };
            if open.data.iter().any(|(given, _)| given == id) {
                continue;
            }
            if id == label_key {
                label.get_or_insert_with(|| Arc::from(text.as_str()));
                continue;
            }
            let value = key.kind.parse(text).map_err(|reason| format!("default of '{}': {reason}", key.name))?;
            properties.push((key.name.clone(), value));
        }
        Ok((label.unwrap_or_else(|| Arc::from(default_label)), properties))
    }
}

fn attributes(element: &BytesStart<'_>) -> Result<HashMap<String, String>, String> {
    let mut found = HashMap::new();
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| format!("a broken attribute: {error}"))?;
        let name = attribute.key.as_ref().to_owned();
        let value =
            quick_xml::escape::unescape(&attribute.value).map_err(|error| format!("attribute '{name}': {error}"))?;
        found.insert(name, value.into_owned());
    }
    Ok(found)
}

/// The element in one line, for the report of rejected rows.
fn summary(open: &Open) -> String {
    let name = if open.kind == Kind::Node { "node" } else { "edge" };
    let mut text = format!("<{name}");
    for attribute in ["id", "source", "target"] {
        if let Some(value) = open.attributes.get(attribute) {
            text.push_str(&format!(" {attribute}=\"{value}\""));
        }
    }
    for (key, value) in &open.data {
        text.push_str(&format!(" {key}=\"{}\"", crate::column_type::shorten(value)));
    }
    text.push('>');
    text
}

/// Counts lines and columns of what has been consumed, and refuses pieces that are too long to be kept.
struct LineCounter<'a> {
    input: &'a mut dyn BufRead,
    line: u64,
    column: u32,
    /// Bytes of the text, tag or comment that is being read.
    piece: usize,
}

impl LineCounter<'_> {
    fn is_too_long(&self) -> bool {
        self.piece > TEXT_BYTES_MAX
    }
}

impl Read for LineCounter<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for LineCounter<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.is_too_long() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
        }
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.piece += amount;
        if let Ok(buffer) = self.input.fill_buf() {
            let used = &buffer[..amount.min(buffer.len())];
            self.line += memchr::memchr_iter(b'\n', used).count() as u64;
            self.column = match memchr::memrchr(b'\n', used) {
                Some(at) => (used.len() - at) as u32,
                None => self.column.saturating_add(used.len() as u32),
            };
        }
        self.input.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::record::testing::collect;

    fn records(text: &str, id_kind: ColumnType) -> Vec<String> {
        let mut found = Vec::new();
        for pass in [Pass::Vertices, Pass::Edges] {
            found.extend(collect(|sink| read(&mut text.as_bytes(), pass, id_kind, sink)));
        }
        found
    }

    const HEAD: &str = concat!(
        "<?xml version=\"1.0\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">",
        "<key id=\"labelV\" for=\"node\" attr.name=\"labelV\" attr.type=\"string\"/>",
        "<key id=\"labelE\" for=\"edge\" attr.name=\"labelE\" attr.type=\"string\"/>",
        "<key id=\"a\" for=\"node\" attr.name=\"age\" attr.type=\"int\"></key>",
        "<key id=\"n\" for=\"node\" attr.name=\"name\"/><graph id=\"G\" edgedefault=\"directed\">\n",
    );

    #[test]
    fn reads_nodes_and_edges() {
        let text = format!(
            "{HEAD}<edge id=\"3\" source=\"1\" target=\"2\"><data key=\"labelE\">knows</data></edge>\n{}",
            concat!(
                "<node id=\"1\"><data key=\"labelV\">person</data><data key=\"a\">29</data>",
                "<data key=\"n\">A&amp;B &#233; <![CDATA[<c>]]></data></node>\n",
                "<node id=\"2\"/></graph></graphml>",
            )
        );
        assert_eq!(
            records(&text, ColumnType::Int),
            [
                "4:1 vertex Int(1) person age=Int(29) name=String(\"A&B é <c>\")",
                "5:1 vertex Int(2) vertex",
                "3:1 edge Int(3) knows Int(1)->Int(2)",
            ]
        );
    }

    #[test]
    fn rejects_elements_and_goes_on() {
        let text = format!(
            "{HEAD}{}",
            concat!(
                "<node id=\"1\"><data key=\"a\">old</data></node>\n<node/>\n<node id=\"2\"><data key=\"zz\">1</data></node>\n",
                "<edge source=\"1\"/></graph></graphml>",
            )
        );
        assert_eq!(
            records(&text, ColumnType::String),
            [
                "3:1 reject property 'age': 'old' is not an int",
                "4:1 reject it has no attribute 'id'",
                "5:1 reject data of the key 'zz', which is not declared",
                "6:1 reject it has no attribute 'target'",
            ]
        );
    }

    /// What is read in pieces, without an end.
    struct Endless {
        head: Vec<u8>,
        repeated: Vec<u8>,
        at: usize,
        read: usize,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.fill_buf()?.read(buffer)?;
            self.consume(count);
            Ok(count)
        }
    }

    impl BufRead for Endless {
        fn fill_buf(&mut self) -> io::Result<&[u8]> {
            if self.at == self.head.len() {
                (self.head, self.at) = (self.repeated.clone(), 0);
            }
            Ok(&self.head[self.at..])
        }

        fn consume(&mut self, amount: usize) {
            self.at += amount;
            self.read += amount;
            assert!(self.read < 2 * ELEMENT_BYTES_MAX, "it reads without end");
        }
    }

    #[test]
    fn what_does_not_end_is_refused_where_it_begins() {
        let long = "a".repeat(1 << 16);
        let value = format!("<data key=\"n\">{long}</data>");
        let cases = [
            ("<node id=\"1\"><data key=\"n\">", long.clone(), "3 failed a text, a tag or a comment that begins here"),
            ("<node id=\"1\"><data key=\"n\">", format!("{long}<x/>"), "a data element longer than 16 MiB"),
            ("<node id=\"", long.clone(), "3 failed a text, a tag or a comment that begins here"),
            ("<!-- ", long.clone(), "3 failed a text, a tag or a comment that begins here"),
            ("<node id=\"1\">", value, "a node or an edge with more than 256 MiB of data"),
            ("<key id=\"d\"><default>", format!("{long}<x/>"), "a default longer than 16 MiB"),
        ];
        for (begun, repeated, expected) in cases {
            let head = format!("{HEAD}{begun}").into_bytes();
            let mut input = Endless { head, repeated: repeated.into_bytes(), at: 0, read: 0 };
            let found = collect(|sink| read(&mut input, Pass::Vertices, ColumnType::String, sink));
            assert!(found.last().is_some_and(|last| last.contains(expected)), "{begun}: {:?}", found.last());
        }
    }

    #[test]
    fn stops_at_broken_xml() {
        let found = records(&format!("{HEAD}<node id=\"1\"></graph>"), ColumnType::String);
        assert!(found[0].starts_with("3 failed not well-formed XML"), "{found:?}");
        let found = records(&format!("{HEAD}<node id=\"1\">"), ColumnType::String);
        assert!(found[0].contains("cut off") || found[0].contains("not well-formed"), "{found:?}");
    }
}
