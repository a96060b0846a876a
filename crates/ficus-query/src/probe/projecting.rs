//! `project()` in place: a map of what walks from one object find first.

use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::{MapMaker, Shared, Value};

use super::{Halt, Probe, Surroundings};
use crate::logical::{By, Name};
use crate::modulate::Modulator;
use crate::physical::Modulators;
use crate::traverser::work_of;

/// What an entry is made of.
#[derive(Clone)]
enum Entry {
    Simple(Modulator),
    Walk(Probe),
}

/// A `project()`.
#[derive(Clone)]
pub(super) struct Projection {
    /// The keys of the map.
    keys: Arc<[Value]>,
    /// In turns, one for each key.
    entries: Vec<Entry>,
    maker: MapMaker,
}

impl Projection {
    /// `None` if a scope has to make an entry.
    pub(super) fn compile(keys: &[Name], bys: &[By]) -> Option<Projection> {
        let entry = |by: &By| {
            let mut modulators = Modulators::new();
            modulators.by(by);
            match (modulators.simple(), by) {
                (Some(modulator), _) => Some(Entry::Simple(modulator.clone())),
                (None, By::Traversal(walk)) => Some(Entry::Walk(Probe::compile(walk)?)),
                (None, _) => None,
            }
        };
        let mut entries: Vec<Entry> = bys.iter().map(entry).collect::<Option<_>>()?;
        if entries.is_empty() {
            entries.push(Entry::Simple(Modulator::Identity));
        }
        let keys = keys.iter().map(|key| Value::String(key.clone())).collect();
        Some(Projection { keys, entries, maker: MapMaker::default() })
    }

    /// The map of an object. An entry of which nothing is found is left out.
    pub(super) fn map(&mut self, value: &Value, around: &mut Surroundings<'_>) -> Result<Value, Halt> {
        self.maker.begin();
        for (place, key) in self.keys.iter().enumerate() {
            let entries = self.entries.len();
            let found = match &mut self.entries[place % entries] {
                Entry::Simple(modulator) => modulator.evaluate(value, around.context)?,
                Entry::Walk(probe) => {
                    let mut first = None;
                    let _ = probe.rows(value.clone(), 1, around, &mut |value, _, _| {
                        first = Some(value);
                        Ok(ControlFlow::Break(()))
                    })?;
                    first
                }
            };
            let Some(found) = found else { continue };
            // Values of which many maps would be large are watched where rows are.
            if work_of(&found) > 0 {
                return Err(Halt::TooLong);
            }
            self.maker.put(key, found);
        }
        around.pay(self.keys.len())?;
        Ok(Value::Map(Shared::new(self.maker.finish())))
    }

    pub(super) fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Walk(probe) => Some(probe),
            Entry::Simple(_) => None,
        })
    }

    pub(super) fn probes_mut(&mut self) -> impl Iterator<Item = &mut Probe> {
        self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::Walk(probe) => Some(probe),
            Entry::Simple(_) => None,
        })
    }
}
