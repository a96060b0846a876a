//! Vertices in the order of the texts of their ids, by which TinkerPop decides between equals.

use std::cmp::Ordering;

use ficus_analytics::{Place, Projection};
use ficus_model::Value;
use ficus_storage::Snapshot;

/// Numbers of vertices in the order of the texts of their ids, by place; as Java compares strings.
pub fn order_of_texts(projection: &Projection, snapshot: &Snapshot) -> Vec<u32> {
    let text = |place: Place| snapshot.vertex_id(projection.vertex(place)).unwrap_or(Value::Null).to_string();
    let mut texts: Vec<(String, Place)> =
        (0..projection.vertex_count() as Place).map(|place| (text(place), place)).collect();
    texts.sort_unstable_by(|(left, left_place), (right, right_place)| {
        by_utf16(left, right).then(left_place.cmp(right_place))
    });
    let mut order = vec![0; texts.len()];
    for (number, (_, place)) in texts.iter().enumerate() {
        order[*place as usize] = number as u32;
    }
    order
}

fn by_utf16(left: &str, right: &str) -> Ordering {
    if left.is_ascii() && right.is_ascii() { left.cmp(right) } else { left.encode_utf16().cmp(right.encode_utf16()) }
}
