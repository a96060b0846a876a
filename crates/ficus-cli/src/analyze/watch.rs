//! Watching work from beside it: how far it has come, and whether the user wants it to end.

use std::sync::mpsc::Sender;
use std::time::Duration;

use ficus_dataflow::{CancelToken, Progress};
use ficus_model::Value;
use tokio::sync::oneshot;

use super::Told;
use crate::failure::Failure;
use crate::shell::client::{Client, ClientOptions, Question};

/// Between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Where the work is.
pub enum Watched {
    /// In this process.
    Here(CancelToken),
    /// On a server.
    OnServer {
        /// How to connect.
        options: ClientOptions,
        /// A traversal source there.
        source: String,
        /// What the query has in its text, and no other.
        tag: String,
    },
}

/// Watches until it is dropped.
pub struct Watch {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Watch {
    /// Begins. Work in this process is cancelled by the signal that Ctrl-C sends.
    pub fn begin(watched: Watched, tell: Sender<Told>) -> std::io::Result<Watch> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = look(watched, tell) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Watch { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

async fn look(watched: Watched, tell: Sender<Told>) {
    match watched {
        Watched::Here(token) => loop {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => return token.cancel(),
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
            if let Some(Progress { stage, round, share }) = token.progress() {
                // Who listens may have gone; the work ends without us.
                let _ = tell.send(Told::Progress(text(stage, round.map(i64::from), share * 100.0)));
            }
        },
        Watched::OnServer { options, source, tag } => {
            if let Err(failure) = look_at_server(&options, source, &tag, &tell).await {
                let reason = failure.message().unwrap_or("nobody listens").to_owned();
                let _ = tell.send(Told::Progress(format!("its progress cannot be told: {reason}")));
            }
        }
    }
}

async fn look_at_server(
    options: &ClientOptions,
    source: String,
    tag: &str,
    tell: &Sender<Told>,
) -> Result<(), Failure> {
    let mut client = Client::connect(options).await.map_err(Failure::failed)?;
    let question = Question { gremlin: "g.call('ficus.queries')".into(), source, ..Question::default() };
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let mut found = None;
        let look = |rows: Vec<Value>| {
            found = found.take().or_else(|| rows.iter().find_map(|row| of_row(row, tag)));
            Ok(())
        };
        client.ask(&question, look).await.map_err(Failure::failed)?;
        if let Some(text) = found {
            let _ = tell.send(Told::Progress(text));
        }
    }
}

/// The progress of the query that a row is about, if it is the one with this in its text.
fn of_row(row: &Value, tag: &str) -> Option<String> {
    let Value::Map(map) = row else { return None };
    let field = |name: &str| map.get(&Value::String(name.into()));
    match (field("text"), field("state"), field("stage")) {
        (Some(Value::String(own)), ..) if !own.contains(tag) => None,
        (Some(Value::String(_)), Some(Value::String(state)), _) if &**state == "queued" => {
            Some("waiting in line".to_owned())
        }
        (Some(Value::String(_)), _, Some(Value::String(stage))) => {
            let round = match field("round") {
                Some(Value::Long(round)) => Some(*round),
                _ => None,
            };
            let percent = match field("percent") {
                Some(Value::Double(percent)) => *percent,
                _ => 0.0,
            };
            Some(text(stage, round, percent))
        }
        _ => None,
    }
}

fn text(stage: &str, round: Option<i64>, percent: f64) -> String {
    match round {
        Some(round) => format!("{stage}, round {round}, {percent:.0} % at least"),
        None => format!("{stage}, {percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {

    use ficus_model::{Shared, ValueMap};

    use super::*;

    #[test]
    fn rows_of_the_list_become_words() {
        let check = |fields: &[(&str, Value)], expected: Option<&str>| {
            let text = |text: &str| Value::String(text.into());
            let map: ValueMap = fields.iter().map(|(key, value)| (text(key), value.clone())).collect();
            assert_eq!(of_row(&Value::Map(Shared::new(map)), "tag").as_deref(), expected);
        };
        let own = ("text", Value::String("g.with('a', 'tag')".into()));
        let running = ("state", Value::String("running".into()));
        let stage = ("stage", Value::String("computing".into()));
        check(&[own.clone(), running.clone(), ("stage", Value::Null)], None);
        check(&[own.clone(), ("state", Value::String("queued".into()))], Some("waiting in line"));
        check(
            &[own.clone(), running.clone(), stage.clone(), ("percent", Value::Double(12.5))],
            Some("computing, 12 %"),
        );
        let round = ("round", Value::Long(3));
        let percent = ("percent", Value::Double(30.0));
        check(&[own, running.clone(), stage.clone(), round, percent], Some("computing, round 3, 30 % at least"));
        check(&[("text", Value::String("g.V()".into())), running, stage], None);
    }
}
