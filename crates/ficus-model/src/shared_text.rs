//! A text shared without stopping the world: copied in blocks, between which its reader may lose interest.
//!
//! A [`String`] becomes an [`Arc<str>`] by one copy of all of it, which for a hundred megabytes takes longer than a query that has been stopped may go
//! on. The safe ways to fill an [`Arc<[u8]>`] piece by piece touch it once more before, and none of them makes a text of it; that is why there is unsafe
//! code here. It is sound because every byte is written before the memory is taken for initialised, with those of one text in their order, so that they
//! are UTF-8; and because [`Arc<str>`] and [`Arc<[u8]>`] lie in memory alike, as the conversion that the standard library has for the other direction
//! relies on.
#![allow(unsafe_code)]

use std::sync::Arc;

/// Bytes that are copied between two questions: where memory is new, a quarter of a millisecond.
const BLOCK_BYTES: usize = 1 << 20;

/// A copy of the text to be shared; `None` if somebody, asked before each block but the first, does not want it any more.
pub fn shared_text(text: &str, mut is_wanted: impl FnMut() -> bool) -> Option<Arc<str>> {
    if text.len() <= BLOCK_BYTES {
        return Some(text.into());
    }
    let mut bytes = Arc::<[u8]>::new_uninit_slice(text.len());
    let places = Arc::get_mut(&mut bytes).expect("nobody else has it yet");
    for (number, (place, block)) in places.chunks_mut(BLOCK_BYTES).zip(text.as_bytes().chunks(BLOCK_BYTES)).enumerate()
    {
        if number > 0 && !is_wanted() {
            return None;
        }
        place.write_copy_of_slice(block);
    }
    // SAFETY: the blocks are all of the text, and as long as the places together.
    let bytes: Arc<[u8]> = unsafe { bytes.assume_init() };
    // SAFETY: the bytes are those of a text, and only their type changes.
    Some(unsafe { Arc::from_raw(Arc::into_raw(bytes) as *const str) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_copied_as_it_is() {
        for text in ["", "a", &"äöü€𐍈".repeat(200_000), &"x".repeat(2 * BLOCK_BYTES), &"y".repeat(2 * BLOCK_BYTES + 1)]
        {
            assert_eq!(shared_text(text, || true).as_deref(), Some(text));
        }
    }

    #[test]
    fn nobody_waits_for_a_copy_that_is_not_wanted() {
        let text = "x".repeat(5 * BLOCK_BYTES);
        for blocks in 0..4 {
            let mut asked = 0;
            let copy = shared_text(&text, || {
                asked += 1;
                asked <= blocks
            });
            assert_eq!((copy, asked), (None, blocks + 1));
        }
        let mut asked = 0;
        assert!(shared_text(&text, || (asked += 1, true).1).is_some());
        assert_eq!(asked, 4);
    }
}
