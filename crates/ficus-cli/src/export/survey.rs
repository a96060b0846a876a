//! What a graph holds, as forms with a fixed set of columns need to know before the first row: labels, keys, types.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use ficus_model::Value;
use indexmap::IndexMap;

use super::TargetForm;
use super::elements::Elements;
use crate::column_type::{ColumnType, text_form};

/// Separates the values of one field in both CSV forms.
pub const LIST_SEPARATOR: char = ';';

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The type of its values; String if they differ.
    pub kind: ColumnType,
    /// Whether a field may hold several.
    pub several: bool,
    /// Whether its values are lists, in a form that tells them from several values.
    pub is_list: bool,
}

/// Columns of the elements of one label.
pub type Columns = IndexMap<Arc<str>, Column>;

/// Columns of all tables, and what the form cannot hold.
pub struct Survey {
    /// Vertices by label.
    pub vertices: BTreeMap<Arc<str>, Columns>,
    /// Edges by label.
    pub edges: BTreeMap<Arc<str>, Columns>,
    /// The type of vertex ids, if they all have the same.
    pub vertex_id_kind: Option<ColumnType>,
    /// The type of edge ids, if they all have the same.
    pub edge_id_kind: Option<ColumnType>,
    /// Names of the types of all ids.
    id_kinds: BTreeSet<&'static str>,
    losses: BTreeMap<String, u64>,
}

impl Survey {
    /// Surveys the elements for a form.
    pub fn of(elements: &Elements, form: TargetForm) -> Survey {
        let mut survey = Survey {
            vertices: BTreeMap::new(),
            edges: BTreeMap::new(),
            vertex_id_kind: None,
            edge_id_kind: None,
            id_kinds: BTreeSet::new(),
            losses: BTreeMap::new(),
        };
        let (mut id_kinds, mut edge_id_kinds) = (BTreeSet::new(), BTreeSet::new());
        // Reading a snapshot has no I/O of ours that could fail; the writers meet any error again and report it.
        let _ = elements.each_vertex(|vertex| survey.vertex(elements, vertex, form, &mut id_kinds));
        let _ = elements.each_edge(|edge| {
            let edge = elements.edge(edge)?;
            let Survey { edges, losses, .. } = &mut survey;
            edge_id_kinds.insert(text_form(&edge.id).map_or("collection", |(kind, _)| kind.name()));
            check_label(losses, &edge.label, form, true);
            check_texts(losses, [&edge.id, &edge.out_id, &edge.in_id], &edge.label, form);
            let columns = edges.entry(edge.label.clone()).or_default();
            for (key, value) in &edge.properties {
                add_value(columns, losses, key, value, form, true);
            }
            Ok(())
        });
        if form == TargetForm::Graphml {
            // A key is one for all labels.
            let Survey { vertices, edges, losses, .. } = &mut survey;
            lose_types_across(losses, vertices.values(), "vertices");
            lose_types_across(losses, edges.values(), "edges");
        }
        survey.id_kinds.extend(id_kinds.iter().chain(&edge_id_kinds));
        let only = |kinds: &BTreeSet<&str>| match kinds.len() {
            1 => kinds.first().and_then(|name| ColumnType::from_name(name).ok()),
            _ => None,
        };
        (survey.vertex_id_kind, survey.edge_id_kind) = (only(&id_kinds), only(&edge_id_kinds));
        let mut lose_kinds = |of: &str, kinds: BTreeSet<&str>| {
            let kinds: Vec<&str> = kinds.into_iter().collect();
            survey.losses.insert(format!("the types of {of} ids ({})", kinds.join(", ")), 1);
        };
        let is_lost = |kinds: &BTreeSet<&str>| {
            let is_held = |name: &&str| ColumnType::from_name(name).is_ok_and(|kind| form.can_hold(kind));
            kinds.len() > 1 || form == TargetForm::Parquet && !kinds.iter().all(is_held)
        };
        if is_lost(&id_kinds) {
            lose_kinds("vertex", id_kinds);
        }
        // The other forms have texts for ids of edges, or none, and say so.
        if form == TargetForm::Parquet && is_lost(&edge_id_kinds) {
            lose_kinds("edge", edge_id_kinds);
        }
        survey
    }

    /// What a reader of the form has to be told, because the form itself does not say it.
    pub fn remark(&self, form: TargetForm) -> Option<String> {
        let kinds: Vec<&str> = self.id_kinds.iter().copied().collect();
        match (form, kinds.as_slice()) {
            (TargetForm::Neo4j, _) => (!self.edges.is_empty()).then(|| "not kept: ids of edges".to_owned()),
            (TargetForm::Graphml | TargetForm::Neptune, [] | ["string"]) => None,
            (TargetForm::Graphml | TargetForm::Neptune, [kind]) => {
                Some(format!("ids are written as text; load them with --id-type {kind}"))
            }
            (TargetForm::Graphml | TargetForm::Neptune, kinds) => {
                Some(format!("ids are written as text, which does not keep their types apart: {}", kinds.join(", ")))
            }
            _ => None,
        }
    }

