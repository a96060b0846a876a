//! What a declared type and a unique index demand of one element, and the errors that say so.

use std::collections::HashSet;
use std::sync::Arc;

use ficus_model::{Cardinality, Direction, EdgeId, KeyId, LabelId, Value, VertexId};

use super::{Attribute, DeclaredType, Multiplicity, TypeMode, TypeState};
use crate::index::{ElementKind, Index, collisions};
use crate::root::GraphRoot;
use crate::{EdgeRecord, IndexState, Snapshot, StoreError};

impl DeclaredType {
    /// An error that names type, property, expected and given.
    pub(crate) fn violation(&self, property: &str, expected: impl Into<String>, given: &str) -> StoreError {
        StoreError::SchemaViolation {
            type_name: self.definition.to_string(),
            property: property.to_string(),
            expected: expected.into(),
            given: given.to_string(),
        }
    }

    /// The declaration of an attribute, by its name; an error if a strict type has none.
    fn declaration(&self, key: &str, given: &str) -> Result<Option<&Attribute>, StoreError> {
        match self.definition.attribute(key) {
            None if self.definition.mode == TypeMode::Strict => {
                let names: Vec<&str> = self.definition.attributes.iter().map(|own| &*own.key).collect();
                Err(self.violation(key, format!("one of the attributes [{}]", names.join(", ")), given))
            }
            found => Ok(found),
        }
    }

    /// The value in the type that is declared for the key.
    pub(crate) fn take_value(&self, key: &str, value: Value) -> Result<Value, StoreError> {
        let given = value.type_name();
        let Some(attribute) = self.declaration(key, given)? else { return Ok(value) };
        attribute.value_type.take(value).ok_or_else(|| self.violation(key, attribute.value_type.name(), given))
    }

