//! Writes graph elements, paths, graphs and metrics in GraphSON.

use ficus_model::{
    DetachedEdge, DetachedProperty, DetachedVertex, DetachedVertexProperty, Element, Metrics, Path, Subgraph,
    TraversalMetrics, Value,
};
use indexmap::IndexMap;

use super::Version;
use super::writer::{Result, Writer};

const HASH_MAP: &str = "java.util.HashMap";
/// Properties of one vertex that are searched for equal keys one by one; more are gathered by key first.
const SCAN_MAX: usize = 16;
const ARRAY_LIST: &str = "java.util.ArrayList";

impl Writer<'_> {
    pub(super) fn element(&mut self, element: &Element) -> Result {
        match element {
            Element::Vertex(vertex) => self.vertex(vertex),
            Element::Edge(edge) => self.edge(edge),
            Element::VertexProperty(property) => {
                self.typed("g:VertexProperty", "", |writer| writer.vertex_property(property, true))
            }
            Element::Property(property) => self.property(property),
        }
    }

    fn is_first_version(&self) -> bool {
        self.style.version == Version::V1
    }

    fn vertex(&mut self, vertex: &DetachedVertex) -> Result {
        self.typed("g:Vertex", "", |writer| {
            let mut first = writer.open_object(HASH_MAP);
            writer.key("id", &mut first);
            writer.value(&vertex.id)?;
            writer.key("label", &mut first);
            writer.string(&vertex.label);
            if writer.is_first_version() {
                writer.raw(",\"type\":\"vertex\"");
            }
            if writer.is_first_version() || !vertex.properties.is_empty() {
                writer.key("properties", &mut first);
                writer.vertex_properties(&vertex.properties)?;
            }
            writer.out.push(b'}');
            Ok(())
        })
    }

    fn vertex_properties(&mut self, properties: &[DetachedVertexProperty]) -> Result {
        if self.is_first_version() {
            return self.bare_vertex_properties(properties);
        }
        self.properties_by_key(properties, |writer, same_key| {
            writer.array(same_key, |writer, property| {
                writer.typed("g:VertexProperty", "", |writer| writer.vertex_property(property, true))
            })
        })
    }

    /// Vertex properties without type and label, as GraphSON 1.0 and the lines of a file have them.
    pub(super) fn bare_vertex_properties(&mut self, properties: &[DetachedVertexProperty]) -> Result {
        self.properties_by_key(properties, |writer, same_key| {
            writer.bare_array(same_key, |writer, property| writer.vertex_property(property, false))
        })
    }

    /// An array without a type name, but with its class in GraphSON 1.0.
    pub(super) fn bare_array<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        one: impl FnMut(&mut Self, T) -> Result,
    ) -> Result {
        if self.has_java_classes() {
            return self.typed("", ARRAY_LIST, |writer| writer.array(items, one));
        }
        self.array(items, one)
    }

    /// Properties by key, in the order of each key's first appearance.
    fn properties_by_key(
        &mut self,
        properties: &[DetachedVertexProperty],
        array: impl Fn(&mut Self, &mut dyn Iterator<Item = &DetachedVertexProperty>) -> Result,
    ) -> Result {
        let mut first = self.open_object(HASH_MAP);
        if properties.len() <= SCAN_MAX {
            for (index, property) in properties.iter().enumerate() {
                let is_same = |other: &&DetachedVertexProperty| other.key == property.key;
                if !properties[..index].iter().any(|earlier| is_same(&earlier)) {
                    self.key(&property.key, &mut first);
                    array(self, &mut properties[index..].iter().filter(is_same))?;
                }
            }
        } else {
            let mut by_key: IndexMap<&str, Vec<&DetachedVertexProperty>> = IndexMap::new();
            for property in properties {
                by_key.entry(&property.key).or_default().push(property);
            }
            for (key, properties) in by_key {
                self.key(key, &mut first);
                array(self, &mut properties.into_iter())?;
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn vertex_property(&mut self, property: &DetachedVertexProperty, with_label: bool) -> Result {
        let mut first = self.open_object(HASH_MAP);
        self.key("id", &mut first);
        self.value(&property.id)?;
        self.key("value", &mut first);
        self.value(&property.value)?;
        if with_label {
            self.key("label", &mut first);
            self.string(&property.key);
        }
        if !property.properties.is_empty() {
            self.key("properties", &mut first);
            self.values_by_key(&property.properties)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// `{"startTime":1990}`.
    pub(super) fn values_by_key(&mut self, properties: &[DetachedProperty]) -> Result {
        let mut first = self.open_object(HASH_MAP);
        for property in properties {
            self.key(&property.key, &mut first);
            self.value(&property.value)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn edge(&mut self, edge: &DetachedEdge) -> Result {
        self.typed("g:Edge", "", |writer| {
            let mut first = writer.open_object(HASH_MAP);
            writer.key("id", &mut first);
            writer.value(&edge.id)?;
            writer.key("label", &mut first);
            writer.string(&edge.label);
            if writer.is_first_version() {
                writer.raw(",\"type\":\"edge\"");
            }
            writer.key("inVLabel", &mut first);
            writer.string(&edge.in_label);
            writer.key("outVLabel", &mut first);
            writer.string(&edge.out_label);
            writer.key("inV", &mut first);
            writer.value(&edge.in_id)?;
            writer.key("outV", &mut first);
            writer.value(&edge.out_id)?;
            if !edge.properties.is_empty() {
                writer.key("properties", &mut first);
                writer.edge_properties(&edge.properties)?;
            }
            writer.out.push(b'}');
            Ok(())
        })
    }

    fn edge_properties(&mut self, properties: &[DetachedProperty]) -> Result {
        if self.is_first_version() {
            return self.values_by_key(properties);
        }
        self.out.push(b'{');
        let mut first = true;
        for property in properties {
            self.key(&property.key, &mut first);
            self.property(property)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn property(&mut self, property: &DetachedProperty) -> Result {
        self.typed("g:Property", "", |writer| {
            let mut first = writer.open_object(HASH_MAP);
            writer.key("key", &mut first);
            writer.string(&property.key);
            writer.key("value", &mut first);
            writer.value(&property.value)?;
            writer.out.push(b'}');
            Ok(())
        })
    }

    pub(super) fn path(&mut self, path: &Path) -> Result {
        self.typed("g:Path", "", |writer| {
            let mut first = writer.open_object(HASH_MAP);
            writer.key("labels", &mut first);
            writer.typed_collection("g:List", ARRAY_LIST, |writer| {
                writer.array(path.labels(), |writer, labels| {
                    writer.typed_collection("g:Set", "java.util.LinkedHashSet", |writer| {
                        writer.array(labels.iter(), |writer, label| {
                            writer.string(label);
                            Ok(())
                        })
                    })
                })
            })?;
            writer.key("objects", &mut first);
            writer.list(path.objects.iter())?;
            writer.out.push(b'}');
            Ok(())
        })
    }

    pub(super) fn graph(&mut self, graph: &Subgraph) -> Result {
        self.typed("tinker:graph", "", |writer| {
            let mut first = writer.open_object("org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph");
            for (key, elements) in [("vertices", &graph.vertices), ("edges", &graph.edges)] {
                writer.key(key, &mut first);
                writer.bare_array(elements, |writer, element| writer.element(element))?;
            }
            writer.out.push(b'}');
            Ok(())
        })
    }

    pub(super) fn traversal_metrics(&mut self, metrics: &TraversalMetrics) -> Result {
        self.typed("g:TraversalMetrics", "", |writer| {
            writer.metrics_map(|writer, first| {
                writer.metrics_key("dur", first);
                writer.milliseconds(metrics.duration_ns)?;
                writer.metrics_key("metrics", first);
                writer.metrics_list(&metrics.metrics)
            })
        })
    }

    fn metrics_list(&mut self, metrics: &[Metrics]) -> Result {
        self.typed_collection("g:List", ARRAY_LIST, |writer| {
            writer.array(metrics, |writer, one| writer.nested(|writer| writer.metrics(one)))
        })
    }

    fn metrics(&mut self, metrics: &Metrics) -> Result {
        self.typed("g:Metrics", "", |writer| {
            writer.metrics_map(|writer, first| {
                writer.metrics_key("dur", first);
                writer.milliseconds(metrics.duration_ns)?;
                writer.metrics_key("counts", first);
                writer.metrics_map(|writer, first| {
                    for (name, count) in &metrics.counts {
                        writer.metrics_key(name, first);
                        writer.value(&Value::Long(*count))?;
                    }
                    Ok(())
                })?;
                writer.metrics_key("name", first);
                writer.string(&metrics.name);
                if !metrics.annotations.is_empty() {
                    writer.metrics_key("annotations", first);
                    writer.metrics_map(|writer, first| {
                        for (name, value) in &metrics.annotations {
                            writer.metrics_key(name, first);
                            writer.value(value)?;
                        }
                        Ok(())
                    })?;
                }
                writer.metrics_key("id", first);
                writer.string(&metrics.id);
                if !metrics.nested.is_empty() {
                    writer.metrics_key("metrics", first);
                    writer.metrics_list(&metrics.nested)?;
                }
                Ok(())
            })
        })
    }

    fn milliseconds(&mut self, duration_ns: u64) -> Result {
        self.value(&Value::Double(duration_ns as f64 / 1e6))
    }

    /// A map with string keys, in the form that the version gives maps.
    pub(super) fn metrics_map(&mut self, inside: impl FnOnce(&mut Self, &mut bool) -> Result) -> Result {
        if self.has_flat_maps() {
            return self.typed("g:Map", "", |writer| {
                writer.out.push(b'[');
                inside(writer, &mut true)?;
                writer.out.push(b']');
                Ok(())
            });
        }
        let mut first = self.open_object(HASH_MAP);
        inside(self, &mut first)?;
        self.out.push(b'}');
        Ok(())
    }

    /// The next key of such a map.
    pub(super) fn metrics_key(&mut self, key: &str, first: &mut bool) {
        if self.has_flat_maps() {
            self.comma(first);
            self.string(key);
            self.out.push(b',');
        } else {
            self.key(key, first);
        }
    }

    /// Whether maps are keys and values in turn.
    fn has_flat_maps(&self) -> bool {
        self.style.typed && self.style.version == Version::V3
    }
}
