//! The operator: the unit of computation, given a queue of messages and a quota.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::inbox::Waker;
use crate::{Control, Domain, Queue, Remains, ScopeTag};

/// What an operator says when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Everything it was given is consumed and it has nothing left to emit.
    Ready,
    /// It has more to do without new input: its output was full or its quota used up.
    More,
    /// It wants no more input (`notify_completion`): everything before it in this scope instance is cancelled. What it
    /// has emitted already stays, and its `finish` still runs.
    Complete,
}

/// A running operator. One exists per scope instance; it is reset and reused when the instance ends.
///
/// The contract: consume from the front of `input`, append to `out`; return as soon as [`Cx::should_pause`] says so; be
/// callable again at any time.
pub trait Operator<D: Domain>: Send {
    /// Works on `input`.
    fn process(
        &mut self,
        input: &mut Queue<D::Message>,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Flow, D::Error>;

    /// No more input comes for this tag (EOS). Called until it returns something other than [`Flow::More`]. Inside a loop
    /// it is called once per iteration, and input may follow again.
    fn finish(&mut self, _out: &mut Queue<D::Message>, _cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        Ok(Flow::Ready)
    }

    /// Readies the operator for the next iteration of an enclosing loop: what `finish` closed opens again, what
    /// iterations share (such as the memory of `dedup`) stays.
    fn reopen(&mut self) {}

    /// It ends early, together with everything inside it: hands back what it holds on the query's account (see
    /// [`Domain::retain`]). `cancel` or `reset` follows; may be called again, and also when there is nothing to release.
    fn release(&mut self, _cx: &mut Cx<'_, D>) {}

    /// Its query has ended, and nothing but its drop follows: hands over what it keeps, if that may be much, so that it can be freed in pieces.
    /// What it holds on the query's account goes along, to be given back when the memory is free.
    fn surrender(&mut self, _remains: &mut Vec<Box<dyn Remains>>) {}

    /// An operator behind it wants no more ([`Flow::Complete`]): drops what it gathered. In the body of a loop, what
    /// iterations share may stay, because `reopen` follows if there is another iteration.
    fn cancel(&mut self) {
        self.reset();
    }

    /// What was its input is over, and as much of it as comes next is a later chunk of the same rows ([`crate::spread`]): as `reset`, but what it remembers
    /// to leave out rows that something behind it would drop anyway may stay.
    fn next_chunk(&mut self) {
        self.reset();
    }

    /// Back to the state after construction, keeping allocations where that is useful.
    fn reset(&mut self);
}

/// Counters of one node, over all its instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeProfile {
    /// Messages emitted.
    pub messages: u64,
    /// Logical rows emitted (sum of weights).
    pub rows: u64,
    /// Time inside the node, its sub-regions included.
    pub duration_ns: u64,
    /// Times it was given a turn.
    pub turns: u64,
    /// Scope instances made.
    pub instances: u64,
    /// Scope instances ended early.
    pub cancelled: u64,
    /// What its operators noted, see [`Cx::note`].
    pub notes: Vec<(&'static str, i64)>,
}

impl NodeProfile {
    /// Adds what the node did on another executor.
    pub(crate) fn add(&mut self, other: &NodeProfile) {
        self.messages += other.messages;
        self.rows += other.rows;
        self.duration_ns += other.duration_ns;
        self.turns += other.turns;
        self.instances += other.instances;
        self.cancelled += other.cancelled;
        other.notes.iter().for_each(|(name, value)| self.note(name, *value));
    }

    /// Adds to a counter of the operator's own.
    pub(crate) fn note(&mut self, name: &'static str, value: i64) {
        match self.notes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += value,
            None => self.notes.push((name, value)),
        }
    }
}

/// What an operator sees while it has its turn.
pub struct Cx<'a, D: Domain> {
    /// What the operators of the query share.
    pub context: &'a mut D::Context,
    /// Limits from outside.
    pub control: &'a Control,
    /// Where in the tree of scope instances this turn happens.
    pub tag: &'a mut ScopeTag,
    /// Messages one queue may hold before its producer pauses.
    pub batch_rows_limit: usize,
    /// The same where only the first few messages may be wanted, or none may come of them before all are there: see [`Demand`](crate::plan::Demand).
    pub rows_limits: RowsLimits,
    /// The first few messages that the operator emits may be all that are wanted.
    pub few_wanted: bool,
    /// Counters by node, when the query is profiled.
    pub profile: Option<&'a mut Vec<NodeProfile>>,
    /// Work units left of this turn; one is about one message moved.
    pub quota: i64,
    /// Makes the query runnable again; for operators that wait, see [`Cx::park`].
    pub waker: &'a Waker<D>,
    /// Whether an operator waits for something outside.
    pub parked: bool,
    /// Set when somebody else needs the executor: the turn is over.
    pub urgent: &'a AtomicBool,
    /// A spread around the operators that have their turn has rows left that others could take: those inside leave them to it.
    pub rows_left_outside: bool,
    /// What comes of this turn belongs to a chunk of a spread that several executors work on, and waits for others: few rows are cheaper then.
    pub in_chunk: bool,
    /// What the operator that has its turn noted.
    pub notes: Vec<(&'static str, i64)>,
    /// How long the turn lasts.
    pub own_pace: OwnPace,
}

/// How many messages a queue may hold, by what is done with them.
#[derive(Clone, Copy, Debug)]
pub struct RowsLimits {
    /// Where the first of them may be enough.
    pub few: usize,
    /// Where all are wanted.
    pub all: usize,
}

/// What a turn knows of its own length. The thread that ends long turns rests while guests are alone, and on a busy machine it may have to wait for a
/// core itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnPace {
    /// Turns of operators so far.
    operator_turns: u32,
    /// When it was looked at for the first time.
    began_ns: Option<u64>,
}

