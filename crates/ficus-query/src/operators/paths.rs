//! `path`, `simplePath`, `cyclicPath`, `tree`: steps over the way a traverser came.

use ficus_dataflow::{Flow, Queue};
use ficus_model::{Children, NESTING_MAX, Path, Shared, Tree, Value, allocated_bytes};
use hashbrown::HashSet;

use crate::budget::{Held, MemoryAccount};
use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
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

    fn reset(&mut self) {
        self.tree = Tree::default();
        self.held.give_back();
    }
}

/// Adds the operator of a node that looks at whole paths as they are.
fn whole_paths(builder: &mut Builder, name: &str, kind: Kind, step: StepInfo, chain: &mut Chain) {
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
    let (name, step) = (node.to_string(), step.clone());
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
