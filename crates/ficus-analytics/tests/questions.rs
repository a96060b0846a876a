//! Answers of passes and single searches against a search over sets of edges.

#![allow(clippy::print_stdout, reason = "a failed test prints its seed")]

use std::collections::BTreeSet;
use std::sync::Arc;

use ficus_analytics::question::Common;
use ficus_analytics::{
    Advance, Answer, Control, Entry, HopEdges, Hops, OnProjection, OnStore, OwnSearch, Place, Projection,
    ProjectionOptions, Question, Unlimited, Walk, answer, multi_source, single_source,
};
use ficus_model::{Direction, VertexId};
use ficus_storage::{Environment, Graph, Store, StoreOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A graph in the store, and its edges by insertion number.
struct Sample {
    _store: Arc<Store>,
    graph: Arc<Graph>,
    vertices: Vec<VertexId>,
    edges: Vec<(usize, usize)>,
}

fn sample(random: &mut StdRng, vertices: usize, edges: usize) -> Sample {
    let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let mut transaction = graph.begin();
    let ids: Vec<VertexId> = (0..vertices).map(|_| transaction.add_vertex("v", None).unwrap()).collect();
    // Uneven: squares favour small numbers. Loops and parallel edges happen.
    let pick = |random: &mut StdRng| (random.random::<f64>().powi(2) * vertices as f64) as usize;
    let pairs: Vec<(usize, usize)> = (0..edges).map(|_| (pick(random), pick(random))).collect();
    for (source, target) in &pairs {
        transaction.add_edge("e", ids[*source], ids[*target], None).unwrap();
    }
    transaction.commit().unwrap();
    Sample { _store: store, graph, vertices: ids, edges: pairs }
}

/// The vertices each hop reaches, by sets.
fn expected(sample: &Sample, common: Common<'_>, direction: Direction, question: &Question) -> Answer {
    let of_place = |place: Place| {
        let vertex = common.projection.vertex(place);
        sample.vertices.iter().position(|known| *known == vertex).unwrap()
    };
    let allowed = |vertex: usize| {
        let place = common.projection.place(sample.vertices[vertex]).unwrap();
        common.allowed.is_none_or(|allowed| allowed[place as usize / 64] >> (place % 64) & 1 == 1)
    };
    let hop = |from: &BTreeSet<usize>| -> BTreeSet<usize> {
        let along = |(a, b): &(usize, usize)| {
            let out = (direction != Direction::In && from.contains(a)).then_some(*b);
            let into = (direction != Direction::Out && from.contains(b)).then_some(*a);
            [out, into].into_iter().flatten().collect::<Vec<_>>()
        };
        sample.edges.iter().flat_map(along).filter(|vertex| allowed(*vertex)).collect()
    };
    let sources: BTreeSet<usize> = question.sources.iter().map(|source| of_place(*source)).collect();
    let target = question.target.map(of_place);
    let mut frontier = sources.clone();
    let mut seen = BTreeSet::new();
    let counted = if common.walk == Walk::Within { 0 } else { sources.len() as u64 };
    let mut answer = Answer { levels: vec![counted], distance: None };
    if common.walk == Walk::WithinOrSource {
        seen.extend(sources.iter().copied());
    }
    let counts_source = common.walk == Walk::WithinOrSource || common.walk == Walk::Exactly && question.hops.0 == 0;
    if counts_source && target.is_some_and(|target| sources.contains(&target)) {
        answer.distance = Some(0);
        return answer;
    }
    for number in 1..=question.hops.0 {
        frontier = hop(&frontier);
        if common.walk != Walk::Exactly {
            frontier = frontier.difference(&seen).copied().collect();
            seen.extend(frontier.iter().copied());
        }
        answer.levels.push(frontier.len() as u64);
        let is_asked = common.walk != Walk::Exactly || number == question.hops.0;
        if target.is_some_and(|target| is_asked && frontier.contains(&target)) {
            answer.distance = Some(number);
            return answer;
        }
        if frontier.is_empty() {
            break;
        }
    }
    answer
}

#[test]
fn passes_and_single_searches_find_what_sets_find() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..60 {
        let vertices = random.random_range(1..300);
        let edges = random.random_range(0..vertices * 6);
        let sample = sample(&mut random, vertices, edges);
        let snapshot = sample.graph.snapshot();
        let projection = Projection::new(&snapshot, &ProjectionOptions::default(), &Unlimited).unwrap();
        assert_eq!((projection.vertex_count(), projection.edge_count()), (vertices, edges as u64));
        let direction = [Direction::Out, Direction::In, Direction::Both][random.random_range(0..3)];
        let walk = [Walk::Within, Walk::WithinOrSource, Walk::Exactly][random.random_range(0..3)];
        let bits: Vec<u64> =
            (0..vertices.div_ceil(64)).map(|_| random.random::<u64>() | random.random::<u64>()).collect();
        let allowed = random.random_bool(0.3).then_some(&*bits);
        let common = Common { projection: &projection, direction, walk, allowed };
        let width = [2, 20, 64, 65, 200, 512][random.random_range(0..6)];
        let with_targets = random.random_bool(0.3);
        let questions: Vec<Question> = (0..width)
            .map(|_| Question {
                sources: (0..random.random_range(1..4)).map(|_| random.random_range(0..vertices as Place)).collect(),
                hops: Hops(random.random_range(0..6)),
                target: with_targets.then(|| random.random_range(0..vertices as Place)),
            })
            .collect();
        let together = multi_source::answer(common, &questions, &Unlimited).unwrap();
        for (question, found) in questions.iter().zip(together).take(40) {
            let expected = expected(&sample, common, direction, question);
            let what = format!("seed {seed}, round {round}, {direction:?}, {walk:?}, {question:?}");
            assert_eq!(found, expected, "in a pass: {what}");
            assert_eq!(single_source::answer(common, question, &Unlimited).unwrap(), expected, "alone: {what}");
        }
    }
}

