//! Reads the compact form that [`crate::compact`] describes.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use ficus_model::{Cardinality, Value};

use super::long_row::read_line;
use super::record::{EdgeRecord, Pass, PropertyRecord, ReadError, Record, Sink, VertexRecord};
use crate::compact::{self, FIRST_LINE};

/// The longest line accepted.
const LINE_BYTES_MAX: usize = 256 << 20;

/// A vertex whose properties may follow.
struct Open {
    vertex: VertexRecord,
    line: u64,
}

/// Reads all records of `pass`.
pub fn read(input: &mut dyn BufRead, pass: Pass, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let mut open: Option<Open> = None;
    let mut row = Vec::new();
    let mut line = 0;
    loop {
        row.clear();
        let has_line = read_line(input, &mut row, LINE_BYTES_MAX)?;
        if !has_line {
            break;
        }
        line += 1;
        if row.len() > LINE_BYTES_MAX {
            return Err(ReadError::file(line, format!("a line longer than {} MiB", LINE_BYTES_MAX >> 20)));
        }
        let text = std::str::from_utf8(&row).map_err(|_| ReadError::file(line, "not UTF-8"))?;
        if line == 1 && text != FIRST_LINE {
            return Err(ReadError::file(1, format!("the first line should be '{FIRST_LINE}'")));
        }
        let kind = text.split('\t').next().unwrap_or_default();
        if kind != "p"
            && let Some(done) = open.take()
        {
            sink.record(Record::Vertex(finished(done.vertex)), done.line, 1);
        }
        match (kind, pass) {
            ("v", Pass::Vertices) => {
                sink.begin_row(&row)?;
                match vertex(text) {
                    Ok(vertex) => open = Some(Open { vertex, line }),
                    Err(reason) => sink.reject(reason, line, 0),
                }
            }
            ("p", Pass::Vertices) => match (&mut open, property(text)) {
                (Some(open), Ok(property)) => open.vertex.properties.push(property),
                (_, found) => {
                    open = None;
                    let reason = found.err().unwrap_or_else(|| "a property of a vertex that was rejected".into());
                    sink.begin_row(&row)?;
                    sink.reject(reason, line, 0);
                }
            },
            ("e", Pass::Edges) => {
                sink.begin_row(&row)?;
                match edge(text) {
                    Ok(edge) => sink.record(Record::Edge(edge), line, 0),
                    Err(reason) => sink.reject(reason, line, 0),
                }
            }
            ("v" | "p", Pass::Edges) | ("e", Pass::Vertices) => {}
            (other, Pass::Vertices) if !other.is_empty() && !other.starts_with('#') => {
                sink.begin_row(&row)?;
                sink.reject("a line begins with v, p or e".into(), line, 1);
            }
            _ => {}
        }
    }
    if let Some(done) = open {
        sink.record(Record::Vertex(finished(done.vertex)), done.line, 1);
    }
    Ok(())
}

/// Keys that stand more than once hold lists.
fn finished(mut vertex: VertexRecord) -> VertexRecord {
    let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
    for property in &vertex.properties {
        *counts.entry(property.key.clone()).or_default() += 1;
    }
    for property in &mut vertex.properties {
        if counts.get(&property.key).is_some_and(|count| *count > 1) {
            property.cardinality = Cardinality::List;
        }
    }
    vertex
}

fn vertex(text: &str) -> Result<VertexRecord, String> {
    let [_, id, label] = fields(text)?;
    let label = Arc::from(compact::text(label)?);
    Ok(VertexRecord { id: compact::value(id)?, label, properties: Vec::new(), implied: false })
}

fn property(text: &str) -> Result<PropertyRecord, String> {
    let mut fields = text.split('\t').skip(1);
    let mut next = || fields.next().ok_or("a property has id, key and value");
    let (id, key, value) = (next()?, next()?, next()?);
    let id = match id {
        "-" => None,
        number => Some(Value::Long(number.parse().map_err(|_| format!("property id '{number}' is not a number"))?)),
    };
    let meta = pairs(fields)?;
    let key = Arc::from(compact::text(key)?);
    Ok(PropertyRecord { key, value: compact::value(value)?, cardinality: Cardinality::Single, id, meta })
}

