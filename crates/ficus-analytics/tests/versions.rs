//! Projections that follow a graph: each version answers as one that was made anew, whatever was written in between.

#![allow(clippy::print_stdout, reason = "a failed test prints its seed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use ficus_analytics::question::Common;
use ficus_analytics::service::Delivery;
use ficus_analytics::{
    Analytics, AnalyticsOptions, EdgeFilter, Hops, KHopRequest, Line, Place, Projection, ProjectionOptions, Question,
    Unlimited, VertexFilter, Walk, answer, single_source,
};
use ficus_model::{Cardinality, Direction, EdgeId, Value, VertexId};
use ficus_storage::{Environment, Graph, Snapshot, Store, StoreOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const WAYS: [Direction; 3] = [Direction::Out, Direction::In, Direction::Both];

fn is_even(value: Option<Value>) -> bool {
    matches!(value, Some(Value::Long(number)) if number % 2 == 0)
}

/// Vertices whose `n` is even.
fn even_vertices() -> VertexFilter {
    VertexFilter::new("even".into(), |snapshot: Snapshot| {
        Box::new(move |vertex| Some(is_even(snapshot.key_id("n").and_then(|key| snapshot.vertex_value(vertex, key)))))
    })
}

/// Edges whose `n` is even.
fn even_edges() -> EdgeFilter {
    EdgeFilter::new("even".into(), |snapshot: Snapshot| {
        Box::new(move |edge| Some(is_even(snapshot.key_id("n").and_then(|key| snapshot.edge_value(edge, key)))))
    })
}

/// What a writer has made and not removed.
struct Writer {
    graph: Arc<Graph>,
    random: StdRng,
    vertices: Vec<VertexId>,
    edges: Vec<EdgeId>,
}

impl Writer {
    fn new(graph: Arc<Graph>, seed: u64) -> Writer {
        Writer { graph, random: StdRng::seed_from_u64(seed), vertices: Vec::new(), edges: Vec::new() }
    }

    /// One transaction of some changes.
    fn step(&mut self, changes: usize) {
        let mut writing = self.graph.begin();
        for _ in 0..changes {
            let number = Value::Long(self.random.random_range(0..100));
            let kind = if self.vertices.len() < 2 { 0 } else { self.random.random_range(0..20) };
            let pick = |random: &mut StdRng, length: usize| (random.random::<f64>().powi(2) * length as f64) as usize;
            match kind {
                0..=2 => {
                    let vertex = writing.add_vertex("v", None).unwrap();
                    writing.set_vertex_property(vertex, "n", number, Cardinality::Single, None).unwrap();
                    self.vertices.push(vertex);
                }
                3..=12 => {
                    let out = self.vertices[pick(&mut self.random, self.vertices.len())];
                    let into = self.vertices[pick(&mut self.random, self.vertices.len())];
                    let label = ["a", "b"][self.random.random_range(0..2)];
                    let edge = writing.add_edge(label, out, into, None).unwrap();
                    writing.set_edge_property(edge, "n", number).unwrap();
                    self.edges.push(edge);
                }
                13 => {
                    let vertex = self.vertices[pick(&mut self.random, self.vertices.len())];
                    writing.set_vertex_property(vertex, "n", number, Cardinality::Single, None).unwrap();
                }
                14 if self.random.random_range(0..4) == 0 => {
                    let vertex = self.vertices.swap_remove(pick(&mut self.random, self.vertices.len()));
                    writing.remove_vertex(vertex).unwrap();
                }
                15..=17 if !self.edges.is_empty() => {
                    let edge = self.edges.swap_remove(pick(&mut self.random, self.edges.len()));
                    if writing.edge_exists(edge) {
                        writing.remove_edge(edge).unwrap();
                    }
                }
                _ if !self.edges.is_empty() => {
                    let edge = self.edges[pick(&mut self.random, self.edges.len())];
                    if writing.edge_exists(edge) {
                        writing.set_edge_property(edge, "n", number).unwrap();
                    }
                }
                _ => {}
            }
        }
        writing.commit().unwrap();
    }
}

/// Vertices and neighbours by id, which versions agree about; places they do not.
fn content(projection: &Projection) -> Vec<(VertexId, Vec<VertexId>, Vec<VertexId>)> {
    let there = |place: &Place| projection.place(projection.vertex(*place)) == Some(*place);
    let named = |places: &[Place]| {
        assert!(places.is_sorted());
        let mut named: Vec<VertexId> = places.iter().map(|place| projection.vertex(*place)).collect();
        named.sort_unstable();
        named
    };
    let all = 0..projection.vertex_count() as Place;
    let of = |place: Place| {
        let lists = (named(projection.out().of(place)), named(projection.into().of(place)));
        assert_eq!(lists.0.len() as u64, projection.out().degree(place));
        (projection.vertex(place), lists.0, lists.1)
    };
    let mut content: Vec<_> = all.clone().filter(there).map(of).collect();
    content.sort_unstable();
    for place in all.filter(|place| !there(place)) {
        assert_eq!((projection.out().degree(place), projection.into().degree(place)), (0, 0), "an empty place");
    }
    let edges: usize = content.iter().map(|(_, out, _)| out.len()).sum();
    assert_eq!((projection.out().edge_count(), projection.into().edge_count()), (edges as u64, edges as u64));
    content
}

/// Numbers of vertices by hop, and the vertices, of some questions: in a pass, and each alone.
fn answers(projection: &Projection, sources: &[VertexId], allowed: Option<&[u64]>) -> Vec<(Vec<u64>, Vec<VertexId>)> {
    let mut all = Vec::new();
    for direction in WAYS {
        for walk in [Walk::Within, Walk::WithinOrSource, Walk::Exactly] {
            let common = Common { projection, direction, walk, allowed };
            let questions: Vec<Question> =
                sources.iter().map(|source| Question::from(projection.place(*source).unwrap(), Hops(3))).collect();
            let together = answer(common, &questions, &Unlimited).unwrap();
            for (question, in_pass) in questions.iter().zip(together) {
                let (alone, places) = single_source::reached(common, question, &Unlimited).unwrap();
                assert_eq!(in_pass.count(walk, Hops(3)), alone.count(walk, Hops(3)));
                let mut vertices: Vec<VertexId> = places.into_iter().map(|place| projection.vertex(place)).collect();
                vertices.sort_unstable();
                let mut levels = alone.levels;
                while levels.last() == Some(&0) {
                    levels.pop();
                }
                all.push((levels, vertices));
            }
        }
    }
    all
}

#[test]
fn versions_are_as_if_made_anew() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut patched = 0;
    for _ in 0..12 {
        let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
        let mut writer = Writer::new(store.create_graph("g").unwrap(), random.random());
        writer.step(random.random_range(50..3000));
        if random.random() {
            store.consolidate().unwrap();
        }
        let first = writer.graph.snapshot();
        let label = first.label_id("a");
        let all_options = [
            ProjectionOptions::default(),
            ProjectionOptions { edge_labels: Some(label.into_iter().collect()), edges: None },
            ProjectionOptions { edge_labels: None, edges: Some(even_edges()) },
            ProjectionOptions { edge_labels: Some(label.into_iter().collect()), edges: Some(even_edges()) },
        ];
        let mut versions: Vec<Projection> =
            all_options.iter().map(|options| Projection::new(&first, options, &Unlimited).unwrap()).collect();
        for version in &versions {
            version.allowed(&first, &even_vertices(), &Unlimited).unwrap();
        }
        for _ in 0..random.random_range(1..12) {
            let changes = random.random_range(1..40);
            writer.step(changes);
            let snapshot = writer.graph.snapshot();
            for (version, options) in versions.iter_mut().zip(&all_options) {
                let anew = Projection::new(&snapshot, options, &Unlimited).unwrap();
                // A consolidation, or too much at once: then one is made anew.
                let Some(next) = version.patched(&snapshot, &Unlimited).unwrap() else {
                    anew.allowed(&snapshot, &even_vertices(), &Unlimited).unwrap();
                    *version = anew;
                    continue;
                };
                patched += 1;
                assert_eq!(content(&next), content(&anew));
                let sources: Vec<VertexId> =
                    (0..5).map(|number| writer.vertices[number * 7 % writer.vertices.len()]).collect();
                assert_eq!(answers(&next, &sources, None), answers(&anew, &sources, None));
                let known = next.known_allowed(&even_vertices()).expect("versions know what was asked before");
                let found = anew.allowed(&snapshot, &even_vertices(), &Unlimited).unwrap();
                assert_eq!(answers(&next, &sources, Some(&known)), answers(&anew, &sources, Some(&found)));
                *version = next;
            }
        }
        // Back to where it began: an earlier state is a version as well.
        for (version, options) in versions.iter().zip(&all_options) {
            if let Some(back) = version.patched(&first, &Unlimited).unwrap() {
                assert_eq!(content(&back), content(&Projection::new(&first, options, &Unlimited).unwrap()));
            }
        }
    }
    assert!(patched > 50, "only {patched} versions were made from others");
}

