//! GraphSON 1 to 3: one vertex per line with its edges, or all vertices wrapped in `{"vertices":[…]}`.
//!
//! Typed values (`{"@type":…}`) and plain JSON may stand anywhere, so the version need not be known. A file usually holds
//! every edge twice, at its source (`outE`) and at its target (`inE`); edges are taken from the side that has more of
//! them, which is told by a count during the vertex pass.

use std::borrow::Cow;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ficus_model::{Cardinality, Shared, Value, ValueMap};
use ficus_wire::{Format, Limits};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::long_row::make_room;
use super::record::{EdgeRecord, Pass, PropertyRecord, ReadError, Record, Sink, VertexRecord};

/// The longest vertex accepted, with all its edges.
const VERTEX_BYTES_MAX: usize = 256 << 20;
/// Plain JSON values nested deeper than this are refused.
const DEPTH_MAX: u32 = 64;

/// Edges by label, each to be read when its turn comes: read, they would take many times of their text.
type EdgeTexts<'a> = IndexMap<Cow<'a, str>, Vec<&'a RawValue>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VertexForm<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow, default)]
    label: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "outE")]
    out_edges: EdgeTexts<'a>,
    #[serde(borrow, default, rename = "inE")]
    in_edges: EdgeTexts<'a>,
    #[serde(borrow, default)]
    properties: IndexMap<Cow<'a, str>, Vec<PropertyForm<'a>>>,
    /// `"type":"vertex"` of GraphSON 1.
    #[serde(default, rename = "type")]
    _kind: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeForm<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "inV")]
    in_vertex: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "outV")]
    out_vertex: Option<&'a RawValue>,
    #[serde(borrow, default)]
    properties: IndexMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PropertyForm<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    value: &'a RawValue,
    #[serde(borrow, default)]
    properties: IndexMap<Cow<'a, str>, &'a RawValue>,
}

/// The envelope of a typed vertex, `{"@type":"g:Vertex","@value":{…}}`.
#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, rename = "@type")]
    kind: Cow<'a, str>,
    #[serde(borrow, rename = "@value")]
    value: &'a RawValue,
}

/// What the vertex pass learns about a file for its edge pass.
#[derive(Debug, Default)]
pub struct EdgeSides {
    out_edges: AtomicU64,
    in_edges: AtomicU64,
}

impl EdgeSides {
    /// Counts the edges of a vertex.
    pub fn count(&self, out_edges: usize, in_edges: usize) {
        self.out_edges.fetch_add(out_edges as u64, Ordering::Relaxed);
        self.in_edges.fetch_add(in_edges as u64, Ordering::Relaxed);
    }

    /// Whether edges are taken from their source: that side has at least as many.
    pub fn are_at_source(&self) -> bool {
        self.out_edges.load(Ordering::Relaxed) >= self.in_edges.load(Ordering::Relaxed)
    }

    /// A warning if the sides disagree and edges may be missing.
    pub fn warning(&self) -> Option<String> {
        let (outs, ins) = (self.out_edges.load(Ordering::Relaxed), self.in_edges.load(Ordering::Relaxed));
        (outs != ins && outs != 0 && ins != 0).then(|| {
            format!("the file lists {outs} edges at their source and {ins} at their target; the larger list is used")
        })
    }
}

