//! `path`, `simplePath`, `cyclicPath`, `tree`: steps over the way a traverser came.

use ficus_dataflow::{Flow, NodeName, Queue, Remains};
use ficus_model::{Children, NESTING_MAX, Path, Shared, Tree, Value, allocated_bytes};
use hashbrown::HashSet;

use crate::budget::{Held, MemoryAccount};
use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::growing;
use crate::logical::{Name, Node};
use crate::modulate::{ModulatedLogic, Request, Subject};
use crate::operators::per_row::{KeepRows, PerRow};
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::{StepInfo, Traverser};

/// The part of a path between two labels, both included.
fn sub_path(path: Path, from: Option<&str>, to: Option<&str>) -> Result<Path> {
    let labelled = |label: &str, last: bool| {
        let mut labels = path.labels();
        let mut has = |own: &[Name]| own.iter().any(|own| &**own == label);
        let found = if last { labels.rposition(&mut has) } else { labels.position(&mut has) };
        found.ok_or_else(|| QueryError::invalid(format!("The step with label {label} does not exist")))
    };
    let start = from.map_or(Ok(0), |label| labelled(label, true))?;
    let end = to.map_or(Ok(path.objects.len().saturating_sub(1)), |label| labelled(label, true))?;
    if path.objects.is_empty() {
        return Ok(path);
    }
    if start > end {
        return Err(QueryError::invalid(format!(
            "The path between {} and {} is empty: the first comes after the second",
            from.unwrap_or("its start"),
            to.unwrap_or("its end")
        )));
    }
    Ok(path.part(start..end + 1))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Path,
    Simple,
    Cyclic,
}

struct PathLogic {
    kind: Kind,
    from: Option<Name>,
    to: Option<Name>,
    modulators: usize,
    step: StepInfo,
}

impl PathLogic {
    fn path(&self, traverser: &Traverser) -> Result<Path> {
        sub_path(traverser.path(), self.from.as_deref(), self.to.as_deref())
    }
}

/// Requests the modulators in turn on the objects of a path.
fn objects_in_turn(path: &Path, modulators: usize, list: &mut Vec<Request>) {
    list.extend(path.objects.iter().enumerate().map(|(position, object)| Request {
        modulator: position % modulators,
        subject: Subject::Value(object.clone()),
    }));
}

impl ModulatedLogic for PathLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        objects_in_turn(&self.path(traverser)?, self.modulators, list);
        cx.charge(list.len());
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let Some(objects) = results.drain(..).collect::<Option<Vec<Value>>>() else { return Ok(()) };
        if self.kind == Kind::Path {
            let path = self.path(&traverser)?.with_objects(objects);
            let path = cx.context.made(Value::Path(Shared::new(path)))?;
            out.push_back(traverser.move_to(path, &self.step));
            return Ok(());
        }
        let mut seen = HashSet::new();
        let is_simple = objects.iter().all(|object| seen.insert(object));
        if is_simple == (self.kind == Kind::Simple) {
            out.push_back(traverser);
        }
        Ok(())
    }
}

/// Adds a path to a tree, each object below the one before.
///
/// Errors: `Invalid` if the path has more objects than a tree may have levels; `Budget` or `ServerMemory`.
pub fn add_to_tree(tree: &mut Tree, objects: Vec<Value>, held: &mut Held, account: &MemoryAccount) -> Result<()> {
    if objects.len() >= NESTING_MAX {
        let message = format!(
            "a path of {} objects is too long for a tree, which has {NESTING_MAX} levels at most; take path() or end the loop earlier",
            objects.len()
        );
        return Err(QueryError::invalid(message));
    }
    let mut level = tree;
    for object in objects {
        account.fits(&object)?;
        if !level.children.contains_key(&object) {
            held.make_room(
                account,
                level.children.len(),
                level.children.capacity(),
                size_of::<Value>() + size_of::<Tree>() + 24,
            )?;
            let first = if level.children.is_empty() { allocated_bytes(Children::FIRST_BYTES) } else { 0 };
            held.add(account, first + object.size_hint_bytes() - size_of::<Value>())?;
        }
        level = level.children.entry(object).or_default();
    }
    Ok(())
}