    /// What would be lost, in words.
    pub fn losses(&self) -> Option<String> {
        let parts: Vec<String> = self
            .losses
            .iter()
            .map(|(what, count)| if *count > 1 { format!("{what} ({count} times)") } else { what.clone() })
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    fn vertex(
        &mut self,
        elements: &Elements,
        vertex: ficus_model::VertexId,
        form: TargetForm,
        id_kinds: &mut BTreeSet<&'static str>,
    ) -> io::Result<()> {
        let vertex = elements.vertex(vertex)?;
        match text_form(&vertex.id) {
            Some((kind, _)) => {
                id_kinds.insert(kind.name());
            }
            None => lose(&mut self.losses, "ids that are collections".into()),
        }
        check_label(&mut self.losses, &vertex.label, form, false);
        check_texts(&mut self.losses, [&vertex.id], &vertex.label, form);
        let is_table = form != TargetForm::Graphml;
        if is_table && matches!(&vertex.id, Value::String(id) if id.is_empty()) {
            lose(&mut self.losses, "the vertex whose id is an empty text".into());
        }
        let has_sets = matches!(form, TargetForm::Neptune | TargetForm::Parquet);
        let columns = self.vertices.entry(vertex.label.clone()).or_default();
        for (index, property) in vertex.properties.iter().enumerate() {
            let earlier = vertex.properties[..index].iter().filter(|earlier| earlier.key == property.key);
            let mut is_repeated = false;
            for earlier in earlier {
                is_repeated = true;
                if has_sets && earlier.value == property.value {
                    lose(&mut self.losses, format!("equal values under the key '{}'", property.key));
                }
            }
            if !property.meta.is_empty() {
                lose(&mut self.losses, format!("meta-properties of '{}'", property.key));
            }
            if is_repeated && !has_sets {
                lose(&mut self.losses, format!("several values under the key '{}'", property.key));
            }
            add_value(columns, &mut self.losses, &property.key, &property.value, form, false);
            if is_repeated
                && has_sets
                && let Some(column) = columns.get_mut(&property.key)
            {
                column.several = true;
            }
        }
        // Only now is it known which columns hold several values.
        for property in &vertex.properties {
            let several = columns.get(&property.key).is_some_and(|column| column.several);
            if several && form == TargetForm::Neptune && has_separator(&property.value) {
                lose(&mut self.losses, format!("'{LIST_SEPARATOR}' in several values of the key '{}'", property.key));
            }
            if several && columns.get(&property.key).is_some_and(|column| column.is_list) {
                lose(&mut self.losses, format!("several lists under the key '{}'", property.key));
            }
        }
        Ok(())
    }
}

fn lose(losses: &mut BTreeMap<String, u64>, what: String) {
    *losses.entry(what).or_default() += 1;
}

/// Notes keys whose values have different types at different labels.
fn lose_types_across<'a>(
    losses: &mut BTreeMap<String, u64>,
    tables: impl Iterator<Item = &'a Columns>,
    owner: &'static str,
) {
    let mut kinds: BTreeMap<&Arc<str>, BTreeSet<&'static str>> = BTreeMap::new();
    for (key, column) in tables.flatten() {
        kinds.entry(key).or_default().insert(column.kind.name());
    }
    for (key, _) in kinds.into_iter().filter(|(_, kinds)| kinds.len() > 1) {
        lose(losses, format!("the different types of the key '{key}' of {owner} of different labels"));
    }
}

/// Whether XML 1.0 can hold all characters of a text.
fn is_xml(text: &str) -> bool {
    text.chars().all(super::graphml::is_allowed)
}

/// Notes ids and labels that the form cannot write.
fn check_texts<const COUNT: usize>(
    losses: &mut BTreeMap<String, u64>,
    ids: [&Value; COUNT],
    label: &str,
    form: TargetForm,
) {
    if form != TargetForm::Graphml {
        return;
    }
    if !ids.iter().all(|id| text_form(id).is_none_or(|(_, text)| is_xml(&text))) {
        lose(losses, "characters of ids that XML does not allow".into());
    }
    if !is_xml(label) {
        lose(losses, format!("characters of the label '{}' that XML does not allow", label.escape_default()));
    }
}

/// The name of the file of a label, without its ending: safe letters, and unlike all before.
pub fn file_name(kind: &str, label: &str, names: &mut HashSet<String>) -> String {
    let safe: String =
        label.chars().map(|letter| if letter.is_alphanumeric() || letter == '_' { letter } else { '-' }).collect();
    let mut name = format!("{kind}-{safe}");
    let mut number = 2;
    // Labels may differ only in letters that file systems do not tell apart.
    while !names.insert(name.to_lowercase()) {
        name = format!("{kind}-{safe}-{number}");
        number += 1;
    }
    name
}