fn edge(text: &str) -> Result<EdgeRecord, String> {
    let mut fields = text.split('\t').skip(1);
    let mut next = || fields.next().ok_or("an edge has id, label, source and target");
    let (id, label, out_id, in_id) = (next()?, next()?, next()?, next()?);
    Ok(EdgeRecord {
        id: Some(compact::value(id)?),
        label: Arc::from(compact::text(label)?),
        out_id: compact::value(out_id)?,
        in_id: compact::value(in_id)?,
        properties: pairs(fields)?,
    })
}

fn pairs<'a>(mut fields: impl Iterator<Item = &'a str>) -> Result<Vec<(Arc<str>, Value)>, String> {
    let mut found = Vec::new();
    while let Some(key) = fields.next() {
        let value = fields.next().ok_or_else(|| format!("the key '{key}' has no value"))?;
        found.push((Arc::from(compact::text(key)?), compact::value(value)?));
    }
    Ok(found)
}

fn fields<const COUNT: usize>(text: &str) -> Result<[&str; COUNT], String> {
    let fields: Vec<&str> = text.split('\t').collect();
    let count = fields.len();
    fields.try_into().map_err(|_| format!("{count} fields instead of {COUNT}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::record::testing::collect;

    #[test]
    fn reads_elements() {
        let text = "#ficus-graph 1\nv\ti1\tperson\np\t0\tname\tsa b\np\t5\tcity\tsx\tsince\ti1\np\t6\tcity\tsy\nv\tsb\tx\ne\tl7\tknows\ti1\tsb\tweight\td0.5\n";
        let mut found = collect(|sink| read(&mut text.as_bytes(), Pass::Vertices, sink));
        found.extend(collect(|sink| read(&mut text.as_bytes(), Pass::Edges, sink)));
        assert_eq!(
            found,
            [
                "2:1 vertex Int(1) person name=String(\"a b\")#Long(0) city=String(\"x\")*list#Long(5){since=Int(1)} \
                 city=String(\"y\")*list#Long(6)",
                "6:1 vertex String(\"b\") x",
                "7:0 edge Long(7) knows Int(1)->String(\"b\") weight=Double(0.5)",
            ]
        );
    }

    #[test]
    fn rejects_empty_labels_and_keys() {
        let text = "#ficus-graph 1\nv\ti1\t\nv\ti2\tx\np\t0\t\tsx\nv\ti3\tx\np\t0\tk\tsx\t\ti1\ne\tl7\t\ti1\ti2\ne\tl8\tx\ti1\ti2\t\ti1\n";
        let mut found = collect(|sink| read(&mut text.as_bytes(), Pass::Vertices, sink));
        found.extend(collect(|sink| read(&mut text.as_bytes(), Pass::Edges, sink)));
        assert_eq!(
            found,
            [
                "2:1 reject its label is empty",
                "3:1 reject the key of a property is empty",
                "5:1 reject the key of a property is empty",
                "7:0 reject its label is empty",
                "8:0 reject the key of a property is empty",
            ]
        );
    }

    #[test]
    fn rejects_lines_and_files() {
        let text = "#ficus-graph 1\nv\ti1\np\t0\tname\tsx\nw\n";
        let found = collect(|sink| read(&mut text.as_bytes(), Pass::Vertices, sink));
        assert_eq!(found[0], "2:0 reject 2 fields instead of 3");
        assert_eq!(found[1], "3:0 reject a property of a vertex that was rejected");
        assert_eq!(found[2], "4:1 reject a line begins with v, p or e");
        assert!(collect(|sink| read(&mut &b"v\n"[..], Pass::Vertices, sink))[0].starts_with("1 failed"));
    }
}
