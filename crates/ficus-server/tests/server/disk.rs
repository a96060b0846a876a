//! What clients and operators are told while the disk of the store fails.

use std::sync::Arc;

use ficus_model::Value;
use ficus_query::engine::{Engine, EngineOptions};
use ficus_server::engine::{EngineBackend, Queries};
use ficus_storage::simulated_disk::{Faults, SimulatedDisk};
use ficus_storage::{Store, StoreOptions};
use ficus_wire::Response;

use crate::client::*;
use crate::mock::Mock;

const WRITE: &str = "g.addV('person').property('name', 'anna').count()";

/// A server over the graph `g` on a disk.
async fn serve(disk: &SimulatedDisk) -> Server {
    let store = Store::open(StoreOptions::default(), disk.environment()).unwrap();
    let sources = [("g".to_string(), store.create_graph("g").unwrap())].into();
    let engine = Engine::start(EngineOptions::with_executors(1)).unwrap();
    let backend = EngineBackend::new(engine, store, sources, 1 << 30, Arc::new(Queries::new(64)));
    Server::over(Arc::new(backend), Arc::new(Mock::default()), |_| ()).await
}

fn code(response: &Response) -> (u16, Option<&Value>) {
    (response.status, attribute(response, "code"))
}

#[tokio::test]
async fn health_tells_that_the_disk_is_full_and_that_it_has_room_again() {
    let disk = SimulatedDisk::new();
    let server = serve(&disk).await;
    let mut client = server.connect().await;
    assert_eq!(client.ask_once(&eval(WRITE)).await.status, 200);
    assert_eq!(server.get("/health/writable").await.status, 200);
    disk.set_faults(Faults { capacity_bytes: Some(disk.used_bytes()), ..Faults::default() });
    let refused = client.ask_once(&eval(WRITE)).await;
    assert_eq!(code(&refused), (500, Some(&text("FICUS-2010"))), "{}", refused.message);
    let health = server.get("/health/writable").await;
    assert_eq!(health.status, 503);
    assert!(health.text().contains("the disk is full"), "{}", health.text());
    assert_eq!(server.get("/health/ready").await.status, 200);
    assert_eq!(client.ask_once(&eval("g.V().count()")).await.status, 200);
    disk.set_faults(Faults::default());
    assert_eq!(server.get("/health/writable").await.status, 200);
    assert_eq!(client.ask_once(&eval(WRITE)).await.status, 200);
}

#[tokio::test]
async fn health_tells_that_a_flush_failed_until_the_next_start() {
    let disk = SimulatedDisk::new();
    let server = serve(&disk).await;
    let mut client = server.connect().await;
    disk.set_faults(Faults { fail_flush: Some(disk.flushes() + 1), ..Faults::default() });
    for _ in 0..2 {
        let refused = client.ask_once(&eval(WRITE)).await;
        assert_eq!(code(&refused), (500, Some(&text("FICUS-2010"))), "{}", refused.message);
    }
    disk.set_faults(Faults::default());
    let health = server.get("/health/writable").await;
    assert_eq!(health.status, 503);
    assert!(health.text().contains("restart to write again"), "{}", health.text());
    assert_eq!(client.ask_once(&eval("g.V().count()")).await.status, 200);
}
