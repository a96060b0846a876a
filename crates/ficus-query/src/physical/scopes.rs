//! How scopes run: what the planner chose, what the query says about those under a label, and what `explain()` shows of it.
//!
//! A setting names a scope by a label: of the step that has the scope, `where(…).as('w')`, or of the first step of one of its sub-queries,
//! `where(__.in('x').as('w')…)`, which is the way where the step has no label of its own to give, as `emit(…)`. If that first step has sub-queries itself, the
//! label is its own. A scope that is named is a scope: its sub-queries are not tried in place first.

use ficus_dataflow::{BranchOptions, InterPolicy, IntraPolicy, LoopOptions, LoopPolicy, NodeName};

use super::Builder;
use crate::context::Result;
use crate::error::{QueryError, QueryErrorKind};
use crate::logical::{LabelledNode, LogicalPlan, Name, Node, Repeat, Traversal, visit};
use crate::operators::junction::is_junction;
use crate::options::{self, INSTANCES_MAX, ScopePolicy, ScopeSetting};
use crate::rules::Rule;

use super::has_barrier;

/// What the builder knows of the scopes of its plan.
#[derive(Default)]
pub(super) struct Scopes {
    /// What the query says, and whether there is such a scope.
    settings: Vec<(ScopeSetting, bool)>,
    /// Whether sub-queries have scopes; if not, rows share pipelines and nothing is cancelled early.
    off: bool,
    /// Whether instances are cancelled when their answers are known.
    cancels_early: bool,
    /// The setting of the step under construction.
    own: Option<usize>,
    /// Whether the sub-queries of the scope that is built next are tried in place first.
    pub tried_in_place: bool,
    /// Whether the region under construction is a pipeline that several inputs share.
    pub shared: bool,
    /// As `explain()` shows them.
    pub shown: Vec<String>,
}

/// Why rows have to take their steps one after another.
const ROW_BY_ROW: &str =
    "the query writes or has side effects between rows, which would come in another order; leave the option out";

fn refused(setting: &ScopeSetting, reason: &str) -> QueryError {
    let message = format!("with('ficus.scope.{}.…'): {reason}", setting.label);
    QueryError::new(QueryErrorKind::Option, message)
}

fn inside(policy: ScopePolicy) -> IntraPolicy {
    match policy {
        ScopePolicy::Fifo => IntraPolicy::Fifo,
        ScopePolicy::Bfs => IntraPolicy::Bfs,
        ScopePolicy::Dfs => IntraPolicy::Dfs,
    }
}

/// As `explain()` shows it.
fn shown(policy: Option<ScopePolicy>) -> String {
    policy.map(|policy| format!(", {} inside", policy.name())).unwrap_or_default()
}

/// The policy of the query's own operators.
///
/// Errors: `Option` if the query names another than `dfs` and its rows have to go one by one.
pub(super) fn of_query(plan: &LogicalPlan, row_by_row: bool) -> Result<IntraPolicy> {
    let policy = options::intra_policy(&plan.source).unwrap_or(ScopePolicy::Dfs);
    if row_by_row && policy != ScopePolicy::Dfs {
        let message = format!("with('{}', '{}'): {ROW_BY_ROW}", options::INTRA_POLICY, policy.name());
        return Err(QueryError::new(QueryErrorKind::Option, message));
    }
    Ok(inside(policy))
}

impl Scopes {
    pub fn of(plan: &LogicalPlan) -> Scopes {
        let settings = options::scope_settings(&plan.source).into_iter().map(|setting| (setting, false)).collect();
        let off = !plan.source.is_on(options::SCOPES);
        let cancels_early = !off && plan.source.is_on(options::EARLY_CANCELLATION);
        // The query is the outermost scope.
        let query = options::intra_policy(&plan.source).map(|policy| format!("query{}", shown(Some(policy))));
        Scopes { settings, off, cancels_early, shown: query.into_iter().collect(), ..Scopes::default() }
    }

    fn labelled(&self, labels: &[Name]) -> Option<usize> {
        self.settings.iter().position(|(setting, _)| labels.contains(&setting.label))
    }

    /// Begins on a step; what it returns is for [`Scopes::leave`].
    pub fn enter(&mut self, labels: &[Name]) -> Option<usize> {
        let own = self.labelled(labels);
        std::mem::replace(&mut self.own, own)
    }

