//! `pageRank()`, `connectedComponent()`, `peerPressure()`, `shortestPath()`: programs over the whole graph.
//!
//! The step is a barrier. When all traversers are there, it settles which edges the program goes along (all of a label, or chosen one by one), runs the
//! program on the threads of analytics while the query waits, and lets the traversers go: what was computed is a property that this query sees (see
//! [`crate::computed`]). `shortestPath()` replaces each by paths from where it stands, which are made one after the other as they are wanted; between few
//! vertices it first looks for them in the store.
//!
//! Source: the vertex programs of Apache TinkerPop 3.8, whose answers these are: default edges, iterations, convergence, and which of equal
//! clusters is taken.

mod between;
mod edges;
mod paths;
mod run;

use std::collections::HashMap;
use std::sync::Arc;

use ficus_analytics::{Projection, ProjectionOptions};
use ficus_dataflow::{Flow, NodeName, Queue};
use ficus_model::{Direction, Value, VertexId};
use ficus_storage::ScanCursor;

use crate::budget::Held;
use crate::computed::ComputedValues;
use crate::context::{Cx, QueryContext, Result};
use crate::elements::LabelSet;
use crate::error::QueryError;
use crate::logical::{Node, VertexProgram, VertexProgramKind};
use crate::modulate::{ModulatedLogic, Request, Subject};
use crate::operators::source::{ids_of, resolve_vertex};
use crate::physical::{Builder, Chain, Modulators};
use crate::rules::Rule;
use crate::services::programs::background::{Background, Part};
use crate::traverser::{StepInfo, Traverser};
use between::{Outcome, PairRows};
use edges::{Chosen, EdgeScan, Length, Test, all_vertices, length_of};
use paths::{PathOptions, PathRows, PathWays, Source};

/// Vertices looked at between two looks at whether the turn is over.
const VERTICES_PER_LOOK: usize = 1 << 10;

/// How a program is run, as far as its step says.
#[derive(Clone)]
struct Setup {
    program: Arc<VertexProgram>,
    direction: Direction,
    labels: LabelSet,
    /// Edges that it goes along.
    edges: Test,
    /// How long they are.
    length: Length,
    /// Where paths end.
    target: Test,
    /// The ids that the conditions on these name, if they do.
    target_ids: Option<Vec<Value>>,
    step: StepInfo,
}

struct ProgramLogic {
    setup: Setup,
    traversers: Vec<Traverser>,
    /// The elements that arms were asked about; set with the first traverser.
    asked: Option<Asked>,
    targets: Option<Vec<VertexId>>,
    chosen: Option<Vec<Chosen>>,
    stage: Stage,
    held: Held,
}

/// What arms were asked, in this order.
#[derive(Default)]
struct Asked {
    vertices: Vec<VertexId>,
    edges: Vec<Chosen>,
}

enum Stage {
    /// Traversers are coming in.
    Gathering,
    /// Targets are being looked for.
    Targeting(ScanCursor),
    /// Edges are being chosen.
    Choosing(EdgeScan),
    /// The program may begin.
    Ready,
    /// A program runs.
    Running(Background<(Arc<Projection>, ComputedValues)>),
    /// Paths between few vertices are looked for in the store.
    Pairs(Box<PairRows>, PathOptions),
    /// Edges are put in order for the paths of these sources; the first has had those to some targets.
    Listing(PathOptions, Background<(Arc<Projection>, PathWays)>, Vec<Source>, Vec<VertexId>),
    /// Traversers are on their way out.
    Emitting(std::vec::IntoIter<Traverser>),
    /// Paths are.
    Paths(Box<PathRows>),
}

impl ProgramLogic {
    fn new(setup: Setup) -> ProgramLogic {
        ProgramLogic {
            setup,
            traversers: Vec::new(),
            asked: None,
            targets: None,
            chosen: None,
            stage: Stage::Gathering,
            held: Held::default(),
        }
    }

    /// The labels of edges; `None` for all.
    fn labels(&mut self, context: &QueryContext) -> Option<Vec<ficus_model::LabelId>> {
        let is_all = self.setup.labels.is_all();
        let mut labels = self.setup.labels.ids(context).map(<[_]>::to_vec).unwrap_or_default();
        labels.sort_unstable();
        labels.dedup();
        (!is_all).then_some(labels)
    }

    /// Whether edges have to be known one by one.
    fn needs_chosen(&self) -> bool {
        let is_told_apart =
            matches!(self.setup.program.kind, VertexProgramKind::ShortestPath { include_edges: true, .. });
        is_told_apart || !matches!((&self.setup.edges, &self.setup.length), (Test::All, Length::One))
    }

