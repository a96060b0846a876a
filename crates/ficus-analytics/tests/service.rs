//! The service that answers questions together: everybody is told something, whatever happens.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use ficus_analytics::service::Delivery;
use ficus_analytics::{
    Analytics, AnalyticsError, AnalyticsOptions, Control, Hops, KHopReply, KHopRequest, Line, ProjectionOptions,
    Unlimited, Walk,
};
use ficus_model::{Direction, VertexId};
use ficus_storage::{Environment, Snapshot, Store, StoreOptions};

type Told = Result<KHopReply, AnalyticsError>;

/// A ring of ten.
fn ring() -> (Arc<Store>, Snapshot, Vec<VertexId>) {
    let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    let ids: Vec<VertexId> = (0..10).map(|_| writing.add_vertex("v", None).unwrap()).collect();
    for (position, id) in ids.iter().enumerate() {
        writing.add_edge("e", *id, ids[(position + 1) % 10], None).unwrap();
    }
    writing.commit().unwrap();
    let snapshot = graph.snapshot();
    (store, snapshot, ids)
}

fn ask(
    analytics: &Analytics,
    snapshot: &Snapshot,
    source: VertexId,
    control: Arc<dyn Control + Send>,
) -> mpsc::Receiver<Told> {
    let (sender, receiver) = mpsc::channel();
    analytics.ask(KHopRequest {
        snapshot: snapshot.clone(),
        line: Line {
            projection: ProjectionOptions::default(),
            direction: Direction::Out,
            walk: Walk::Within,
            vertices: None,
        },
        sources: vec![source],
        hops: Hops(3),
        target: None,
        wants_vertices: false,
        control,
        deliver: Delivery::new(move |reply| sender.send(reply).unwrap()),
    });
    receiver
}

/// In place of a bug somewhere in a pass.
struct Panics;

impl Control for Panics {
    fn is_stopped(&self) -> bool {
        panic!("a bug of the test")
    }
}

struct Gone;

impl Control for Gone {
    fn is_stopped(&self) -> bool {
        true
    }
}

#[test]
fn a_panic_fails_its_pass_and_nothing_else() {
    let (_store, snapshot, ids) = ring();
    let analytics = Analytics::start(AnalyticsOptions::default()).unwrap();
    let wait = Duration::from_secs(60);
    let told = ask(&analytics, &snapshot, ids[0], Arc::new(Panics)).recv_timeout(wait).unwrap();
    assert_eq!(told, Err(AnalyticsError::Failed));
    for id in ids {
        let told = ask(&analytics, &snapshot, id, Arc::new(Unlimited)).recv_timeout(wait).unwrap().unwrap();
        assert_eq!(told.answer.count(Walk::Within, Hops(3)), 3);
    }
}

#[test]
fn who_has_gone_is_told_so_and_those_beside_are_answered() {
    let (_store, snapshot, ids) = ring();
    let analytics = Analytics::start(AnalyticsOptions::default()).unwrap();
    let gone: Vec<_> = ids.iter().map(|id| ask(&analytics, &snapshot, *id, Arc::new(Gone))).collect();
    let there: Vec<_> = ids.iter().map(|id| ask(&analytics, &snapshot, *id, Arc::new(Unlimited))).collect();
    let wait = Duration::from_secs(60);
    gone.iter().for_each(|told| assert_eq!(told.recv_timeout(wait).unwrap(), Err(AnalyticsError::Stopped)));
    there.iter().for_each(|told| assert!(told.recv_timeout(wait).unwrap().is_ok()));
}

#[test]
fn who_waits_at_the_end_is_told() {
    let (_store, snapshot, ids) = ring();
    let analytics = Analytics::start(AnalyticsOptions::default()).unwrap();
    let waiting: Vec<_> =
        (0..50).map(|number| ask(&analytics, &snapshot, ids[number % 10], Arc::new(Unlimited))).collect();
    drop(analytics);
    waiting.iter().for_each(|told| drop(told.recv_timeout(Duration::from_secs(60)).unwrap()));
}

#[test]
fn a_projection_that_was_let_go_can_be_earned_again() {
    let (_store, snapshot, _) = ring();
    // Room for one of the two.
    let options = AnalyticsOptions { projection_bytes_limit: 500, ..AnalyticsOptions::default() };
    let analytics = Analytics::start(options).unwrap();
    let (all, none) = (ProjectionOptions::default(), ProjectionOptions { edge_labels: Some(Vec::new()), edges: None });
    let earn = |wanted: &ProjectionOptions| {
        // Made in the background, after 30 edges.
        (0..10).for_each(|_| analytics.note_live_work(&snapshot, wanted, 10));
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while analytics.ready(&snapshot, wanted).is_none() {
            assert!(std::time::Instant::now() < until, "no projection was made");
            std::thread::yield_now();
        }
    };
    for _ in 0..3 {
        earn(&all);
        earn(&none);
        assert!(analytics.ready(&snapshot, &all).is_none(), "both fit");
    }
}

/// One service may be asked about graphs of several stores, whose commits have the same timestamps.
#[test]
fn states_of_different_stores_are_told_apart() {
    let (_store, ring, ids) = ring();
    let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    let others: Vec<VertexId> = (0..10).map(|_| writing.add_vertex("v", None).unwrap()).collect();
    for other in &others[1..] {
        writing.add_edge("e", others[0], *other, None).unwrap();
    }
    writing.commit().unwrap();
    let star = graph.snapshot();
    assert_eq!((ring.commit_ts(), ids[0]), (star.commit_ts(), others[0]), "nothing to tell apart");
    let analytics = Analytics::start(AnalyticsOptions::default()).unwrap();
    let wait = Duration::from_secs(60);
    // Some at once, so that they could be taken into one pass.
    let asked: Vec<_> = (0..40)
        .map(|number| {
            let (snapshot, expected) = if number % 2 == 0 { (&ring, 3) } else { (&star, 9) };
            (ask(&analytics, snapshot, ids[0], Arc::new(Unlimited)), expected)
        })
        .collect();
    for (told, expected) in asked {
        assert_eq!(told.recv_timeout(wait).unwrap().unwrap().answer.count(Walk::Within, Hops(3)), expected);
    }
    for (snapshot, edges) in [(&ring, 10), (&star, 9)] {
        let all = ProjectionOptions::default();
        assert_eq!(analytics.projection(snapshot, &all, &Unlimited).unwrap().edge_count(), edges);
        let version = analytics.following(snapshot, &all, &Unlimited).unwrap();
        assert_eq!(version.edge_count(), edges);
    }
}
