//! Input files: opening, decompression by name, counting of bytes for the progress bar.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Read buffer; also what decompressors fill at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// How a file is packed, told by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstandard,
}

fn packing(name: &str) -> (&str, Packing) {
    if let Some(rest) = name.strip_suffix(".gz") {
        return (rest, Packing::Gzip);
    }
    if let Some(rest) = name.strip_suffix(".zst") {
        return (rest, Packing::Zstandard);
    }
    (name, Packing::Plain)
}

/// The name without `.gz` or `.zst`.
pub fn unpacked_name(name: &str) -> &str {
    packing(name).0
}

/// Opens a file and unpacks it on the way; bytes read from disk are added to `bytes_read`.
pub fn open(path: &Path, bytes_read: Arc<AtomicU64>) -> io::Result<Box<dyn BufRead + Send>> {
    let file = CountingReader { inner: File::open(path)?, bytes_read };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(match packing(&name).1 {
        Packing::Plain => Box::new(BufReader::with_capacity(BUFFER_BYTES, file)),
        Packing::Gzip => {
            let decoder = flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, file));
            Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
        }
        Packing::Zstandard => {
            let decoder = zstd::stream::read::Decoder::new(file)?;
            Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
        }
    })
}

struct CountingReader {
    inner: File,
    bytes_read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Whether `name` fits `pattern`, in which `*` stands for any characters.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let cases = [
            ("a.csv", "a.csv", true),
            ("a.csv", "a.csv.gz", false),
            ("a.csv*", "a.csv.gz", true),
            ("*.csv*", "x.csv.zst", true),
            ("post*_0_0.csv*", "post_hasTag_tag_0_0.csv", true),
            ("post_0_0.csv*", "post_hasTag_tag_0_0.csv", false),
            ("*", "", true),
            ("a*a", "a", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }
}
