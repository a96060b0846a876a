//! `ficus.khop`: what lies within some hops of each of many vertices, in as few passes as possible.

use std::sync::Arc;

use ficus_analytics::question::Common;
use ficus_analytics::{Answer, Hops, Place, Question, Walk, answer};
use ficus_model::{Direction, Shared, Value, ValueMap, VertexId};

use super::algorithm::{DIRECTION_OUT, EDGES, options, vertices};
use super::background::{Background, Part};
use crate::context::{Cx, QueryContext, Result};
use crate::services::parameters::Parameters;
use crate::services::{LaterValues, Reply, Service};

/// The service.
pub struct KHopService;

/// Questions of one call: a source with each target is one.
const QUESTIONS_MAX: usize = 1 << 20;

impl Service for KHopService {
    fn name(&self) -> &str {
        "ficus.khop"
    }

    fn is_listed(&self) -> bool {
        false
    }

    fn parameters(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("sources", "A vertex or an id, or a list of them: each is asked for by itself."),
            ("targets", "A vertex or an id, or a list of them: the distance of each is wanted (default = counts are)."),
            ("hops", "How many hops at most (default = until nothing new is reached)."),
            ("walk", "within (after 1 hop or more), withinOrSource, or exactly so many hops (default = within)."),
            DIRECTION_OUT,
            EDGES,
        ]
    }

    fn call(&self, cx: &mut Cx<'_>, _input: Option<&Value>, parameters: &ValueMap) -> Result<Reply> {
        let given = Parameters::of(self, parameters)?;
        let context = &*cx.context;
        let sources = vertices(&given, "sources", context)?
            .ok_or_else(|| given.invalid("it needs the parameter [sources], a vertex or its id, or a list"))?;
        let targets = vertices(&given, "targets", context)?;
        let hops = Hops(given.count("hops", Hops::ALL.0)?);
        let walk = match given.optional_text("walk")?.as_deref() {
            None | Some("within") => Walk::Within,
            Some("withinOrSource") => Walk::WithinOrSource,
            Some("exactly") if hops == Hops::ALL => {
                return Err(given.invalid("[walk] exactly needs the parameter [hops]"));
            }
            Some("exactly") => Walk::Exactly,
            Some(other) => {
                return Err(given.invalid(format!("[walk] is within, withinOrSource or exactly, not {other}")));
            }
        };
        let questions = sources.len().saturating_mul(targets.as_ref().map_or(1, Vec::len));
        if questions > QUESTIONS_MAX {
            return Err(given.invalid(format!(
                "{questions} pairs of [sources] and [targets]; at most {QUESTIONS_MAX} are answered in one call"
            )));
        }
        let direction = given.direction(Direction::Out)?;
        // A pass of up to 512 holds three bits a vertex for each.
        let bytes = (3 * questions.clamp(64, 512).next_power_of_two() / 8, 0);
        let part = Part::Labels(options(&given, context)?);
        let (from, to) = (sources.clone(), targets.clone());
        let background = Background::begin("ficus.khop", part, bytes, cx, move |projection, _, control| {
            let places = |vertices: &[VertexId]| -> Vec<Option<Place>> {
                vertices.iter().map(|vertex| projection.place(*vertex)).collect()
            };
            let targets = to.as_deref().map_or_else(|| vec![None], places);
            let questions: Vec<Question> = places(&from)
                .into_iter()
                .flat_map(|source| targets.iter().map(move |target| (source, *target)))
                .map(|(source, target)| Question { sources: source.into_iter().collect(), hops, target })
                .collect();
            let common = Common { projection: &projection, direction, walk, allowed: None };
            answer(common, &questions, control)
        })?;
        Ok(Reply::Later(Box::new(KHopRows { background, sources, targets, walk, hops, answers: None, next: 0 })))
    }
}

/// Rows on their way.
struct KHopRows {
    background: Background<Vec<Answer>>,
    sources: Vec<VertexId>,
    targets: Option<Vec<VertexId>>,
    walk: Walk,
    hops: Hops,
    /// By source, then by target.
    answers: Option<Vec<Answer>>,
    next: usize,
}

impl KHopRows {
    fn row(&self, number: usize, answer: &Answer) -> Option<Value> {
        let long = |count: u64| Value::Long(i64::try_from(count).unwrap_or(i64::MAX));
        let width = self.targets.as_ref().map_or(1, Vec::len);
        let mut row: Vec<(&str, Value)> = vec![("source", Value::Vertex(self.sources[number / width]))];
        match &self.targets {
            Some(targets) => {
                // Where there is no way, there is no row.
                let distance = answer.distance?;
                row.push(("target", Value::Vertex(targets[number % width])));
                row.push(("distance", Value::Long(i64::from(distance))));
            }
            None => {
                row.push(("count", long(answer.count(self.walk, self.hops))));
                row.push(("levels", Value::List(Shared::new(answer.levels.iter().copied().map(long).collect()))));
            }
        }
        let text = |text: &str| Value::String(Arc::from(text));
        Some(Value::Map(Shared::new(row.into_iter().map(|(key, value)| (text(key), value)).collect::<ValueMap>())))
    }
}

impl LaterValues for KHopRows {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Option<Value>> {
        if self.answers.is_none() {
            let Some(answers) = self.background.outcome(cx)? else { return Ok(None) };
            self.answers = Some(answers);
        }
        let Some(answers) = &self.answers else { return Ok(None) };
        while let Some(answer) = answers.get(self.next) {
            self.next += 1;
            if let Some(row) = self.row(self.next - 1, answer) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn release(&mut self, context: &mut QueryContext) {
        self.background.release(context);
    }
}
