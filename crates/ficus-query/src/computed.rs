//! Properties that a program computed for vertices: those of this query see them beside the stored ones, nobody else does.

use std::sync::Arc;

use ficus_analytics::{Place, Projection};
use ficus_model::{KeyId, StoredVertexProperty, Value, VertexId};

use crate::context::QueryContext;
use crate::logical::Name;

/// Values by place.
#[derive(Debug)]
pub enum ComputedValues {
    /// Numbers.
    Doubles(Vec<f64>),
    /// Vertices, which are seen as their ids.
    Ids(Vec<Place>),
    /// Vertices, which are seen as the texts of their ids.
    IdTexts(Vec<Place>),
}

/// A property of all vertices.
#[derive(Debug)]
struct Column {
    key: Name,
    projection: Arc<Projection>,
    values: ComputedValues,
}

/// The computed properties of a query. One hides a stored one with the same key.
#[derive(Debug, Default)]
pub struct Computed {
    columns: Vec<Column>,
}

impl Computed {
    /// Whether there are none, as in most queries.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Whether there is one of this key.
    pub fn has(&self, key: &str) -> bool {
        self.columns.iter().any(|column| &*column.key == key)
    }

    /// Adds one, in place of an earlier one with the same key.
    pub fn add(&mut self, key: Name, projection: Arc<Projection>, values: ComputedValues) {
        self.columns.retain(|column| column.key != key);
        self.columns.push(Column { key, projection, values });
    }
}

impl QueryContext {
    /// The computed value of a vertex under a key.
    pub fn computed_value(&self, vertex: VertexId, key: &str) -> Option<Value> {
        let column = self.computed.columns.iter().find(|column| &*column.key == key)?;
        self.value_in(column, vertex)
    }

    fn value_in(&self, column: &Column, vertex: VertexId) -> Option<Value> {
        let place = column.projection.place(vertex)? as usize;
        let id_of = |named: Place| self.transaction.vertex_id(column.projection.vertex(named));
        match &column.values {
            ComputedValues::Doubles(doubles) => Some(Value::Double(doubles[place])),
            ComputedValues::Ids(places) => id_of(places[place]),
            ComputedValues::IdTexts(places) => id_of(places[place]).map(|id| Value::String(Arc::from(id.to_string()))),
        }
    }

    /// The computed properties of a vertex; those with this key if one is given.
    pub fn computed_properties(
        &self,
        vertex: VertexId,
        key: Option<&str>,
        mut visit: impl FnMut(StoredVertexProperty),
    ) {
        let columns = self.computed.columns.iter().enumerate();
        for (number, column) in columns.filter(|(_, column)| key.is_none_or(|key| *column.key == *key)) {
            if let Some(value) = self.value_in(column, vertex) {
                visit(StoredVertexProperty {
                    vertex,
                    // Known to no graph.
                    key: KeyId(u32::MAX - number as u32),
                    key_name: column.key.clone(),
                    // Far from those that the store gives, which count from 0.
                    id: u64::MAX - vertex.0.wrapping_mul(64) - number as u64,
                    value,
                });
            }
        }
    }
}