    fn ask(&mut self, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        let mut asked = Asked::default();
        let request = |modulator: usize, value: Value| Request { modulator, subject: Subject::Value(value) };
        if let Test::Arm(arm) = self.setup.target {
            asked.vertices = all_vertices(cx)?;
            list.extend(asked.vertices.iter().map(|vertex| request(arm, Value::Vertex(*vertex))));
        }
        let test = if let Test::Arm(arm) = self.setup.edges { Some(arm) } else { None };
        let length = if let Length::Arm(arm) = self.setup.length { Some(arm) } else { None };
        if test.is_some() || length.is_some() {
            let labels = self.labels(cx.context);
            let mut scan = EdgeScan::default();
            loop {
                cx.context.check()?;
                let context = &*cx.context;
                let more = scan.next(context, labels.as_deref(), |edge| {
                    if let Test::Conditions(conditions) = &mut self.setup.edges
                        && !conditions.test(&Value::Edge(edge.edge), context)?
                    {
                        return Ok(());
                    }
                    list.extend(test.iter().chain(&length).map(|arm| request(*arm, Value::Edge(edge.edge))));
                    asked.edges.push(edge);
                    Ok(())
                })?;
                if !more {
                    break;
                }
            }
        }
        let bytes = list.len() * (size_of::<Request>() + size_of::<Option<Value>>());
        self.held.add(&cx.context.memory, bytes)?;
        self.asked = Some(asked);
        Ok(())
    }

    /// Takes what arms answered.
    fn answered(&mut self, results: &mut Vec<Option<Value>>, context: &QueryContext) -> Result<()> {
        let Some(asked) = self.asked.as_mut().filter(|_| !results.is_empty()) else { return Ok(()) };
        let mut results = results.drain(..);
        if matches!(self.setup.target, Test::Arm(_)) {
            let vertices = std::mem::take(&mut asked.vertices);
            let passed = vertices.into_iter().zip(&mut results).filter(|(_, result)| result.is_some());
            self.targets = Some(passed.map(|(vertex, _)| vertex).collect());
        }
        let has_test = matches!(self.setup.edges, Test::Arm(_));
        if has_test || matches!(self.setup.length, Length::Arm(_)) {
            let mut chosen = Vec::new();
            for mut edge in std::mem::take(&mut asked.edges) {
                let passes = !has_test || results.next().flatten().is_some();
                edge.length = match &mut self.setup.length {
                    Length::One => 1.0,
                    Length::Key(key) => length_of(context.property_value(&Value::Edge(edge.edge), key))?,
                    Length::Arm(_) => length_of(results.next().flatten())?,
                };
                if passes {
                    chosen.push(edge);
                }
            }
            self.chosen = Some(chosen);
        }
        Ok(())
    }

    /// Looks at the next vertices; true after the last.
    fn find_targets(&mut self, cursor: &mut ScanCursor, cx: &mut Cx<'_>) -> Result<bool> {
        let Test::Conditions(conditions) = &mut self.setup.target else { return Ok(true) };
        let mut vertices = Vec::new();
        let more = match &self.setup.target_ids {
            Some(ids) => {
                vertices.extend(ids.iter().filter_map(|id| resolve_vertex(cx.context, id)));
                vertices.sort_unstable();
                vertices.dedup();
                false
            }
            None => cx.context.transaction.scan_vertices(cursor, VERTICES_PER_LOOK, &mut vertices),
        };
        cx.charge(vertices.len() / 4 + 1);
        let targets = self.targets.get_or_insert_default();
        for vertex in vertices {
            if conditions.test(&Value::Vertex(vertex), cx.context)? {
                targets.push(vertex);
            }
        }
        Ok(!more)
    }

    /// Looks at the next edges; true after the last.
    fn choose(&mut self, scan: &mut EdgeScan, cx: &mut Cx<'_>) -> Result<bool> {
        let labels = self.labels(cx.context);
        let chosen = self.chosen.get_or_insert_default();
        let before = chosen.len();
        let (edges, length, context) = (&mut self.setup.edges, &mut self.setup.length, &*cx.context);
        let more = scan.next(context, labels.as_deref(), |mut edge| {
            let value = Value::Edge(edge.edge);
            if let Test::Conditions(conditions) = edges
                && !conditions.test(&value, context)?
            {
                return Ok(());
            }
            if let Length::Key(key) = length {
                edge.length = length_of(context.property_value(&value, key))?;
            }
            chosen.push(edge);
            Ok(())
        })?;
        let grown = (chosen.len() - before) * size_of::<Chosen>();
        self.held.add(&cx.context.memory, grown)?;
        cx.charge(VERTICES_PER_LOOK / 4);
        Ok(!more)
    }

