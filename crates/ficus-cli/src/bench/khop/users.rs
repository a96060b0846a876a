//! Users over WebSocket who ask for numbers of vertices two hops away, from a server that answers them together and one that
//! answers each alone.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Print, Times, at_least, at_most};
use crate::Outcome;
use crate::bench::wire::Server;
use crate::failure::Failure;
use crate::shell::client::{Client, ClientOptions, Question};

/// Users at the same time.
const USERS: usize = 100;

/// How a server answers, and the setting that makes it so. The last knows no k-hop queries: walks are streamed.
const WAYS: [(&str, &str, bool); 3] = [
    ("together", "engine.khop_batching=true", true),
    ("each alone", "engine.khop_batching=false", true),
    ("as streams of walks", "engine.khop_batching=false", false),
];

pub fn run(data: &Path, ids: &[u64], quick: bool, print: Print<'_>) -> Outcome {
    let time = Duration::from_secs(if quick { 2 } else { 10 });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let scale = if quick { 16 } else { 20 };
    let mut rates = Vec::new();
    let mut single = Vec::new();
    for (way, setting, is_khop) in WAYS {
        let server = Server::start_with(Some(data.to_path_buf()), None, &[setting])?;
        let ids: Arc<[u64]> = ids.into();
        let (rate, mut alone) = runtime.block_on(async {
            // Until the server has made up its mind, and for the caches.
            users(&server.url, &ids, USERS, time / 2, is_khop).await?;
            let (count, mut times) = users(&server.url, &ids, USERS, time, is_khop).await?;
            let rate = count as f64 / time.as_secs_f64();
            let case = format!("{USERS} users, 2 hops, {way}");
            print(at_least(scale, &case, "rate", rate, "queries/s", None))?;
            print(at_most(scale, &case, "p99", times.percentile_us(0.99) / 1e3, "ms", None))?;
            Ok::<_, Failure>((rate, users(&server.url, &ids, 1, time / 2, is_khop).await?.1))
        })?;
        rates.push(rate);
        single.push(alone.percentile_us(0.5));
        print(at_most(scale, &format!("1 user, 2 hops, {way}"), "p50", alone.percentile_us(0.5), "us", None))?;
    }
    print(at_least(scale, "users together / each alone", "rate", rates[0] / rates[1], "ratio", None))?;
    print(at_least(scale, "users together / streams", "rate", rates[0] / rates[2], "ratio", Some(10.0)))?;
    print(at_most(scale, "1 user together / alone", "p50", single[0] / single[1], "ratio", Some(1.03)))?;
    Ok(())
}

/// Requests that so many users get answered in this time, one after the other each, and how long each took.
async fn users(
    url: &str,
    ids: &Arc<[u64]>,
    users: usize,
    time: Duration,
    is_khop: bool,
) -> Result<(usize, Times), Failure> {
    let until = Instant::now() + time;
    let mut tasks = Vec::new();
    for user in 0..users {
        let options = ClientOptions { url: url.into(), credentials: None };
        let mut client = Client::connect(&options).await.map_err(Failure::failed)?;
        let ids = ids.clone();
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            let mut position = user * 31;
            while Instant::now() < until {
                let id = ids[position % ids.len()];
                position += 1;
                let source = if is_khop { "g" } else { "g.with('ficus.khop', false)" };
                let gremlin = format!("{source}.V({id}L).repeat(__.out()).times(2).dedup().count()");
                let question = Question { gremlin, source: "g".into(), ..Question::default() };
                let started = Instant::now();
                client.ask(&question, |_| Ok(())).await.map_err(Failure::failed)?;
                times.push(started.elapsed());
            }
            Ok::<Vec<Duration>, Failure>(times)
        }));
    }
    let (mut count, mut all) = (0, Times::default());
    for task in tasks {
        let times = task.await.map_err(Failure::failed)??;
        count += times.len();
        times.into_iter().for_each(|time| all.add(time));
    }
    Ok((count, all))
}
