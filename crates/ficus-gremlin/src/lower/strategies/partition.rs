//! `PartitionStrategy`: writes go to one partition, reads see some.

use std::sync::Arc;

use ficus_model::{Comparison, P, Shared, T, Value, ValueMap};
use ficus_query::logical::{
    HasContainer, HasKey, LabelledNode, Name, Node, PropertyForm, PropertyWrite, ScalarFunction, Traversal,
    ValueOrTraversal, visit,
};

use super::super::error::{LowerError, Lowered};
use super::{for_each_by, is_no_vertex_property, line, restrict_key};

/// Where to read and to write.
pub(super) struct Partition<'a> {
    pub(super) key: &'a Name,
    pub(super) write: Option<&'a Value>,
    pub(super) read: &'a [Value],
    pub(super) include_meta_properties: bool,
}

impl Partition<'_> {
    pub(super) fn apply(&self, root: &mut Traversal) -> Lowered {
        let mut failed = None;
        visit::rewrite(root, &mut |traversal| {
            if failed.is_none() {
                failed = self.check(traversal).err();
                self.restrict(traversal);
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// The partition key of vertex properties is hidden, so it cannot be asked for.
    fn check(&self, traversal: &Traversal) -> Lowered {
        let asks = |keys: &[Name]| keys.contains(self.key);
        let asked = traversal.nodes.iter().any(|labelled| match &labelled.node {
            Node::Properties { keys, .. } | Node::PropertyMap { keys, .. } | Node::ElementMap { keys, .. } => {
                asks(keys)
            }
            _ => false,
        });
        if asked && self.include_meta_properties {
            return Err(LowerError::illegal("values", "Cannot explicitly request the partitionKey in the traversal"));
        }
        Ok(())
    }

    fn restrict(&self, traversal: &mut Traversal) {
        let mut restricted: Vec<LabelledNode> = Vec::with_capacity(2 * traversal.nodes.len());
        // Whether a condition on the partition must follow once the conditions of the query are over.
        let mut due = false;
        for mut labelled in std::mem::take(&mut traversal.nodes) {
            if due && !matches!(labelled.node, Node::Has { .. }) {
                self.add_condition(&mut restricted);
                due = false;
            }
            due |= matches!(
                labelled.node,
                Node::Vertices { .. }
                    | Node::Edges { .. }
                    | Node::Adjacent { .. }
                    | Node::OtherVertex
                    | Node::EdgeVertex { .. }
            );
            self.add_writes(&mut labelled.node);
            if self.include_meta_properties {
                self.restrict_properties(labelled, &mut restricted);
            } else {
                restricted.push(labelled);
            }
        }
        if due {
            self.add_condition(&mut restricted);
        }
        traversal.nodes = restricted;
    }

    fn is_read(&self) -> HasContainer {
        HasContainer { key: HasKey::Key(self.key.clone()), predicate: P::Within(Shared::new(self.read.to_vec())) }
    }

    fn add_condition(&self, nodes: &mut Vec<LabelledNode>) {
        match nodes.last_mut() {
            Some(LabelledNode { node: Node::Has { containers }, .. }) => containers.push(self.is_read()),
            _ => nodes.push(Node::Has { containers: vec![self.is_read()] }.into()),
        }
    }

    // ---- properties of vertices ------------------------------------------------------------------------------------

    /// Vertex properties of other partitions are not there, nor is the partition key.
    fn property_filter(&self) -> Vec<Node> {
        let visible = line(vec![Node::Has { containers: vec![self.is_read()] }]);
        let not_the_key = HasContainer {
            key: HasKey::PropertyKey,
            predicate: P::Compare(Comparison::Neq, Value::String(self.key.clone())),
        };
        vec![
            Node::Or { traversals: vec![is_no_vertex_property(), visible] },
            Node::Has { containers: vec![not_the_key] },
        ]
    }

    fn restrict_properties(&self, mut labelled: LabelledNode, nodes: &mut Vec<LabelledNode>) {
        for_each_by(&mut labelled.node, &mut |by, of_group_values| {
            restrict_key(by, of_group_values, self.property_filter());
        });
        match &mut labelled.node {
            Node::Properties { form, .. } => {
                let wanted = std::mem::replace(form, PropertyForm::Property);
                let labels = std::mem::take(&mut labelled.labels);
                nodes.push(labelled);
                nodes.extend(self.property_filter().into_iter().map(LabelledNode::from));
                if wanted == PropertyForm::Value {
                    nodes.push(Node::ValueOf.into());
                }
                if let Some(last) = nodes.last_mut() {
                    last.labels = labels;
                }
            }
            Node::PropertyMap { filter, .. } | Node::ElementMap { filter, .. } => {
                let mut restrict = self.property_filter();
                restrict.extend(filter.take().map(|traversal| Node::Filter { traversal }));
                *filter = Some(line(restrict));
                nodes.push(labelled);
            }
            _ => nodes.push(labelled),
        }
    }

    // ---- writes ----------------------------------------------------------------------------------------------------

    fn add_writes(&self, node: &mut Node) {
        if let Node::MergeVertex { search, on_create, on_match, .. }
        | Node::MergeEdge { search, on_create, on_match, .. } = node
        {
            // Without a partition to write to they find nothing, as what has none is in no partition that can be read.
            let partition = self.write.unwrap_or(&Value::Null);
            let search = search.get_or_insert_with(|| ValueOrTraversal::Traversal(Arc::default()));
            for map in [Some(search), on_create.as_mut(), on_match.as_mut()].into_iter().flatten() {
                self.add_entry(map, partition);
            }
        }
        let Some(partition) = self.write else { return };
        let literal = |value: Value| ValueOrTraversal::Value(value);
        let pair = || (literal(Value::String(self.key.clone())), literal(partition.clone()));
        match node {
            Node::AddVertex { properties, .. } => {
                let (key, value) = pair();
                properties.push(PropertyWrite { cardinality: None, key, value, meta: Vec::new() });
                if self.include_meta_properties {
                    let is_token =
                        |key: &ValueOrTraversal| matches!(key, ValueOrTraversal::Value(Value::T(T::Id | T::Label)));
                    properties.iter_mut().filter(|property| !is_token(&property.key)).for_each(|p| p.meta.push(pair()));
                }
            }
            Node::AddEdge { properties, .. } => {
                let (key, value) = pair();
                properties.push(PropertyWrite { cardinality: None, key, value, meta: Vec::new() });
            }
            Node::AddProperty { property } if self.include_meta_properties => property.meta.push(pair()),
            _ => {}
        }
    }

    /// Adds the partition to a map, or to what a traversal yields as one.
    fn add_entry(&self, map: &mut ValueOrTraversal, partition: &Value) {
        let key = Value::String(self.key.clone());
        match map {
            ValueOrTraversal::Value(Value::Map(entries)) => {
                Shared::make_mut(entries).insert(key, partition.clone());
            }
            ValueOrTraversal::Value(value) => {
                *value = Value::Map(Shared::new([(key, partition.clone())].into_iter().collect()));
            }
            ValueOrTraversal::Traversal(traversal) => {
                let entries: ValueMap = [(key, partition.clone())].into_iter().collect();
                let other = ValueOrTraversal::Value(Value::Map(Shared::new(entries)));
                let merge = Node::Scalar { function: ScalarFunction::Merge { other } };
                Arc::make_mut(traversal).nodes.push(merge.into());
            }
        }
    }
}
