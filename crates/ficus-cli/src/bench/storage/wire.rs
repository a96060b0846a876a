//! Commits and upserts of clients over WebSocket, against a server in a process of its own.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use ficus_model::Value;
use ficus_storage::{Environment, Store, StoreOptions};

use super::{Print, at_least, at_most, part};
use crate::Outcome;
use crate::bench::wire::Server;
use crate::failure::Failure;
use crate::shell::client::{Client, ClientError, ClientOptions, Question};

/// Clients that commit at the same time.
const CLIENTS: u64 = 8;

/// Upserts of one request.
const BATCH: u64 = 1_000;

/// Clients that upsert the same keys at the same time.
const RIVALS: u64 = 64;

/// Upserts of one request of theirs, of vertices and of edges in turn.
const RIVAL_BATCH: u64 = 50;

/// Retries of a request by its client, beyond those of the server; so often in a row means that nobody gets anywhere.
const CONFLICTS_MAX: u32 = 1_000;

/// The status of a conflict, after which the same request can succeed.
const CONFLICT: u16 = 596;

pub fn run(folder: &Path, quick: bool, print: Print<'_>) -> Outcome {
    let time = Duration::from_secs(if quick { 2 } else { 8 });
    let data = part(folder, "wire")?;
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&data)?)?;
    let graph = store.create_graph("g")?;
    graph.create_index(Some("person"), "number")?;
    graph.create_index(Some("rival"), "number")?;
    let mut transaction = graph.begin();
    for number in 0..1_000 {
        transaction.add_vertex("hub", Some(Value::Long(number)))?;
    }
    transaction.commit()?;
    drop(graph);
    store.close()?;
    drop(store);
    let server = Server::start(Some(data), None)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let commit = |client: u64, count: u64| {
            let pair = (client << 32 | count).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let (source, target) = (pair % 1_000, pair / 1_000 % 1_000);
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
        let twice = "g.V().hasLabel('person').groupCount().by('number').unfold().filter(__.select(values).is(P.gt(1L))).select(keys)";
        let twice = numbers(&mut client, twice).await?;
        if !twice.is_empty() {
            return Err(Failure::failed(format!("duplicates: {twice:?}")));
        }
        contend(&server.url, time, print).await
    })
}

pub async fn connect(url: &str) -> Result<Client, Failure> {
    Client::connect(&ClientOptions { url: url.into(), credentials: None, trust: Default::default() })
        .await
        .map_err(Failure::failed)
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

/// Upserts of the same vertices and of the same edges by many clients at once; then every key that was acknowledged must be there, once,
/// and nothing else.
async fn contend(url: &str, time: Duration, print: Print<'_>) -> Outcome {
    let until = Instant::now() + time;
    let mut tasks = Vec::new();
    for number in 0..RIVALS {
        let mut client = connect(url).await?;
        tasks.push(tokio::spawn(async move {
            let (mut count, mut conflicts) = (0, 0);
            while Instant::now() < until {
                conflicts += insist(&mut client, upserts(number, count)).await?;
                count += 1;
            }
            Ok::<(u64, u64), Failure>((count, conflicts))
        }));
    }
    let (mut requests, mut conflicts) = (0, 0);
    let mut expected = [BTreeSet::new(), BTreeSet::new()];
    for (number, task) in (0..RIVALS).zip(tasks) {
        let (count, of_client) = task.await.map_err(Failure::failed)??;
        requests += count;
        conflicts += of_client;
        (0..count).for_each(|request| expected[(request % 2) as usize].extend(keys(number, request)));
    }
    let rate = (requests * RIVAL_BATCH) as f64 / time.as_secs_f64();
    print(at_least("upserts of the same keys by 64 clients, mergeV and mergeE", "rate", rate, "upserts/s", None))?;
    print(at_most("the same", "requests repeated by their client", conflicts as f64, "requests", None))?;
    let mut client = connect(url).await?;
    let found = [
        numbers(&mut client, "g.V().hasLabel('rival').values('number')").await?,
        numbers(&mut client, "g.E().hasLabel('rivals').values('number')").await?,
    ];
    let (mut duplicates, mut lost, mut unasked) = (0, 0, 0);
    for (expected, found) in expected.iter().zip(&found) {
        let distinct: BTreeSet<u64> = found.iter().copied().collect();
        duplicates += found.len() - distinct.len();
        lost += expected.difference(&distinct).count();
        unasked += distinct.difference(expected).count();
    }
    let keys = expected.iter().map(BTreeSet::len).sum::<usize>();
    print(at_least("the same", "different keys", keys as f64, "keys", None))?;
    print(at_most("the same", "duplicates", duplicates as f64, "elements", Some(0.0)))?;
    print(at_most("the same", "acknowledged and not there", lost as f64, "keys", Some(0.0)))?;
    if duplicates + lost + unasked > 0 {
        let what = format!("{duplicates} duplicates, {lost} keys lost, {unasked} that nobody asked for");
        return Err(Failure::failed(what));
    }
    Ok(())
}

/// The keys that a client upserts with its n-th request: most of them are those of other clients' requests at the same time.
fn keys(client: u64, request: u64) -> std::ops::Range<u64> {
    let first = request / 2 * RIVAL_BATCH / 2 + client % 5 * 10;
    first..first + RIVAL_BATCH
}

/// A request for vertices, or for edges.
fn upserts(client: u64, request: u64) -> String {
    let map = |key: u64| match request % 2 {
        0 => format!("[(T.label):'rival','number':{key}L]"),
        _ => {
            let (source, target) = (key % 1_000, (key / 1_000 + key * 7) % 1_000);
            format!("[(T.label):'rivals',(Direction.from):{source}L,(Direction.to):{target}L,'number':{key}L]")
        }
    };
    let step = if request.is_multiple_of(2) { "mergeV" } else { "mergeE" };
    format!("g.inject({}).{step}().iterate()", keys(client, request).map(map).collect::<Vec<_>>().join(","))
}

/// Asks until it is no conflict; how often it was.
async fn insist(client: &mut Client, gremlin: String) -> Result<u64, Failure> {
    let question = Question { gremlin, source: "g".into(), ..Question::default() };
    for conflicts in 0..CONFLICTS_MAX {
        match client.ask(&question, |_| Ok(())).await {
            Ok(()) => return Ok(u64::from(conflicts)),
            Err(ClientError::Refused { status: CONFLICT, .. }) => {}
            Err(error) => return Err(Failure::failed(error)),
        }
    }
    Err(Failure::failed(format!("{CONFLICTS_MAX} conflicts of one request in a row")))
}

/// The numbers that a query yields.
async fn numbers(client: &mut Client, gremlin: &str) -> Result<Vec<u64>, Failure> {
    let question = Question { gremlin: gremlin.into(), source: "g".into(), ..Question::default() };
    let mut numbers = Vec::new();
    let take = |values: Vec<Value>| {
        for value in values {
            match value {
                Value::Long(number) => numbers.push(number as u64),
                other => return Err(ClientError::Connection(format!("{other:?} instead of a number"))),
            }
        }
        Ok(())
    };
    client.ask(&question, take).await.map_err(Failure::failed)?;
    Ok(numbers)
}
