//! Texts that are a prefix and a number, as ids of an id space are: `person:933`.
//!
//! Such a text is one word: 16 bits for the prefix, 48 for the number. The prefixes are fixed before a load begins, and which
//! part of a text is the number does not depend on them, so that a text has exactly one form.

use std::sync::Arc;

use super::LoadId;

/// Digits of a number; so many always fit [`NUMBER_BITS`].
const DIGITS_LIMIT: usize = 14;

const NUMBER_BITS: u32 = 48;

/// Prefixes of one load.
const PREFIXES_LIMIT: usize = 1 << 10;

/// The number of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdPrefix(u16);

impl IdPrefix {
    /// A text as one word.
    pub(super) fn pack(self, number: u64) -> u64 {
        debug_assert!(number >> NUMBER_BITS == 0, "a number has few digits");
        u64::from(self.0) << NUMBER_BITS | number
    }

    /// From a word to prefix and number.
    pub(super) fn unpack(word: u64) -> (IdPrefix, u64) {
        (IdPrefix((word >> NUMBER_BITS) as u16), word & ((1 << NUMBER_BITS) - 1))
    }
}

/// The prefixes that ids of a load are expected to have.
#[derive(Debug, Default)]
pub struct IdPrefixes {
    list: Vec<Arc<str>>,
}

impl IdPrefixes {
    /// Prefixes without their doubles. Those that are empty or end in a digit are left out, and so are very many: ids with them
    /// are texts like any other.
    pub fn new<'a>(prefixes: impl IntoIterator<Item = &'a str>) -> IdPrefixes {
        let mut list: Vec<Arc<str>> = Vec::new();
        for prefix in prefixes {
            let is_usable = prefix.bytes().last().is_some_and(|last| !last.is_ascii_digit());
            if is_usable && list.len() < PREFIXES_LIMIT && !list.iter().any(|known| **known == *prefix) {
                list.push(prefix.into());
            }
        }
        IdPrefixes { list }
    }

    /// The number of a prefix.
    pub fn find(&self, prefix: &str) -> Option<IdPrefix> {
        self.list.iter().position(|known| **known == *prefix).map(|number| IdPrefix(number as u16))
    }

    /// The id that a prefix and these digits make; `None` if the digits are no number in its shortest form, or a very large
    /// one: then the id is a text like any other.
    #[inline]
    pub fn numbered(&self, prefix: IdPrefix, digits: &str) -> Option<LoadId<'static>> {
        number(digits.as_bytes()).map(|number| LoadId::Numbered(prefix, number))
    }

    /// Takes a text apart.
    pub(super) fn split(&self, text: &str) -> Option<(IdPrefix, u64)> {
        if self.list.is_empty() {
            return None;
        }
        let bytes = text.as_bytes();
        let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (prefix, digits) = text.split_at(bytes.len() - digits);
        Some((self.find(prefix)?, number(digits.as_bytes())?))
    }

    /// The text that a word stands for.
    pub(super) fn text(&self, word: u64) -> String {
        let (prefix, mut number) = IdPrefix::unpack(word);
        let prefix: &str = self.list.get(usize::from(prefix.0)).map_or("", |prefix| prefix);
        let mut digits = [b'0'; DIGITS_LIMIT + 2];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 || start == 0 {
                break;
            }
        }
        let mut text = String::with_capacity(prefix.len() + digits.len() - start);
        text.push_str(prefix);
        text.extend(digits[start..].iter().map(|digit| char::from(*digit)));
        text
    }
}

/// A number in its shortest form.
#[inline]
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > DIGITS_LIMIT || digits[0] == b'0' && digits.len() > 1 {
        return None;
    }
    let mut number = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_form() {
        let prefixes = IdPrefixes::new(["v:", "w:", "v:", "", "x1", "é-"]);
        assert_eq!(prefixes.list.len(), 3);
        let cases = [
            ("v:0", true),
            ("v:99999999999999", true),
            ("v:100000000000000", false),
            ("w:12", true),
            ("é-7", true),
            ("v:", false),
            ("v:00", false),
            ("v:07", false),
            ("v:1x", false),
            ("v:-1", false),
            ("x15", false),
            ("u:1", false),
            ("7", false),
            ("", false),
        ];
        for (text, is_numbered) in cases {
            let found = prefixes.split(text);
            assert_eq!(found.is_some(), is_numbered, "{text}");
            if let Some((prefix, number)) = found {
                assert_eq!(prefixes.text(prefix.pack(number)), text);
            }
        }
    }
}
