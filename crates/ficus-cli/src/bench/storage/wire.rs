//! Commits and upserts of clients over WebSocket, against a server in a process of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use ficus_storage::{Environment, Store, StoreOptions};

use super::{Print, at_least, part};
use crate::Outcome;
use crate::bench::wire::Server;
use crate::failure::Failure;
use crate::shell::client::{Client, ClientOptions, Question};

/// Clients that commit at the same time.
const CLIENTS: u64 = 8;

/// Upserts of one request.
const BATCH: u64 = 1_000;

pub fn run(folder: &Path, quick: bool, print: Print<'_>) -> Outcome {
    let time = Duration::from_secs(if quick { 2 } else { 8 });
    let data = part(folder, "wire")?;
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&data)?)?;
    let graph = store.create_graph("g")?;
    graph.create_index(Some("person"), "number")?;
    let mut transaction = graph.begin();
    for number in 0..1_000 {
        transaction.add_vertex("hub", Some(ficus_model::Value::Long(number)))?;
    }
    transaction.commit()?;
    drop(graph);
    store.close()?;
    drop(store);
    let server = Server::start(Some(data), None)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let commit = |client: u64, count: u64| {
            let (source, target) = ((client * 125 + count) % 1_000, (client * 125 + count * 7 + 1) % 1_000);
            format!("g.V({source}L).addE('knows').to(__.V({target}L)).iterate()")
        };
        let commits = requests(&server.url, CLIENTS, time, commit).await?;
        let rate = commits as f64 / time.as_secs_f64();
        print(at_least("single-edge commits over the wire, 8 clients", "rate", rate, "commits/s", Some(10_000.0)))?;
        let upsert = |client: u64, count: u64| {
            // Half of the keys are there already, written by this client or another one.
            let first = (count * 2 + client % 2) * BATCH / 4;
            let maps = (first..first + BATCH).map(|number| format!("[(T.label):'person','number':{number}L]"));
            format!("g.inject({}).mergeV().iterate()", maps.collect::<Vec<_>>().join(","))
        };
        let batches = requests(&server.url, 2, time, upsert).await?;
        let rate = (batches * BATCH) as f64 / time.as_secs_f64();
        print(at_least("upserts in batches of 1 000 mergeV", "rate", rate, "upserts/s", Some(100_000.0)))?;
        let mut client = connect(&server.url).await?;
        let duplicates = "g.V().hasLabel('person').groupCount().by('number').unfold().filter(__.select(values).is(P.gt(1L))).count()";
        let mut answer = String::new();
        let question = Question { gremlin: duplicates.into(), source: "g".into(), ..Question::default() };
        client
            .ask(&question, |value| {
                answer = format!("{value:?}");
                Ok(())
            })
            .await
            .map_err(Failure::failed)?;
        if answer.contains("Long(0)") { Ok(()) } else { Err(Failure::failed(format!("duplicates: {answer}"))) }
    })
}

pub async fn connect(url: &str) -> Result<Client, Failure> {
    Client::connect(&ClientOptions { url: url.into(), credentials: None }).await.map_err(Failure::failed)
}

/// Requests that so many clients get answered in this time, one after the other each.
async fn requests(
    url: &str,
    clients: u64,
    time: Duration,
    request: impl Fn(u64, u64) -> String + Copy + Send + 'static,
) -> Result<u64, Failure> {
    let until = Instant::now() + time;
    let mut tasks = Vec::new();
    for number in 0..clients {
        let mut client = connect(url).await?;
        tasks.push(tokio::spawn(async move {
            let mut count = 0;
            while Instant::now() < until {
                let gremlin = request(number, count);
                let question = Question { gremlin, source: "g".into(), ..Question::default() };
                client.ask(&question, |_| Ok(())).await.map_err(Failure::failed)?;
                count += 1;
            }
            Ok::<u64, Failure>(count)
        }));
    }
    let mut total = 0;
    for task in tasks {
        total += task.await.map_err(Failure::failed)??;
    }
    Ok(total)
}
