//! Labels that rows lose on their way. TinkerPop's `PathRetractionStrategy` works out what labels are needed behind each `select()`, `where()`, `dedup()`,
//! `math()` and `format()`, and rows lose all others there. What a step inside another names, as in `project().by(select('v'))`, it keeps up to that step,
//! but not up to the next iteration of a `repeat()` around both, which answers depend on. Where rows would be asked for a label that they have lost, the
//! plan says so here; elsewhere nobody sees whether they have it.

use std::collections::{BTreeMap, HashSet};

use super::is_on;
use super::lines::{Labels, Lines, Role};
use crate::logical::visit::{self, PathNeed};
use crate::logical::{LogicalPlan, Name, Node, Traversal};

/// What is kept behind steps.
pub struct Kept {
    lines: Lines,
    /// By line and step.
    labels: BTreeMap<(usize, usize), Labels>,
}

/// Whether rows may be asked for labels that they have lost: by an earlier step, in the next iteration.
pub fn may_matter(plan: &LogicalPlan) -> bool {
    let (mut repeats, mut names) = (false, false);
    visit::walk(&plan.root, &mut |node| {
        repeats |= matches!(node, Node::Repeat(_));
        names |= matches!(node, Node::Select { .. } | Node::WherePredicate { .. } | Node::WhereTraversal { .. })
            || matches!(node, Node::Math { .. } | Node::Format { .. })
            || matches!(node, Node::Dedup { labels, .. } if !labels.is_empty());
    });
    repeats && names && visit::has_labels(&plan.root)
}

/// The labels that rows keep behind the steps that take others away; `None` if none does.
pub fn labels_kept(plan: &LogicalPlan) -> Option<Kept> {
    let keeps_all = plan.source.with_path
        || visit::path_need(&plan.root) == PathNeed::Full
        || visit::any(&plan.root, &mut |node| matches!(node, Node::VertexProgram(_) | Node::SelectTraversal { .. }));
    if keeps_all || !is_on(plan, "PathRetractionStrategy") {
        return None;
    }
    let mut kept = Kept { lines: Lines::of(&plan.root), labels: BTreeMap::new() };
    // A line before those inside it, as TinkerPop applies its strategies.
    (0..kept.lines.lines.len()).for_each(|line| kept.work_out(line));
    Some(kept)
}

impl Kept {
    /// Works out what the steps of a line keep, and what those before them, around it, have to.
    fn work_out(&mut self, line: usize) {
        let steps = &self.lines.lines[line].steps;
        let around = self.lines.lines[line].parent;
        let patterns = around.and_then(|(line, step)| self.lines.lines[line].steps[step].patterns.clone());
        let mut needed = patterns.clone().unwrap_or_default();
        for (position, step) in steps.iter().enumerate().rev() {
            if step.role != Role::Plain {
                let own = self.labels.entry((line, position)).or_default();
                match &patterns {
                    Some(patterns) => own.clone_from(patterns),
                    None => own.extend(needed.iter().cloned()),
                }
            }
            needed.extend(step.named.iter().cloned());
        }
        for (position, step) in steps.iter().enumerate() {
            if step.role == Role::KeepsMore {
                self.labels.entry((line, position)).or_default().extend(needed.iter().cloned());
            }
        }
        let mut outer = Vec::new();
        let mut next = around;
        while let Some((line, step)) = next {
            outer.push((line, step));
            next = self.lines.lines[line].parent;
        }
        let (mut trail, mut is_repeated) = (Labels::new(), false);
        for (outer_line, position) in outer.into_iter().rev() {
            let steps = &self.lines.lines[outer_line].steps;
            is_repeated |= steps[position].is_repeat;
            if steps[position].child_count > 1 {
                self.keep_inside(outer_line, position, &needed);
            }
            for before in 0..position {
                if self.lines.lines[outer_line].steps[before].role != Role::Plain {
                    self.labels.entry((outer_line, before)).or_default().extend(needed.iter().cloned());
                }
                self.keep_inside(outer_line, before, &needed);
            }
            for behind in &self.lines.lines[outer_line].steps[position..] {
                trail.extend(behind.named.iter().cloned());
            }
        }
        if is_repeated {
            trail.extend(needed);
        }
        for (position, step) in self.lines.lines[line].steps.iter().enumerate() {
            if step.role != Role::Plain {
                self.labels.entry((line, position)).or_default().extend(trail.iter().cloned());
            }
        }
    }

    /// Has all steps inside one keep labels.
    fn keep_inside(&mut self, line: usize, step: usize, labels: &Labels) {
        let kept = &mut self.labels;
        let lines = &self.lines;
        lines.inside(line, step, &mut |line| {
            for (position, step) in lines.lines[line].steps.iter().enumerate() {
                if step.role != Role::Plain {
                    kept.entry((line, position)).or_default().extend(labels.iter().cloned());
                }
            }
        });
    }

    /// The labels that may be asked for behind a step.
    fn wanted_behind(&self, line: usize, step: usize) -> Labels {
        let mut wanted = Labels::new();
        let (mut line, mut step) = (line, step);
        loop {
            for behind in step + 1..self.lines.lines[line].steps.len() {
                self.add_named(line, behind, &mut wanted);
            }
            let Some((outer_line, outer)) = self.lines.lines[line].parent else { break };
            let parent = &self.lines.lines[outer_line].steps[outer];
            if !parent.hands_on {
                break;
            }
            if parent.is_repeat {
                self.add_named(outer_line, outer, &mut wanted);
            }
            (line, step) = (outer_line, outer);
        }
        wanted
    }

    /// Adds what a step names, and those inside it.
    fn add_named(&self, line: usize, step: usize, labels: &mut Labels) {
        labels.extend(self.lines.lines[line].steps[step].named.iter().cloned());
        self.lines.inside(line, step, &mut |inner| {
            for step in &self.lines.lines[inner].steps {
                labels.extend(step.named.iter().cloned());
            }
        });
    }

    /// Whether rows have no labels behind a node, if it takes some away.
    pub fn is_nothing(&self, number: usize) -> Option<bool> {
        let mut of_node =
            self.labels.iter().filter(|((line, step), _)| self.lines.lines[*line].steps[*step].number == number);
        of_node.next_back().map(|(_, labels)| labels.is_empty())
    }

    /// The nodes behind which rows lose labels that they may be asked for, with what they keep.
    pub fn losses(&self, given: &HashSet<Name>) -> Vec<(usize, Node)> {
        let mut losses = Vec::new();
        for ((line, step), kept) in &self.labels {
            let wanted = self.wanted_behind(*line, *step);
            if wanted.iter().any(|label| given.contains(label) && !kept.contains(label)) {
                let labels = kept.iter().cloned().collect();
                losses.push((self.lines.lines[*line].steps[*step].number, Node::KeepLabels { labels }));
            }
        }
        losses
    }
}

/// All labels that are given by `as()`.
pub fn given(root: &Traversal) -> HashSet<Name> {
    let mut labels = HashSet::new();
    visit::walk_traversals(root, &mut |traversal| {
        labels.extend(traversal.nodes.iter().flat_map(|own| own.labels.iter().cloned()));
    });
    labels
}
