//! Records that a load rejects: lines of the answer, and a file that a load which goes on with this one begins with. So a
//! client that went away learns of all of them when it comes back.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::Lines;

/// The report of a load, in a file of the server.
pub struct RejectLines {
    file: BufWriter<File>,
    out: Option<Lines>,
    line: Vec<u8>,
}

impl RejectLines {
    /// The report at `path`, of which an interrupted load has written `bytes`.
    ///
    /// Errors: `InvalidInput` if it is shorter.
    pub fn keep(path: &Path, bytes: u64) -> io::Result<RejectLines> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() < bytes {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is shorter than {bytes} bytes")));
        }
        file.set_len(bytes)?;
        Ok(RejectLines { file: BufWriter::new(file), out: None, line: Vec::new() })
    }

    /// Tells a client what was rejected before, and from now on what is.
    pub fn told_to(mut self, out: Lines) -> io::Result<RejectLines> {
        let file = self.file.get_mut();
        file.seek(SeekFrom::Start(0))?;
        let mut earlier = BufReader::new(Read::by_ref(file));
        let mut line = Vec::new();
        while earlier.read_until(b'\n', &mut line)? > 0 {
            tell(&out, line.trim_ascii_end())?;
            line.clear();
        }
        file.seek(SeekFrom::End(0))?;
        self.out = Some(out);
        Ok(self)
    }
}

fn tell(out: &Lines, line: &[u8]) -> io::Result<()> {
    out.write(|out| {
        out.write_all(b"{\"rejected\":")?;
        out.write_all(line)?;
        out.write_all(b"}\n")
    })
}

impl Write for RejectLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all(bytes)?;
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if let (Some(line), Some(out)) = (self.line.strip_suffix(b"\n"), &self.out) {
                tell(out, line)?;
                self.line.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()?;
        match &self.out {
            Some(out) => out.write(Write::flush),
            None => Ok(()),
        }
    }
}
