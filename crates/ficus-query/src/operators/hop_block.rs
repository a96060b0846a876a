//! Hops of many rows together: of those that lead to few vertices each, what is done for each row by itself is most of the work.

use ficus_model::{Direction, LabelId, Value, VertexId};
use ficus_storage::HalfEdgeCursor;

use crate::context::{Cx, Result, Traversers};
use crate::elements::FETCH_MAX;
use crate::operators::has::Conditions;
use crate::operators::hop_parts::HandedOn;
use crate::traverser::Traverser;

/// Fewer rows than this go one after the other.
const ROWS_FROM: usize = 8;

/// Rows taken at once: what is loaded for them ahead stays in the first cache.
const ROWS_MAX: usize = 64;

/// Rows whose ends are fetched, held against conditions and handed on together, in the order in which they would come one by one.
#[derive(Default)]
pub struct HopBlock {
    rows: Vec<Traverser>,
    /// The ends of all rows, each with the place of its row.
    ends: Vec<(VertexId, u32)>,
    /// How many of them were looked at.
    next: usize,
    /// Those that are left fulfil all conditions.
    told: bool,
    /// The ends of one row.
    fetched: Vec<VertexId>,
    /// Rows that were taken the last time: about as many are likely to be taken again, and edges loaded ahead for more would be in the way.
    taken: Option<usize>,
}

impl HopBlock {
    /// Takes the first rows and fetches their ends, without those that were handed on. False, and nothing was taken, if they are few, or the first
    /// one is not taken, not at a vertex, or leads to many: such rows are better off alone.
    pub fn fill(
        &mut self,
        (direction, labels): (Direction, &[LabelId]),
        handed_on: Option<&HandedOn>,
        filter: Option<&mut Conditions>,
        takes: impl Fn(&Traverser) -> bool,
        input: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> bool {
        if input.len() < ROWS_FROM {
            return false;
        }
        let transaction = &cx.context.transaction;
        let likely = self.taken.map_or(ROWS_MAX, |taken| (taken * 2).clamp(ROWS_FROM, ROWS_MAX));
        let vertices = input.iter().take(likely).map_while(|row| match row.value {
            Value::Vertex(vertex) if takes(row) => Some(vertex),
            _ => None,
        });
        transaction.prefetch_half_edges(vertices.clone(), direction);
        let at_once = filter.as_ref().map_or(FETCH_MAX, |filter| filter.rows_at_once(FETCH_MAX));
        let (mut rows, mut looked_at) = (0, 0);
        for vertex in vertices {
            let max = at_once.saturating_sub(self.ends.len());
            self.fetched.clear();
            let mut cursor = HalfEdgeCursor::default();
            if transaction.copy_neighbours(vertex, direction, labels, &mut cursor, max, &mut self.fetched) {
                break;
            }
            looked_at += self.fetched.len();
            self.ends.extend(self.fetched.iter().map(|end| (*end, rows)));
            rows += 1;
        }
        let taken = rows as usize;
        self.taken = Some(taken);
        self.rows.extend(input.drain(..taken));
        self.next = 0;
        cx.charge(taken);
        if let Some(handed_on) = handed_on {
            handed_on.drop_from(&mut self.ends);
        }
        self.told = match filter {
            Some(filter) => {
                // What the filter drops never reaches the queue that is paid for.
                cx.charge(looked_at.saturating_mul(FETCH_MAX / at_once));
                filter.prefilter(cx.context, &mut self.ends)
            }
            None => true,
        };
        taken > 0
    }

    /// The next end that fulfils the conditions, and the row that leads to it. `None` if there is none, or, where [`HopBlock::is_under_way`] says
    /// so, if the turn is over.
    ///
    /// Errors: those of conditions.
    #[inline]
    pub fn next(&mut self, filter: Option<&mut Conditions>, cx: &Cx<'_>) -> Result<Option<(VertexId, &mut Traverser)>> {
        let mut filter = filter.filter(|_| !self.told);
        while let Some((end, place)) = self.ends.get(self.next).copied() {
            self.next += 1;
            if let Some(filter) = &mut filter
                && !filter.test(&Value::Vertex(end), cx.context)?
            {
                if cx.exhausted() {
                    return Ok(None);
                }
                continue;
            }
            return Ok(Some((end, &mut self.rows[place as usize])));
        }
        self.forget();
        Ok(None)
    }

    /// Takes all other ends of the row that led to the last one; says how many they are. None if they may not fulfil the conditions.
    pub fn take_others(&mut self) -> u64 {
        let (before, behind) = self.ends.split_at(self.next);
        let Some((_, place)) = before.last().filter(|_| self.told) else { return 0 };
        let others = behind.iter().take_while(|(_, other)| other == place).count();
        self.next += others;
        others as u64
    }

    /// Whether rows were taken and not all of what they lead to was handed on.
    pub fn is_under_way(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Forgets what was taken.
    pub fn forget(&mut self) {
        self.rows.clear();
        self.ends.clear();
    }
}
