//! Vertices in the order of the texts of their ids, by which TinkerPop decides between equals.

use std::cmp::Ordering;

use ficus_analytics::{Place, Projection};
use ficus_model::Value;
use ficus_storage::Snapshot;

/// Numbers of vertices in the order of the texts of their ids, by place; as Java compares strings. Those without edges come behind all others, in any
/// order: nothing has to be decided between them and others.
///
/// Cost: a text for each vertex with edges, and sorting them; one look at each vertex without.
pub fn order_of_texts(projection: &Projection, snapshot: &Snapshot) -> Vec<u32> {
    let has_edges = |place: &Place| projection.out().degree(*place) + projection.into().degree(*place) > 0;
    let text = |place: Place| snapshot.vertex_id(projection.vertex(place)).unwrap_or(Value::Null).to_string();
    let vertices = projection.vertex_count();
    let mut texts: Vec<(String, Place)> =
        (0..vertices as Place).filter(has_edges).map(|place| (text(place), place)).collect();
    texts.sort_unstable_by(|(left, left_place), (right, right_place)| {
        by_utf16(left, right).then(left_place.cmp(right_place))
    });
    let mut order = vec![u32::MAX; vertices];
    for (number, (_, place)) in texts.iter().enumerate() {
        order[*place as usize] = number as u32;
    }
    let rest = order.iter_mut().filter(|number| **number == u32::MAX);
    rest.zip(texts.len() as u32..).for_each(|(number, next)| *number = next);
    order
}

fn by_utf16(left: &str, right: &str) -> Ordering {
    if left.is_ascii() && right.is_ascii() { left.cmp(right) } else { left.encode_utf16().cmp(right.encode_utf16()) }
}

#[cfg(test)]
mod tests {
    use ficus_analytics::{ProjectionOptions, Unlimited};
    use ficus_storage::Store;

    use super::*;

    #[test]
    fn vertices_with_edges_come_first_in_the_order_of_their_texts() {
        let graph = Store::in_memory().create_graph("g").unwrap();
        let mut writing = graph.begin();
        let ids = [Value::Int(9), Value::Int(10), Value::from("\u{10000}"), Value::from("\u{ffff}"), Value::Int(1)];
        let vertices: Vec<_> = ids.map(|id| writing.add_vertex("v", Some(id)).unwrap()).into();
        for (out, into) in [(0, 1), (2, 3), (2, 2)] {
            writing.add_edge("e", vertices[out], vertices[into], None).unwrap();
        }
        writing.add_vertex("v", Some(Value::Int(0))).unwrap();
        writing.commit().unwrap();
        let snapshot = graph.snapshot();
        let projection = Projection::new(&snapshot, &ProjectionOptions::default(), &Unlimited).unwrap();
        let order = order_of_texts(&projection, &snapshot);
        let of = |vertex: usize| order[projection.place(vertices[vertex]).unwrap() as usize];
        // The text 10 is in front of 9, and as Java compares a character of two units in front of one that is greater than the first of these.
        assert_eq!([of(1), of(0), of(2), of(3)], [0, 1, 2, 3]);
        let mut all = order.clone();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5]);
    }
}
