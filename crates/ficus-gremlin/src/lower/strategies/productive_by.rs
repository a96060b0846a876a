//! `ProductiveByStrategy`: a `by()` that yields nothing yields null instead of filtering, as it was before 3.6.

use std::sync::Arc;

use ficus_model::Value;
use ficus_query::logical::{By, Name, Node, Traversal, visit};

use super::{for_each_by, key_traversal, line};

pub(super) fn apply(root: &mut Traversal, productive: &[Name]) {
    visit::rewrite(root, &mut |traversal| {
        for labelled in &mut traversal.nodes {
            for_each_by(&mut labelled.node, &mut |by, of_group_values| {
                make_productive(by, of_group_values, productive)
            });
        }
    });
}

fn make_productive(by: &mut By, of_group_values: bool, productive: &[Name]) {
    let inner = match by {
        // The values of a group are folded, which yields something in any case.
        By::Key(key) if !of_group_values && !productive.contains(key) => key_traversal(key, Vec::new()),
        By::Traversal(traversal) if !ends_reducing(traversal) => traversal.clone(),
        _ => return,
    };
    let null = line(vec![Node::Constant { value: Value::Null }]);
    *by = By::Traversal(line(vec![Node::Coalesce { branches: vec![inner, null] }]));
}

fn ends_reducing(traversal: &Arc<Traversal>) -> bool {
    traversal.nodes.last().is_some_and(|labelled| visit::is_reducing(&labelled.node))
}
