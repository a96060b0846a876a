//! `values`, `properties`, `id`, `label`, `key`, `value`, `element`: reading elements.

use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_dataflow::{Flow, NodeName, Operator};
use ficus_model::value::PropertyOwner;
use ficus_model::{Element, T, Value};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::elements::KeyRef;
use crate::error::QueryError;
use crate::logical::{Name, Node, PropertyForm};
use crate::operators::per_row::PerRow;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser, work_of};

/// Reads the properties of elements under some keys.
#[derive(Clone)]
pub struct PropertyReader {
    keys: Vec<KeyRef>,
    form: PropertyForm,
    found: Vec<Value>,
}

impl PropertyReader {
    /// A reader of these keys; none: of all.
    pub fn new(keys: &[Name], form: PropertyForm) -> PropertyReader {
        PropertyReader { keys: keys.iter().cloned().map(KeyRef::new).collect(), form, found: Vec::new() }
    }

    /// What the last [`PropertyReader::read`] found.
    pub fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.found)
    }

    /// Gives the room of what was taken back.
    pub fn keep_room(&mut self, room: Vec<Value>) {
        self.found = room;
    }

    /// Reads the properties of `value`, in the store's order.
    ///
    /// Errors: `Invalid` if it is no element.
    pub fn read(&mut self, value: &Value, context: &QueryContext) -> Result<()> {
        self.found.clear();
        match value {
            Value::Vertex(vertex) if self.form == PropertyForm::Value => {
                // Values of vertices need no property objects.
                if !context.computed.is_empty() {
                    context.add_computed(*vertex, &self.keys, |property| self.found.push(property.value));
                }
                if self.keys.is_empty() || !context.computed.is_empty() {
                    let mut records = Vec::new();
                    context.stored_properties(*vertex, &mut self.keys, &mut records);
                    self.found.extend(records.into_iter().map(|record| record.value));
                    return Ok(());
                }
                for key in &mut self.keys {
                    if let Some(id) = key.id(context) {
                        context.transaction.visit_vertex_values(*vertex, id, |value| {
                            self.found.push(value);
                            ControlFlow::Continue(())
                        });
                    }
                }
            }
            // One key of an edge needs none of the others.
            Value::Edge(edge) if self.form == PropertyForm::Value && self.keys.len() == 1 => {
                let id = self.keys.iter_mut().find_map(|key| key.id(context));
                self.found.extend(id.and_then(|id| context.transaction.edge_value(*edge, id)));
            }
            Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) => {
                context.properties(value, &mut self.keys, &mut self.found);
                if self.form == PropertyForm::Value {
                    for property in &mut self.found {
                        if let Some(value) = context.token(property, T::Value) {
                            *property = value;
                        }
                    }
                }
            }
            Value::Element(element) => detached_properties(element, &self.keys, self.form, &mut self.found)?,
            _ => {
                return Err(QueryError::invalid(format!(
                    "{}() needs an element, but the traverser holds a {}",
                    if self.form == PropertyForm::Value { "values" } else { "properties" },
                    value.type_name()
                )));
            }
        }
        Ok(())
    }
}

fn detached_properties(element: &Element, keys: &[KeyRef], form: PropertyForm, out: &mut Vec<Value>) -> Result<()> {
    let wanted = |key: &str| keys.is_empty() || keys.iter().any(|own| &*own.name == key);
    match element {
        Element::Vertex(vertex) => {
            for property in vertex.properties.iter().filter(|property| wanted(&property.key)) {
                out.push(match form {
                    PropertyForm::Value => property.value.clone(),
                    PropertyForm::Property => Value::Element(Arc::new(Element::VertexProperty(property.clone()))),
                });
            }
        }
        Element::Edge(edge) => plain(&edge.properties, wanted, form, out),
        Element::VertexProperty(owner) => plain(&owner.properties, wanted, form, out),
        Element::Property(_) => return Err(QueryError::invalid("a property has no properties")),
    }
    Ok(())
}

