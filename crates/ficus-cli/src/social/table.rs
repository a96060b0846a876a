//! The files: rows of fields with `|` between them under a line of names.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// One file.
pub struct Table {
    name: &'static str,
    out: BufWriter<File>,
    rows: u64,
}

impl Table {
    /// Begins the file `name`_0_0.csv in `folder`.
    pub fn create(folder: &Path, name: &'static str, header: &str) -> io::Result<Table> {
        let mut out = BufWriter::with_capacity(1 << 18, File::create(folder.join(format!("{name}_0_0.csv")))?);
        writeln!(out, "{header}")?;
        Ok(Table { name, out, rows: 0 })
    }

    /// Writes a row; its fields hold neither `|` nor line ends.
    pub fn row(&mut self, fields: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.rows += 1;
        self.out.write_fmt(fields)?;
        self.out.write_all(b"\n")
    }

    /// Writes what is left; says name and rows.
    pub fn finish(mut self) -> io::Result<(&'static str, u64)> {
        self.out.flush()?;
        Ok((self.name, self.rows))
    }
}