/// Reads all records of `pass`.
pub fn read(input: &mut dyn BufRead, pass: Pass, sides: &EdgeSides, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let mut objects = Objects::new(input)?;
    while let Some((line, column)) = objects.next()? {
        let text = &objects.text;
        sink.begin_row(text)?;
        let form = match parse(text) {
            Ok(form) => form,
            Err((inner_line, inner_column, reason)) => {
                if pass == Pass::Vertices {
                    let at = if inner_line == 0 { column + inner_column } else { inner_column };
                    sink.reject(reason, line + inner_line, at);
                }
                continue;
            }
        };
        match pass {
            Pass::Vertices => {
                let count = |edges: &EdgeTexts<'_>| edges.values().map(Vec::len).sum::<usize>();
                sides.count(count(&form.out_edges), count(&form.in_edges));
                match vertex(&form) {
                    Ok(vertex) => sink.record(Record::Vertex(vertex), line, column),
                    Err(reason) => sink.reject(reason, line, column),
                }
            }
            Pass::Edges => {
                let outgoing = sides.are_at_source();
                let edges = if outgoing { &form.out_edges } else { &form.in_edges };
                // A vertex whose id cannot be read was rejected before.
                let Ok(own) = value(form.id) else { continue };
                for (label, edges) in edges {
                    let label: Arc<str> = Arc::from(label.as_ref());
                    for text in edges {
                        match edge(text, &label, &own, outgoing) {
                            Ok(edge) => sink.record(Record::Edge(edge), line, column),
                            Err(reason) => sink.reject(format!("edge '{label}': {reason}"), line, column),
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// Lines before, columns before, why.
type Misfit = (u64, u32, String);

fn parse(text: &[u8]) -> Result<VertexForm<'_>, Misfit> {
    let misfit = |error: serde_json::Error| {
        (error.line().saturating_sub(1) as u64, error.column().saturating_sub(1) as u32, reason(&error))
    };
    let text = std::str::from_utf8(text)
        .map_err(|error| (0, error.valid_up_to() as u32, "not UTF-8 from here on".to_owned()))?;
    if text.contains("\"g:Vertex\"")
        && let Ok(typed) = serde_json::from_str::<Typed<'_>>(text)
        && typed.kind == "g:Vertex"
    {
        return serde_json::from_str(typed.value.get()).map_err(misfit);
    }
    serde_json::from_str(text).map_err(misfit)
}

/// What is wrong, without the place.
fn reason(error: &serde_json::Error) -> String {
    error.to_string().split(" at line ").next().unwrap_or_default().to_owned()
}

fn vertex(form: &VertexForm<'_>) -> Result<VertexRecord, String> {
    let id = value(form.id).map_err(|reason| format!("id: {reason}"))?;
    let label = form.label.as_deref().unwrap_or(super::neo4j::DEFAULT_LABEL);
    let mut properties = Vec::new();
    for (key, values) in &form.properties {
        let cardinality = if values.len() > 1 { Cardinality::List } else { Cardinality::Single };
        let key: Arc<str> = Arc::from(key.as_ref());
        for form in values {
            let found = || -> Result<PropertyRecord, String> {
                let id = form.id.map(value).transpose()?;
                let meta = pairs(&form.properties)?;
                Ok(PropertyRecord { key: key.clone(), value: value(form.value)?, cardinality, id, meta })
            };
            properties.push(found().map_err(|reason| format!("property '{key}': {reason}"))?);
        }
    }
    Ok(VertexRecord { id, label: Arc::from(label), properties, implied: false })
}

fn edge(text: &RawValue, label: &Arc<str>, own: &Value, outgoing: bool) -> Result<EdgeRecord, String> {
    let form: EdgeForm<'_> = serde_json::from_str(text.get()).map_err(|error| reason(&error))?;
    let (other, name) = if outgoing { (form.in_vertex, "inV") } else { (form.out_vertex, "outV") };
    let other = value(other.ok_or_else(|| format!("it has no {name}"))?)?;
    let (out_id, in_id) = if outgoing { (own.clone(), other) } else { (other, own.clone()) };
    Ok(EdgeRecord {
        id: form.id.map(value).transpose()?,
        label: label.clone(),
        out_id,
        in_id,
        properties: pairs(&form.properties)?,
    })
}

fn pairs(forms: &IndexMap<Cow<'_, str>, &RawValue>) -> Result<Vec<(Arc<str>, Value)>, String> {
    forms
        .iter()
        .map(|(key, form)| {
            let value = value(form).map_err(|reason| format!("property '{key}': {reason}"))?;
            Ok((Arc::from(key.as_ref()), value))
        })
        .collect()
}

/// A value in any version of GraphSON.
fn value(raw: &RawValue) -> Result<Value, String> {
    plain_value(raw, 0)
}

fn plain_value(raw: &RawValue, depth: u32) -> Result<Value, String> {
    if depth > DEPTH_MAX {
        return Err(format!("values nested deeper than {DEPTH_MAX} levels"));
    }
    let text = raw.get();
    let complain = |error: serde_json::Error| error.to_string();
    match text.as_bytes().first() {
        Some(b'"') => Ok(Value::String(serde_json::from_str::<Cow<'_, str>>(text).map_err(complain)?.into())),
        Some(b't') => Ok(Value::Bool(true)),
        Some(b'f') => Ok(Value::Bool(false)),
        Some(b'n') => Ok(Value::Null),
        Some(b'[') => {
            let members: Vec<&RawValue> = serde_json::from_str(text).map_err(complain)?;
            let members: Result<Vec<Value>, String> =
                members.into_iter().map(|member| plain_value(member, depth + 1)).collect();
            Ok(Value::List(Shared::new(members?)))
        }
        Some(b'{') => typed_or_map(text, depth),
        _ => number(text).ok_or_else(|| format!("{text} is not a number that fits a value")),
    }
}

fn typed_or_map(text: &str, depth: u32) -> Result<Value, String> {
    let Ok(typed) = serde_json::from_str::<Typed<'_>>(text) else {
        let members: IndexMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut map = ValueMap::default();
        for (key, member) in members {
            map.insert(Value::String(key.into()), plain_value(member, depth + 1)?);
        }
        return Ok(Value::Map(Shared::new(map)));
    };
    let inner = typed.value.get();
    let quick = match typed.kind.as_ref() {
        "g:Int32" => inner.parse().ok().map(Value::Int),
        "g:Int64" => inner.parse().ok().map(Value::Long),
        "g:Double" => inner.parse().ok().map(Value::Double),
        "g:Float" => inner.parse().ok().map(Value::Float),
        _ => None,
    };
    match quick {
        Some(value) => Ok(value),
        None => ficus_wire::decode_value(Format::GraphSon3, text.as_bytes(), &Limits::default())
            .map_err(|error| error.to_string()),
    }
}

/// A bare number: the narrowest of Integer, Long and Double that holds it, as JSON libraries of TinkerPop do.
fn number(text: &str) -> Option<Value> {
    if text.contains(['.', 'e', 'E']) {
        return text.parse().ok().map(Value::Double);
    }
    let whole: i64 = text.parse().ok()?;
    Some(i32::try_from(whole).map_or(Value::Long(whole), Value::Int))
}

/// Cuts the input into its vertex objects, whether they stand one on a line or in a wrapping array.
struct Objects<'a> {
    input: &'a mut dyn BufRead,
    wrapped: bool,
    line: u64,
    column: u32,
    text: Vec<u8>,
    /// What the detection of a wrapper has read of the first line.
    head: Vec<u8>,
}

impl<'a> Objects<'a> {
    fn new(input: &'a mut dyn BufRead) -> Result<Objects<'a>, ReadError> {
        let mut objects = Objects { input, wrapped: false, line: 1, column: 1, text: Vec::new(), head: Vec::new() };
        objects.detect_wrapper()?;
        objects.head = std::mem::take(&mut objects.text);
        Ok(objects)
    }

    /// Reads the first bytes up to what tells `{"vertices":[` from a vertex; the wrapper is passed over.
    fn detect_wrapper(&mut self) -> Result<(), ReadError> {
        const WRAPPER: &[u8] = br#"{"vertices":["#;
        let mut seen = 0;
        while let Some(byte) = self.take_byte()? {
            if byte.is_ascii_whitespace() {
                if seen == 0 {
                    self.text.clear();
                }
                continue;
            }
            if byte != WRAPPER[seen] {
                return Ok(());
            }
            seen += 1;
            if seen == WRAPPER.len() {
                self.wrapped = true;
                self.text.clear();
                return Ok(());
            }
        }
        Ok(())
    }

    fn take_byte(&mut self) -> Result<Option<u8>, ReadError> {
        let Some(&byte) = self.input.fill_buf()?.first() else { return Ok(None) };
        self.input.consume(1);
        self.advance(byte);
        make_room(&mut self.text, 1, VERTEX_BYTES_MAX);
        self.text.push(byte);
        Ok(Some(byte))
    }

    fn advance(&mut self, byte: u8) {
        if byte == b'\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column = self.column.saturating_add(1);
        }
    }

    /// Puts the next object into `text`; gives the place where it begins.
    fn next(&mut self) -> Result<Option<(u64, u32)>, ReadError> {
        if self.wrapped { self.next_in_array() } else { self.next_line() }
    }

    fn next_line(&mut self) -> Result<Option<(u64, u32)>, ReadError> {
        self.text.clear();
        self.text.append(&mut self.head);
        if self.text.last() == Some(&b'\n') {
            self.text.pop();
            return Ok(Some((self.line - 1, 1)));
        }
        loop {
            let mut ended = false;
            let mut any = !self.text.is_empty();
            while !ended {
                let buffer = self.input.fill_buf()?;
                if buffer.is_empty() {
                    break;
                }
                any = true;
                let (part, used) = match memchr::memchr(b'\n', buffer) {
                    Some(at) => (&buffer[..at], at + 1),
                    None => (buffer, buffer.len()),
                };
                ended = used > part.len();
                make_room(&mut self.text, part.len(), VERTEX_BYTES_MAX);
                self.text.extend_from_slice(part);
                self.input.consume(used);
                self.refuse_giants()?;
            }
            if !any {
                return Ok(None);
            }
            self.line += 1;
            if !self.text.trim_ascii().is_empty() {
                return Ok(Some((self.line - 1, 1)));
            }
            self.text.clear();
        }
    }

    fn next_in_array(&mut self) -> Result<Option<(u64, u32)>, ReadError> {
        self.text.clear();
        let mut start = None;
        let mut depth = 0u32;
        let (mut in_string, mut escaped) = (false, false);
        loop {
            let place = (self.line, self.column);
            let Some(byte) = self.take_byte()? else {
                // An unfinished object is reported by whoever parses it.
                return Ok(start);
            };
            self.refuse_giants()?;
            if in_string {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => in_string = true,
                b'{' | b'[' => {
                    depth += 1;
                    start.get_or_insert(place);
                }
                b'}' | b']' => match depth.checked_sub(1) {
                    Some(0) => return Ok(start),
                    Some(less) => depth = less,
                    None => return Ok(None),
                },
                _ => {}
            }
            if start.is_none() {
                self.text.clear();
            }
        }
    }

    fn refuse_giants(&self) -> Result<(), ReadError> {
        if self.text.len() <= VERTEX_BYTES_MAX {
            return Ok(());
        }
        let limit = VERTEX_BYTES_MAX >> 20;
        Err(ReadError::file(self.line, format!("the vertex that ends after this place is longer than {limit} MiB")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::record::testing::collect;

    fn records(text: &str) -> Vec<String> {
        let sides = EdgeSides::default();
        let mut found = Vec::new();
        for pass in [Pass::Vertices, Pass::Edges] {
            found.extend(collect(|sink| {
                // The smallest buffer, so that every token lies across a buffer's edge once.
                let mut input = std::io::BufReader::with_capacity(1, text.as_bytes());
                read(&mut input, pass, &sides, sink)
            }));
        }
        found
    }

    #[test]
    fn a_vertex_that_does_not_end_takes_no_more_than_the_longest_that_is_accepted() {
        for begin in
            [r#"{"id":1,"properties":{"x":[{"value":""#, r#"{"vertices":[{"id":1,"properties":{"x":[{"value":""#]
        {
            let endless = std::io::Read::chain(begin.as_bytes(), std::io::repeat(b'y'));
            let mut input = std::io::BufReader::with_capacity(1 << 20, endless);
            let mut objects = Objects::new(&mut input).expect("it begins well");
            let Err(ReadError::File { reason, .. }) = objects.next() else { panic!("it was accepted") };
            assert!(reason.contains("longer than 256 MiB"), "{reason}");
            let room = objects.text.capacity();
            assert!(room <= VERTEX_BYTES_MAX + (4 << 20), "{room} bytes");
        }
    }

    #[test]
    fn an_edge_that_cannot_be_read_is_rejected_and_its_vertex_is_not() {
        let found = records(r#"{"id":1,"label":"a","outE":{"to":[{"id":1,"inV":1,"colour":2},{"id":2,"inV":1}]}}"#);
        assert_eq!(found.len(), 3, "{found:#?}");
        assert_eq!(found[0], "1:1 vertex Int(1) a");
        assert!(found[1].starts_with("1:1 reject edge 'to': unknown field `colour`"), "{found:#?}");
        assert_eq!(found[2], "1:1 edge Int(2) to Int(1)->Int(1)");
    }

    #[test]
    fn reads_lines_of_version_three() {
        let text = concat!(
            r#"{"id":{"@type":"g:Int32","@value":1},"label":"person","outE":{"knows":[{"id":{"@type":"g:Int64","@value":7},"#,
            r#""inV":{"@type":"g:Int32","@value":2},"properties":{"weight":{"@type":"g:Double","@value":0.5}}}]},"#,
            r#""properties":{"name":[{"id":{"@type":"g:Int64","@value":0},"value":"marko"}]}}"#,
            "\n\n",
            r#"{"id":{"@type":"g:Int32","@value":2},"label":"person","inE":{"knows":[{"id":{"@type":"g:Int64","@value":7},"#,
            r#""outV":{"@type":"g:Int32","@value":1},"properties":{"weight":{"@type":"g:Double","@value":0.5}}}]},"#,
            r#""properties":{"city":[{"id":1,"value":"x","properties":{"since":2001}},{"id":2,"value":"y"}]}}"#,
        );
        assert_eq!(
            records(text),
            [
                "1:1 vertex Int(1) person name=String(\"marko\")#Long(0)",
                "3:1 vertex Int(2) person city=String(\"x\")*list#Int(1){since=Int(2001)} city=String(\"y\")*list#Int(2)",
                "1:1 edge Long(7) knows Int(1)->Int(2) weight=Double(0.5)",
            ]
        );
    }

    #[test]
    fn reads_wrapped_vertices_of_version_one() {
        let text = r#" { "vertices" : [ {"id":1,"label":"a","type":"vertex","properties":{"n":[{"id":5000000000,"value":"}]"}]}},
            {"id":"b","label":"a","inE":{"to":[{"id":3,"outV":1}]}} ] }"#;
        assert_eq!(
            records(text),
            [
                "1:19 vertex Int(1) a n=String(\"}]\")#Long(5000000000)",
                "2:13 vertex String(\"b\") a",
                "2:13 edge Int(3) to Int(1)->String(\"b\")",
            ]
        );
    }

    #[test]
    fn rejects_empty_labels_and_keys() {
        let text = concat!(
            "{\"id\":1,\"label\":\"\"}\n",
            "{\"id\":2,\"properties\":{\"\":[{\"value\":1}]}}\n",
            "{\"id\":3,\"outE\":{\"\":[{\"inV\":3}],\"x\":[{\"inV\":3,\"properties\":{\"\":1}}]}}\n",
        );
        assert_eq!(
            records(text),
            [
                "1:1 reject its label is empty",
                "2:1 reject the key of a property is empty",
                "3:1 vertex Int(3) vertex",
                "3:1 reject its label is empty",
                "3:1 reject the key of a property is empty",
            ]
        );
    }

    #[test]
    fn rejects_what_it_cannot_read_and_goes_on() {
        let text = concat!(
            "{\"id\":1,\"label\":\"a\"\n",
            "{\"id\":2,\"colour\":3}\n",
            "{\"id\":{\"@type\":\"g:Int32\",\"@value\":\"x\"}}\n",
            "{\"id\":4,\"outE\":{\"to\":[{\"id\":1}]}}",
        );
        let found = records(text);
        assert_eq!(found.len(), 5, "{found:#?}");
        assert!(found[0].starts_with("1:") && found[0].contains("EOF"), "{found:#?}");
        assert!(found[1].starts_with("2:") && found[1].contains("unknown field `colour`"), "{found:#?}");
        assert!(found[2].starts_with("3:1 reject id: "), "{found:#?}");
        assert_eq!(found[3], "4:1 vertex Int(4) vertex");
        assert_eq!(found[4], "4:1 reject edge 'to': it has no inV");
    }
}
