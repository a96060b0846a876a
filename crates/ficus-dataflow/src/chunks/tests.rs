use super::*;
use crate::kit::random::Random;

/// A value of which a full chunk has few.
type Large = [u64; 300];

fn large(number: u64) -> Large {
    [number; 300]
}

#[test]
fn it_does_what_a_queue_in_one_piece_does() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let (mut own, mut model) = (Chunks::<Large>::new(), VecDeque::new());
        for step in 0..2000u64 {
            // Phases in which it grows and phases in which it shrinks.
            let grows = step / 250 % 2 == 0;
            let at = |random: &mut Random| random.below(model.len() as u64) as usize;
            match random.below(10) {
                0..3 => {
                    own.push_back(large(step));
                    model.push_back(step);
                }
                3 => {
                    own.push_front(large(step));
                    model.push_front(step);
                }
                4 if !model.is_empty() => {
                    let (a, b) = (at(&mut random), at(&mut random));
                    own.swap(a, b);
                    model.swap(a, b);
                }
                5 if !model.is_empty() => {
                    let at = at(&mut random);
                    *own.get_mut(at).expect("it is there") = large(step);
                    model[at] = step;
                }
                _ if grows => {}
                6 => assert_eq!(own.pop_back().map(|value| value[0]), model.pop_back(), "seed {seed}"),
                _ => assert_eq!(own.pop_front().map(|value| value[0]), model.pop_front(), "seed {seed}"),
            }
            assert_eq!(own.len(), model.len(), "seed {seed}");
            assert_eq!(own.front().map(|value| value[0]), model.front().copied(), "seed {seed}");
            if step % 50 == 0 {
                assert!(own.iter().map(|value| value[0]).eq(model.iter().copied()), "seed {seed}, step {step}");
                let by_index = (0..model.len()).map(|index| own.get(index).expect("it is there")[0]);
                assert!(by_index.eq(model.iter().copied()), "seed {seed}, step {step}");
                assert!(own.get(model.len()).is_none());
            }
        }
        assert!(own.into_vec().iter().map(|value| value[0]).eq(model), "seed {seed}");
    }
}

#[test]
fn nothing_is_copied_when_it_grows() {
    let mut own = Chunks::<Large>::new();
    (0..Chunks::<Large>::CHUNK as u64 + 1).for_each(|number| own.push_back(large(number)));
    let place = std::ptr::from_ref(own.get(3).expect("it is there"));
    (0..1000).for_each(|number| own.push_back(large(number)));
    assert_eq!(std::ptr::from_ref(own.get(3).expect("it is there")), place);
}

/// Some are flat and some count.
type Mixed = Option<std::sync::Arc<()>>;

struct NoneIsFlat;

impl Flat<Mixed> for NoneIsFlat {
    fn is_flat(value: &Mixed) -> bool {
        value.is_none()
    }
}

#[test]
fn whatever_is_not_flat_is_dropped_once() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let counted = std::sync::Arc::new(());
        let mut own = Chunks::<Mixed, NoneIsFlat>::new();
        // Long stretches of flat values, so that there are chunks of nothing else.
        let value =
            |random: &mut Random, step: u64| (step / 8000 % 2 == 1 && random.below(3000) == 0).then(|| counted.clone());
        for step in 0..40_000u64 {
            let new = value(&mut random, step);
            let at = |random: &mut Random| random.below(step + 1) as usize;
            match random.below(16) {
                0 => own.push_front(new),
                1 => drop(own.pop_back()),
                2 => drop(own.pop_front()),
                3 => {
                    if let Some(mut there) = own.get_mut(at(&mut random)) {
                        *there = new;
                    }
                }
                4 => {
                    if let Some(there) = own.part_mut(at(&mut random), |there| there) {
                        *there = new;
                    }
                }
                5 if !own.is_empty() => {
                    let [a, b] = [0; 2].map(|_| random.below(own.len() as u64) as usize);
                    own.swap(a, b);
                }
                _ => own.push_back(new),
            }
        }
        if seed % 8 == 0 {
            own.iter_mut().step_by(1000).for_each(|there| *there = Some(counted.clone()));
        }
        let there = own.iter().flatten().count();
        assert_eq!(std::sync::Arc::strong_count(&counted), 1 + there, "seed {seed}");
        match seed % 4 {
            0 => drop(own),
            1 => while own.free_some(1000) == 0 {},
            2 => own.clear(),
            _ => assert_eq!(own.into_vec().into_iter().flatten().count(), there, "seed {seed}"),
        }
        assert_eq!(std::sync::Arc::strong_count(&counted), 1, "seed {seed}");
    }
}

#[test]
fn chunks_of_flat_values_go_in_one_piece() {
    let of = |last: Mixed| {
        let mut own: Chunks<Mixed, NoneIsFlat> = std::iter::repeat_with(|| None).take(1_000_000).collect();
        own.push_back(last);
        let mut times = 1;
        while own.free_some(4096) == 0 {
            times += 1;
        }
        times
    };
    // A chunk of pointers counts as 57.
    assert!(of(None) <= 6, "{}", of(None));
    // Only the chunk that holds it is looked through.
    assert!(of(Some(std::sync::Arc::new(()))) <= 7);
}

#[test]
fn it_is_freed_in_slices() {
    let counted = std::sync::Arc::new(());
    let mut own: Chunks<std::sync::Arc<()>> = (0..10_000).map(|_| counted.clone()).collect();
    let mut before = own.pieces();
    while own.free_some(300) == 0 {
        let left = std::sync::Arc::strong_count(&counted) - 1;
        assert_eq!(left, own.len());
        assert!(before - left <= 300 && left < before, "{before} {left}");
        before = left;
    }
    assert_eq!(std::sync::Arc::strong_count(&counted), 1);
    // What is left of the budget goes to the next.
    let mut few: VecDeque<u8> = [0; 10].into();
    assert_eq!(few.free_some(30), 20);
    assert_eq!(few.free_some(30), 30);
}