    /// The step is built.
    pub fn leave(&mut self, outer: Option<usize>) {
        self.own = outer;
    }

    /// The setting for a scope with these sub-queries.
    fn of_arms(&self, arms: &[&Traversal]) -> Option<usize> {
        let first = |arm: &&Traversal| {
            arm.nodes.first().filter(|own| visit::is_leaf(&own.node)).and_then(|own| self.labelled(&own.labels))
        };
        self.own.or_else(|| arms.iter().find_map(first))
    }

    /// Takes note that a scope has the setting.
    fn take(&mut self, number: usize) -> &ScopeSetting {
        self.own = None;
        let (setting, used) = &mut self.settings[number];
        *used = true;
        setting
    }

    /// Fails if the query speaks of a scope that there is not.
    pub fn check(&self, plan: &LogicalPlan) -> Result<()> {
        if let (true, Some((setting, _))) = (self.off, self.settings.first()) {
            return Err(refused(setting, "there are no scopes with ficus.scopes = false; leave one of the two out"));
        }
        let Some((setting, _)) = self.settings.iter().find(|(_, used)| !used) else { return Ok(()) };
        let mut labels: Vec<&str> = Vec::new();
        visit::walk_traversals(&plan.root, &mut |traversal| {
            let own = traversal.nodes.iter().flat_map(|own| &own.labels);
            labels.extend(own.filter(|label| **label == setting.label).map(|_| "").take(1));
        });
        let reason = match labels.is_empty() {
            true => {
                "no step has this label; give it to the step with the sub-query, where(…).as('w'), or to the first step of the sub-query"
            }
            false => {
                "the step with this label has no scope; give the label to a step with a sub-query or to the first step of the sub-query"
            }
        };
        Err(refused(setting, reason))
    }
}

impl Builder {
    /// Whether the query says how the scope of these sub-queries is to run.
    pub fn is_addressed(&self, arms: &[&Traversal]) -> bool {
        self.scopes.of_arms(arms).is_some()
    }

    /// Whether the rows of these tests go through one pipeline for all inputs: there are to be no scopes, and no step of them remembers rows.
    pub fn shares(&self, arms: &[&Traversal]) -> bool {
        self.scopes.off && arms.iter().all(|arm| rows_share(arm))
    }

    /// Whether a node is a condition on what rows are at, or made of nothing else and to be taken for one.
    pub fn is_condition(&self, node: &Node) -> bool {
        let is_made_of_some = || self.may(Rule::TestsAsConditions) && !self.scopes.off && is_junction(node);
        matches!(node, Node::Has { .. } | Node::HasProperty { .. }) || is_made_of_some()
    }

    /// Whether what is built now is shared by several inputs.
    pub fn is_shared(&self) -> bool {
        self.scopes.shared
    }

    /// Whether short sub-queries may be evaluated without a scope.
    pub(super) fn evaluates_in_place(&self) -> bool {
        self.may(Rule::InPlace) && !self.scopes.off
    }

    /// How a branch scope runs, and its instances inside.
    pub(super) fn branch_options(
        &mut self,
        name: &NodeName,
        arms: &[&Traversal],
        planned: BranchOptions,
    ) -> Result<(BranchOptions, IntraPolicy)> {
        let tried_in_place = std::mem::take(&mut self.scopes.tried_in_place);
        if arms.is_empty() {
            return Ok((planned, IntraPolicy::Dfs));
        }
        let mut intra = None;
        let mut options = BranchOptions { cancels_early: self.scopes.cancels_early, ..planned };
        let mut policy = ScopePolicy::Fifo;
        let row_by_row = self.requirements.row_by_row;
        if let Some(number) = self.scopes.of_arms(arms) {
            let setting = self.scopes.take(number);
            let instances = setting.max_instances;
            policy = setting.policy.unwrap_or(match instances {
                None | Some(1) => ScopePolicy::Fifo,
                Some(_) => ScopePolicy::Bfs,
            });
            if policy == ScopePolicy::Fifo && instances.is_some_and(|count| count > 1) {
                return Err(refused(
                    setting,
                    "fifo runs one instance at a time; leave maxInstances out, or ask for bfs or dfs",
                ));
            }
            intra = setting.intra;
            if row_by_row && (policy != ScopePolicy::Fifo || intra.is_some_and(|policy| policy != ScopePolicy::Dfs)) {
                return Err(refused(setting, ROW_BY_ROW));
            }
            (options.policy, options.max_instances) = match policy {
                ScopePolicy::Fifo => (InterPolicy::Fifo, 1),
                ScopePolicy::Bfs => (InterPolicy::Bfs, instances.unwrap_or(INSTANCES_MAX)),
                ScopePolicy::Dfs => (InterPolicy::Dfs, instances.unwrap_or(INSTANCES_MAX)),
            };
        }
        if tried_in_place {
            self.note(Rule::InPlace, name);
        }
        if self.keep_texts {
            let in_place = if tried_in_place { ", in place first" } else { "" };
            let ends = if options.cancels_early { "" } else { ", not cancelled" };
            let (policy, instances, within) = (policy.name(), options.max_instances, shown(intra));
            let text = format!("{name}: branch{in_place}{ends}, {policy}, maxInstances {instances}{within}");
            self.scopes.shown.push(text);
        }
        Ok((options, intra.map_or(IntraPolicy::Dfs, inside)))
    }

