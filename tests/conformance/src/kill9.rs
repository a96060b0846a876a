//! Kills a server under load, starts it again and checks that nothing that was promised is gone.
//!
//! In every round some writers commit transactions of linked elements, each over a connection of its own: in one request,
//! or in a session with an explicit commit. At a random moment the process is killed as by `kill -9`. After the restart
//! every transaction of the round must be there whole if it was acknowledged, and whole or not at all otherwise; the
//! counter that each transaction moves along must agree with the transactions that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use ficus_model::{Shared, Value};
use ficus_wire::{Format, Request};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::client::{Client, Failure, Options, eval_request};
use crate::server_process::{ServerProcess, free_port};

/// Vertices of a transaction, linked to a ring by as many edges.
const RING: usize = 4;
/// The graph is emptied after this many rounds, so that a long run stays as fast as a short one.
const ROUNDS_KEPT: u64 = 50;
/// No answer takes this long while the server lives.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// The status of a transaction that another one came before; running it again can succeed.
const CONFLICT: u16 = 596;
/// A transaction is run again so often.
const CONFLICTS_LIMIT: usize = 1000;

/// How to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How often to kill.
    pub rounds: u64,
    /// Connections that write at the same time.
    pub writers: u64,
    /// Decides the moments of the kills.
    pub seed: u64,
    /// Longest time between the start of the writers and the kill.
    pub kill_after_ms_max: u64,
}

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Rounds that were checked.
    pub rounds: u64,
    /// Transactions whose commit was answered.
    pub acknowledged: u64,
    /// Transactions that were there although nobody had been told.
    pub unacknowledged_whole: u64,
}

/// What one writer did in one round: the transactions it began, and those that were acknowledged.
struct Written {
    writer: u64,
    begun: u64,
    acknowledged: u64,
}

/// Runs the rounds on a data folder. Errors: the round, the seed, and what was lost or torn.
pub fn run(plan: &Plan, data: &Path, mut progress: impl FnMut(&Tally)) -> Result<Tally, String> {
    let mut random = StdRng::seed_from_u64(plan.seed);
    let mut tally = Tally::default();
    let mut server = ServerProcess::start(data, free_port()?, &[])?;
    prepare(&server.url(), plan.writers)?;
    for round in 0..plan.rounds {
        let kill_after = Duration::from_millis(random.random_range(1..=plan.kill_after_ms_max));
        let url = server.url();
        let written = std::thread::scope(|scope| {
            let start = |writer| {
                let url = url.as_str();
                scope.spawn(move || write_until_killed(url, round, writer))
            };
            let writers: Vec<_> = (0..plan.writers).map(start).collect();
            std::thread::sleep(kill_after);
            server.kill();
            let join = |writer: std::thread::ScopedJoinHandle<'_, Result<Written, String>>| {
                writer.join().unwrap_or_else(|_| Err("a writer panicked".into()))
            };
            writers.into_iter().map(join).collect::<Result<Vec<_>, String>>()
        });
        let context = |error: String| {
            format!("round {round}, seed {}, killed after {} ms: {error}", plan.seed, kill_after.as_millis())
        };
        let written = written.map_err(context)?;
        server = ServerProcess::start(data, free_port()?, &[]).map_err(context)?;
        let unacknowledged = check(&server.url(), round, &written).map_err(context)?;
        tally.rounds += 1;
        tally.acknowledged += written.iter().map(|written| written.acknowledged).sum::<u64>();
        tally.unacknowledged_whole += unacknowledged;
        if (round + 1).is_multiple_of(ROUNDS_KEPT) {
            let mut client = connect(&server.url()).map_err(context)?;
            submit(&mut client, "g.V().hasLabel('unit').drop()", &[]).map_err(context)?;
        }
        progress(&tally);
    }
    server.kill();
    Ok(tally)
}

fn connect(url: &str) -> Result<Client, String> {
    Client::connect(url, Format::GraphBinary1, ANSWER_TIME_MAX).map_err(|failure| failure.to_string())
}

fn options(parameters: &[(&str, Value)]) -> Options {
    let bindings = parameters.iter().map(|(name, value)| (Value::String((*name).into()), value.clone())).collect();
    Options { bindings, ..Options::alias("g") }
}

fn submit(client: &mut Client, gremlin: &str, parameters: &[(&str, Value)]) -> Result<Vec<Value>, String> {
    client.submit(gremlin, &options(parameters)).map_err(|failure| format!("{gremlin}: {failure}"))
}

fn long(number: u64) -> Value {
    Value::Long(i64::try_from(number).expect("rounds and transactions are far below 2^63"))
}

/// One counter per writer.
fn prepare(url: &str, writers: u64) -> Result<(), String> {
    let mut client = connect(url)?;
    for writer in 0..writers {
        submit(&mut client, "g.addV('counter').property('writer', w).property('last', -1l)", &[("w", long(writer))])?;
    }
    Ok(())
}

/// Commits one transaction after the other until the connection breaks.
fn write_until_killed(url: &str, round: u64, writer: u64) -> Result<Written, String> {
    let mut written = Written { writer, begun: 0, acknowledged: 0 };
    let Ok(mut client) = connect(url) else { return Ok(written) };
    loop {
        let number = written.begun;
        written.begun += 1;
        let mut outcome = if number.is_multiple_of(2) {
            write_in_one_request(&mut client, round, writer, number)
        } else {
            write_in_a_session(&mut client, round, writer, number)
        };
        // Another writer moved its counter where this one looked for its own: nothing was committed, it runs again.
        for _ in 0..CONFLICTS_LIMIT {
            match &outcome {
                Err(Failure::Refused { status: CONFLICT, .. }) => {
                    outcome = write_in_a_session(&mut client, round, writer, number);
                }
                _ => break,
            }
        }
        match outcome {
            Ok(()) => written.acknowledged = number + 1,
            Err(Failure::Broken(_)) => return Ok(written),
            Err(refused) => return Err(format!("writer {writer}, transaction {number}: {refused}")),
        }
    }
}

