//! The known word that is nearest to an unknown one, for messages.

/// Longer words are not compared: the cost is the product of the lengths.
const COMPARED_BYTES_MAX: usize = 64;

/// The member of `known` that `word` most likely was meant to be.
pub(super) fn nearest<'known>(word: &str, known: impl Iterator<Item = &'known str>) -> Option<&'known str> {
    let tolerated = 1 + word.len() / 3;
    known
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= tolerated)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many insertions, deletions and replacements of bytes apart two words are; case does not count.
fn distance(left: &str, right: &str) -> usize {
    if left.len().max(right.len()) > COMPARED_BYTES_MAX {
        return usize::MAX;
    }
    let mut costs: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.bytes().enumerate() {
        let mut diagonal = costs[0];
        costs[0] = row + 1;
        for (column, b) in right.bytes().enumerate() {
            let replaced = diagonal + usize::from(!a.eq_ignore_ascii_case(&b));
            diagonal = costs[column + 1];
            costs[column + 1] = replaced.min(diagonal + 1).min(costs[column] + 1);
        }
    }
    costs[right.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_what_was_meant() {
        let known = ["groupCount", "group", "out", "outE"];
        for (word, expected) in [("groupcount", Some("groupCount")), ("ot", Some("out")), ("zzz", None), ("", None)] {
            assert_eq!(nearest(word, known.into_iter()), expected, "{word}");
        }
    }
}