/// A tree that nobody wants any more, freed from its leaves.
pub struct TreeRemains {
    /// What is left of the children on the way to the next leaf.
    way: Vec<<Children as IntoIterator>::IntoIter>,
    /// Nodes that there are, about.
    nodes: usize,
}

impl TreeRemains {
    /// All of it, which takes so much.
    pub fn of(tree: Tree, bytes: usize) -> TreeRemains {
        const NODE_BYTES: usize = 64;
        TreeRemains { way: vec![tree.children.into_iter()], nodes: bytes / NODE_BYTES }
    }
}

impl Remains for TreeRemains {
    fn free_some(&mut self, mut pieces: usize) -> usize {
        while pieces > 0
            && let Some(children) = self.way.last_mut()
        {
            pieces -= 1;
            self.nodes = self.nodes.saturating_sub(1);
            match children.next() {
                Some((_, tree)) if tree.children.is_empty() => {}
                Some((_, tree)) => self.way.push(tree.children.into_iter()),
                None => _ = self.way.pop(),
            }
        }
        pieces
    }

    fn pieces(&self) -> usize {
        self.nodes
    }

    /// Half of the children that are left of the first of a few levels that has several.
    fn split(&mut self) -> Option<Box<dyn Remains>> {
        /// Finding places for so many takes some microseconds.
        const CHILDREN_MAX: usize = 1 << 10;
        let children = self.way.iter_mut().find(|children| children.len() > 1)?;
        if children.len() > CHILDREN_MAX {
            return None;
        }
        let count = children.len() / 2;
        let half: Children = children.by_ref().take(count).collect();
        self.nodes /= 2;
        Some(Box::new(TreeRemains { way: vec![half.into_iter()], nodes: self.nodes }))
    }
}

struct TreeLogic {
    side_effect: Option<Name>,
    modulators: usize,
    step: StepInfo,
    tree: Tree,
    held: Held,
}

impl ModulatedLogic for TreeLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        objects_in_turn(&traverser.path(), self.modulators, list);
        cx.charge(list.len());
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let wanted = results.len();
        // The branch ends where a by() yields nothing.
        let objects: Vec<Value> = results.drain(..).map_while(|value| value).collect();
        let is_whole = objects.len() == wanted;
        let Some(key) = &self.side_effect else {
            return add_to_tree(&mut self.tree, objects, &mut self.held, &cx.context.memory);
        };
        if !is_whole {
            return Err(QueryError::invalid(
                "The provided start does not map to a value: a by() of a tree() that is a side effect yielded nothing",
            ));
        }
        let mut value = cx.context.side_effects.take(key).unwrap_or_else(|| Value::Tree(Shared::default()));
        let Value::Tree(tree) = &mut value else {
            return Err(QueryError::invalid(format!("the side effect {key} is not a tree")));
        };
        let QueryContext { side_effects, memory, .. } = &mut *cx.context;
        add_to_tree(Shared::make_mut(tree), objects, &mut side_effects.held, memory)?;
        side_effects.put(key, value);
        out.push_back(traverser);
        Ok(())
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.side_effect.is_none() {
            let tree = Value::Tree(Shared::new(std::mem::take(&mut self.tree)));
            // Estimates of deep trees are cut short: what it was counted for while it grew stays with it.
            let tree = cx.context.made_of(tree, &mut self.held);
            out.push_back(cx.context.fresh_at(tree, &self.step));
        }
        Ok(Flow::Ready)
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        let tree = TreeRemains::of(std::mem::take(&mut self.tree), self.held.bytes());
        growing::surrender(tree, &mut self.held, remains);
    }

    fn reset(&mut self) {
        self.tree = Tree::default();
        self.held.give_back();
    }
}