    /// Begins the program.
    fn begin(&mut self, cx: &mut Cx<'_>) -> Result<Stage> {
        let chosen = self.chosen.take();
        let ends = |chosen: &Vec<Chosen>| chosen.iter().map(|edge| (edge.out, edge.into)).collect();
        let is_search = matches!(self.setup.program.kind, VertexProgramKind::ShortestPath { .. });
        let part = match &chosen {
            Some(chosen) => Part::Edges(ends(chosen)),
            None => {
                let options = ProjectionOptions { edge_labels: self.labels(cx.context), edges: None };
                if is_search { Part::Walked(options) } else { Part::Labels(options) }
            }
        };
        let direction = self.setup.direction;
        let VertexProgramKind::ShortestPath { distance_limit, include_edges, .. } = self.setup.program.kind else {
            let here = self.setup.program.is_behind_steps.then(|| counts(&self.traversers));
            return Ok(Stage::Running(run::begin(&self.setup.program, direction, part, here, cx)?));
        };
        let edges = chosen.as_ref().filter(|_| include_edges);
        let options = PathOptions {
            direction,
            distance_limit: distance_limit.unwrap_or(f64::INFINITY),
            edges: edges.map(|chosen| Arc::new(chosen.iter().map(|edge| edge.edge).collect())),
            targets: self.targets.take().map(Arc::new),
            step: self.setup.step.clone(),
        };
        let sources = self.sources()?;
        let Part::Walked(walked) = &part else { return self.list(options, part, chosen, sources, Vec::new(), cx) };
        match PairRows::new(&options, walked.edge_labels.clone(), sources) {
            Ok(pairs) => Ok(Stage::Pairs(Box::new(pairs), options)),
            Err(sources) => self.list(options, part, None, sources, Vec::new(), cx),
        }
    }

    /// Begins to put edges in order for the paths of these sources.
    fn list(
        &self,
        options: PathOptions,
        part: Part,
        chosen: Option<Vec<Chosen>>,
        sources: Vec<Source>,
        had: Vec<VertexId>,
        cx: &mut Cx<'_>,
    ) -> Result<Stage> {
        let (direction, are_told_apart) = (options.direction, options.edges.is_some());
        let bytes = (16, if chosen.is_some() { 96 } else { 0 });
        let background = Background::begin("shortestPath()", part, bytes, cx, move |projection, _, _| {
            let ways = match chosen {
                None => PathWays::Unit,
                Some(chosen) => PathWays::Listed(paths::listed(&projection, &chosen, direction, are_told_apart)?),
            };
            Ok((projection, ways))
        })?;
        Ok(Stage::Listing(options, background, sources, had))
    }

    /// Traversers by the vertex they stand at, in the order in which these came first.
    fn sources(&mut self) -> Result<Vec<Source>> {
        let mut positions = HashMap::new();
        let mut sources: Vec<Source> = Vec::new();
        for traverser in self.traversers.drain(..) {
            let Value::Vertex(vertex) = traverser.value else {
                return Err(QueryError::invalid(format!(
                    "shortestPath() begins at vertices, but the traverser holds a {}",
                    traverser.value.type_name()
                )));
            };
            let position = *positions.entry(vertex).or_insert(sources.len());
            if position == sources.len() {
                sources.push((vertex, Vec::new()));
            }
            sources[position].1.push(traverser);
        }
        Ok(sources)
    }
}

/// How many traversers stand at each vertex.
fn counts(traversers: &[Traverser]) -> HashMap<VertexId, u64> {
    let mut counts = HashMap::new();
    for traverser in traversers {
        if let Value::Vertex(vertex) = traverser.value {
            *counts.entry(vertex).or_insert(0) += traverser.bulk;
        }
    }
    counts
}

