//! Sorting what may be very much, with looks in between at whether somebody still wants it.
//!
//! The standard library sorts in one go, and panics if an order turns out to be none, which is what comparisons say once nobody wants them any more.
//! Here things are merged from short runs on, and whatever comparisons say, it ends.

use std::cmp::Ordering;

use crate::MEMBERS_BETWEEN_LOOKS;

/// Things of a run that is sorted by insertion.
const RUN: usize = 16;

/// Sorts stably. `goes_on` is asked every few thousand things; false if it has said no: the order is none then.
///
/// Cost: at most n log2(n / 16) + 64 n comparisons; n of what is sorted already. Memory: as much again as the things take, which are therefore to be
/// small: references, or places.
pub fn sort_in_steps<T: Copy>(
    items: &mut Vec<T>,
    mut compare: impl FnMut(&T, &T) -> Ordering,
    mut goes_on: impl FnMut() -> bool,
) -> bool {
    let mut until_look = MEMBERS_BETWEEN_LOOKS;
    let mut looks = |things: usize| {
        until_look = until_look.saturating_sub(things);
        if until_look > 0 {
            return true;
        }
        until_look = MEMBERS_BETWEEN_LOOKS;
        goes_on()
    };
    for run in items.chunks_mut(RUN) {
        if !looks(run.len()) {
            return false;
        }
        sort_run(run, &mut compare);
    }
    let (mut from, mut to) = (std::mem::take(items), Vec::new());
    let mut width = RUN;
    while width < from.len() {
        to.clear();
        to.reserve_exact(from.len());
        for pair in from.chunks(2 * width) {
            let (mut first, mut second) = pair.split_at(width.min(pair.len()));
            // What is in order stays together.
            if let (Some(last), Some(next)) = (first.last(), second.first())
                && compare(last, next) != Ordering::Greater
            {
                to.extend_from_slice(pair);
                first = &[];
                second = &[];
                if !looks(pair.len() / 16) {
                    return false;
                }
            }
            let mut since_look = 0;
            while let ([a, more_first @ ..], [b, more_second @ ..]) = (first, second) {
                if compare(a, b) == Ordering::Greater {
                    to.push(*b);
                    second = more_second;
                } else {
                    to.push(*a);
                    first = more_first;
                }
                since_look += 1;
                if since_look == RUN {
                    since_look = 0;
                    if !looks(RUN) {
                        return false;
                    }
                }
            }
            to.extend_from_slice(first);
            to.extend_from_slice(second);
        }
        std::mem::swap(&mut from, &mut to);
        width *= 2;
    }
    *items = from;
    true
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
        for count in [0, 1, 2, 15, 16, 17, 31, 32, 33, 1000, 4096, 70_001] {
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
        assert!(ended && compared / all < 70 * MEMBERS_BETWEEN_LOOKS, "{compared} comparisons, {all} looks");
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
