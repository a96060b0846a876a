//! Rows that may become very long.

use std::io::{self, BufRead};

/// A row that has become so long is given all the room that a row may have: growing step by step would hold it twice, and take up to twice as much in
/// the end. What is not written to takes no memory.
const LONG_BYTES: usize = 16 << 20;

/// Bytes that a row may be longer than its limit before its reader looks: what is read at once.
const SLACK_BYTES: usize = 2 << 20;

/// Makes room for `more` bytes behind a row that is refused when it is longer than `limit`.
pub fn make_room(row: &mut Vec<u8>, more: usize, limit: usize) {
    if row.capacity() - row.len() < more && row.len() + more > LONG_BYTES {
        let most = (limit + SLACK_BYTES).max(row.len() + more);
        row.reserve_exact(most - row.len());
    }
}

/// Reads a line without its end, behind what is in `row`; false if there is none. Stops when the row is longer than `limit`.
pub fn read_line(input: &mut dyn BufRead, row: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
    let mut any = false;
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let (part, used) = match memchr::memchr(b'\n', buffer) {
            Some(at) => (&buffer[..at], at + 1),
            None => (buffer, buffer.len()),
        };
        make_room(row, part.len(), limit);
        row.extend_from_slice(part);
        let is_end = used > part.len();
        input.consume(used);
        if is_end || row.len() > limit {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whatever_the_buffer_and_long_ones_stop() {
        let read = |text: &str, buffer: usize, limit: usize| {
            let mut input = io::BufReader::with_capacity(buffer, text.as_bytes());
            let (mut lines, mut row) = (Vec::new(), Vec::new());
            while read_line(&mut input, &mut row, limit).expect("it is in memory") {
                lines.push(String::from_utf8(std::mem::take(&mut row)).expect("it was text"));
            }
            lines
        };
        for buffer in [1, 2, 3, 100] {
            assert_eq!(read("a\n\nbc\nd", buffer, 10), ["a", "", "bc", "d"]);
        }
        assert_eq!(read("abcdef\ng", 2, 3), ["abcd", "ef", "g"], "a reader sees that it is too long");
    }

    #[test]
    fn a_long_row_gets_its_room_once() {
        let mut row = vec![0; LONG_BYTES];
        make_room(&mut row, 1, 4 * LONG_BYTES);
        let room = row.capacity();
        assert!((4 * LONG_BYTES..=4 * LONG_BYTES + SLACK_BYTES).contains(&room), "{room}");
        row.resize(4 * LONG_BYTES + 1, 0);
        make_room(&mut row, 1 << 20, 4 * LONG_BYTES);
        assert_eq!(row.capacity(), room);
    }
}