/// Notes a label that a field of labels cannot hold.
fn check_label(losses: &mut BTreeMap<String, u64>, label: &str, form: TargetForm, of_edge: bool) {
    let is_split = match form {
        TargetForm::Neo4j => !of_edge,
        TargetForm::Neptune | TargetForm::Parquet => true,
        _ => false,
    };
    if is_split && label.contains(LIST_SEPARATOR) {
        lose(losses, format!("'{LIST_SEPARATOR}' in the label '{label}'"));
    }
}

/// True if a column of the form can have the key in its name.
fn can_name(form: TargetForm, key: &str) -> bool {
    match form {
        TargetForm::Parquet => !(key.starts_with('~') || key.contains('\\') || key.trim() != key),
        TargetForm::Neptune => !(key.starts_with('~') || key.ends_with('\\') || key.trim() != key),
        TargetForm::Neo4j => !(key.contains(':') || key.trim() != key),
        _ => true,
    }
}

fn has_separator(value: &Value) -> bool {
    matches!(value, Value::String(text) if text.contains(LIST_SEPARATOR) || text.is_empty())
}

/// Adds a value to the column of its key.
fn add_value(
    columns: &mut Columns,
    losses: &mut BTreeMap<String, u64>,
    key: &Arc<str>,
    value: &Value,
    form: TargetForm,
    of_edge: bool,
) {
    if !can_name(form, key) {
        return lose(losses, format!("the key '{key}', which no column can be named after"));
    }
    if form == TargetForm::Graphml {
        if !is_xml(key) {
            lose(losses, format!("characters of the key '{}' that XML does not allow", key.escape_default()));
        }
        if !text_form(value).is_none_or(|(_, text)| is_xml(&text)) {
            lose(losses, format!("characters under the key '{key}' that XML does not allow"));
        }
    }
    let members: &[Value] = match value {
        Value::List(values) if form == TargetForm::Neo4j => {
            let is_text = |value: &Value, text: &str| matches!(value, Value::String(own) if **own == *text);
            let splits = |value: &Value| matches!(value, Value::String(own) if own.contains(LIST_SEPARATOR));
            // One empty text would read as no text at all.
            let is_empty = values.iter().all(|value| values.len() == 1 && is_text(value, ""));
            if is_empty || values.iter().any(splits) {
                lose(losses, format!("lists under the key '{key}' that are empty or hold '{LIST_SEPARATOR}'"));
            }
            values
        }
        Value::List(values) if form == TargetForm::Parquet => {
            if values.is_empty() {
                lose(losses, format!("empty lists under the key '{key}'"));
            }
            values
        }
        other => std::slice::from_ref(other),
    };
    let has_lists = matches!(form, TargetForm::Neo4j | TargetForm::Parquet);
    let is_list = matches!(value, Value::List(_)) && has_lists;
    for member in members {
        if let (TargetForm::Parquet, Value::DateTime(moment)) = (form, member)
            && (moment.offset_seconds != 0
                || moment.nanos % 1000 != 0
                || moment.epoch_seconds.unsigned_abs() > i64::MAX as u64 / 1_000_000 - 1)
        {
            lose(losses, format!("offsets from UTC, or parts of microseconds, under the key '{key}'"));
        }
        let kind = match text_form(member) {
            Some((kind, _)) if form.can_hold(kind) => kind,
            Some((kind, _)) => {
                lose(losses, format!("the type {} of the key '{key}'", kind.name()));
                ColumnType::String
            }
            None => {
                lose(losses, format!("values of the key '{key}' that are null or collections"));
                ColumnType::String
            }
        };
        match columns.get_mut(key) {
            None => {
                let is_parquet = form == TargetForm::Parquet;
                columns.insert(
                    key.clone(),
                    Column { kind, several: is_list && !is_parquet, is_list: is_list && is_parquet },
                );
            }
            Some(column) => {
                if column.kind != kind {
                    let owner = if of_edge { "edges" } else { "vertices" };
                    lose(losses, format!("the different types of the key '{key}' of {owner}"));
                    column.kind = ColumnType::String;
                }
                let was_list = if form == TargetForm::Parquet { column.is_list } else { column.several };
                if was_list != is_list && has_lists {
                    lose(losses, format!("single values of the key '{key}', which elsewhere is a list"));
                    match form {
                        TargetForm::Parquet => column.is_list = true,
                        _ => column.several = true,
                    }
                }
            }
        }
    }
}

impl TargetForm {
    /// Whether the form has a type that reads back as `kind`.
    fn can_hold(self, kind: ColumnType) -> bool {
        use ColumnType::*;
        match self {
            TargetForm::Graphml => matches!(kind, Boolean | Int | Long | Float | Double | String),
            TargetForm::Neptune => {
                matches!(kind, Boolean | Byte | Short | Int | Long | Float | Double | String | DateTime)
            }
            TargetForm::Neo4j => {
                matches!(
                    kind,
                    Boolean | Byte | Short | Int | Long | Float | Double | Char | String | DateTime | Duration
                )
            }
            TargetForm::Parquet => {
                matches!(kind, Boolean | Byte | Short | Int | Long | Float | Double | String | Uuid | DateTime)
            }
            TargetForm::Graphson | TargetForm::Gryo | TargetForm::Compact => true,
        }
    }
}
