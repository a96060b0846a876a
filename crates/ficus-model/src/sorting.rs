//! Sorting what may be very much, with looks in between at whether somebody still wants it.
//!
//! The standard library sorts in one go, and panics if an order turns out to be none, which is what comparisons say once nobody wants them any more.
//! Here things are merged from short runs on, and whatever comparisons say, it ends.

use std::cmp::Ordering;

/// Things of a run that is sorted by insertion.
const RUN: usize = 16;

/// Things that are sorted before others are looked at: as many as caches hold with what they refer to.
const CHUNK: usize = 2048;

/// Sorts stably. `goes_on` is asked every few thousand things; false if it has said no: nothing useful is left then.
///
/// Chunks are sorted one by one, and merged all at once, so that what things refer to is gone to twice and not for every level of a merge. Cost: O(n log n)
/// comparisons, n of what is sorted already. Memory: as much again as the things take, which are therefore to be small: references, or places.
pub fn sort_in_steps<T: Copy>(
    items: &mut Vec<T>,
    mut compare: impl FnMut(&T, &T) -> Ordering,
    mut goes_on: impl FnMut() -> bool,
) -> bool {
    // Where what is in order begins and ends.
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut spare = Vec::new();
    for begin in (0..items.len()).step_by(CHUNK) {
        if !goes_on() {
            return false;
        }
        let end = items.len().min(begin + CHUNK);
        sort_chunk(&mut items[begin..end], &mut spare, &mut compare);
        match runs.last_mut() {
            // What is in order already stays together.
            Some(last) if compare(&items[begin - 1], &items[begin]) != Ordering::Greater => last.1 = end,
            _ => runs.push((begin, end)),
        }
    }
    if runs.len() < 2 {
        return true;
    }
    // Of equal things those of the earlier run come first.
    let mut comes_before = |a: usize, b: usize, runs: &[(usize, usize)]| {
        compare(&items[runs[a].0], &items[runs[b].0]).then(a.cmp(&b)) == Ordering::Less
    };
    let mut heap: Vec<usize> = (0..runs.len()).collect();
    for place in (0..heap.len() / 2).rev() {
        sift_down(&mut heap, place, |a, b| comes_before(a, b, &runs));
    }
    let mut sorted = Vec::with_capacity(items.len());
    while let Some(&first) = heap.first() {
        if sorted.len() % CHUNK == 0 && !goes_on() {
            return false;
        }
        sorted.push(items[runs[first].0]);
        runs[first].0 += 1;
        if runs[first].0 == runs[first].1 {
            heap.swap_remove(0);
        }
        sift_down(&mut heap, 0, |a, b| comes_before(a, b, &runs));
    }
    *items = sorted;
    true
}

/// Moves what lies at a place of a heap to where it belongs below it.
fn sift_down(heap: &mut [usize], mut place: usize, mut comes_before: impl FnMut(usize, usize) -> bool) {
    loop {
        let mut first = place;
        for below in [2 * place + 1, 2 * place + 2] {
            if below < heap.len() && comes_before(heap[below], heap[first]) {
                first = below;
            }
        }
        if first == place {
            return;
        }
        heap.swap(place, first);
        place = first;
    }
}

/// Sorts a chunk in one go.
fn sort_chunk<T: Copy>(chunk: &mut [T], spare: &mut Vec<T>, compare: &mut impl FnMut(&T, &T) -> Ordering) {
    chunk.chunks_mut(RUN).for_each(|run| sort_run(run, compare));
    let mut width = RUN;
    while width < chunk.len() {
        for pair in chunk.chunks_mut(2 * width).filter(|pair| pair.len() > width) {
            if compare(&pair[width - 1], &pair[width]) != Ordering::Greater {
                continue;
            }
            spare.clear();
            spare.extend_from_slice(&pair[..width]);
            let (mut first, mut second, mut to) = (0, width, 0);
            while first < width {
                if second < pair.len() && compare(&spare[first], &pair[second]) == Ordering::Greater {
                    pair[to] = pair[second];
                    second += 1;
                } else {
                    pair[to] = spare[first];
                    first += 1;
                }
                to += 1;
            }
        }
        width *= 2;
    }
}

fn sort_run<T: Copy>(run: &mut [T], compare: &mut impl FnMut(&T, &T) -> Ordering) {
    for end in 1..run.len() {
        let item = run[end];
        let mut place = end;
        while place > 0 && compare(&run[place - 1], &item) == Ordering::Greater {
            run[place] = run[place - 1];
            place -= 1;
        }
        run[place] = item;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without an order that could be seen.
    fn scattered(count: usize) -> Vec<u64> {
        (0..count as u64).map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40).collect()
    }

    #[test]
    fn things_are_sorted_as_the_standard_library_does() {
        for count in [0, 1, 2, 15, 16, 17, 31, 32, 33, 1000, 2047, 2048, 2049, 4096, 70_001] {
            let by = |a: &(u64, usize), b: &(u64, usize)| (a.0 % 50).cmp(&(b.0 % 50));
            for numbers in [scattered(count), (0..count as u64).collect(), (0..count as u64).rev().collect()] {
                let mut items: Vec<(u64, usize)> = numbers.into_iter().zip(0..).collect();
                let mut expected = items.clone();
                expected.sort_by(by);
                assert!(sort_in_steps(&mut items, by, || true));
                assert_eq!(items, expected, "{count}");
            }
        }
    }

    #[test]
    fn what_is_in_order_is_compared_once() {
        let (mut items, mut compared) = ((0..100_000).collect::<Vec<u32>>(), 0);
        let compare = |a: &u32, b: &u32| {
            compared += 1;
            a.cmp(b)
        };
        assert!(sort_in_steps(&mut items, compare, || true));
        assert!(compared < 110_000, "{compared}");
    }

    #[test]
    fn it_ends_at_a_look_and_looks_all_the_time() {
        let looks_of = |end: usize| {
            let (mut items, mut looks, mut compared) = (scattered(300_000), 0, 0_usize);
            let compare = |a: &u64, b: &u64| {
                compared += 1;
                a.cmp(b)
            };
            let ended = sort_in_steps(&mut items, compare, || {
                looks += 1;
                looks < end
            });
            (ended, looks, compared)
        };
        let (ended, all, compared) = looks_of(usize::MAX);
        assert!(ended && compared / all < 20 * CHUNK, "{compared} comparisons, {all} looks");
        for end in [1, 2, all / 2, all] {
            assert_eq!((false, end), (looks_of(end).0, looks_of(end).1));
        }
    }

    #[test]
    fn an_order_that_is_none_does_no_harm() {
        let (mut items, mut turn) = (scattered(10_000), 0_u64);
        let compare = |_: &u64, _: &u64| {
            turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if turn >> 63 == 0 { Ordering::Less } else { Ordering::Greater }
        };
        assert!(sort_in_steps(&mut items, compare, || true));
        let mut all = scattered(10_000);
        all.sort_unstable();
        items.sort_unstable();
        assert_eq!(items, all);
    }
}