impl ModulatedLogic for ProgramLogic {
    fn requests(&mut self, _traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        match self.asked {
            Some(_) => Ok(()),
            None => self.ask(cx, list),
        }
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        _out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        self.answered(results, cx.context)?;
        self.held.add(&cx.context.memory, size_of::<Traverser>() + traverser.value.size_hint_bytes())?;
        self.traversers.push(traverser);
        Ok(())
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if cx.exhausted() {
                return Ok(Flow::More);
            }
            self.stage = match std::mem::replace(&mut self.stage, Stage::Gathering) {
                Stage::Gathering if self.traversers.is_empty() => return Ok(Flow::Ready),
                Stage::Gathering => Stage::Targeting(ScanCursor::default()),
                Stage::Targeting(mut cursor) => match self.find_targets(&mut cursor, cx)? {
                    false => Stage::Targeting(cursor),
                    true if self.chosen.is_none() && self.needs_chosen() => Stage::Choosing(EdgeScan::default()),
                    true => Stage::Ready,
                },
                Stage::Choosing(mut scan) => match self.choose(&mut scan, cx)? {
                    false => Stage::Choosing(scan),
                    true => Stage::Ready,
                },
                Stage::Ready => self.begin(cx)?,
                Stage::Running(mut background) => match background.outcome(cx)? {
                    None => {
                        self.stage = Stage::Running(background);
                        return Ok(Flow::More);
                    }
                    Some((projection, values)) => {
                        background.release(cx.context);
                        // Kept until the query ends.
                        cx.context.memory.adjust((projection.vertex_count() * size_of::<f64>()) as isize)?;
                        cx.context.computed.add(self.setup.program.property.clone(), projection, values);
                        Stage::Emitting(std::mem::take(&mut self.traversers).into_iter())
                    }
                },
                Stage::Pairs(mut pairs, options) => match pairs.emit(out, cx)? {
                    Outcome::Ended => {
                        self.held.give_back();
                        return Ok(Flow::Ready);
                    }
                    Outcome::Paused => {
                        self.stage = Stage::Pairs(pairs, options);
                        return Ok(Flow::More);
                    }
                    Outcome::Large(sources, had) => {
                        let edge_labels = self.labels(cx.context);
                        let part = Part::Walked(ProjectionOptions { edge_labels, edges: None });
                        self.list(options, part, None, sources, had, cx)?
                    }
                },
                Stage::Listing(options, mut background, sources, had) => match background.outcome(cx)? {
                    None => {
                        self.stage = Stage::Listing(options, background, sources, had);
                        return Ok(Flow::More);
                    }
                    Some((projection, ways)) => {
                        background.release(cx.context);
                        Stage::Paths(Box::new(PathRows::new(options, projection, ways, sources, had)))
                    }
                },
                Stage::Emitting(mut traversers) => {
                    while !cx.should_pause(out) {
                        let Some(traverser) = traversers.next() else {
                            self.held.give_back();
                            return Ok(Flow::Ready);
                        };
                        out.push_back(traverser);
                    }
                    self.stage = Stage::Emitting(traversers);
                    return Ok(Flow::More);
                }
                Stage::Paths(mut rows) => {
                    if rows.emit(out, cx)? {
                        self.held.give_back();
                        return Ok(Flow::Ready);
                    }
                    self.stage = Stage::Paths(rows);
                    return Ok(Flow::More);
                }
            };
        }
    }

    fn release(&mut self, context: &mut QueryContext) {
        match &mut self.stage {
            Stage::Running(background) => background.release(context),
            Stage::Pairs(pairs, _) => pairs.release(context),
            Stage::Listing(_, background, ..) => background.release(context),
            Stage::Paths(rows) => rows.release(context),
            _ => {}
        }
        self.held.give_back();
    }

    fn reset(&mut self) {
        *self = ProgramLogic::new(self.setup.clone());
    }
}

/// Adds the operator.
pub fn build(builder: &mut Builder, program: &VertexProgram, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (direction, labels, rest) = edges::hop(&program.edges)?;
    let mut modulators = Modulators::new();
    let edges = Test::of(&rest, &mut modulators)?;
    let (mut target, mut length, mut target_ids) = (Test::All, Length::One, None);
    let name = NodeName::new(Node::VertexProgram(program.clone()));
    if let VertexProgramKind::ShortestPath { target: of_target, distance, .. } = &program.kind {
        target = Test::of(of_target, &mut modulators)?;
        target_ids = match of_target.nodes.first().map(|own| &own.node) {
            Some(Node::Has { containers }) if builder.may(Rule::IdLookup) => ids_of(containers),
            _ => None,
        };
        if target_ids.is_some() && matches!(target, Test::Conditions(_)) {
            builder.note(Rule::IdLookup, &name);
        }
        length = Length::of(distance.as_deref(), &mut modulators);
    }
    let (program, step) = (Arc::new(program.clone()), step.clone());
    let setup = Setup { program, direction, labels, edges, length, target, target_ids, step };
    builder.modulated(chain, &name, false, modulators, move || ProgramLogic::new(setup.clone()))
}
