//! A backend that does what the words of a query say.
//!
//! | query | does |
//! |---|---|
//! | `rows N` | numbers from 0, in batches of 100, with backpressure |
//! | `bulk N` | one value with bulk N |
//! | `null` | one null |
//! | `echo` | one map of what the server passed |
//! | `wait MS` | nothing, later |
//! | `hang` | runs until it is cancelled |
//! | `fail STATUS` | fails; `fail 595` with a message of the step |
//! | `undetached` | a value that cannot be written |
//! | `late` | rows that can be written, then one that cannot |
//! | `end` | done, having ended the transaction itself |
//! | `panic`, `vanish` | misbehave |

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use ficus_model::{Argument, Shared, Value, ValueMap, VertexId};
use ficus_server::catalogue;
use ficus_server::{
    Backend, Batch, Callback, CancelHandle, Completion, EventSink, Failure, Health, Program, Push, Query,
    TransactionKey,
};

#[derive(Default)]
pub struct Mock {
    keys: AtomicU64,
    /// What happened, in order: `open 1 g`, `commit 1`, `roll back 1`, `cancelled`, `closed`.
    pub log: Arc<Mutex<Vec<String>>>,
    pub unwell: AtomicBool,
}

impl Mock {
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    pub fn count(&self, entry: &str) -> usize {
        self.log().iter().filter(|found| *found == entry).count()
    }

    /// Waits until the log has an entry; the deadline only matters when the test fails.
    pub async fn logged(&self, entry: &str) {
        for _ in 0..1000 {
            if self.count(entry) > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{entry:?} was never logged: {:?}", self.log());
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn note(log: &Mutex<Vec<String>>, entry: impl Into<String>) {
    log.lock().unwrap().push(entry.into());
}

impl Backend for Mock {
    fn start(&self, query: Query, events: EventSink) -> CancelHandle {
        let words = match &query.program {
            Program::Text { gremlin, .. } => gremlin.to_string(),
            Program::Bytecode(bytecode) => {
                let step = &bytecode.steps[0];
                match step.args.first() {
                    Some(Argument::Value(Value::Int(number))) => format!("{} {number}", step.name),
                    _ => step.name.to_string(),
                }
            }
        };
        let (word, number) = words.split_once(' ').unwrap_or((&words, "0"));
        let number: u64 = number.parse().unwrap_or(0);
        let log = self.log.clone();
        match word {
            "rows" if number <= 100 => {
                push(&events, (0..number).map(|row| (Value::Int(row as i32), 1)).collect());
                events.done(Completion::default());
            }
            "rows" => {
                thread::spawn(move || {
                    let waker = Waker::from(Arc::new(Unpark(thread::current())));
                    let mut row = 0;
                    while row < number {
                        let rows = row..number.min(row + 100);
                        let mut batch = Batch::from(rows.map(|r| (Value::Int(r as i32), 1)).collect::<Vec<_>>());
                        row += 100;
                        loop {
                            match events.try_push(batch, &waker) {
                                Push::Accepted => break,
                                Push::Full(back) => {
                                    batch = back;
                                    thread::park();
                                }
                                Push::Closed => return note(&log, "closed"),
                            }
                        }
                    }
                    events.done(Completion::default());
                });
            }
            "bulk" => {
                push(&events, vec![(Value::Int(7), number)]);
                events.done(Completion::default());
            }
            "null" => {
                push(&events, vec![(Value::Null, 1)]);
                events.done(Completion::default());
            }
            "echo" => {
                push(&events, vec![(echo(&query), 1)]);
                let mut attributes = ValueMap::default();
                attributes.insert(Value::String("engine".into()), Value::Int(1));
                events.done(Completion { attributes, transaction_finished: false });
            }
            "wait" => {
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(number));
                    note(&log, format!("waited {number}"));
                    push(&events, vec![(Value::Long(number as i64), 1)]);
                    events.done(Completion::default());
                });
            }
            "hang" => {
                note(&log, "hangs");
                return CancelHandle::new(move || {
                    note(&log, "cancelled");
                    drop(events);
                });
            }
            "fail" => {
                let entry = if number == 596 { &catalogue::SHUTTING_DOWN } else { &catalogue::INTERNAL };
                let mut failure = Failure::new(entry, format!("failed with {number}"));
                failure.status = number as u16;
                if number == 595 {
                    failure = failure.with_attribute("failStepMessage", Value::String("fail() Step Triggered".into()));
                }
                events.fail(failure);
            }
            "undetached" | "late" => {
                if word == "late" {
                    push(&events, (0..200).map(|row| (Value::Int(row), 1)).collect());
                }
                push(&events, vec![(Value::Vertex(VertexId(1)), 1)]);
                events.done(Completion::default());
            }
            "end" => {
                note(&log, "ended itself");
                events.done(Completion { attributes: ValueMap::default(), transaction_finished: true });
            }
            "panic" => panic!("as asked"),
            "vanish" => drop(events),
            other => {
                let mut failure = Failure::new(&catalogue::INTERNAL, format!("no such query: {other}"));
                failure.status = 597;
                events.fail(failure);
            }
        }
        CancelHandle::finished()
    }