fn at_most(edges: u64) -> HopEdges {
    HopEdges { kept: edges, counted: edges }
}

/// A search that is paused after every few edges.
fn in_parts(sample: &Sample, common: Common<'_>, direction: Direction, question: &Question) -> [(Answer, u64); 3] {
    let vertex = |place: &Place| common.projection.vertex(*place);
    let (sources, target) = (question.sources.clone(), question.target);
    let vertices = sources.iter().map(vertex).collect();
    let mut along_projection = OwnSearch::new(common.walk, question.hops, sources.clone(), target);
    let mut counted = OwnSearch::new(common.walk, question.hops, sources, target).counting_only();
    let mut along_store = OwnSearch::new(common.walk, question.hops, vertices, target.as_ref().map(vertex));
    let snapshot = sample.graph.snapshot();
    let (mut projection, mut store) =
        (OnProjection::new(common.projection, direction), OnStore::new(&snapshot, direction, None));
    while along_projection.advance(&mut projection, &mut |_| Entry::Through, 3, HopEdges::ALL) != Advance::Ended {}
    while counted.advance(&mut projection, &mut |_| Entry::Through, 3, HopEdges::ALL) != Advance::Ended {}
    while along_store.advance(&mut store, &mut |_| Entry::Through, 3, at_most(0)) != Advance::Ended {}
    let ended = (along_projection.answer().clone(), along_projection.into_vertices().len() as u64);
    let counted = (counted.answer().clone(), counted.answer().count(common.walk, question.hops));
    [ended, counted, (along_store.answer().clone(), along_store.into_vertices().len() as u64)]
}

#[test]
fn searches_in_parts_find_what_sets_find() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..40 {
        let vertices = random.random_range(1..300);
        let edges = random.random_range(0..vertices * 6);
        let sample = sample(&mut random, vertices, edges);
        let projection = Projection::new(&sample.graph.snapshot(), &ProjectionOptions::default(), &Unlimited).unwrap();
        let direction = [Direction::Out, Direction::In, Direction::Both][random.random_range(0..3)];
        let walk = [Walk::Within, Walk::WithinOrSource, Walk::Exactly][random.random_range(0..3)];
        let common = Common { projection: &projection, direction, walk, allowed: None };
        for _ in 0..10 {
            let question = Question {
                sources: (0..random.random_range(1..4)).map(|_| random.random_range(0..vertices as Place)).collect(),
                hops: Hops(random.random_range(0..6)),
                target: random.random_bool(0.3).then(|| random.random_range(0..vertices as Place)),
            };
            let what = format!("seed {seed}, round {round}, {direction:?}, {walk:?}, {question:?}");
            let sources = question.sources.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
            let expected = expected(&sample, common, direction, &Question { sources, ..question.clone() });
            for (answer, reached) in in_parts(&sample, common, direction, &question) {
                assert_eq!(answer.distance, expected.distance, "{what}");
                // What lies behind the target is nobody's business.
                if question.target.is_none() {
                    assert_eq!(answer, expected, "{what}");
                    assert_eq!(reached, expected.count(walk, question.hops), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_search_says_that_its_next_hop_is_large() {
    let sample = sample(&mut StdRng::seed_from_u64(7), 100, 2_000);
    let projection = Projection::new(&sample.graph.snapshot(), &ProjectionOptions::default(), &Unlimited).unwrap();
    let mut way = OnProjection::new(&projection, Direction::Out);
    let first = projection.out().degree(0);
    let search = || OwnSearch::new(Walk::Within, Hops(2), vec![0], None);
    assert_eq!(search().advance(&mut way, &mut |_| Entry::Through, u64::MAX, at_most(first - 1)), Advance::Large);
    // One hop is allowed, the next is longer.
    let mut second = search();
    assert_eq!(second.advance(&mut way, &mut |_| Entry::Through, u64::MAX, at_most(first)), Advance::Large);
    assert_eq!(second.edges(), first + 1);
    assert_eq!(second.advance(&mut way, &mut |_| Entry::Through, u64::MAX, HopEdges::ALL), Advance::Ended);
}

#[test]
fn a_stopped_pass_ends_with_an_error() {
    struct Stopped;
    impl Control for Stopped {
        fn is_stopped(&self) -> bool {
            true
        }
    }
    let sample = sample(&mut StdRng::seed_from_u64(1), 100, 500);
    let projection = Projection::new(&sample.graph.snapshot(), &ProjectionOptions::default(), &Unlimited).unwrap();
    let common = Common { projection: &projection, direction: Direction::Out, walk: Walk::Within, allowed: None };
    let question = Question::from(0, Hops::ALL);
    assert!(answer(common, std::slice::from_ref(&question), &Stopped).is_err());
    assert!(answer(common, &[question.clone(), question], &Stopped).is_err());
    assert!(Projection::new(&sample.graph.snapshot(), &ProjectionOptions::default(), &Stopped).is_err());
}
