//! Where the frames of a WebSocket end, seen from below it.
//!
//! The protocol's reader takes memory for a whole frame and keeps it for the next ones, as long as the connection lasts. Whoever
//! wants to replace the reader after a large frame has to know that it has read to the end of a message and no further. So from a
//! large frame on, until the reader is replaced, it gets no more in one go than what is missing of a head or of a frame.

/// Frames of so many bytes are large.
const LARGE_BYTES: u64 = 64 << 10;

/// The longest head: two bytes, eight of length, four of mask.
const HEAD_BYTES_MAX: usize = 14;

/// Follows the bytes that a WebSocket reads.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The head that is arriving.
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: usize,
    /// What is missing of the frame whose head has arrived.
    left: u64,
    /// There was a large frame.
    was_large: bool,
}

impl Frames {
    /// How much may be read in one go.
    pub fn readable(&self) -> u64 {
        match (self.was_large, self.left) {
            (false, _) => u64::MAX,
            (true, 0) => head_bytes(&self.head[..self.head_bytes]) as u64 - self.head_bytes as u64,
            (true, left) => left,
        }
    }

    /// Whether there was a large frame and what was read ends with a frame. The reader is replaced then.
    pub fn take_large(&mut self) -> bool {
        self.left == 0 && self.head_bytes == 0 && std::mem::take(&mut self.was_large)
    }

    /// These bytes were read.
    pub fn advance(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left == 0 {
                let Some(rest) = self.head(bytes) else { return };
                bytes = rest;
            }
            let taken = usize::try_from(self.left).map_or(bytes.len(), |left| left.min(bytes.len()));
            bytes = &bytes[taken..];
            self.left -= taken as u64;
        }
    }

    /// Reads of a head what there is; what follows, once it is whole.
    fn head<'b>(&mut self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        for (index, byte) in bytes.iter().enumerate() {
            self.head[self.head_bytes] = *byte;
            self.head_bytes += 1;
            if self.head_bytes == head_bytes(&self.head[..self.head_bytes]) {
                self.left = payload_bytes(&self.head);
                self.head_bytes = 0;
                self.was_large |= self.left >= LARGE_BYTES;
                return Some(&bytes[index + 1..]);
            }
        }
        None
    }
}

/// How long a head is, as far as its beginning tells.
fn head_bytes(beginning: &[u8]) -> usize {
    let Some(second) = beginning.get(1) else { return 2 };
    let mask_bytes = if second & 0x80 == 0 { 0 } else { 4 };
    let length_bytes = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + length_bytes + mask_bytes
}

/// The length that a whole head tells.
fn payload_bytes(head: &[u8; HEAD_BYTES_MAX]) -> u64 {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    match head[1] & 0x7f {
        126 => number(&head[2..4]),
        127 => number(&head[2..10]),
        short => u64::from(short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(length: usize, is_masked: bool) -> Vec<u8> {
        let mask = if is_masked { 0x80 } else { 0 };
        let mut bytes = vec![0x82];
        match length {
            0..126 => bytes.push(mask | length as u8),
            126..65536 => {
                bytes.push(mask | 126);
                bytes.extend((length as u16).to_be_bytes());
            }
            _ => {
                bytes.push(mask | 127);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        // Bytes that would be a head, if they were taken for one.
        bytes.resize(bytes.len() + usize::from(is_masked) * 4 + length, 0xff);
        bytes
    }

    #[test]
    fn ends_of_frames_are_found_in_pieces_of_any_size() {
        for is_masked in [true, false] {
            for piece in [1, 2, 7, 1000, 8192] {
                let mut frames = Frames::default();
                let lengths = [0, 1, 125, 126, 127, 70_000, 0, 65_535, 65_536, 3, 100_000];
                let mut ends = Vec::new();
                for length in lengths {
                    let bytes = frame(length, is_masked);
                    let mut rest = &bytes[..];
                    while !rest.is_empty() {
                        let taken = piece.min(rest.len()).min(usize::try_from(frames.readable()).unwrap_or(usize::MAX));
                        assert!(taken > 0);
                        frames.advance(&rest[..taken]);
                        rest = &rest[taken..];
                        assert!(rest.is_empty() || !frames.take_large(), "{length} {piece}");
                    }
                    ends.push(frames.take_large());
                    assert!(!frames.take_large(), "it is said once");
                }
                assert_eq!(ends, lengths.map(|length| length as u64 >= LARGE_BYTES), "{is_masked} {piece}");
            }
        }
    }

    #[test]
    fn from_a_large_frame_on_nobody_reads_past_an_end() {
        let mut frames = Frames::default();
        let mut bytes = frame(10, true);
        bytes.extend(frame(100_000, true));
        let large_end = bytes.len();
        bytes.extend(frame(300, true));
        bytes.extend(frame(5, false));
        frames.advance(&bytes[..8192]);
        let mut reads = Vec::new();
        let mut at = 8192;
        while at < bytes.len() {
            let read = frames.readable() as usize;
            reads.push(read);
            frames.advance(&bytes[at..at + read]);
            at += read;
        }
        // What is missing of the large one; two bytes of a head, its rest, its frame; two bytes that are a head, and its frame.
        assert_eq!(reads, [large_end - 8192, 2, 6, 300, 2, 5]);
        assert!(frames.take_large());
        assert_eq!(frames.readable(), u64::MAX);
    }
}