fn plain(
    properties: &[ficus_model::DetachedProperty],
    wanted: impl Fn(&str) -> bool,
    form: PropertyForm,
    out: &mut Vec<Value>,
) {
    for property in properties.iter().filter(|property| wanted(&property.key)) {
        out.push(match form {
            PropertyForm::Value => property.value.clone(),
            PropertyForm::Property => Value::Element(Arc::new(Element::Property(property.clone()))),
        });
    }
}

struct PropertiesOperator {
    reader: PropertyReader,
    step: StepInfo,
}

impl Operator<Graphs> for PropertiesOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(mut traverser) = input.pop_front() {
            if self.reader.form == PropertyForm::Value
                && let [key] = self.reader.keys.as_mut_slice()
                && let Value::Edge(edge) = &traverser.value
            {
                // The common case without a list in between. (A vertex may have several.)
                let found = key.id(cx.context).and_then(|key| cx.context.transaction.edge_value(*edge, key));
                if let Some(value) = found {
                    cx.charge(work_of(&value));
                    out.push_back(traverser.move_to(value, &self.step));
                }
            } else {
                traverser.close_path();
                self.reader.read(&traverser.value, cx.context)?;
                cx.charge(self.reader.found.iter().map(work_of).sum());
                out.extend(self.reader.found.drain(..).map(|value| traverser.advance(value, &self.step)));
            }
            if cx.should_pause(out) {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

/// What `id()`, `label()`, `key()` and `value()` yield.
///
/// Errors: `Invalid` where the value has no such part.
pub fn read_token(value: &Value, token: T, context: &QueryContext) -> Result<Value> {
    let found = match (value, token) {
        // Entries of a map have a key and a value too.
        (Value::Entry(entry), T::Key) => Some(entry.0.clone()),
        (Value::Entry(entry), T::Value) => Some(entry.1.clone()),
        (value, token) => context.token(value, token),
    };
    found.ok_or_else(|| QueryError::invalid(format!("{}() cannot be applied to a {}", token.name(), value.type_name())))
}

/// The element a property belongs to.
fn owner(value: &Value) -> Option<Value> {
    match value {
        Value::VertexProperty(property) => Some(Value::Vertex(property.vertex)),
        Value::Property(property) => Some(match &property.owner {
            PropertyOwner::Edge(edge) => Value::Edge(*edge),
            PropertyOwner::VertexProperty(owner) => Value::VertexProperty(owner.clone()),
        }),
        _ => None,
    }
}

/// Adds the operator of a reading node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (NodeName::from(node), step.clone());
    let token = match node {
        Node::Properties { keys, form } => {
            let reader = PropertyReader::new(keys, *form);
            builder.operator(chain, &name, false, move || PropertiesOperator {
                reader: reader.clone(),
                step: step.clone(),
            });
            return Ok(());
        }
        Node::Element => {
            builder.operator(chain, &name, false, move || {
                let step = step.clone();
                PerRow {
                    function: move |traverser: Traverser, _: &mut Cx<'_>| match owner(&traverser.value) {
                        Some(owner) => Ok(Some(traverser.move_to(owner, &step))),
                        None => Err(QueryError::invalid(format!(
                            "element() needs a property, but the traverser holds a {}",
                            traverser.value.type_name()
                        ))),
                    },
                }
            });
            return Ok(());
        }
        Node::Id => T::Id,
        Node::Label => T::Label,
        Node::Key => T::Key,
        Node::ValueOf => T::Value,
        _ => return Err(QueryError::invalid(format!("{node} does not read an element"))),
    };
    builder.operator(chain, &name, false, move || {
        let step = step.clone();
        PerRow {
            function: move |traverser: Traverser, cx: &mut Cx<'_>| {
                let found = read_token(&traverser.value, token, cx.context)?;
                Ok(Some(traverser.move_to(found, &step)))
            },
        }
    });
    Ok(())
}
