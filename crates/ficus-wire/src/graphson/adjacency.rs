//! Reads and writes a vertex with its edges, a line of a GraphSON file.

use std::sync::Arc;

use ficus_model::Value;
use indexmap::IndexMap;

use super::json_reader::Result;
use super::reader::Reader;
use super::writer::{self, Writer};
use crate::graph_io::{AdjacentEdge, AdjacentVertex};

const HASH_MAP: &str = "java.util.HashMap";

impl Reader<'_> {
    pub(crate) fn adjacent_vertex(&mut self) -> Result<AdjacentVertex> {
        let mut id = None;
        let mut label: Arc<str> = "vertex".into();
        let mut properties = Vec::new();
        let (mut out_edges, mut in_edges) = (Vec::new(), Vec::new());
        self.members(|reader, key| {
            match &*key {
                "id" => id = Some(reader.value()?),
                "label" => label = reader.json.string("a label")?.into(),
                "properties" => properties = reader.vertex_properties()?,
                "outE" => out_edges = reader.adjacent_edges("inV")?,
                "inE" => in_edges = reader.adjacent_edges("outV")?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        let id = self.required(id, "a vertex's id")?;
        Ok(AdjacentVertex { id, label, properties, out_edges, in_edges })
    }

    /// `{"knows":[{"id":7,"inV":2,"properties":{…}}]}`; `other_end` is `inV` or `outV`.
    fn adjacent_edges(&mut self, other_end: &str) -> Result<Vec<AdjacentEdge>> {
        let mut edges = Vec::new();
        self.members(|reader, label| {
            if &*label == "@class" {
                return reader.json.skip_value();
            }
            let label: Arc<str> = label.into();
            reader.list_elements(|reader| {
                edges.push(reader.adjacent_edge(&label, other_end)?);
                Ok(())
            })
        })?;
        Ok(edges)
    }

    fn adjacent_edge(&mut self, label: &Arc<str>, other_end: &str) -> Result<AdjacentEdge> {
        let (mut id, mut other_id) = (Value::Null, None);
        let mut properties = Vec::new();
        self.json.count_item()?;
        self.members(|reader, key| {
            match &*key {
                "id" => id = reader.value()?,
                "properties" => properties = reader.properties()?,
                end if end == other_end => other_id = Some(reader.value()?),
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        let other_id = self.required(other_id, "the vertex at the other end of an edge")?;
        Ok(AdjacentEdge { id, label: label.clone(), other_id, properties })
    }
}

impl Writer<'_> {
    pub(crate) fn adjacent_vertex(&mut self, vertex: &AdjacentVertex) -> writer::Result {
        let mut first = self.open_object(HASH_MAP);
        self.key("id", &mut first);
        self.value(&vertex.id)?;
        self.key("label", &mut first);
        self.string(&vertex.label);
        for (key, other_end, edges) in [("inE", "outV", &vertex.in_edges), ("outE", "inV", &vertex.out_edges)] {
            if !edges.is_empty() {
                self.key(key, &mut first);
                self.adjacent_edges(edges, other_end)?;
            }
        }
        if !vertex.properties.is_empty() {
            self.key("properties", &mut first);
            self.bare_vertex_properties(&vertex.properties)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn adjacent_edges(&mut self, edges: &[AdjacentEdge], other_end: &str) -> writer::Result {
        let mut by_label: IndexMap<&str, Vec<&AdjacentEdge>> = IndexMap::new();
        for edge in edges {
            by_label.entry(&edge.label).or_default().push(edge);
        }
        let mut first = self.open_object(HASH_MAP);
        for (label, edges) in by_label {
            self.key(label, &mut first);
            self.bare_array(edges, |writer, edge| {
                let mut first = writer.open_object(HASH_MAP);
                writer.key("id", &mut first);
                writer.value(&edge.id)?;
                writer.key(other_end, &mut first);
                writer.value(&edge.other_id)?;
                if !edge.properties.is_empty() {
                    writer.key("properties", &mut first);
                    writer.values_by_key(&edge.properties)?;
                }
                writer.out.push(b'}');
                Ok(())
            })?;
        }
        self.out.push(b'}');
        Ok(())
    }
}
