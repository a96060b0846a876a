//! The queries of `bench/snb/queries.toml` in this process, over a loaded store, with parameters drawn from the graph by a seed.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use ficus_dataflow::Delivery;
use ficus_model::Value;
use ficus_query::QueryErrorKind;
use ficus_query::budget::Held;
use ficus_query::engine::{Engine, Prepared, QueryEnd, Row, RowSink, RowWaker, RunOptions};
use ficus_storage::{Graph, Store};

use super::prepare;
use crate::failure::Failure;

const QUERIES: &str = include_str!("../../../../../bench/snb/queries.toml");

#[derive(serde::Deserialize)]
struct Texts {
    query: Vec<Text>,
}

/// One query with its parameters open.
#[derive(Clone, serde::Deserialize)]
pub struct Text {
    /// Such as `IC6`.
    pub name: String,
    /// The traversal, parameters in braces.
    pub gremlin: String,
    #[serde(rename = "match", default)]
    answers: String,
}

impl Text {
    /// Whether any few of many rows are an answer.
    pub fn is_any(&self) -> bool {
        self.answers == "some"
    }
}

/// A loaded graph and its queries.
pub struct Snb {
    _store: Arc<Store>,
    /// The graph.
    pub graph: Arc<Graph>,
    texts: Vec<Text>,
    /// Sets of parameters: name in braces, value.
    pub sets: Vec<Vec<(&'static str, String)>>,
}

/// How a query went.
pub struct Run {
    /// From its submission to its end.
    pub time: Duration,
    /// Rows; none if its time was over before.
    pub rows: Option<Vec<String>>,
}

impl Snb {
    /// Opens a store that holds one graph, loaded as `docs/examples/mappings/snb.toml` says, and draws `sets` sets of parameters.
    pub fn open(directory: &Path, engine: &Engine, sets: usize, seed: u64) -> Result<Snb, Failure> {
        let store = crate::store::open(directory, false)?;
        let names = store.graph_names();
        let graph = names.first().and_then(|name| store.graph(name));
        let graph = graph.ok_or_else(|| Failure::failed(format!("{}: there is no graph", directory.display())))?;
        let texts: Texts = toml::from_str(QUERIES).map_err(Failure::failed)?;
        let mut snb = Snb { _store: store, graph, texts: texts.query, sets: Vec::new() };
        snb.draw(engine, sets, seed)?;
        Ok(snb)
    }

    fn draw(&mut self, engine: &Engine, sets: usize, seed: u64) -> Result<(), Failure> {
        let ask = |text: &str| -> Result<Vec<String>, Failure> {
            let run = self.run(engine, &prepare(text)?, Duration::from_secs(600))?;
            run.rows.filter(|rows| !rows.is_empty()).ok_or_else(|| Failure::failed(format!("[{text}] found nothing")))
        };
        let persons = ask(
            "g.V().hasLabel('person').where(both('knows').count().is(gte(20))).where(out('workAt')).id().order().limit(100000)",
        )?;
        let frequent = |label: &str, key: &str, hop: &str| {
            ask(&format!("g.V().hasLabel('{label}').order().by({hop}.count(), desc).limit(12).values('{key}')"))
        };
        let names = ask(
            "g.V().hasLabel('person').groupCount().by('firstName').order(local).by(values, desc).limit(local, 12).unfold().select(keys)",
        )?;
        let tags = frequent("tag", "name", "__.in('hasTag')")?;
        let countries = ask(
            "g.V().hasLabel('country').where(__.in('isPartOf')).order().by(__.in('isLocatedIn').count(), desc).limit(12).values('name')",
        )?;
        let classes = ["Person", "Place", "Work", "Agent"].map(String::from);
        for set in 0..sets {
            let pick = |list: &[String], step: usize| {
                let mixed = (seed + (set * 8 + step) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                list[(mixed >> 32) as usize % list.len()].clone()
            };
            let person = pick(&persons, 0);
            let country = set % countries.len();
            self.sets.push(vec![
                ("person", person.trim_start_matches("person:").to_owned()),
                ("first_name", pick(&names, 1)),
                ("tag", pick(&tags, 2)),
                ("country", countries[country].clone()),
                ("other_country", countries[(country + 1) % countries.len()].clone()),
                ("tag_class", pick(&classes, 3)),
                ("date", "2011-10-01T00:00:00Z".into()),
                ("until", "2012-01-01T00:00:00Z".into()),
                ("month", format!("{:02}", set % 11 + 1)),
                ("next_month", format!("{:02}", set % 11 + 2)),
                ("year", "2010".into()),
            ]);
        }
        Ok(())
    }

    /// The text of a query.
    ///
    /// # Panics
    /// If there is none of this name.
    pub fn text(&self, name: &str) -> &Text {
        self.texts.iter().find(|text| text.name == name).expect("the suite asks for queries that are in the file")
    }

    /// A text with a set of parameters, behind these options: `.with('ficus.spread', false)`.
    pub fn fill(&self, gremlin: &str, set: usize, with: &str) -> Result<Prepared, Failure> {
        let mut text = gremlin.trim().to_owned();
        for (name, value) in &self.sets[set] {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        prepare(&format!("g{with}{}", text.strip_prefix('g').unwrap_or(&text)))
    }

    /// Runs a query on the executors.
    pub fn run(&self, engine: &Engine, prepared: &Prepared, timeout: Duration) -> Result<Run, Failure> {
        let (sender, end) = channel();
        let options = RunOptions { timeout_ns: Some(timeout.as_nanos() as u64), ..RunOptions::default() };
        let began = Instant::now();
        let sink = Keep { rows: Vec::new(), sender };
        engine.submit(prepared, self.graph.begin_reading(), &options, Box::new(sink));
        let ended = end.recv().map_err(|_| Failure::failed("a query ended without saying so"))?;
        let time = began.elapsed();
        match ended {
            Ok(rows) => Ok(Run { time, rows: Some(rows) }),
            Err((QueryErrorKind::Timeout, _)) => Ok(Run { time: timeout, rows: None }),
            Err((QueryErrorKind::Budget, message)) => {
                let (limit, after) = (timeout.as_secs_f64(), time.as_secs_f64());
                crate::output::talk(&format!("counts as {limit} s, though it ended after {after:.1} s: {message}"));
                Ok(Run { time: timeout, rows: None })
            }
            Err((_, message)) => Err(Failure::failed(message)),
        }
    }
}

type Ended = Result<Vec<String>, (QueryErrorKind, String)>;

/// Keeps the texts of rows.
struct Keep {
    rows: Vec<String>,
    sender: Sender<Ended>,
}

impl RowSink for Keep {
    fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
        for (value, bulk) in rows.drain(..) {
            let text = match &value {
                Value::String(text) => text.to_string(),
                other => other.to_string(),
            };
            self.rows.extend(std::iter::repeat_n(text, bulk as usize));
        }
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        end.transaction.rollback();
        let Keep { rows, sender } = *self;
        let ended = end.result.map(|()| rows).map_err(|error| (error.kind, error.message.to_string()));
        // Nobody listens any more if the measurement has failed.
        let _ = sender.send(ended);
    }
}