    /// Refuses a value that is not exactly of the declared type.
    pub(crate) fn check_value(&self, key: &str, value: &Value) -> Result<(), StoreError> {
        match self.declaration(key, value.type_name())? {
            Some(attribute) if !attribute.value_type.holds(value) => {
                Err(self.violation(key, attribute.value_type.name(), value.type_name()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses new elements of a type that is being dropped.
    pub(crate) fn check_alive(&self) -> Result<(), StoreError> {
        match self.state {
            TypeState::Dropping => Err(StoreError::InvalidSchema {
                what: self.definition.to_string(),
                reason: "it is being dropped and takes no new elements until that is done".to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// True if an element must have the attribute.
    fn is_required(&self, key: &str) -> bool {
        self.definition.primary_key.iter().any(|own| **own == *key)
            || self.definition.attribute(key).is_some_and(|own| !own.nullable)
    }

    /// Refuses an element without a value that it must have, or with too many; `count` tells how many it has under a key.
    pub(crate) fn check_counts(&self, count: &dyn Fn(&str) -> usize) -> Result<(), StoreError> {
        // An element that is on its way out need not be whole.
        if self.state == TypeState::Dropping {
            return Ok(());
        }
        let primary = self.definition.primary_key.iter();
        let keys = self.definition.attributes.iter().map(|attribute| &attribute.key).chain(primary);
        for key in keys {
            let expected = self.definition.attribute(key).map_or("a value", |attribute| attribute.value_type.name());
            let single = self.definition.attribute(key).is_none_or(|own| own.cardinality == Cardinality::Single);
            match count(key) {
                0 if self.is_required(key) => return Err(self.violation(key, expected, "nothing")),
                several if several > 1 && single => {
                    return Err(self.violation(key, format!("one {expected}"), &format!("{several} values")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What an edge too many breaks.
    pub(crate) fn multiplicity_violation(&self, vertex: Option<&Value>) -> StoreError {
        let multiplicity = self.definition.multiplicity;
        let at = vertex.map_or(String::new(), |id| format!(" of the vertex with id {}", crate::error::IdText(id)));
        let (expected, given) = match multiplicity {
            Multiplicity::Simple => ("at most one edge from one vertex to another".to_string(), "a second one"),
            Multiplicity::OneToMany => (format!("at most one incoming edge{at}"), "a second one"),
            Multiplicity::ManyToOne => (format!("at most one outgoing edge{at}"), "a second one"),
            _ => (format!("at most one edge{at} each way"), "a second one"),
        };
        self.violation("multiplicity", format!("{} ({expected})", multiplicity.name()), given)
    }
}

impl GraphRoot {
    /// True if writes have to be held against declared types or unique indexes.
    pub(crate) fn has_rules(&self) -> bool {
        !self.schema.types.is_empty() || self.indexes().iter().any(|index| index.shape.unique)
    }

    /// True if the elements of a load would have to be held against declared types or unique indexes. Of a type that has only
    /// sort keys there is nothing to be held against.
    pub(crate) fn restricts_loads(&self) -> bool {
        let restricts = |own: &Arc<DeclaredType>| own.state == TypeState::Dropping || own.definition.restricts();
        self.schema.types.iter().any(restricts) || self.indexes().iter().any(|index| index.shape.unique)
    }

    /// The declared type of elements with this label.
    pub(crate) fn type_named(&self, elements: ElementKind, label: &str) -> Option<Arc<DeclaredType>> {
        if self.schema.types.is_empty() {
            return None;
        }
        self.schema.find(elements, LabelId(self.words.labels.number(label)?)).cloned()
    }

    /// The value that an element gets under a key: in the declared type, and in no unique index elsewhere.
    pub(crate) fn take_value(
        &self,
        elements: ElementKind,
        element: u64,
        key: &str,
        value: Value,
        cardinality: Cardinality,
    ) -> Result<Value, StoreError> {
        if !self.has_rules() {
            return Ok(value);
        }
        let number = self.words.keys.number(key).map(KeyId);
        let mut value = value;
        if let Some(declared) = self.declared_type(elements, element) {
            value = declared.take_value(key, value)?;
            let single = declared.definition.attribute(key).filter(|own| own.cardinality == Cardinality::Single);
            if let (Some(attribute), Some(number), true) = (single, number, cardinality != Cardinality::Single) {
                let mut is_other = false;
                self.visit_values(elements, element, number, &mut |own| {
                    is_other |= cardinality == Cardinality::List || *own != value;
                });
                if is_other {
                    let expected = format!("one {}", attribute.value_type.name());
                    return Err(declared.violation(key, expected, "a second value"));
                }
            }
        }
        number.map_or(Ok(()), |number| self.check_unique_value(elements, element, number, &value))?;
        Ok(value)
    }

    /// The cardinality with which a value is added to a vertex: where a set is declared, no value is there twice.
    pub(crate) fn take_cardinality(&self, vertex: VertexId, key: &str, given: Cardinality) -> Cardinality {
        let is_set = |own: &Attribute| own.cardinality == Cardinality::Set;
        let declared = || self.declared_type(ElementKind::Vertex, vertex.0);
        match given {
            Cardinality::List if declared().is_some_and(|own| own.definition.attribute(key).is_some_and(is_set)) => {
                Cardinality::Set
            }
            given => given,
        }
    }

    /// The declared type of an element.
    pub(crate) fn declared_type(&self, elements: ElementKind, element: u64) -> Option<Arc<DeclaredType>> {
        if self.schema.types.is_empty() {
            return None;
        }
        self.schema.find(elements, self.label_of(elements, element)?).cloned()
    }

    /// Unique indexes that refuse equal values, over elements of this label.
    pub(crate) fn enforced_indexes(
        &self,
        elements: ElementKind,
        label: Option<LabelId>,
    ) -> impl Iterator<Item = &Index> {
        self.indexes().iter().filter(move |index| {
            let shape = &index.shape;
            let in_label = shape.label.is_none() || shape.label == label;
            shape.unique && index.state != IndexState::Building && shape.elements == elements && in_label
        })
    }

    /// The user id of an element.
    pub(crate) fn user_id_of(&self, elements: ElementKind, element: u64) -> Option<Value> {
        match elements {
            ElementKind::Vertex => self.vertex(VertexId(element)).map(|row| row.id()),
            ElementKind::Edge => self.edge_user_id(EdgeId(element)),
        }
    }

    /// Says that a value of a unique index is taken.
    pub(crate) fn unique_violation(&self, index: &Index, values: &[Value], holder: u64) -> StoreError {
        let definition = index.shape.definition(&self.words);
        StoreError::UniqueViolation {
            index: definition.name.to_string(),
            keys: definition.keys.iter().map(|key| key.to_string()).collect(),
            values: values.to_vec(),
            holder: self.user_id_of(index.shape.elements, holder).unwrap_or(Value::Null),
        }
    }

    /// Refuses an element that does not obey its type.
    pub(crate) fn check_element(&self, declared: &DeclaredType, element: u64) -> Result<(), StoreError> {
        let kind = declared.definition.elements;
        let snapshot = Snapshot::new(Arc::new(self.clone()));
        let mut properties: Vec<(KeyId, Value)> = Vec::new();
        match kind {
            ElementKind::Vertex => {
                let mut records = Vec::new();
                snapshot.vertex_properties(VertexId(element), None, &mut records);
                properties.extend(records.into_iter().map(|record| (record.key, record.value)));
            }
            ElementKind::Edge => snapshot.edge_properties(EdgeId(element), &mut properties),
        }
        let mut members = HashSet::new();
        for (key, value) in &properties {
            let name = snapshot.key_name(*key);
            declared.check_value(&name, value)?;
            let is_set = declared.definition.attribute(&name).is_some_and(|own| own.cardinality == Cardinality::Set);
            if is_set && !members.insert((key, value)) {
                return Err(declared.violation(&name, "a set", "the same value twice"));
            }
        }
        declared.check_counts(&|key| {
            let key = snapshot.key_id(key);
            properties.iter().filter(|(own, _)| Some(*own) == key).count()
        })?;
        match snapshot.edge(EdgeId(element)) {
            Some(record) if kind == ElementKind::Edge => self.check_multiplicity(declared, record, 1),
            _ => Ok(()),
        }
    }

    /// Refuses an edge type's edge if with `allowed` edges like it there are too many already.
    pub(crate) fn check_multiplicity(
        &self,
        declared: &DeclaredType,
        record: EdgeRecord,
        allowed: u64,
    ) -> Result<(), StoreError> {
        let multiplicity = declared.definition.multiplicity;
        if multiplicity == Multiplicity::Multi {
            return Ok(());
        }
        let snapshot = Snapshot::new(Arc::new(self.clone()));
        let label = [declared.label];
        if multiplicity.limits_out() && snapshot.degree(record.out, Direction::Out, &label) > allowed {
            return Err(declared.multiplicity_violation(snapshot.vertex_id(record.out).as_ref()));
        }
        if multiplicity.limits_in() && snapshot.degree(record.in_, Direction::In, &label) > allowed {
            return Err(declared.multiplicity_violation(snapshot.vertex_id(record.in_).as_ref()));
        }
        if multiplicity == Multiplicity::Simple
            && snapshot.edges_between(record.out, record.in_, Some(declared.label)).len() as u64 > allowed
        {
            return Err(declared.multiplicity_violation(None));
        }
        Ok(())
    }

    /// Refuses a value that the property of an element is about to get, if a unique index has it elsewhere.
    pub(crate) fn check_unique_value(
        &self,
        elements: ElementKind,
        element: u64,
        key: KeyId,
        value: &Value,
    ) -> Result<(), StoreError> {
        if self.indexes().iter().all(|index| !index.shape.unique) {
            return Ok(());
        }
        let label = self.label_of(elements, element);
        for index in self.enforced_indexes(elements, label).filter(|index| index.shape.keys.contains(&key)) {
            let values = collisions(&index.shape.keys, &mut |own, visit| match own == key {
                true => visit(value),
                false => self.visit_values(elements, element, own, visit),
            });
            for values in values {
                if let Some(holder) = self.element_with(index, &values, &|other| other == element) {
                    return Err(self.unique_violation(index, &values, holder));
                }
            }
        }
        Ok(())
    }
}
