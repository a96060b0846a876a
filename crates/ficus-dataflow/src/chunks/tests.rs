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
