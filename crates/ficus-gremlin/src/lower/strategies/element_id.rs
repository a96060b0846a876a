//! `ElementIdStrategy`: ids are kept under a property, so that users can choose them where the graph does not let them.

use ficus_model::{P, Shared, T, Value};
use ficus_query::logical::{
    HasContainer, HasKey, LabelledNode, Name, Node, PropertyForm, PropertyWrite, Traversal, ValueOrTraversal, visit,
};

pub(super) fn apply(root: &mut Traversal, id_key: &Name) {
    visit::rewrite(root, &mut |traversal| replace(traversal, id_key));
}

fn replace(traversal: &mut Traversal, id_key: &Name) {
    for LabelledNode { node, .. } in &mut traversal.nodes {
        match node {
            Node::Has { containers } => {
                for container in containers.iter_mut().filter(|container| container.key == HasKey::Id) {
                    container.key = HasKey::Key(id_key.clone());
                }
            }
            Node::Id => *node = Node::Properties { keys: vec![id_key.clone()], form: PropertyForm::Value },
            Node::AddVertex { properties, .. } | Node::AddEdge { properties, .. } => give_id(properties, id_key),
            _ => {}
        }
    }
    let Some(LabelledNode { node: Node::Vertices { ids, all } | Node::Edges { ids, all }, labels }) =
        traversal.nodes.first_mut()
    else {
        return;
    };
    let is_element = |value: &Value| matches!(value, Value::Vertex(_) | Value::Edge(_) | Value::Element(_));
    if ids.first().is_none_or(is_element) {
        return;
    }
    let predicate = P::Within(Shared::new(std::mem::take(ids)));
    *all = true;
    let container = HasContainer { key: HasKey::Key(id_key.clone()), predicate };
    let labels = std::mem::take(labels);
    traversal.nodes.insert(1, LabelledNode { node: Node::Has { containers: vec![container] }, labels });
}

/// A new element has its id under the key: the one it was given, or a new one.
fn give_id(properties: &mut Vec<PropertyWrite>, id_key: &Name) {
    let literal = |value: Value| ValueOrTraversal::Value(value);
    let key = literal(Value::String(id_key.clone()));
    let id = literal(Value::T(T::Id));
    if let Some(property) = properties.iter_mut().find(|property| property.key == id) {
        property.key = key;
    } else if !properties.iter().any(|property| property.key == key) {
        let value = literal(Value::String(uuid::Uuid::new_v4().to_string().into()));
        properties.push(PropertyWrite { cardinality: None, key, value, meta: Vec::new() });
    }
}