    fn open_transaction(&self, source: &str) -> Result<TransactionKey, Failure> {
        if source == "gfixed" {
            let mut failure = Failure::new(&catalogue::INTERNAL, "Graph does not support transactions");
            failure.status = 500;
            return Err(failure);
        }
        // Conflicting transactions are told by their keys.
        let base = if source == "gconflict" { 1000 } else { 0 };
        let key = base + self.keys.fetch_add(1, Ordering::SeqCst) + 1;
        note(&self.log, format!("open {key} {source}"));
        Ok(TransactionKey(key))
    }

    fn finish_transaction(&self, key: TransactionKey, commit: bool, done: Callback) {
        let TransactionKey(key) = key;
        note(&self.log, format!("{} {key}", if commit { "commit" } else { "roll back" }));
        // As an engine would: from a thread of its own.
        thread::spawn(move || {
            if commit && key > 1000 {
                let mut failure = Failure::new(&catalogue::SHUTTING_DOWN, "the transaction conflicts with another");
                failure.status = 596;
                return done(Err(failure));
            }
            done(Ok(()));
        });
    }

    fn sources(&self) -> Vec<String> {
        ["g", "gmodern", "gfixed", "gconflict"].map(str::to_owned).to_vec()
    }

    fn health(&self) -> Health {
        let unwell = self.unwell.load(Ordering::SeqCst);
        Health { ready: true, writable: if unwell { Err("the disk is full".to_string()) } else { Ok(()) } }
    }

    fn write_metrics(&self, out: &mut String) {
        out.push_str("mock_metric 1\n");
    }
}

fn push(events: &EventSink, batch: Vec<(Value, u64)>) {
    let _ = events.try_push(batch.into(), Waker::noop());
}

fn echo(query: &Query) -> Value {
    let text = |text: &str| Value::String(text.into());
    let milliseconds = |time: Option<Duration>| time.map_or(Value::Null, |time| Value::Long(time.as_millis() as i64));
    let mut map = ValueMap::default();
    map.insert(text("source"), text(&query.source));
    map.insert(text("timeout"), milliseconds(query.timeout));
    map.insert(text("cap"), milliseconds(query.timeout_cap));
    map.insert(text("batch"), Value::Int(query.batch_size as i32));
    map.insert(text("materialize"), text(&format!("{:?}", query.materialize_properties)));
    map.insert(text("user"), query.asker.user().map_or(Value::Null, |user| text(user)));
    map.insert(text("transaction"), query.transaction.map_or(Value::Null, |key| Value::Long(key.0 as i64)));
    map.insert(text("bindings"), Value::Map(Shared::new(query.bindings.clone())));
    let language = match &query.program {
        Program::Text { language: Some(language), .. } => text(language),
        _ => Value::Null,
    };
    map.insert(text("language"), language);
    Value::Map(Shared::new(map))
}
