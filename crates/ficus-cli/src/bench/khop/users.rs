//! Users over WebSocket who ask for numbers of vertices some hops away, from a server that answers them together, one that
//! answers each by a search of its own, and one that streams walks.
//!
//! All servers run from the beginning, each on a copy of the data, and are asked in turn: what else happens on the machine, and how warm it
//! is, they have in common. Of a single user every question goes to both, first to one and then to the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Print, Times, at_least, at_most};
use crate::Outcome;
use crate::bench::storage::part;
use crate::bench::wire::Server;
use crate::failure::Failure;
use crate::output::talk;
use crate::shell::client::{Client, ClientOptions, Question};

/// Users at the same time.
const USERS: usize = 100;

/// Turns that each way gets for the same measure.
const TURNS: u32 = 4;

/// No k-hop query may take longer: a response behind its deadline is an error, which ends the suite.
const DEADLINE_MS: u64 = 5_000;

/// The same for streams of walks.
const STREAM_DEADLINE_MS: u64 = 60_000;

/// Ways to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By a server whose users join each other's passes.
    Together,
    /// By a server that lets every query search by itself: `engine.khop = "single"`.
    Alone,
    /// By a server that streams walks as they are written: `engine.khop = "off"`.
    Streams,
}

impl Way {
    const ALL: [Way; 3] = [Way::Together, Way::Alone, Way::Streams];

    fn name(self) -> &'static str {
        match self {
            Way::Together => "together",
            Way::Alone => "each alone",
            Way::Streams => "as streams of walks",
        }
    }

    fn deadline_ms(self) -> u64 {
        if self == Way::Streams { STREAM_DEADLINE_MS } else { DEADLINE_MS }
    }

    /// The query of a user.
    fn gremlin(id: u64, hops: u32) -> String {
        format!("g.V({id}L).repeat(__.out()).times({hops}).dedup().count()")
    }

    /// The setting of its server.
    fn setting(self) -> &'static str {
        match self {
            Way::Together => "engine.khop=batched",
            Way::Alone => "engine.khop=single",
            Way::Streams => "engine.khop=off",
        }
    }
}

/// The servers, each on a copy of the data.
struct Servers {
    servers: Vec<(Way, Server)>,
    copies: Vec<PathBuf>,
}

impl Servers {
    fn start(folder: &Path, scale: u32, data: &Path) -> Result<Servers, Failure> {
        let mut started = Servers { servers: Vec::new(), copies: Vec::new() };
        for (number, way) in Way::ALL.into_iter().enumerate() {
            let data = if number == 0 {
                data.to_path_buf()
            } else {
                let copy = part(folder, &format!("data-{scale}-copy-{number}"))?;
                copy_files(data, &copy)?;
                started.copies.push(copy.clone());
                copy
            };
            started.servers.push((way, Server::start_with(Some(data), None, &[way.setting()])?));
        }
        Ok(started)
    }

    fn url(&self, way: Way) -> &str {
        let of_way = self.servers.iter().find(|(own, _)| *own == way);
        &of_way.expect("there is a server for each way").1.url
    }

    fn end(self) -> Outcome {
        drop(self.servers);
        self.copies.iter().try_for_each(std::fs::remove_dir_all)?;
        Ok(())
    }
}

/// Measures users on the data directory of a graph.
pub fn run(folder: &Path, scale: u32, data: &Path, ids: &[u64], quick: bool, print: Print<'_>) -> Outcome {
    let turn = Duration::from_millis(if quick { 500 } else { 2500 });
    let servers = Servers::start(folder, scale, data)?;
    let ids: Arc<[u64]> = ids.into();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        many(scale, &servers, &ids, 2, turn, &Way::ALL, print).await?;
        single(scale, &servers, &ids, 2, if quick { 1000 } else { 4000 }, print).await?;
        many(scale, &servers, &ids, 3, turn, &[Way::Together, Way::Alone], print).await?;
        single(scale, &servers, &ids, 3, 200, print).await
    })?;
    servers.end()
}

pub fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let (entry, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        if entry.is_dir() {
            std::fs::create_dir_all(&target)?;
            copy_files(&entry, &target)?;
        } else {
            std::fs::copy(entry, target)?;
        }
    }
    Ok(())
}