impl OwnPace {
    /// Of a turn that lasts as long as it takes.
    const ENDLESS: OwnPace = OwnPace { operator_turns: 0, began_ns: Some(u64::MAX) };
}

/// Turns of operators between two looks at the clock: a look costs some tens of nanoseconds, an operator's turn a hundred at least.
const OPERATOR_TURNS_PER_LOOK: u32 = 16;

/// A turn that lasts longer ends behind an operator's turn, whoever else looks after it.
const OWN_TURN_TIME_MAX_NS: u64 = 4_000_000;

impl<D: Domain> Cx<'_, D> {
    /// Whether the operator should return now: its output is full or its turn is over. For loops of cheap rows: that somebody else needs the
    /// executor is seen behind the batch.
    #[inline]
    pub fn should_pause(&self, out: &Queue<D::Message>) -> bool {
        out.len() >= self.batch_rows_limit || self.quota <= 0 || self.parked
    }

    /// As [`Cx::should_pause`], for loops whose rows may each take long: also if somebody else needs the executor.
    #[inline]
    pub fn should_yield(&self, out: &Queue<D::Message>) -> bool {
        out.len() >= self.batch_rows_limit || self.exhausted()
    }

    /// Whether the turn is over, because its quota is used up or somebody else needs the executor.
    #[inline]
    pub fn exhausted(&self) -> bool {
        self.quota <= 0 || self.parked || self.urgent.load(Ordering::Relaxed)
    }

    /// Whether a loop that cannot be left may go on beyond its bound: nobody else is on the executor, and the query need not stop. Reads the clock.
    pub fn is_undisturbed(&self) -> bool {
        self.waker.is_alone() && self.control.check().is_ok()
    }

    /// Runs `work` in a turn that does not end before it is done. For work that cannot be left in the middle; it has to call
    /// [`Cx::check`] by itself.
    pub fn without_pause<R>(&mut self, work: impl FnOnce(&mut Cx<'_, D>) -> R) -> R {
        static CALM: AtomicBool = AtomicBool::new(false);
        let mut own = Cx {
            context: &mut *self.context,
            control: self.control,
            tag: &mut *self.tag,
            batch_rows_limit: self.batch_rows_limit,
            rows_limits: self.rows_limits,
            few_wanted: self.few_wanted,
            profile: self.profile.as_deref_mut(),
            quota: self.quota,
            waker: self.waker,
            parked: false,
            urgent: &CALM,
            rows_left_outside: self.rows_left_outside,
            in_chunk: self.in_chunk,
            notes: std::mem::take(&mut self.notes),
            own_pace: OwnPace::ENDLESS,
        };
        let result = work(&mut own);
        let Cx { quota, parked, notes, .. } = own;
        self.quota = quota;
        self.parked |= parked;
        self.notes = notes;
        result
    }

    /// Ends the turn because the operator waits for something outside: it has given a clone of [`Cx::waker`] to whoever will
    /// wake it, and now returns [`crate::Flow::More`]. The query costs nothing until then; it is woken for any other reason as
    /// well (cancellation, its deadline), so the operator looks whether what it waits for has come, and parks again if not.
    pub fn park(&mut self) {
        self.parked = true;
    }

    /// Adds a counter of the operator's own to its node's profile, if the query is profiled; one noted before grows.
    pub fn note(&mut self, name: &'static str, value: i64) {
        if self.profile.is_some() {
            self.notes.push((name, value));
        }
    }

    /// Pays for work that moves no message, such as a comparison in a sort.
    #[inline]
    pub fn charge(&mut self, units: usize) {
        self.quota -= units as i64;
    }

    /// For loops inside an operator that cannot pause: fails if the query must stop.
    pub fn check(&self) -> Result<(), D::Error> {
        self.control.check().map_err(D::Error::from)
    }

    /// An operator has had its turn: looks now and then whether all of them together last too long.
    #[inline]
    pub(crate) fn operator_had_turn(&mut self) {
        self.own_pace.operator_turns += 1;
        if self.own_pace.operator_turns >= OPERATOR_TURNS_PER_LOOK {
            self.look_at_clock();
        }
    }

    #[cold]
    fn look_at_clock(&mut self) {
        self.own_pace.operator_turns = 0;
        let now_ns = self.control.clock.now_ns();
        let began_ns = *self.own_pace.began_ns.get_or_insert(now_ns);
        // Of a query that runs on the thread of its caller nobody else is kept waiting, and its flag is not its own.
        if self.waker.is_on_executor() && now_ns.saturating_sub(began_ns) >= OWN_TURN_TIME_MAX_NS {
            self.urgent.store(true, Ordering::Relaxed);
        }
    }

    /// Gives back messages of `size` that were retained.
    pub(crate) fn give_back(&mut self, size: usize) {
        if size > 0 {
            // Cannot be refused, by the contract of `retain`.
            let _ = D::retain(self.context, -(size as isize));
        }
    }

    pub(crate) fn count_instances(&mut self, node: crate::NodeId, made: u64, cancelled: u64) {
        if let Some(profile) = self.profile.as_deref_mut()
            && let Some(entry) = profile.get_mut(node.0 as usize)
        {
            entry.instances += made;
            entry.cancelled += cancelled;
        }
    }
}
