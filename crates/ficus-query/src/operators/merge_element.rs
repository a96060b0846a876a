//! `mergeV` and `mergeE`: find or create.
//!
//! A branch scope whose arms compute the search map, the maps of the options and the vertices `Merge.outV` and `Merge.inV`
//! stand for. What was searched and not found is protected in the transaction, so that two clients that merge the same
//! thing at once cannot both create it: one of them gets a conflict and finds it when it tries again.

use std::sync::Arc;

use ficus_dataflow::{BranchLogic, BranchOptions, Turn};
use ficus_model::{Cardinality, Direction, EdgeId, Element, LabelId, Merge, P, Shared, T, Value, ValueMap, VertexId};
use ficus_storage::{HalfEdgeCursor, Protect, ScanCursor};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{HasContainer, HasKey, Node, Traversal, ValueOrTraversal};
use crate::operators::has::Conditions;
use crate::operators::known_end::Between;
use crate::operators::source::{resolve_edge, resolve_vertex};
use crate::operators::write::{
    cardinality_value, key_text, label_text, pause_between_writes, write_property, write_vertex_property,
};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// A map or vertex that is given or computed.
#[derive(Clone)]
enum Input {
    Value(Value),
    Arm(usize),
}

#[derive(Clone)]
struct MergeScope {
    edges: bool,
    /// Whether it begins the query, so that nothing comes in.
    starts: bool,
    search: Option<Input>,
    on_create: Option<Input>,
    on_match: Option<Input>,
    out_vertex: Option<Input>,
    in_vertex: Option<Input>,
    match_cardinality: Option<Cardinality>,
    create_cardinality: Option<Cardinality>,
    step: StepInfo,
}

/// What is being computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Search,
    OutVertex,
    InVertex,
    Find,
    Match,
    Create,
    CreateOutVertex,
    CreateInVertex,
    Make,
    /// A map for one of the vertices found none: no edge is found and none is made, as in TinkerPop.
    Nothing,
}

#[derive(Default)]
struct Merging {
    input: Option<Traverser>,
    stage: Stage,
    /// As given, and with vertices resolved.
    given: ValueMap,
    search: ValueMap,
    create: ValueMap,
    found: std::collections::VecDeque<Value>,
    current: Option<Value>,
}

