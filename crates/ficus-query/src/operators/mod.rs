//! Physical operators, by family. Each file has a `build` that adds the dataflow nodes of its logical nodes.

pub mod adjacent;
pub mod branching;
pub mod call;
pub mod choose;
pub mod closing;
pub mod collect;
pub mod combine;
pub mod dedup;
pub mod edge_vertex;
pub mod edges_back;
pub mod effects;
pub mod ends_by_label;
pub mod ends_fold;
pub mod filter;
pub mod folded_maps;
pub mod folds;
pub mod formula;
pub mod group;
pub mod group_count;
pub mod has;
pub mod hash_order;
pub mod hop_block;
pub mod hop_parts;
pub mod io;
pub mod java_hash;
pub mod junction;
pub mod k_hop;
pub mod kept_counts;
pub mod key_numbers;
pub mod keyed_rows;
pub mod keys_of_properties;
pub mod known_end;
pub mod label;
pub mod labelled_groups;
pub mod labels_in_hop;
pub mod leaving_counts;
pub mod match_patterns;
pub mod merge_element;
pub mod merged_rows;
pub mod neighbour_list;
pub mod order;
pub mod order_local;
pub mod packed_ends;
pub mod packed_numbers;
pub mod paths;
pub mod per_row;
pub mod profile;
pub mod property;
pub mod property_map;
pub mod range;
pub mod reduce;
pub mod repeat;
pub mod reservoir;
pub mod scalar;
pub mod scan;
pub mod scan_fold;
pub mod scoped_where;
pub mod shared_test;
pub mod simple;
pub mod sorted_runs;
pub mod source;
pub mod subquery;
pub mod test_ahead;
pub mod tuple_rows;
pub mod tuples;
pub mod turned;
pub mod vertex_program;
pub mod walked_rows;
pub mod write;

use crate::context::Result;
use crate::logical::Node;
use crate::physical::{Builder, Chain};
use crate::traverser::StepInfo;

/// Adds the dataflow nodes of `node` to `chain`.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    match node {
        Node::Vertices { .. } | Node::Edges { .. } | Node::Inject { .. } => source::build(builder, node, step, chain),
        Node::AdjacentFrom { .. } | Node::Recall { .. } => closing::build(builder, node, step, chain),
        Node::KeepLabels { labels } => label::build_keep(builder, labels, chain),
        Node::Adjacent { .. } => adjacent::build(builder, node, step, chain),
        Node::EdgeVertex { .. } | Node::OtherVertex => edge_vertex::build(builder, node, step, chain),
        Node::Has { .. } | Node::HasProperty { .. } | Node::Is { .. } | Node::Collection { .. } => {
            has::build(builder, node, chain)
        }
        Node::Filter { .. } | Node::Not { .. } | Node::And { .. } | Node::Or { .. } => {
            filter::build(builder, node, chain)
        }
        Node::Properties { .. } | Node::Id | Node::Label | Node::Key | Node::ValueOf | Node::Element => {
            property::build(builder, node, step, chain)
        }
        Node::Range { .. } | Node::Tail { .. } | Node::Coin { .. } | Node::TimeLimit { .. } | Node::Discard => {
            range::build(builder, node, chain)
        }
        Node::Dedup { .. } => dedup::build(builder, node, chain),
        Node::Identity
        | Node::Constant { .. }
        | Node::Unfold
        | Node::Loops { .. }
        | Node::LoopsAtLeast { .. }
        | Node::Sack => simple::build(builder, node, step, chain),
        Node::Map { .. }
        | Node::FlatMap { .. }
        | Node::Local { .. }
        | Node::SideEffect { .. }
        | Node::Optional { .. }
        | Node::Coalesce { .. } => subquery::build(builder, node, step, chain),
        Node::Union { .. } => branching::build(builder, node, chain),
        Node::Choose { .. } => choose::build(builder, node, chain),
        Node::Repeat(repeat) => repeat::build(builder, repeat, chain),
        Node::KHop(walk) => {
            k_hop::build(builder, walk, step, chain)?;
            Ok(())
        }
        Node::Reduce { .. } => reduce::build(builder, node, step, chain),
        Node::Fold { .. } | Node::Barrier { .. } => collect::build(builder, node, step, chain),
        Node::Order { scope: ficus_model::Scope::Local, .. } | Node::Scalar { .. } => {
            scalar::build(builder, node, step, chain)
        }
        Node::Math { .. } | Node::Format { .. } => formula::build(builder, node, step, chain),
        Node::AddVertex { .. } | Node::AddEdge { .. } | Node::AddProperty { .. } | Node::Drop => {
            write::build(builder, node, step, chain)
        }
        Node::MergeVertex { .. } | Node::MergeEdge { .. } => merge_element::build(builder, node, step, chain),
        Node::Order { .. } | Node::Sample { .. } => order::build(builder, node, chain),
        Node::Project { .. }
        | Node::Select { .. }
        | Node::SelectTraversal { .. }
        | Node::SelectColumn { .. }
        | Node::SackWith { .. } => combine::build(builder, node, step, chain),
        Node::Path { .. } | Node::PathFilter { .. } | Node::Tree { .. } => paths::build(builder, node, step, chain),
        Node::WherePredicate { .. } | Node::WhereTraversal { .. } => scoped_where::build(builder, node, chain),
        Node::PropertyMap { .. } | Node::ElementMap { .. } => property_map::build(builder, node, step, chain),
        Node::Group { .. } | Node::GroupCount { .. } => group::build(builder, node, step, chain),
        Node::Aggregate { .. } | Node::Cap { .. } | Node::Subgraph { .. } | Node::Fail { .. } => {
            effects::build(builder, node, step, chain)
        }
        Node::Match { .. } => match_patterns::build(builder, node, step, chain),
        Node::Profile { .. } => profile::build(builder, node, step, chain),
        Node::Call { .. } => call::build(builder, node, step, chain),
        Node::Io { .. } => io::build(builder, node, chain),
        Node::VertexProgram(program) => vertex_program::build(builder, program, step, chain),
    }
}
