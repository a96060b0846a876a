//! The programs that compute a property.

use std::collections::HashMap;
use std::sync::Arc;

use ficus_analytics::Projection;
use ficus_analytics::programs::{PageRankOptions, PeerPressureOptions, least_reaching, page_rank, peer_pressure};
use ficus_model::{Direction, VertexId};

use crate::computed::ComputedValues;
use crate::context::{Cx, Result};
use crate::logical::{VertexProgram, VertexProgramKind};
use crate::services::programs::background::{Background, Part};
use crate::services::programs::id_order::order_of_texts;

/// Ranks are settled when all together moved by less in one iteration.
const TOLERANCE: f64 = 1e-5;

/// Begins a program. `here`: how many traversers stand at each vertex, if that matters.
pub fn begin(
    program: &VertexProgram,
    direction: Direction,
    part: Part,
    here: Option<HashMap<VertexId, u64>>,
    cx: &mut Cx<'_>,
) -> Result<Background<(Arc<Projection>, ComputedValues)>> {
    match program.kind {
        VertexProgramKind::PageRank { alpha, times } => {
            Background::begin("pageRank()", part, (40, 0), cx, move |projection, _, control| {
                let start = here.map(|here| by_place(&projection, &here));
                let options = PageRankOptions {
                    direction,
                    damping: alpha,
                    tolerance: TOLERANCE,
                    iterations_limit: times,
                    start,
                    ..PageRankOptions::default()
                };
                let ranks = page_rank(&projection, &options, control)?.ranks;
                Ok((projection, ComputedValues::Doubles(ranks)))
            })
        }
        VertexProgramKind::PeerPressure { times } => {
            let bytes = 128 + 8 * std::thread::available_parallelism().map_or(1, usize::from);
            Background::begin("peerPressure()", part, (bytes, 0), cx, move |projection, snapshot, control| {
                let order = order_of_texts(&projection, snapshot);
                let options = PeerPressureOptions {
                    direction,
                    rounds_limit: times,
                    strengths: here.map(|here| by_place(&projection, &here)),
                    distribute: false,
                    order: &order,
                };
                let clusters = peer_pressure(&projection, &options, control)?.0;
                Ok((projection, ComputedValues::Ids(clusters)))
            })
        }
        VertexProgramKind::ConnectedComponent | VertexProgramKind::ShortestPath { .. } => {
            Background::begin("connectedComponent()", part, (128, 0), cx, move |projection, snapshot, control| {
                let order = order_of_texts(&projection, snapshot);
                let names = least_reaching(&projection, direction, &order, control)?;
                Ok((projection, ComputedValues::IdTexts(names)))
            })
        }
    }
}

/// Counts by place; 0 where there is none.
fn by_place(projection: &Projection, counts: &HashMap<VertexId, u64>) -> Vec<f64> {
    let mut by_place = vec![0.0; projection.vertex_count()];
    for (vertex, count) in counts {
        if let Some(place) = projection.place(*vertex) {
            by_place[place as usize] = *count as f64;
        }
    }
    by_place
}