/// What a walk reaches, over sets, on the store.
fn expected(
    snapshot: &Snapshot,
    source: VertexId,
    direction: Direction,
    hops: u32,
    filter: Option<&VertexFilter>,
) -> Vec<VertexId> {
    let neighbours = snapshot.neighbours(direction, None);
    let mut test = filter.map(|filter| filter.on(snapshot.clone()));
    let mut frontier = vec![source];
    let mut reached = std::collections::BTreeSet::new();
    for _ in 0..hops {
        let mut next = Vec::new();
        for vertex in frontier {
            neighbours.visit(vertex, &mut |slice| {
                slice.for_each(|neighbour| {
                    let is_allowed = test.as_mut().is_none_or(|test| test(neighbour).unwrap());
                    if is_allowed && reached.insert(neighbour) {
                        next.push(neighbour);
                    }
                });
            });
        }
        frontier = next;
    }
    reached.into_iter().collect()
}

/// Rounds of questions of an asker, and more where the machine is so busy that few versions were made meanwhile.
const ROUNDS: usize = 150;
const ROUNDS_MAX: usize = 20 * ROUNDS;
/// Versions that have to follow the graph for the test to have looked at enough of them.
const VERSIONS: u64 = 100;

#[test]
fn answers_beside_writers_are_those_of_their_states() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let mut writer = Writer::new(graph.clone(), seed);
    writer.step(4000);
    store.consolidate().unwrap();
    let analytics = Analytics::start(AnalyticsOptions { threads: 2, ..AnalyticsOptions::default() }).unwrap();
    analytics.projection(&graph.snapshot(), &ProjectionOptions::default(), &Unlimited).unwrap();
    let sources = writer.vertices.clone();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut written = 0;
            while !is_done.load(Ordering::Relaxed) {
                writer.step(5);
                written += 1;
                if written % 300 == 0 {
                    store.consolidate().unwrap();
                }
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
        });
        let askers: Vec<_> = (0..3u64)
            .map(|asker| {
                let (analytics, graph, sources) = (&analytics, &graph, &sources);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed ^ asker);
                    for round in 0..ROUNDS_MAX {
                        let followed = analytics.counters().versions.load(Ordering::Relaxed);
                        if round >= ROUNDS && followed > VERSIONS {
                            break;
                        }
                        let snapshot = graph.snapshot();
                        let (sender, receiver) = mpsc::channel();
                        let mut asked = Vec::new();
                        for number in 0..random.random_range(1..5) {
                            let source = sources[random.random_range(0..sources.len())];
                            let direction = WAYS[random.random_range(0..3)];
                            let hops = random.random_range(1..5);
                            let vertices = random.random::<bool>().then(even_vertices);
                            asked.push((source, direction, hops, vertices.clone()));
                            let sender = sender.clone();
                            analytics.ask(KHopRequest {
                                snapshot: snapshot.clone(),
                                line: Line {
                                    projection: ProjectionOptions::default(),
                                    direction,
                                    walk: Walk::Within,
                                    vertices,
                                },
                                sources: vec![source],
                                hops: Hops(hops),
                                target: None,
                                wants_vertices: true,
                                control: Arc::new(Unlimited),
                                deliver: Delivery::new(move |reply| sender.send((number, reply)).unwrap()),
                            });
                        }
                        drop(sender);
                        for (number, reply) in receiver {
                            let (source, direction, hops, vertices) = &asked[number];
                            let mut found = reply.unwrap().vertices;
                            found.sort_unstable();
                            let wanted = expected(&snapshot, *source, *direction, *hops, vertices.as_ref());
                            assert_eq!(
                                found,
                                wanted,
                                "{source:?} {direction:?} {hops} hops at {:?}",
                                snapshot.commit_ts()
                            );
                        }
                    }
                })
            })
            .collect();
        let failed = askers.into_iter().map(|asker| asker.join()).filter(|joined| joined.is_err()).count();
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(failed, 0, "an asker failed");
    });
    let versions = analytics.counters().versions.load(Ordering::Relaxed);
    assert!(versions > VERSIONS, "only {versions} versions followed the graph");
}
