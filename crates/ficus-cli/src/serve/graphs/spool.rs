//! Files that a client sent, in a folder that goes away with their load.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use ficus_server::{Failure as Refusal, catalogue};

use super::refused;

/// Bytes of the disk that are left to others.
const ROOM_LEFT_BYTES: u64 = 256 << 20;

/// Between two looks how much room there is.
const LOOK_BYTES: u64 = 16 << 20;

/// A folder of files.
pub struct Spool {
    folder: PathBuf,
    files: Vec<PathBuf>,
}

impl Spool {
    /// An empty folder below `root`.
    pub fn new(root: &Path) -> io::Result<Spool> {
        let folder = root.join(uuid::Uuid::new_v4().to_string());
        std::fs::create_dir_all(&folder)?;
        Ok(Spool { folder, files: Vec::new() })
    }

    /// Takes the files of a tar archive, of at most `bytes_max`; 0 is no bound.
    pub fn take(root: &Path, upload: impl Read, bytes_max: u64) -> Result<Spool, Refusal> {
        let mut spool = Spool::new(root).map_err(|error| {
            Refusal::new(&catalogue::STORE, format!("files cannot be kept on this server: {error}"))
        })?;
        let mut bytes = 0;
        let mut archive = tar::Archive::new(upload);
        let entries = archive.entries().map_err(|error| unreadable(&error))?;
        for entry in entries {
            let mut entry = entry.map_err(|error| unreadable(&error))?;
            let name = entry.path().map_err(|error| unreadable(&error))?.into_owned();
            match entry.header().entry_type() {
                tar::EntryType::Regular | tar::EntryType::Continuous => {}
                tar::EntryType::Directory => continue,
                other => {
                    let message = format!("{}: the archive may hold files and folders, not {other:?}", name.display());
                    return Err(refused(message));
                }
            }
            let path = spool.path_of(&name)?;
            spool.keep(&mut entry, &path, &mut bytes, bytes_max)?;
            spool.files.push(path);
        }
        Ok(spool)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its files, in the order in which they came.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The file of this name in the archive.
    pub fn find(&self, name: &Path) -> Option<PathBuf> {
        let path = self.path_of(name).ok()?;
        self.files.contains(&path).then_some(path)
    }

    /// What names of files begin with, which is nobody's business.
    pub fn prefix(&self) -> String {
        format!("{}/", self.folder.display())
    }

    /// Where a file of the archive is kept: within the folder, whatever it is called.
    fn path_of(&self, name: &Path) -> Result<PathBuf, Refusal> {
        let mut path = self.folder.clone();
        for part in name.components() {
            match part {
                Component::Normal(part) => path.push(part),
                Component::CurDir => {}
                _ => return Err(refused(format!("{}: names in the archive must not lead out of it", name.display()))),
            }
        }
        Ok(path)
    }

    fn keep(&self, entry: &mut impl Read, path: &Path, bytes: &mut u64, bytes_max: u64) -> Result<(), Refusal> {
        let complain = |error: io::Error| match error.kind() {
            io::ErrorKind::StorageFull => Refusal::new(&catalogue::UPLOAD_TOO_LARGE, "the server's disk is full"),
            _ => refused(format!("{}: it cannot be kept: {error}", path.display()).replace(&self.prefix(), "")),
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(complain)?;
        }
        let mut file = File::create(path).map_err(complain)?;
        let mut buffer = vec![0; 256 << 10];
        loop {
            let count = match entry.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(&error)),
            };
            let before = *bytes;
            *bytes += count as u64;
            if bytes_max > 0 && *bytes > bytes_max {
                let message = format!("the files have more than the {bytes_max} bytes that this server takes");
                return Err(Refusal::new(&catalogue::UPLOAD_TOO_LARGE, message));
            }
            if before / LOOK_BYTES != *bytes / LOOK_BYTES
                && room(&self.folder).is_some_and(|room| room < ROOM_LEFT_BYTES)
            {
                let message =
                    format!("the server's disk has no more room than the {ROOM_LEFT_BYTES} bytes it leaves free");
                return Err(Refusal::new(&catalogue::UPLOAD_TOO_LARGE, message));
            }
            file.write_all(&buffer[..count]).map_err(complain)?;
        }
    }
}

/// Bytes that may still be written on the disk of a folder, where the system tells.
fn room(folder: &Path) -> Option<u64> {
    let of_disk = rustix::fs::statvfs(folder).ok()?;
    Some(of_disk.f_bavail.saturating_mul(of_disk.f_frsize))
}

/// Why an archive cannot be read: what the server said of the body, if that was the cause.
fn unreadable(error: &io::Error) -> Refusal {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(failure) = error.downcast_ref::<Refusal>() {
            return failure.clone();
        }
        cause = match error.downcast_ref::<io::Error>() {
            Some(error) => error.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static)),
            None => error.source(),
        };
    }
    refused(format!("the body is no tar archive that can be read: {error}"))
}

impl Drop for Spool {
    fn drop(&mut self) {
        // What stays behind takes up room until the next start.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, text) in files {
            let mut header = tar::Header::new_old();
            // As a name that leads elsewhere is written by nobody who means well.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            archive.append(&header, text.as_bytes()).expect("it is written to memory");
        }
        archive.into_inner().expect("it is written to memory")
    }

    fn root() -> PathBuf {
        std::env::temp_dir().join(format!("ficus-spool-test-{}", std::process::id()))
    }

    #[test]
    fn files_are_kept_in_their_order_and_go_away() {
        let body = archive(&[("b/x.csv", "1"), ("./a.csv", "22")]);
        let spool = Spool::take(&root(), &*body, 3).expect("it fits");
        let names: Vec<String> =
            spool.files().iter().map(|path| path.display().to_string().replace(&spool.prefix(), "")).collect();
        assert_eq!(names, ["b/x.csv", "a.csv"]);
        assert_eq!(std::fs::read_to_string(spool.find(Path::new("a.csv")).expect("it is there")).unwrap(), "22");
        assert_eq!(spool.find(Path::new("x.csv")), None);
        let folder = spool.folder().to_owned();
        drop(spool);
        assert!(!folder.exists());
    }

    #[test]
    fn what_does_not_belong_there_is_refused() {
        let too_long = archive(&[("a", "1"), ("b", "22")]);
        let refusal = |body: &[u8], max| Spool::take(&root(), body, max).map(|_| ()).expect_err("it is refused");
        assert_eq!(refusal(&too_long, 2).code, catalogue::UPLOAD_TOO_LARGE.code);
        for name in ["../a", "/etc/a", "a/../../b"] {
            let failure = refusal(&archive(&[(name, "1")]), 0);
            assert!(failure.message.contains("lead out"), "{failure}");
        }
        let failure = refusal(&too_long[..600], 0);
        assert!(failure.message.contains("tar archive"), "{failure}");
        assert!(refusal(&[7; 700], 0).message.contains("tar archive"));
    }
}