impl MergeScope {
    fn step_name(&self) -> &'static str {
        if self.edges { "mergeE" } else { "mergeV" }
    }

    fn allowed(&self, key: &Value) -> bool {
        match key {
            Value::String(_) | Value::T(T::Id) | Value::T(T::Label) => true,
            Value::Direction(Direction::Out | Direction::In) => self.edges,
            _ => false,
        }
    }

    /// Checks a search or creation map as TinkerPop does.
    fn validate(&self, map: &ValueMap) -> Result<()> {
        let step = self.step_name();
        let tokens = if self.edges { "[id, label, IN, OUT]" } else { "[id, label]" };
        for (key, value) in map {
            let shown = shown(key);
            if !matches!(key, Value::String(_)) && matches!(value, Value::Null) {
                return Err(QueryError::invalid(format!("{step}() does not allow null Map values - check: {shown}")));
            }
            if !self.allowed(key) {
                return Err(QueryError::invalid(format!(
                    "{step}() and option(onCreate) args expect keys in Map to be either String or {tokens} - check: {shown}"
                )));
            }
            match (key, value) {
                (Value::T(T::Label), label) => {
                    if !matches!(label, Value::String(_)) {
                        return Err(QueryError::invalid(format!(
                            "{step}() and option(onCreate) args expect T.label value to be of String - found: {}",
                            label.type_name()
                        )));
                    }
                    label_text(label)?;
                }
                (Value::Direction(Direction::Out), Value::Merge(token)) if *token != Merge::OutV => {
                    return Err(QueryError::invalid(format!(
                        "Only Merge.outV token may be used for Direction.OUT, found: {}",
                        token.name()
                    )));
                }
                (Value::Direction(Direction::In), Value::Merge(token)) if *token != Merge::InV => {
                    return Err(QueryError::invalid(format!(
                        "Only Merge.inV token may be used for Direction.IN, found: {}",
                        token.name()
                    )));
                }
                (Value::String(_), _) => {
                    hidden_key(key_text(key)?)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn validate_match(&self, map: &ValueMap) -> Result<()> {
        for key in map.keys() {
            match key {
                Value::String(key) => hidden_key(key)?,
                other => {
                    return Err(QueryError::invalid(format!(
                        "option(onMatch) expects keys in Map to be of String - check: {}",
                        shown(other)
                    )));
                }
            }
        }
        Ok(())
    }

    /// The arm or value for the current stage.
    fn input_of(&self, stage: Stage) -> Option<&Input> {
        match stage {
            Stage::Search => self.search.as_ref(),
            Stage::OutVertex | Stage::CreateOutVertex => self.out_vertex.as_ref(),
            Stage::InVertex | Stage::CreateInVertex => self.in_vertex.as_ref(),
            Stage::Match => self.on_match.as_ref(),
            Stage::Create => self.on_create.as_ref(),
            Stage::Find | Stage::Make | Stage::Nothing => None,
        }
    }

    /// Works through the stages until an arm has to be run or the instance is done.
    fn advance(&self, state: &mut Merging, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        loop {
            match state.stage {
                Stage::Search => match &self.search {
                    None => {
                        let value = state.input.as_ref().map_or(Value::Null, |input| input.value.clone());
                        self.take(value, state, out, cx)?;
                    }
                    Some(_) => {
                        if let Some(turn) = self.evaluate(state, out, cx)? {
                            return Ok(turn);
                        }
                    }
                },
                Stage::OutVertex | Stage::InVertex => {
                    let direction = direction_of(state.stage);
                    match state.search.get(&Value::Direction(direction)) {
                        Some(Value::Merge(_)) => {
                            if let Some(turn) = self.evaluate_vertex(state, out, cx)? {
                                return Ok(turn);
                            }
                        }
                        _ => state.stage = next_stage(state.stage),
                    }
                }
                Stage::Find => {
                    state.found = self.find(&state.search, cx.context)?.into();
                    state.stage = if state.found.is_empty() { Stage::Create } else { Stage::Match };
                }
                Stage::Match => {
                    let Some(element) = state.found.front().cloned() else { return Ok(Turn::Close) };
                    if self.on_match.is_none() {
                        self.emit(element, state, out);
                        state.found.pop_front();
                        continue;
                    }
                    state.current = Some(element);
                    if let Some(turn) = self.evaluate(state, out, cx)? {
                        return Ok(turn);
                    }
                }
                Stage::Create => {
                    if self.on_create.is_none() {
                        state.create = state.search.clone();
                        state.stage = Stage::CreateOutVertex;
                    } else if let Some(turn) = self.evaluate(state, out, cx)? {
                        return Ok(turn);
                    }
                }
                Stage::CreateOutVertex | Stage::CreateInVertex => {
                    let direction = direction_of(state.stage);
                    match state.create.get(&Value::Direction(direction)) {
                        Some(Value::Merge(_)) => {
                            if let Some(turn) = self.evaluate_vertex(state, out, cx)? {
                                return Ok(turn);
                            }
                        }
                        _ => state.stage = next_stage(state.stage),
                    }
                }
                Stage::Nothing => return Ok(Turn::Close),
                Stage::Make => {
                    let element = if self.edges {
                        self.make_edge(&state.create, cx.context)?
                    } else {
                        self.make_vertex(&state.create, cx.context)?
                    };
                    self.emit(element, state, out);
                    return Ok(Turn::Close);
                }
            }
        }
    }

    fn emit(&self, element: Value, state: &Merging, out: &mut Traversers) {
        if let Some(input) = &state.input {
            out.push_back(input.advance(element, &self.step));
        }
    }

    fn evaluate_vertex(
        &self,
        state: &mut Merging,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Option<Turn<Traverser>>> {
        if self.input_of(state.stage).is_none() {
            let (token, direction) = match direction_of(state.stage) {
                Direction::Out => ("outV", "OUT"),
                _ => ("inV", "IN"),
            };
            return Err(QueryError::invalid(format!(
                "option({token}) must be specified if it is used for {direction}"
            )));
        }
        self.evaluate(state, out, cx)
    }

    /// Evaluates the input of the stage: at once, or by an arm.
    fn evaluate(&self, state: &mut Merging, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Option<Turn<Traverser>>> {
        match self.input_of(state.stage) {
            Some(Input::Value(value)) => {
                self.take(value.clone(), state, out, cx)?;
                Ok(None)
            }
            Some(Input::Arm(arm)) => {
                let input = state.input.as_ref().expect("set when the instance opened");
                let mut message = input.single();
                if let (Stage::Match, Some(element)) = (state.stage, &state.current) {
                    message.put(element.clone());
                } else if self.starts {
                    // As in TinkerPop, and no map.
                    message.put(Value::Bool(false));
                }
                Ok(Some(Turn::Enter { arm: *arm, message }))
            }
            None => {
                self.take(Value::Null, state, out, cx)?;
                Ok(None)
            }
        }
    }

    /// Takes what the stage's input is and goes to the next stage.
    fn take(&self, value: Value, state: &mut Merging, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<()> {
        match state.stage {
            Stage::Search => {
                state.given = map_of(value, self.step_name())?;
                self.validate(&state.given)?;
                state.search = flatten_vertices(state.given.clone(), cx.context);
            }
            Stage::OutVertex | Stage::InVertex => {
                let Some(vertex) = self.resolve(&value, cx.context)? else {
                    state.stage = Stage::Nothing;
                    return Ok(());
                };
                state.search.insert(Value::Direction(direction_of(state.stage)), vertex);
            }
            Stage::Match => {
                let map = map_of(value, "option(onMatch)")?;
                self.validate_match(&map)?;
                let element = state.current.take().unwrap_or(Value::Null);
                for (number, (key, value)) in map.iter().enumerate() {
                    let (own, value) = cardinality_value(value);
                    let cardinality = if self.edges { None } else { own.or(self.match_cardinality) };
                    write_property(cx.context, &element, cardinality, key_text(key)?, value, &[])?;
                    pause_between_writes(cx.context, number + 1)?;
                }
                self.emit(element, state, out);
                state.found.pop_front();
                return Ok(());
            }
            Stage::Create => {
                let map = map_of(value, "option(onCreate)")?;
                self.validate(&map)?;
                for (key, value) in &map {
                    if let Some(own) = state.given.get(key)
                        && own != value
                    {
                        return Err(QueryError::invalid(format!(
                            "option(onCreate) cannot override values from merge() argument: ({}, {})",
                            shown(key),
                            shown(value)
                        )));
                    }
                }
                let mut create = flatten_vertices(map, cx.context);
                create.extend(state.search.iter().map(|(key, value)| (key.clone(), value.clone())));
                state.create = create;
            }
            Stage::CreateOutVertex | Stage::CreateInVertex => {
                let Some(vertex) = self.resolve(&value, cx.context)? else {
                    state.stage = Stage::Nothing;
                    return Ok(());
                };
                state.create.insert(Value::Direction(direction_of(state.stage)), vertex);
            }
            Stage::Find | Stage::Make | Stage::Nothing => {}
        }
        state.stage = next_stage(state.stage);
        Ok(())
    }

    /// The vertex an option yielded, or that a map it yielded finds; `None` if the map finds none.
    fn resolve(&self, value: &Value, context: &mut QueryContext) -> Result<Option<Value>> {
        let vertex = match value {
            Value::Map(map) => return Ok(find_vertices(map, context)?.into_iter().next()),
            Value::Vertex(_) => Some(value.clone()),
            Value::Element(_) => resolve_vertex(context, value).map(Value::Vertex),
            _ => None,
        };
        vertex
            .map(Some)
            .ok_or_else(|| QueryError::invalid(format!("Vertex could not be resolved from mergeE: {}", shown(value))))
    }

    fn find(&self, search: &ValueMap, context: &mut QueryContext) -> Result<Vec<Value>> {
        if self.edges { find_edges(search, context) } else { find_vertices(search, context) }
    }

    fn make_vertex(&self, map: &ValueMap, context: &mut QueryContext) -> Result<Value> {
        let label = match map.get(&Value::T(T::Label)) {
            Some(label) => label_text(label)?,
            None => Arc::from("vertex"),
        };
        let id = map.get(&Value::T(T::Id)).cloned();
        let vertex = context.transaction.add_vertex(&label, id)?;
        for (number, (key, value)) in map.iter().enumerate() {
            if let Value::String(key) = key {
                let (own, value) = cardinality_value(value);
                write_vertex_property(context, vertex, own.or(self.create_cardinality), key, value, &[])?;
            }
            pause_between_writes(context, number + 1)?;
        }
        Ok(Value::Vertex(vertex))
    }

    fn make_edge(&self, map: &ValueMap, context: &mut QueryContext) -> Result<Value> {
        let end = |direction: Direction, side: &str| -> Result<Value> {
            map.get(&Value::Direction(direction)).cloned().ok_or_else(|| {
                QueryError::invalid(format!("{side} Vertex not specified in onCreate - edge cannot be created"))
            })
        };
        let (out, into) = (end(Direction::Out, "Out")?, end(Direction::In, "In")?);
        let vertex = |value: &Value, context: &QueryContext| -> Result<VertexId> {
            resolve_vertex(context, value).ok_or_else(|| {
                QueryError::invalid(format!("Vertex id could not be resolved from mergeE: {}", shown(value)))
            })
        };
        let (out, into) = (vertex(&out, context)?, vertex(&into, context)?);
        let label = match map.get(&Value::T(T::Label)) {
            Some(label) => label_text(label)?,
            None => Arc::from("edge"),
        };
        let edge = context.transaction.add_edge(&label, out, into, map.get(&Value::T(T::Id)).cloned())?;
        for (number, (key, value)) in map.iter().enumerate() {
            if let Value::String(key) = key {
                write_property(context, &Value::Edge(edge), None, key, cardinality_value(value).1, &[])?;
            }
            pause_between_writes(context, number + 1)?;
        }
        Ok(Value::Edge(edge))
    }
}

fn hidden_key(key: &str) -> Result<()> {
    if key.is_empty() {
        return Err(QueryError::invalid("Property key can not be the empty string"));
    }
    if key.starts_with('~') {
        return Err(QueryError::invalid(format!("Property key can not be a hidden key: {key}")));
    }
    Ok(())
}

fn shown(value: &Value) -> String {
    ficus_model::text::text(value, &ficus_model::InternalIds)
}

fn direction_of(stage: Stage) -> Direction {
    match stage {
        Stage::OutVertex | Stage::CreateOutVertex => Direction::Out,
        _ => Direction::In,
    }
}

fn next_stage(stage: Stage) -> Stage {
    match stage {
        Stage::Search => Stage::OutVertex,
        Stage::OutVertex => Stage::InVertex,
        Stage::InVertex => Stage::Find,
        Stage::Find => Stage::Match,
        Stage::Match => Stage::Match,
        Stage::Create => Stage::CreateOutVertex,
        Stage::CreateOutVertex => Stage::CreateInVertex,
        Stage::CreateInVertex | Stage::Make => Stage::Make,
        Stage::Nothing => Stage::Nothing,
    }
}

/// A null map is an empty one.
fn map_of(value: Value, step: &str) -> Result<ValueMap> {
    match value {
        Value::Map(map) => Ok(Shared::unwrap_or_clone(map)),
        Value::Null => Ok(ValueMap::default()),
        other => Err(QueryError::invalid(format!("{step} needs a Map, but got a {}", other.type_name()))),
    }
}

/// Replaces vertices given for a direction by the vertices of the graph they stand for.
fn flatten_vertices(mut map: ValueMap, context: &QueryContext) -> ValueMap {
    for direction in [Direction::Out, Direction::In] {
        if let Some(value) = map.get_mut(&Value::Direction(direction))
            && let Value::Element(element) = &*value
            && let Element::Vertex(vertex) = &**element
        {
            *value = resolve_vertex(context, value).map_or_else(|| vertex.id.clone(), Value::Vertex);
        }
    }
    map
}

/// The conditions of a search map: label and properties.
fn conditions(search: &ValueMap) -> Result<Conditions> {
    let mut containers = Vec::new();
    for (key, value) in search {
        let key = match key {
            Value::T(T::Label) => HasKey::Label,
            Value::String(key) => HasKey::Key(key.clone()),
            _ => continue,
        };
        containers.push(HasContainer { key, predicate: P::eq(cardinality_value(value).1) });
    }
    Conditions::compile(&containers)
}

/// Protects what a search without index looked at: as little as the search map allows.
fn protect_scan(search: &ValueMap, label: Option<&str>, context: &mut QueryContext) {
    let mut by_key = false;
    for (key, value) in search {
        if let Value::String(key) = key {
            let value = cardinality_value(value).1;
            context.transaction.protect(Protect::VerticesWithProperty { key, value: &value });
            by_key = true;
        }
    }
    match label {
        _ if by_key => {}
        Some(label) => context.transaction.protect(Protect::VerticesWithLabel(label)),
        None => context.transaction.protect(Protect::AllVertices),
    }
}

/// How many properties a search map asks for.
fn properties_asked(search: &ValueMap) -> usize {
    search.keys().filter(|key| matches!(key, Value::String(_))).count()
}

/// Rows looked at between two checks for cancellation.
const SCAN_ROWS: usize = 1024;

/// The vertices that a search map describes. Their absence is protected as a whole, so the single reads need not be.
fn find_vertices(search: &ValueMap, context: &mut QueryContext) -> Result<Vec<Value>> {
    // As in TinkerPop, no property equals a value that comes with its cardinality: such a map always creates.
    if search.values().any(|value| cardinality_value(value).0.is_some()) {
        return Ok(Vec::new());
    }
    context.transaction.pause_recording();
    let found = search_vertices(search, context);
    context.transaction.resume_recording();
    found
}

fn search_vertices(search: &ValueMap, context: &mut QueryContext) -> Result<Vec<Value>> {
    let mut conditions = conditions(search)?;
    let mut candidates: Vec<VertexId> = Vec::new();
    let mut found = Vec::new();
    // An index answers for one property; the others are read off the candidates.
    let mut reads_properties = properties_asked(search) > 1;
    if let Some(id) = search.get(&Value::T(T::Id)) {
        reads_properties = properties_asked(search) > 0;
        context.transaction.protect(Protect::VertexWithId(id));
        candidates.extend(resolve_vertex(context, id));
    } else {
        let label = match search.get(&Value::T(T::Label)) {
            Some(Value::String(label)) => Some(label.clone()),
            _ => None,
        };
        let label_id = label.as_deref().and_then(|label| context.transaction.label_id(label));
        let mut indexed = false;
        for (key, value) in search {
            let Value::String(key) = key else { continue };
            let value = cardinality_value(value).1;
            let Some(key_id) = context.transaction.key_id(key) else { continue };
            if context.transaction.vertices_by_index(label_id, key_id, &value, &mut candidates) {
                context.transaction.protect(Protect::VerticesWithProperty { key, value: &value });
                indexed = true;
                break;
            }
        }
        if !indexed {
            protect_scan(search, label.as_deref(), context);
            if label.is_some() && label_id.is_none() {
                return Ok(found);
            }
            let mut cursor = ScanCursor::default();
            loop {
                context.check()?;
                candidates.clear();
                let more = match label_id {
                    Some(label) => {
                        context.transaction.scan_vertices_with_label(label, &mut cursor, SCAN_ROWS, &mut candidates)
                    }
                    None => context.transaction.scan_vertices(&mut cursor, SCAN_ROWS, &mut candidates),
                };
                for vertex in &candidates {
                    let value = Value::Vertex(*vertex);
                    if conditions.test(&value, context)? {
                        found.push(value);
                    }
                }
                if !more {
                    return Ok(found);
                }
            }
        }
    }
    for vertex in candidates {
        if reads_properties {
            context.transaction.protect(Protect::Vertex(vertex));
        }
        let value = Value::Vertex(vertex);
        if conditions.test(&value, context)? {
            found.push(value);
        }
    }
    Ok(found)
}

/// The edges that a search map describes.
fn find_edges(search: &ValueMap, context: &mut QueryContext) -> Result<Vec<Value>> {
    let mut conditions = conditions(search)?;
    let end = |direction: Direction| search.get(&Value::Direction(direction));
    let (out, into) = (end(Direction::Out).cloned(), end(Direction::In).cloned());
    let out_vertex = out.as_ref().map(|value| resolve_vertex(context, value));
    let in_vertex = into.as_ref().map(|value| resolve_vertex(context, value));
    // An end that does not exist has no edges.
    if out_vertex == Some(None) || in_vertex == Some(None) {
        return Ok(Vec::new());
    }
    let (out_vertex, in_vertex) = (out_vertex.flatten(), in_vertex.flatten());
    let label_name = match search.get(&Value::T(T::Label)) {
        Some(Value::String(label)) => Some(label.clone()),
        _ => None,
    };
    let labels: Vec<_> = label_name.iter().filter_map(|label| context.transaction.label_id(label)).collect();
    let mut found = Vec::new();
    let mut check = |edge, context: &QueryContext| -> Result<()> {
        let Some(record) = context.transaction.edge(edge) else { return Ok(()) };
        let fits = out_vertex.is_none_or(|vertex| record.out == vertex)
            && in_vertex.is_none_or(|vertex| record.in_ == vertex)
            && conditions.test(&Value::Edge(edge), context)?;
        if fits {
            found.push(Value::Edge(edge));
        }
        Ok(())
    };
    if let Some(id) = search.get(&Value::T(T::Id)) {
        if let Some(edge) = resolve_edge(context, id) {
            check(edge, context)?;
        }
        return Ok(found);
    }
    if let (Some(out), Some(into)) = (out_vertex, in_vertex) {
        let edges = edges_between(out, into, label_name.is_some().then_some(&labels), context)?;
        for edge in edges {
            check(edge, context)?;
        }
        return Ok(found);
    }
    if let Some((vertex, direction)) =
        out_vertex.map(|vertex| (vertex, Direction::Out)).or(in_vertex.map(|vertex| (vertex, Direction::In)))
    {
        if label_name.is_some() && labels.is_empty() {
            return Ok(found);
        }
        let mut cursor = HalfEdgeCursor::default();
        let mut half_edges = Vec::new();
        loop {
            context.check()?;
            half_edges.clear();
            let more =
                context.transaction.half_edges(vertex, direction, &labels, &mut cursor, SCAN_ROWS, &mut half_edges);
            for half_edge in &half_edges {
                check(half_edge.edge, context)?;
            }
            if !more {
                return Ok(found);
            }
        }
    }
    let mut cursor = ScanCursor::default();
    let mut edges = Vec::new();
    loop {
        context.check()?;
        edges.clear();
        let more = context.transaction.scan_edges(&mut cursor, SCAN_ROWS, &mut edges);
        for edge in &edges {
            check(*edge, context)?;
        }
        if !more {
            return Ok(found);
        }
    }
}

/// The edges from one vertex to another, of one label if that is asked for. What is recorded as read are these alone: so many can merge edges
/// to one vertex at a time.
fn edges_between(
    out: VertexId,
    into: VertexId,
    labels: Option<&Vec<LabelId>>,
    context: &mut QueryContext,
) -> Result<Vec<EdgeId>> {
    let labels = match labels {
        // No edge ever had the label, which is recorded as well.
        Some(labels) if labels.is_empty() => return Ok(Vec::new()),
        labels => labels.map_or(&[] as &[LabelId], Vec::as_slice),
    };
    let (mut between, mut found, mut more) = (Between::to(into), Vec::new(), true);
    while more {
        context.check()?;
        more = between.read(&context.transaction, out, Direction::Out, labels, &mut found);
    }
    Ok(found.into_iter().map(|half_edge| half_edge.edge).collect())
}

impl BranchLogic<Graphs> for MergeScope {
    type State = Merging;

    fn open(
        &mut self,
        input: Traverser,
        state: &mut Merging,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        state.input = Some(input);
        self.advance(state, out, cx)
    }

    fn receive(
        &mut self,
        message: Traverser,
        state: &mut Merging,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        self.take(message.value, state, out, cx)?;
        self.advance(state, out, cx)
    }

    fn arm_ended(&mut self, state: &mut Merging, _out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        Err(QueryError::invalid(format!(
            "The provided traverser does not map to a value: an argument of {}() ({:?}) yielded nothing",
            self.step_name(),
            state.stage
        )))
    }
}

/// Adds the scope of a merging node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let mut arms: Vec<&Traversal> = Vec::new();
    let scope = match node {
        Node::MergeVertex { search, on_create, on_match, match_cardinality, create_cardinality, start } => MergeScope {
            edges: false,
            starts: *start,
            search: input(search.as_ref(), &mut arms),
            on_create: input(on_create.as_ref(), &mut arms),
            on_match: input(on_match.as_ref(), &mut arms),
            out_vertex: None,
            in_vertex: None,
            match_cardinality: *match_cardinality,
            create_cardinality: *create_cardinality,
            step: step.clone(),
        },
        Node::MergeEdge { search, on_create, on_match, out_vertex, in_vertex, start } => MergeScope {
            edges: true,
            starts: *start,
            search: input(search.as_ref(), &mut arms),
            on_create: input(on_create.as_ref(), &mut arms),
            on_match: input(on_match.as_ref(), &mut arms),
            out_vertex: input(out_vertex.as_ref(), &mut arms),
            in_vertex: input(in_vertex.as_ref(), &mut arms),
            match_cardinality: None,
            create_cardinality: None,
            step: step.clone(),
        },
        _ => return Err(QueryError::invalid(format!("{node} does not merge"))),
    };
    let options = BranchOptions { arm_rows_limit: 1, ..BranchOptions::default() };
    builder.branch(chain, node, false, &arms, options, move || scope.clone())
}

fn input<'a>(given: Option<&'a ValueOrTraversal>, arms: &mut Vec<&'a Traversal>) -> Option<Input> {
    given.map(|given| match given {
        ValueOrTraversal::Value(value) => Input::Value(value.clone()),
        ValueOrTraversal::Traversal(traversal) => {
            arms.push(traversal);
            Input::Arm(arms.len() - 1)
        }
    })
}