    /// How a loop runs, and its body inside.
    pub(super) fn loop_options(&mut self, name: &NodeName, planned: LoopOptions) -> Result<(LoopOptions, IntraPolicy)> {
        let mut options = planned;
        let mut intra = None;
        let row_by_row = self.requirements.row_by_row;
        if self.scopes.off {
            options.policy = LoopPolicy::Bfs;
        }
        if let Some(number) = self.scopes.own {
            let setting = self.scopes.take(number);
            if setting.max_instances.is_some() {
                return Err(refused(
                    setting,
                    "iterations of a loop share an instance; maxInstances is for other sub-queries",
                ));
            }
            intra = setting.intra;
            if row_by_row && intra.is_some_and(|policy| policy != ScopePolicy::Dfs) {
                return Err(refused(setting, ROW_BY_ROW));
            }
            match setting.policy {
                Some(ScopePolicy::Dfs) if options.has_barrier => {
                    let reason = "the body of this loop gathers all rows of an iteration before the next; leave the policy out, or ask for bfs";
                    return Err(refused(setting, reason));
                }
                Some(ScopePolicy::Dfs) => options.policy = LoopPolicy::Dfs,
                Some(ScopePolicy::Fifo | ScopePolicy::Bfs) => {
                    (options.policy, options.frontier_max) = (LoopPolicy::Bfs, usize::MAX);
                }
                None => {}
            }
        }
        if self.keep_texts {
            self.show_loop(name, &options, intra);
        }
        Ok((options, intra.map_or(IntraPolicy::Dfs, inside)))
    }

    fn show_loop(&mut self, name: &NodeName, options: &LoopOptions, intra: Option<ScopePolicy>) {
        let policy = match options.policy {
            LoopPolicy::Bfs if options.frontier_max < usize::MAX && !options.has_barrier => {
                format!("bfs up to {} rows", options.frontier_max)
            }
            LoopPolicy::Bfs => "bfs".to_owned(),
            LoopPolicy::Dfs => "dfs".to_owned(),
        };
        let barrier = if options.has_barrier { ", an instance per iteration" } else { "" };
        let within = shown(intra);
        self.scopes.shown.push(format!("{name}: loop, {policy}{barrier}{within}"));
    }

    /// Takes note that a test has a shared pipeline in place of a scope.
    pub fn note_shared(&mut self, name: &NodeName) {
        self.scopes.tried_in_place = false;
        if self.keep_texts {
            self.scopes.shown.push(format!("{name}: one pipeline for all rows"));
        }
    }
}

/// Whether rows of several inputs can go through one instance of these steps, told apart by their number only.
fn rows_share(traversal: &Traversal) -> bool {
    traversal.nodes.iter().all(|own: &LabelledNode| match &own.node {
        Node::Adjacent { .. }
        | Node::EdgeVertex { .. }
        | Node::Has { .. }
        | Node::HasProperty { .. }
        | Node::Is { .. }
        | Node::Properties { .. }
        | Node::Id
        | Node::Label
        | Node::Identity
        | Node::Constant { .. }
        // Their sub-queries have pipelines or instances of their own.
        | Node::Filter { .. }
        | Node::Not { .. }
        | Node::And { .. }
        | Node::Or { .. } => true,
        Node::WherePredicate { start: None, bys, .. } => bys.is_empty(),
        Node::Repeat(Repeat { body, .. }) => rows_share(body) && !has_barrier(body),
        _ => false,
    })
}
