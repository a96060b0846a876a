//! `io()`: reads a file into the graph, or writes the graph to a file, inside the folder the server allows.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use ficus_dataflow::{Flow, Operator};
use ficus_model::Value;
use ficus_storage::Transaction;

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{Name, Node, ValueOrTraversal};
use crate::physical::{Builder, Chain};

/// Reads and writes graph files. Implemented where the file formats are known.
pub trait GraphFiles: Send + Sync {
    /// Adds what a file holds to the transaction's graph. `format` is what `with(IO.reader, …)` said, if it did; otherwise
    /// the file's name decides.
    fn read(&self, file: &Path, format: Option<&str>, transaction: &mut Transaction) -> Result<()>;

    /// Writes the graph that the transaction sees to a file.
    fn write(&self, file: &Path, format: Option<&str>, transaction: &Transaction) -> Result<()>;
}

struct IoOperator {
    file: Arc<str>,
    write: bool,
    format: Option<Name>,
}

/// The file a relative name stands for below `root`.
///
/// Errors: for absolute names and such as lead out of the folder, also by links.
fn confined(root: &Path, name: &str) -> Result<PathBuf> {
    let refused = || {
        QueryError::invalid(format!(
            "io() may only use files in the folder the server allows (engine.io_dir); [{name}] is not in it"
        ))
    };
    let relative = Path::new(name);
    if relative.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(refused());
    }
    let root = root
        .canonicalize()
        .map_err(|error| QueryError::invalid(format!("the folder for io() cannot be used: {error}")))?;
    let file = root.join(relative);
    // The file itself may not exist yet; its folder has to.
    let folder = file.parent().unwrap_or(&root);
    let folder =
        folder.canonicalize().map_err(|error| QueryError::invalid(format!("io() cannot use [{name}]: {error}")))?;
    let file = match (file.file_name(), file.canonicalize()) {
        (_, Ok(existing)) => existing,
        // A link to nothing would be followed when it is written to.
        (_, Err(_)) if file.symlink_metadata().is_ok() => return Err(refused()),
        (Some(last), Err(_)) => folder.join(last),
        (None, Err(_)) => return Err(refused()),
    };
    if file.starts_with(&root) { Ok(file) } else { Err(refused()) }
}

impl IoOperator {
    fn run(&self, context: &mut QueryContext) -> Result<()> {
        let (Some(root), Some(files)) = (context.io_root.clone(), context.files.clone()) else {
            return Err(QueryError::invalid(
                "io() is switched off: the server names no folder for it; set engine.io_dir, or use `ficus load`",
            ));
        };
        let file = confined(&root, &self.file)?;
        if self.write {
            files.write(&file, self.format.as_deref(), &context.transaction)
        } else {
            files.read(&file, self.format.as_deref(), &mut context.transaction)
        }
    }
}

impl Operator<Graphs> for IoOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while input.pop_front().is_some() {
            self.run(cx.context)?;
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

/// Adds the operator.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let Node::Io { file, write, options } = node else {
        return Err(QueryError::invalid(format!("{node} is not io()")));
    };
    let Value::String(file) = file else {
        return Err(QueryError::invalid(format!("io() needs the name of a file, not a {}", file.type_name())));
    };
    let mut format = None;
    for (key, value) in options {
        match (&**key, value) {
            ("~tinkerpop.io.reader" | "~tinkerpop.io.writer", ValueOrTraversal::Value(Value::String(name))) => {
                format = Some(name.clone());
            }
            _ => {
                return Err(QueryError::invalid(format!(
                    "io() knows the options IO.reader and IO.writer with IO.graphml, IO.graphson or IO.gryo, not [{key}]"
                )));
            }
        }
    }
    let (file, write) = (file.clone(), *write);
    builder.operator(chain, node, false, move || IoOperator { file: file.clone(), write, format: format.clone() });
    Ok(())
}
