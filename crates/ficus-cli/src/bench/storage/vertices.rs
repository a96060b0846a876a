//! What a vertex with one property takes in memory.

use std::path::{Path, PathBuf};

use ficus_model::{Cardinality, Value};
use ficus_storage::{BulkProperty, Environment, Store, StoreOptions};

use super::wire::connect;
use super::{Print, at_most, part, status_bytes};
use crate::Outcome;
use crate::bench::wire::Server;
use crate::failure::Failure;
use crate::shell::client::Question;

/// What a vertex with one number takes.
pub fn run(folder: &Path, scale: u32, print: Print<'_>) -> Outcome {
    let data = part(folder, "vertices")?;
    let count = 1i64 << scale;
    // A start reads the newest file of the log whole, and what the allocator keeps of that is nothing that vertices take.
    let mut options = StoreOptions::default();
    options.log_segment_bytes = 1 << 20;
    let store = Store::open(options, Environment::on_directory(&data)?)?;
    let graph = store.create_graph("g")?;
    let mut bulk = graph.bulk();
    for number in 0..count {
        let value = Value::Long(number.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64));
        let property = BulkProperty { key: "number", value, cardinality: Cardinality::Single, meta: Vec::new() };
        bulk.add_vertex("person", Some(Value::Long(number)), vec![property])?;
    }
    bulk.finish()?;
    store.consolidate()?;
    drop(graph);
    store.close()?;
    drop(store);
    // In processes of their own: what this one has freed would be counted as well.
    let empty = part(folder, "no-vertices")?;
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&empty)?)?;
    store.create_graph("g")?;
    store.close()?;
    drop(store);
    let grown = resident_after_reading(data)?.saturating_sub(resident_after_reading(empty)?);
    print(at_most("memory of a vertex with one i64", "per vertex", grown as f64 / count as f64, "bytes", Some(40.0)))?;
    Ok(())
}

/// Bytes in memory of a server on this directory that has read every vertex, its id and its property.
fn resident_after_reading(data: PathBuf) -> Result<u64, Failure> {
    let server = Server::start(Some(data), None)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut client = connect(&server.url).await?;
        for gremlin in ["g.V().values('number').max()", "g.V().id().max()"] {
            let question = Question { gremlin: gremlin.into(), source: "g".into(), ..Question::default() };
            client.ask(&question, |_| Ok(())).await.map_err(Failure::failed)?;
        }
        Ok::<(), Failure>(())
    })?;
    let status = format!("/proc/{}/status", server.process());
    Ok(status_bytes(&status, "VmRSS:")?)
}
