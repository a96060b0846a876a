//! Programs against slow and obvious ones on random graphs with loops and parallel edges.

#![allow(clippy::print_stdout, reason = "a failed test prints its seed")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ficus_analytics::programs::{
    BetweennessOptions, EdgeAt, LabelPropagationOptions, ListedEdge, ListedWays, PageRankOptions, Partition,
    PartitionProgram, PathsTo, PeerPressureOptions, ShortestPathOptions, StepBack, UnitWays, VertexProgram, Weights,
    betweenness, core_numbers, degrees, distances as search_distances, label_propagation, page_rank, peer_pressure,
    run_asynchronous, run_partitions, run_synchronous, shortest_distances, steps_back, strong_components, triangles,
    weak_components,
};
use ficus_analytics::{
    Advance, AnalyticsError, BothWays, Control, Place, Projection, ProjectionOptions, TwoSidedSearch, Unlimited,
};
use ficus_model::{Direction, Value, VertexId};
use ficus_storage::{Environment, Graph, Store, StoreOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A graph in the store, its projection, and its edges by place.
struct Sample {
    _store: Arc<Store>,
    graph: Arc<Graph>,
    projection: Projection,
    edges: Vec<(usize, usize, f64)>,
}

impl Sample {
    fn new(random: &mut StdRng, vertices: usize, edges: usize) -> Sample {
        let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
        let graph = store.create_graph("g").unwrap();
        let mut transaction = graph.begin();
        let ids: Vec<VertexId> = (0..vertices).map(|_| transaction.add_vertex("v", None).unwrap()).collect();
        let pick = |random: &mut StdRng| (random.random::<f64>().powi(2) * vertices as f64) as usize;
        let mut chosen = Vec::new();
        for _ in 0..edges {
            // Quarters add without rounding, so equal distances are equal.
            let weight = f64::from(random.random_range(0..20u32)) / 4.0;
            let (source, target) = (pick(random), pick(random));
            let edge = transaction.add_edge("e", ids[source], ids[target], None).unwrap();
            transaction.set_edge_property(edge, "weight", Value::Double(weight)).unwrap();
            chosen.push((source, target, weight));
        }
        transaction.commit().unwrap();
        let projection = Projection::new(&graph.snapshot(), &ProjectionOptions::default(), &Unlimited).unwrap();
        let place = |number: usize| projection.place(ids[number]).unwrap() as usize;
        let edges = chosen.into_iter().map(|(a, b, weight)| (place(a), place(b), weight)).collect();
        Sample { _store: store, graph, projection, edges }
    }

    fn len(&self) -> usize {
        self.projection.vertex_count()
    }

    /// Pairs along which a hop of this direction goes.
    fn hops(&self, direction: Direction) -> Vec<(usize, usize, f64)> {
        let out = self.edges.iter().copied().filter(|_| direction != Direction::In);
        let into = self.edges.iter().map(|(a, b, w)| (*b, *a, *w)).filter(|_| direction != Direction::Out);
        out.chain(into).collect()
    }

    /// Neighbours without direction, loops and parallel edges.
    fn simple(&self) -> Vec<BTreeSet<usize>> {
        let mut simple = vec![BTreeSet::new(); self.len()];
        for (a, b, _) in self.edges.iter().filter(|(a, b, _)| a != b) {
            simple[*a].insert(*b);
            simple[*b].insert(*a);
        }
        simple
    }

    fn distances(&self, direction: Direction, sources: &[Place], is_weighted: bool) -> Vec<f64> {
        let mut distances = vec![f64::INFINITY; self.len()];
        sources.iter().for_each(|source| distances[*source as usize] = 0.0);
        let hops = self.hops(direction);
        for _ in 0..self.len() {
            for (a, b, weight) in &hops {
                distances[*b] = distances[*b].min(distances[*a] + if is_weighted { *weight } else { 1.0 });
            }
        }
        distances
    }
}

/// Runs a check on random graphs of different shapes.
fn on_random_graphs(check: impl Fn(&mut StdRng, &Sample)) {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..25 {
        let vertices = random.random_range(1..120);
        let edges = random.random_range(0..vertices * 5);
        let sample = Sample::new(&mut random, vertices, edges);
        check(&mut random, &sample);
    }
}

fn direction(random: &mut StdRng) -> Direction {
    [Direction::Out, Direction::In, Direction::Both][random.random_range(0..3)]
}

#[test]
fn page_ranks_are_those_of_a_matrix() {
    on_random_graphs(|random, sample| {
        let direction = direction(random);
        let count = sample.len();
        let restart: Option<Vec<(Place, f64)>> = random
            .random_bool(0.5)
            .then(|| (0..3).map(|n| (random.random_range(0..count as Place), f64::from(n + 1))).collect());
        let iterations_limit = random.random_range(0..30);
        let options = PageRankOptions { direction, tolerance: 0.0, iterations_limit, restart, ..Default::default() };
        let hops = sample.hops(direction);
        let mut share = vec![0.0; count];
        match &options.restart {
            None => share.fill(1.0 / count as f64),
            Some(given) => given.iter().for_each(|(place, part)| share[*place as usize] += part / 6.0),
        }
        let mut degree = vec![0.0; count];
        hops.iter().for_each(|(a, _, _)| degree[*a] += 1.0);
        let mut ranks = vec![1.0 / count as f64; count];
        for _ in 0..iterations_limit {
            let dangling: f64 = (0..count).filter(|v| degree[*v] == 0.0).map(|v| ranks[v]).sum();
            let mut next: Vec<f64> = share.iter().map(|share| (0.15 + 0.85 * dangling) * share).collect();
            hops.iter().for_each(|(a, b, _)| next[*b] += 0.85 * ranks[*a] / degree[*a]);
            ranks = next;
        }
        let found = page_rank(&sample.projection, &options, &Unlimited).unwrap();
        for (found, expected) in found.ranks.iter().zip(&ranks) {
            assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
        }
        assert!((found.ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    });
}

#[test]
fn page_rank_ends_when_ranks_stand_still() {
    let sample = Sample::new(&mut StdRng::seed_from_u64(3), 50, 200);
    let options = PageRankOptions { tolerance: 1e-6, ..PageRankOptions::default() };
    let found = page_rank(&sample.projection, &options, &Unlimited).unwrap();
    assert!(found.is_converged && found.change < 1e-6 && found.iterations < 100, "{found:?}");
    let wrong = PageRankOptions { damping: 1.5, ..PageRankOptions::default() };
    let error = page_rank(&sample.projection, &wrong, &Unlimited).unwrap_err();
    assert!(matches!(error, AnalyticsError::Invalid { parameter: "damping", .. }), "{error}");
}

#[test]
fn components_are_those_of_reachability() {
    on_random_graphs(|_, sample| {
        let reach = |direction: Direction| -> Vec<BTreeSet<usize>> {
            let reached = |source: usize| {
                let distances = sample.distances(direction, &[source as Place], false);
                (0..sample.len()).filter(|v| distances[*v].is_finite()).collect()
            };
            (0..sample.len()).map(reached).collect()
        };
        let (out, into, both) = (reach(Direction::Out), reach(Direction::In), reach(Direction::Both));
        let weak: Vec<Place> = both.iter().map(|reached| *reached.first().unwrap() as Place).collect();
        assert_eq!(weak_components(&sample.projection, &Unlimited).unwrap(), weak);
        let strong: Vec<Place> =
            out.iter().zip(&into).map(|(out, into)| *out.intersection(into).next().unwrap() as Place).collect();
        assert_eq!(strong_components(&sample.projection, &Unlimited).unwrap(), strong);
    });
}

#[test]
fn a_long_chain_is_one_component_and_as_many_strong_ones() {
    let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let mut transaction = graph.begin();
    let ids: Vec<VertexId> = (0..50_000).map(|_| transaction.add_vertex("v", None).unwrap()).collect();
    for pair in ids.windows(2) {
        transaction.add_edge("e", pair[0], pair[1], None).unwrap();
    }
    transaction.commit().unwrap();
    let projection = Projection::new(&graph.snapshot(), &ProjectionOptions::default(), &Unlimited).unwrap();
    assert!(weak_components(&projection, &Unlimited).unwrap().iter().all(|component| *component == 0));
    let strong: BTreeSet<Place> = strong_components(&projection, &Unlimited).unwrap().into_iter().collect();
    assert_eq!(strong.len(), ids.len());
}

#[test]
fn distances_are_those_of_relaxing_every_edge() {
    on_random_graphs(|random, sample| {
        let direction = direction(random);
        let sources: Vec<Place> = (0..2).map(|_| random.random_range(0..sample.len() as Place)).collect();
        let options = ProjectionOptions::default();
        let snapshot = sample.graph.snapshot();
        let weights = Weights::new(&snapshot, &sample.projection, &options, "weight", None, &Unlimited).unwrap();
        for weights in [None, Some(&weights)] {
            let expected = sample.distances(direction, &sources, weights.is_some());
            let mut options =
                ShortestPathOptions { sources: sources.clone(), direction, weights, distance_limit: None };
            assert_eq!(shortest_distances(&sample.projection, &options, &Unlimited).unwrap(), expected);
            options.distance_limit = Some(2.0);
            let near: Vec<f64> = expected.iter().map(|d| if *d <= 2.0 { *d } else { f64::INFINITY }).collect();
            assert_eq!(shortest_distances(&sample.projection, &options, &Unlimited).unwrap(), near);
        }
    });
}

#[test]
fn a_missing_or_negative_length_is_refused() {
    let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let mut transaction = graph.begin();
    let (a, b) = (transaction.add_vertex("v", None).unwrap(), transaction.add_vertex("v", None).unwrap());
    let edge = transaction.add_edge("e", a, b, None).unwrap();
    transaction.set_edge_property(edge, "bad", Value::Int(-1)).unwrap();
    transaction.commit().unwrap();
    let options = ProjectionOptions::default();
    let projection = Projection::new(&graph.snapshot(), &options, &Unlimited).unwrap();
    let read = |key: &str, default| Weights::new(&graph.snapshot(), &projection, &options, key, default, &Unlimited);
    assert!(read("bad", None).unwrap_err().to_string().contains("'bad'"));
    assert!(read("none", None).unwrap_err().to_string().contains("no property 'none'"));
    assert_eq!(read("none", Some(2.0)).unwrap().out(), [2.0]);
}

#[test]
fn labels_and_clusters_are_those_of_counting() {
    on_random_graphs(|random, sample| {
        let (direction, count) = (direction(random), sample.len());
        let hops = sample.hops(direction);
        let rounds_limit = random.random_range(0..8);
        let mut labels: Vec<usize> = (0..count).collect();
        for _ in 0..rounds_limit {
            let mut votes = vec![BTreeMap::<usize, u32>::new(); count];
            hops.iter().for_each(|(a, b, _)| *votes[*b].entry(labels[*a]).or_default() += 1);
            let most = |votes: &BTreeMap<usize, u32>| {
                votes.iter().max_by_key(|(l, n)| (**n, std::cmp::Reverse(**l))).map(|(l, _)| *l)
            };
            labels = (0..count).map(|v| most(&votes[v]).unwrap_or(labels[v])).collect();
        }
        let options = LabelPropagationOptions { direction, rounds_limit };
        let (found, _) = label_propagation(&sample.projection, options, &Unlimited).unwrap();
        assert_eq!(found.iter().map(|label| *label as usize).collect::<Vec<_>>(), labels);

        let order: Vec<u32> = (0..count as u32).map(|v| v.wrapping_mul(2_654_435_761)).collect();
        let mut clusters: Vec<usize> = (0..count).collect();
        for _ in 0..rounds_limit {
            let mut votes: Vec<BTreeMap<usize, f64>> =
                (0..count).map(|v| BTreeMap::from([(clusters[v], 1.0)])).collect();
            hops.iter().for_each(|(a, b, _)| *votes[*b].entry(clusters[*a]).or_default() += 1.0);
            let strongest = |votes: &BTreeMap<usize, f64>| {
                let key = |(c, n): &(&usize, &f64)| (**n as u64, std::cmp::Reverse(order[**c]));
                *votes.iter().max_by_key(key).unwrap().0
            };
            clusters = votes.iter().map(strongest).collect();
        }
        let options =
            PeerPressureOptions { direction, rounds_limit, strengths: None, distribute: false, order: &order };
        let (found, _) = peer_pressure(&sample.projection, &options, &Unlimited).unwrap();
        assert_eq!(found.iter().map(|label| *label as usize).collect::<Vec<_>>(), clusters);
    });
}

#[test]
fn triangles_cores_and_degrees_are_those_of_sets() {
    on_random_graphs(|random, sample| {
        let simple = sample.simple();
        let mut of_vertex = vec![0; sample.len()];
        for a in 0..sample.len() {
            for b in simple[a].range(a + 1..) {
                for c in simple[a].intersection(&simple[*b]).filter(|c| *c > b) {
                    [a, *b, *c].into_iter().for_each(|corner| of_vertex[corner] += 1);
                }
            }
        }
        let found = triangles(&sample.projection, &Unlimited).unwrap();
        assert_eq!(found.total, of_vertex.iter().sum::<u64>() / 3);
        assert_eq!(found.of_vertex, of_vertex);

        let mut cores = vec![0; sample.len()];
        for k in 1..sample.len() {
            let mut left: BTreeSet<usize> = (0..sample.len()).collect();
            while let Some(gone) = left.iter().copied().find(|v| simple[*v].intersection(&left).count() < k) {
                left.remove(&gone);
            }
            left.iter().for_each(|v| cores[*v] = k as u32);
            if left.is_empty() {
                break;
            }
        }
        assert_eq!(core_numbers(&sample.projection, &Unlimited).unwrap(), cores);

        let direction = direction(random);
        let mut expected = vec![0; sample.len()];
        sample.hops(direction).iter().for_each(|(a, _, _)| expected[*a] += 1);
        assert_eq!(degrees(&sample.projection, direction), expected);
    });
}

#[test]
fn betweenness_is_that_of_all_pairs() {
    on_random_graphs(|random, sample| {
        let (direction, count) = (direction(random), sample.len());
        let pairs: BTreeSet<(usize, usize)> = sample.hops(direction).iter().map(|(a, b, _)| (*a, *b)).collect();
        let distances: Vec<Vec<f64>> = (0..count).map(|s| sample.distances(direction, &[s as Place], false)).collect();
        // Paths from s to t of the shortest length, by length.
        let paths: Vec<Vec<f64>> = (0..count)
            .map(|s| {
                let mut paths = vec![0.0; count];
                paths[s] = 1.0;
                let mut order: Vec<usize> = (0..count).filter(|v| distances[s][*v].is_finite() && *v != s).collect();
                order.sort_by(|a, b| distances[s][*a].total_cmp(&distances[s][*b]));
                for v in order {
                    let before = pairs.iter().filter(|(a, b)| *b == v && distances[s][*a] + 1.0 == distances[s][v]);
                    paths[v] = before.map(|(a, _)| paths[*a]).sum();
                }
                paths
            })
            .collect();
        let sources: Option<Vec<Place>> =
            random.random_bool(0.5).then(|| (0..5).map(|_| random.random_range(0..count as Place)).collect());
        let mut expected = vec![0.0; count];
        let all: Vec<Place> = (0..count as Place).collect();
        let looked_at = sources.as_ref().unwrap_or(&all);
        for s in looked_at.iter().map(|s| *s as usize) {
            for t in (0..count).filter(|t| *t != s && distances[s][*t].is_finite()) {
                for v in (0..count).filter(|v| *v != s && *v != t) {
                    if distances[s][v] + distances[v][t] == distances[s][t] {
                        expected[v] += paths[s][v] * paths[v][t] / paths[s][t];
                    }
                }
            }
        }
        let scale = count as f64 / looked_at.len() as f64 / if direction == Direction::Both { 2.0 } else { 1.0 };
        let options = BetweennessOptions { direction, sources, normalised: false };
        let found = betweenness(&sample.projection, &options, &Unlimited).unwrap();
        for (found, expected) in found.iter().zip(expected.iter().map(|sum| sum * scale)) {
            assert!((found - expected).abs() <= 1e-9 * expected.max(1.0), "{found} instead of {expected}");
        }
    });
}

/// Distances as a vertex program.
struct Nearest<'a> {
    weights: &'a Weights,
}

impl VertexProgram for Nearest<'_> {
    type Value = f64;
    type Message = f64;

    fn nothing(&self) -> f64 {
        f64::INFINITY
    }

    fn scatter(&self, _vertex: Place, distance: &f64, _degree: u64) -> f64 {
        *distance
    }

    fn along(&self, distance: f64, edge: EdgeAt) -> f64 {
        distance
            + match edge.side {
                Direction::In => self.weights.into()[edge.index],
                _ => self.weights.out()[edge.index],
            }
    }

    fn combine(&self, left: f64, right: f64) -> f64 {
        left.min(right)
    }

    fn apply(&self, _vertex: Place, distance: &f64, gathered: f64, _total: f64) -> f64 {
        distance.min(gathered)
    }

    fn change(&self, before: &f64, after: &f64) -> f64 {
        f64::from(u8::from(before != after))
    }
}

#[test]
fn a_search_for_targets_tells_all_that_is_on_the_way_to_them() {
    on_random_graphs(|random, sample| {
        let direction = direction(random);
        let source = random.random_range(0..sample.len() as Place);
        let mut targets: Vec<Place> =
            (0..random.random_range(0..4)).map(|_| random.random_range(0..sample.len() as Place)).collect();
        targets.sort_unstable();
        targets.dedup();
        let steps = sample.hops(direction).into_iter();
        let steps =
            steps.map(|(from, to, length)| ListedEdge { from: from as Place, to: to as Place, edge: None, length });
        let listed = ListedWays::new(sample.len(), steps.collect()).unwrap();
        let unit = UnitWays::new(&sample.projection, direction);
        for is_weighted in [false, true] {
            let told = match is_weighted {
                true => search_distances(&listed, source, f64::INFINITY, Some(&targets), &Unlimited).unwrap(),
                false => search_distances(&unit, source, f64::INFINITY, Some(&targets), &Unlimited).unwrap(),
            };
            let expected = sample.distances(direction, &[source], is_weighted);
            let farthest = targets.iter().map(|target| expected[*target as usize]).fold(0.0, f64::max);
            for (place, (told, expected)) in told.iter().zip(&expected).enumerate() {
                assert!(told == expected || *expected > farthest, "{place}: {told} instead of {expected}");
            }
        }
    });
}

/// All paths to a vertex, a few steps at a time.
fn all_paths<V: Copy + Eq>(source: V, to: V, mut back: impl FnMut(V) -> Vec<StepBack<V>>) -> Vec<Vec<V>> {
    let (mut paths, mut all) = (PathsTo::new(source, to), Vec::new());
    while let Some(found) = paths.next(&mut back, 3) {
        all.extend(found.map(|steps| steps.into_iter().map(|(vertex, _)| vertex).collect()));
    }
    all
}

#[test]
fn paths_found_from_both_ends_are_those_found_from_one() {
    on_random_graphs(|random, sample| {
        let (direction, snapshot) = (direction(random), sample.graph.snapshot());
        let unit = UnitWays::new(&sample.projection, direction);
        for _ in 0..8 {
            let [source, target] = [(); 2].map(|()| random.random_range(0..sample.len() as Place));
            let limit = if random.random() { random.random_range(0..6) } else { u32::MAX };
            let told = search_distances(&unit, source, f64::from(limit), Some(&[target]), &Unlimited).unwrap();
            let distance = told[target as usize];
            let mut expected = match distance.is_finite() {
                true => all_paths(source, target, |to| steps_back(&unit, &told, to)),
                false => Vec::new(),
            };
            let vertex = |place| sample.projection.vertex(place);
            let mut ways = BothWays::new(&snapshot, direction, None);
            let mut search = TwoSidedSearch::new(vertex(source), vertex(target), limit);
            let edges = random.random_range(1..20);
            while search.advance(&mut ways, edges, u64::MAX) == Advance::Paused {}
            assert_eq!(search.length().map(f64::from), Some(distance).filter(|distance| distance.is_finite()));
            let found = match search.length() {
                Some(_) => all_paths(vertex(source), vertex(target), |to| search.steps_back(&mut ways, to)),
                None => Vec::new(),
            };
            let mut found: Vec<Vec<Place>> = found
                .iter()
                .map(|path| path.iter().map(|own| sample.projection.place(*own).unwrap()).collect())
                .collect();
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{source} to {target} within {limit}");
            // With fewer edges than that it says so, and does not go along more.
            let Some(fewer) = search.edges().checked_sub(1) else { continue };
            let mut bounded = TwoSidedSearch::new(vertex(source), vertex(target), limit);
            let mut advance = Advance::Paused;
            while advance == Advance::Paused {
                advance = bounded.advance(&mut ways, edges, fewer);
            }
            // Vertices without edges are counted once they are passed.
            assert!(advance == Advance::Large || bounded.edges() == search.edges(), "{} edges", bounded.edges());
        }
    });
}

#[test]
fn vertex_programs_end_alike_in_step_and_out_of_step() {
    on_random_graphs(|random, sample| {
        let direction = direction(random);
        let source = random.random_range(0..sample.len() as Place);
        let (options, snapshot) = (ProjectionOptions::default(), sample.graph.snapshot());
        let weights = Weights::new(&snapshot, &sample.projection, &options, "weight", None, &Unlimited).unwrap();
        let program = Nearest { weights: &weights };
        let initial: Vec<f64> =
            (0..sample.len() as Place).map(|v| if v == source { 0.0 } else { f64::INFINITY }).collect();
        let expected = sample.distances(direction, &[source], true);
        let in_step =
            run_synchronous(&sample.projection, direction, &program, initial.clone(), 1000, &Unlimited).unwrap();
        let out_of_step = run_asynchronous(&sample.projection, direction, &program, initial, 1000, &Unlimited).unwrap();
        assert!(in_step.is_converged && out_of_step.is_converged);
        assert_eq!(in_step.values, expected);
        assert_eq!(out_of_step.values, expected);
        assert!(out_of_step.rounds <= in_step.rounds);
    });
}

/// Hops from a source as a partition program (listing 2 of C-Graph): own vertices at once, those of others at the next barrier.
struct Traverse {
    source: Place,
}

impl PartitionProgram for Traverse {
    type Value = u32;
    type Message = u32;

    fn combine(&self, left: u32, right: u32) -> u32 {
        left.min(right)
    }

    fn compute(&self, partition: &mut Partition<'_, u32, u32>, superstep: u32) {
        let mut tasks: Vec<(Place, u32)> = partition.messages().to_vec();
        if superstep == 0 && partition.is_local(self.source) {
            tasks.push((self.source, 0));
        }
        while let Some((vertex, hops)) = tasks.pop() {
            if hops >= *partition.value(vertex) {
                continue;
            }
            *partition.value_mut(vertex) = hops;
            for neighbour in partition.projection().out().of(vertex) {
                match partition.is_local(*neighbour) {
                    true => tasks.push((*neighbour, hops + 1)),
                    false => partition.send_to(*neighbour, hops + 1),
                }
            }
        }
        partition.vote_to_halt();
    }
}

#[test]
fn partition_programs_end_alike_in_any_number_of_partitions() {
    on_random_graphs(|random, sample| {
        let source = random.random_range(0..sample.len() as Place);
        let expected = sample.distances(Direction::Out, &[source], false);
        for partitions in [1, 2, 7] {
            let initial = vec![u32::MAX; sample.len()];
            let program = Traverse { source };
            let (hops, supersteps) =
                run_partitions(&sample.projection, partitions, &program, initial, &Unlimited).unwrap();
            let hops: Vec<f64> =
                hops.iter().map(|hops| if *hops == u32::MAX { f64::INFINITY } else { f64::from(*hops) }).collect();
            assert_eq!(hops, expected);
            assert!(partitions > 1 || supersteps == 1);
        }
    });
}

#[test]
fn programs_stop_when_told() {
    struct Stopped;
    impl Control for Stopped {
        fn is_stopped(&self) -> bool {
            true
        }
    }
    let sample = Sample::new(&mut StdRng::seed_from_u64(1), 100, 500);
    let projection = &sample.projection;
    let paths =
        ShortestPathOptions { sources: vec![0], direction: Direction::Out, weights: None, distance_limit: None };
    let order: Vec<u32> = (0..100).collect();
    let pressure = PeerPressureOptions {
        direction: Direction::Out,
        rounds_limit: 5,
        strengths: None,
        distribute: false,
        order: &order,
    };
    assert_eq!(page_rank(projection, &PageRankOptions::default(), &Stopped), Err(AnalyticsError::Stopped));
    assert_eq!(weak_components(projection, &Stopped), Err(AnalyticsError::Stopped));
    assert_eq!(shortest_distances(projection, &paths, &Stopped), Err(AnalyticsError::Stopped));
    let labels = label_propagation(projection, LabelPropagationOptions::default(), &Stopped);
    assert_eq!(labels, Err(AnalyticsError::Stopped));
    assert_eq!(peer_pressure(projection, &pressure, &Stopped), Err(AnalyticsError::Stopped));
    assert_eq!(triangles(projection, &Stopped), Err(AnalyticsError::Stopped));
    assert_eq!(core_numbers(projection, &Stopped), Err(AnalyticsError::Stopped));
    assert_eq!(betweenness(projection, &BetweennessOptions::default(), &Stopped), Err(AnalyticsError::Stopped));
}

#[test]
fn programs_tell_their_progress() {
    #[derive(Default)]
    struct Listening(AtomicU64);
    impl Control for Listening {
        fn is_stopped(&self) -> bool {
            false
        }

        fn progress(&self, share: f64) {
            assert!((0.0..=1.0).contains(&share), "{share}");
            self.0.fetch_max(share.to_bits(), Ordering::Relaxed);
        }
    }
    let sample = Sample::new(&mut StdRng::seed_from_u64(2), 100, 500);
    for program in [0, 1, 2] {
        let control = Listening::default();
        match program {
            0 => drop(page_rank(&sample.projection, &PageRankOptions::default(), &control).unwrap()),
            1 => drop(betweenness(&sample.projection, &BetweennessOptions::default(), &control).unwrap()),
            _ => drop(core_numbers(&sample.projection, &control).unwrap()),
        }
        assert_eq!(f64::from_bits(control.0.into_inner()), 1.0);
    }
}

#[test]
fn an_empty_graph_has_nothing() {
    let sample = Sample::new(&mut StdRng::seed_from_u64(1), 0, 0);
    let projection = &sample.projection;
    assert!(page_rank(projection, &PageRankOptions::default(), &Unlimited).unwrap().ranks.is_empty());
    assert!(weak_components(projection, &Unlimited).unwrap().is_empty());
    assert!(strong_components(projection, &Unlimited).unwrap().is_empty());
    assert!(core_numbers(projection, &Unlimited).unwrap().is_empty());
    assert_eq!(triangles(projection, &Unlimited).unwrap().total, 0);
    assert!(betweenness(projection, &BetweennessOptions::default(), &Unlimited).unwrap().is_empty());
}