/// Many users at once, one way after the other, in several turns.
async fn many(
    scale: u32,
    servers: &Servers,
    ids: &Arc<[u64]>,
    hops: u32,
    turn: Duration,
    ways: &[Way],
    print: Print<'_>,
) -> Outcome {
    let mut counts = vec![0usize; ways.len()];
    let mut seconds = vec![0.0; ways.len()];
    let mut times: Vec<Times> = ways.iter().map(|_| Times::default()).collect();
    for number in 0..=TURNS {
        for (position, way) in ways.iter().enumerate() {
            talk(&format!("{USERS} users, {hops} hops, {}, turn {number}", way.name()));
            let started = Instant::now();
            let answered = users(servers.url(*way), ids, *way, hops, turn).await?;
            // The first turn is for the caches, and until the server has made up its mind.
            if number > 0 {
                counts[position] += answered.len();
                seconds[position] += started.elapsed().as_secs_f64();
                answered.into_iter().for_each(|time| times[position].add(time));
            }
        }
    }
    let rates: Vec<f64> = counts.iter().zip(seconds).map(|(count, seconds)| *count as f64 / seconds).collect();
    for ((way, rate), times) in ways.iter().zip(&rates).zip(&mut times) {
        let case = format!("{USERS} users, {hops} hops, {}", way.name());
        print(at_least(scale, &case, "rate", *rate, "queries/s", None))?;
        print(at_most(scale, &case, "p50", times.percentile_us(0.5) / 1e3, "ms", None))?;
        print(at_most(scale, &case, "p99", times.percentile_us(0.99) / 1e3, "ms", None))?;
    }
    for (way, rate) in ways.iter().zip(&rates).skip(1) {
        let case = format!("{USERS} users, {hops} hops: together / {}", way.name());
        let target = (hops == 2 && *way == Way::Streams).then_some(10.0);
        print(at_least(scale, &case, "rate", rates[0] / rate, "ratio", target))?;
    }
    Ok(())
}

/// Times of so many users who ask one question after the other each.
async fn users(url: &str, ids: &Arc<[u64]>, way: Way, hops: u32, time: Duration) -> Result<Vec<Duration>, Failure> {
    let mut clients = Vec::new();
    for _ in 0..USERS {
        clients.push(connect(url).await?);
    }
    let until = Instant::now() + time;
    let tasks: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(user, mut client)| {
            let ids = ids.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                let mut position = user * 31;
                while Instant::now() < until {
                    let id = ids[position % ids.len()];
                    position += 1;
                    times.push(ask(&mut client, way, id, hops).await?.0);
                }
                Ok::<Vec<Duration>, Failure>(times)
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.map_err(Failure::failed)??);
    }
    Ok(all)
}

/// One user asks both servers every question, and who comes first changes. The answers must be equal.
async fn single(
    scale: u32,
    servers: &Servers,
    ids: &Arc<[u64]>,
    hops: u32,
    questions: usize,
    print: Print<'_>,
) -> Outcome {
    let mut together = connect(servers.url(Way::Together)).await?;
    let mut alone = connect(servers.url(Way::Alone)).await?;
    let (mut times, mut ratios) = ([Times::default(), Times::default()], Times::default());
    // Some for the caches first.
    for number in 0..questions + questions / 8 {
        let id = ids[number % ids.len()];
        let (first, second) = if number % 2 == 0 {
            let first = ask(&mut together, Way::Together, id, hops).await?;
            (first, ask(&mut alone, Way::Alone, id, hops).await?)
        } else {
            let second = ask(&mut alone, Way::Alone, id, hops).await?;
            (ask(&mut together, Way::Together, id, hops).await?, second)
        };
        if first.1 != second.1 {
            let answers = format!("{:?} together and {:?} alone", first.1, second.1);
            return Err(Failure::failed(format!("vertex {id}, {hops} hops: {answers}")));
        }
        if number >= questions / 8 {
            times[0].add(first.0);
            times[1].add(second.0);
            ratios.add(Duration::from_secs_f64(first.0.as_secs_f64() / second.0.as_secs_f64()));
        }
    }
    for (times, way) in times.iter_mut().zip([Way::Together, Way::Alone]) {
        let case = format!("1 user, {hops} hops, {}", way.name());
        for (metric, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            print(at_most(scale, &case, metric, times.percentile_us(share), "us", None))?;
        }
    }
    let case = format!("1 user, {hops} hops: together / alone");
    let [together, alone] = &mut times;
    for (metric, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let ratio = together.percentile_us(share) / alone.percentile_us(share);
        print(at_most(scale, &case, metric, ratio, "ratio", (share == 0.5).then_some(1.03)))?;
    }
    print(at_most(scale, &case, "of each question, p50", ratios.percentile_us(0.5) / 1e6, "ratio", None))?;
    Ok(())
}

async fn connect(url: &str) -> Result<Client, Failure> {
    Client::connect(&ClientOptions { url: url.into(), credentials: None, trust: Default::default() })
        .await
        .map_err(Failure::failed)
}

/// How long an answer took, and the answer.
async fn ask(
    client: &mut Client,
    way: Way,
    id: u64,
    hops: u32,
) -> Result<(Duration, Vec<ficus_model::Value>), Failure> {
    let gremlin = Way::gremlin(id, hops);
    let question = Question { gremlin, source: "g".into(), timeout_ms: Some(way.deadline_ms()), ..Question::default() };
    let started = Instant::now();
    let mut rows = Vec::new();
    let keep = |some| {
        rows.extend::<Vec<_>>(some);
        Ok(())
    };
    client.ask(&question, keep).await.map_err(Failure::failed)?;
    Ok((started.elapsed(), rows))
}
