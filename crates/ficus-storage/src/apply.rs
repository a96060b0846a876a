//! Turns one root into the next, by a record that the resolver let pass.
//!
//! Applying uses no clock, no randomness and no hash-map order: the same log gives the same graph.

use ficus_model::{KeyId, LabelId, Value};

use crate::EdgeRecord;
use crate::mutation::{GraphWrite, Mutation, WordRef};
use crate::root::{GraphRoot, RootProperty};
use crate::string_pool::StringPool;

/// Applies a write that [`crate::resolver::Resolver::check`] accepted against this very root.
pub(crate) fn apply_write(write: GraphWrite, root: &mut GraphRoot, strings: &mut StringPool) {
    root.next_ids.user_id = root.next_ids.user_id.max(write.next_user_id);
    let count = write.words.len();
    let mut words = RecordNumbers { labels: vec![None; count], keys: vec![None; count], texts: write.words };
    for mutation in write.mutations {
        apply_mutation(mutation, root, &mut words, strings);
    }
}

/// What the words of a record are called in the root.
struct RecordNumbers {
    texts: Vec<std::sync::Arc<str>>,
    labels: Vec<Option<LabelId>>,
    keys: Vec<Option<KeyId>>,
}

impl RecordNumbers {
    fn label(&mut self, word: WordRef, root: &mut GraphRoot) -> LabelId {
        let position = word as usize;
        *self.labels[position].get_or_insert_with(|| root.words.intern_label(&self.texts[position]))
    }

    fn key(&mut self, word: WordRef, root: &mut GraphRoot) -> KeyId {
        let position = word as usize;
        *self.keys[position].get_or_insert_with(|| root.words.intern_key(&self.texts[position]))
    }

    fn properties(
        &mut self,
        properties: Vec<(WordRef, Value)>,
        root: &mut GraphRoot,
        strings: &mut StringPool,
    ) -> Vec<(KeyId, Value)> {
        properties.into_iter().map(|(key, value)| (self.key(key, root), strings.share(value))).collect()
    }
}

fn apply_mutation(mutation: Mutation, root: &mut GraphRoot, words: &mut RecordNumbers, strings: &mut StringPool) {
    match mutation {
        Mutation::AddVertex { vertex, label, id, properties } => {
            let label = words.label(label, root);
            let mut made = Vec::with_capacity(properties.len());
            for property in properties {
                let key = words.key(property.key, root);
                let meta = words.properties(property.meta, root, strings);
                made.push(RootProperty { id: property.id, key, value: strings.share(property.value), meta });
            }
            root.insert_vertex(vertex, label, id, made);
        }
        Mutation::AddEdge { edge, label, out, in_, id, properties } => {
            let label = words.label(label, root);
            let properties = match properties.is_empty() {
                true => None,
                false => Some(words.properties(properties, root, strings).into()),
            };
            root.insert_edge(edge, EdgeRecord { label, out, in_ }, id, properties);
        }
        Mutation::SetVertexProperty { vertex, property, key, value, cardinality } => {
            let key = words.key(key, root);
            root.set_vertex_property(vertex, key, strings.share(value), cardinality, property);
        }
        Mutation::SetMetaProperty { vertex, property, key, value } => {
            let key = words.key(key, root);
            root.set_meta_property(vertex, property, key, strings.share(value));
        }
        Mutation::SetEdgeProperty { edge, key, value } => {
            let key = words.key(key, root);
            root.set_edge_property(edge, key, strings.share(value));
        }
        Mutation::RemoveVertex { vertex } => {
            for edge in root.edges_of(vertex) {
                root.remove_edge(edge);
            }
            root.remove_vertex(vertex);
        }
        Mutation::RemoveEdge { edge } => {
            root.remove_edge(edge);
        }
        Mutation::RemoveVertexProperty { vertex, property } => {
            root.remove_vertex_properties(vertex, |entry| entry.id() == property);
        }
        Mutation::RemoveMetaProperty { vertex, property, key } => {
            let key = words.key(key, root);
            root.remove_meta_property(vertex, property, key);
        }
        Mutation::RemoveEdgeProperty { edge, key } => {
            let key = words.key(key, root);
            root.remove_edge_property(edge, key);
        }
    }
}