fn parameters(round: u64, writer: u64, number: u64) -> [(&'static str, Value); 3] {
    [("r", long(round)), ("w", long(writer)), ("n", long(number))]
}

/// `addV('unit')` with all that tells it apart, labelled `step`.
fn add_vertex(step: usize) -> String {
    format!("addV('unit').property('round', r).property('writer', w).property('number', n).as('v{step}')")
}

/// The edges that close the ring.
fn add_edges() -> String {
    let edge =
        |from: usize| format!(".addE('link').from('v{from}').to('v{}').property('number', n)", (from + 1) % RING);
    (0..RING).map(edge).collect()
}

fn write_in_one_request(client: &mut Client, round: u64, writer: u64, number: u64) -> Result<(), Failure> {
    let vertices = (0..RING).map(add_vertex).collect::<Vec<_>>().join(".");
    let counter = "V().has('counter','writer', w).property('last', n)";
    let gremlin = format!("g.{vertices}{}.{counter}.iterate()", add_edges());
    client.submit(&gremlin, &options(&parameters(round, writer, number))).map(|_| ())
}

fn write_in_a_session(client: &mut Client, round: u64, writer: u64, number: u64) -> Result<(), Failure> {
    let session = Some(format!("round-{round}-writer-{writer}-number-{number}"));
    let all = parameters(round, writer, number);
    let mut step = |gremlin: &str, parameters: &[(&str, Value)]| {
        client.submit(gremlin, &Options { session: session.clone(), ..options(parameters) }).map(|_| ())
    };
    let vertices = (0..RING).map(add_vertex).collect::<Vec<_>>().join(".");
    step(&format!("g.{vertices}{}.iterate()", add_edges()), &all)?;
    step("g.V().has('counter','writer', w).property('last', n).iterate()", &all[1..])?;
    step("g.tx().commit()", &[])?;
    close(client, session.as_deref().unwrap_or_default())
}

/// Ends the session; what it did is committed already.
fn close(client: &mut Client, session: &str) -> Result<(), Failure> {
    let options = Options { session: Some(session.to_owned()), ..Options::default() };
    let request = Request { op: "close".into(), ..eval_request("", &options) };
    client.send(&request)?;
    client.gather(&request.id).map(|_| ())
}

/// Checks the round's transactions; gives the number of those that are there without having been acknowledged.
fn check(url: &str, round: u64, written: &[Written]) -> Result<u64, String> {
    let mut client = connect(url)?;
    let gremlin = "g.V().has('unit','round', r).project('w','n','out','in').by('writer').by('number')\
                   .by(__.out('link').values('number').fold()).by(__.inE('link').values('number').fold())";
    let mut found: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for row in submit(&mut client, gremlin, &[("r", long(round))])? {
        let Value::Map(row) = &row else { return Err(format!("expected a map, found {row:?}")) };
        let field = |name: &str| row.get(&Value::String(name.into()));
        let (Some(Value::Long(writer)), Some(Value::Long(number))) = (field("w"), field("n")) else {
            return Err(format!("a vertex without its writer and number: {row:?}"));
        };
        let alone = Value::List(Shared::new(vec![Value::Long(*number)]));
        if field("out") != Some(&alone) || field("in") != Some(&alone) {
            return Err(format!("a vertex without its two edges: {row:?}"));
        }
        let key = (u64::try_from(*writer).unwrap_or(u64::MAX), u64::try_from(*number).unwrap_or(u64::MAX));
        *found.entry(key).or_default() += 1;
    }
    if let Some(((writer, number), count)) = found.iter().find(|(_, count)| **count != RING) {
        return Err(format!("transaction {number} of writer {writer} is torn: {count} of {RING} vertices"));
    }
    let mut unacknowledged = 0;
    for Written { writer, begun, acknowledged } in written {
        let numbers: BTreeSet<u64> = found.keys().filter(|(owner, _)| owner == writer).map(|(_, n)| *n).collect();
        if let Some(lost) = (0..*acknowledged).find(|number| !numbers.contains(number)) {
            return Err(format!("transaction {lost} of writer {writer} was acknowledged and is gone"));
        }
        if let Some(strange) = numbers.iter().find(|number| *number >= begun) {
            return Err(format!("transaction {strange} of writer {writer} was never begun"));
        }
        unacknowledged += numbers.len() as u64 - acknowledged;
        check_counter(&mut client, *writer, numbers.last().copied())?;
    }
    Ok(unacknowledged)
}

/// The counter moves in the same transaction as the ring, so it names the last ring that is there.
fn check_counter(client: &mut Client, writer: u64, last: Option<u64>) -> Result<(), String> {
    let found = submit(client, "g.V().has('counter','writer', w).values('last')", &[("w", long(writer))])?;
    match last {
        // In a round without a transaction the counter still names one of an earlier round.
        None if found.len() == 1 => Ok(()),
        Some(last) if found == [long(last)] => Ok(()),
        _ => Err(format!("the counter of writer {writer} is {found:?}, its last transaction {last:?}")),
    }
}