/// Adds the operator of a node that looks at whole paths as they are.
fn whole_paths(builder: &mut Builder, name: &NodeName, kind: Kind, step: StepInfo, chain: &mut Chain) {
    if kind == Kind::Path {
        builder.operator(chain, name, false, move || {
            let step = step.clone();
            PerRow {
                function: move |traverser: Traverser, cx: &mut Cx<'_>| {
                    let path = traverser.path();
                    cx.charge(path.objects.len());
                    let path = cx.context.made(Value::Path(Shared::new(path)))?;
                    Ok(Some(traverser.move_to(path, &step)))
                },
            }
        });
        return;
    }
    let is_wanted = kind == Kind::Simple;
    builder.operator(chain, name, false, move || {
        KeepRows::new(move |row: &Traverser, cx: &mut Cx<'_>| {
            cx.charge(row.way().count());
            Ok(row.has_simple_path() == is_wanted)
        })
    });
}

/// Adds the operator of a path node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (NodeName::from(node), step.clone());
    let (kind, from, to, bys) = match node {
        Node::Path { from, to, bys } => (Kind::Path, from, to, bys),
        Node::PathFilter { simple: true, from, to, bys } => (Kind::Simple, from, to, bys),
        Node::PathFilter { from, to, bys, .. } => (Kind::Cyclic, from, to, bys),
        Node::Tree { side_effect, bys } => {
            let modulators = Modulators::of(bys);
            let (count, side_effect) = (modulators.len(), side_effect.clone());
            let is_effect = side_effect.is_some();
            builder.modulated(chain, &name, !is_effect, modulators, move || TreeLogic {
                side_effect: side_effect.clone(),
                modulators: count,
                step: step.clone(),
                tree: Tree::default(),
                held: Held::default(),
            })?;
            if is_effect {
                super::collect::barrier(builder, chain);
            }
            return Ok(());
        }
        _ => return Err(QueryError::invalid(format!("{node} does not look at paths"))),
    };
    if bys.is_empty() && from.is_none() && to.is_none() {
        whole_paths(builder, &name, kind, step, chain);
        return Ok(());
    }
    let modulators = Modulators::of(bys);
    let (count, from, to) = (modulators.len(), from.clone(), to.clone());
    builder.modulated(chain, &name, false, modulators, move || PathLogic {
        kind,
        from: from.clone(),
        to: to.clone(),
        modulators: count,
        step: step.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// So many levels of ten children each, all of which hold the text.
    fn tree(text: &Arc<str>, levels: usize) -> Tree {
        let child = |number: i64| {
            let value: Value = [Value::Long(number), Value::String(text.clone())].into_iter().collect();
            (value, if levels > 1 { tree(text, levels - 1) } else { Tree::default() })
        };
        Tree { children: (0..10).map(child).collect() }
    }

    #[test]
    fn a_tree_is_freed_in_pieces_by_several() {
        const NODES: usize = 10 + 100 + 1000;
        let text: Arc<str> = "text".into();
        let mut whole = TreeRemains::of(tree(&text, 3), 64 * NODES);
        assert_eq!((Arc::strong_count(&text), whole.pieces()), (1 + NODES, NODES));
        assert_eq!(whole.free_some(100), 0);
        let before = Arc::strong_count(&text);
        assert!((NODES - 100..NODES - 50).contains(&before), "{before} nodes left");
        let mut half = whole.split().expect("it has several children");
        assert_eq!(Arc::strong_count(&text), before);
        while half.free_some(50) == 0 {}
        let own = Arc::strong_count(&text);
        assert!((NODES / 3..NODES * 2 / 3).contains(&own), "{own} of {before} nodes left");
        while whole.free_some(50) == 0 {}
        assert_eq!((Arc::strong_count(&text), whole.free_some(7)), (1, 7));
        assert!(whole.split().is_none());
    }
}
