//! A disk that is full: writes are refused, reads go on, and nothing acknowledged is lost.

use std::path::{Path, PathBuf};
use std::process::Command;

use ficus_conformance::client::{Client, Failure, Options, text};
use ficus_conformance::server_process::{ServerProcess, free_port};
use ficus_model::Value;
use ficus_wire::Format;

use crate::ANSWER_TIME_MAX;

/// Bytes of one vertex's property.
const BLOB_BYTES: usize = 256 << 10;
/// More than fit the small disk, fewer than fit the large one.
const WRITES_MAX: usize = 400;

/// A file system in memory, of limited size; gone when dropped.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// `None` when this user may not mount.
    fn mount(path: &Path) -> Option<SmallDisk> {
        std::fs::create_dir_all(path).expect("a folder to mount on");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=48m", "tmpfs"]).arg(path).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| SmallDisk { path: path.to_owned() })
    }

    fn enlarge(&self) {
        let status = Command::new("mount").args(["-o", "remount,size=512m"]).arg(&self.path).status();
        assert!(status.is_ok_and(|status| status.success()), "the file system does not grow");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A failure leaves an empty mount behind, and nothing to be done about it here.
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}

fn count(client: &mut Client) -> usize {
    match client.submit("g.V().hasLabel('blob').count()", &Options::alias("g")).as_deref() {
        Ok([Value::Long(count)]) => usize::try_from(*count).expect("a count is not negative"),
        other => panic!("reads must go on: {other:?}"),
    }
}

#[test]
#[allow(clippy::print_stderr)] // whoever runs the tests must learn that this one could not run
fn a_full_disk_refuses_writes_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(disk) = SmallDisk::mount(&folder.path().join("disk")) else {
        eprintln!("not run: a full disk needs the right to mount a tmpfs (root)");
        return;
    };
    let data = disk.path.join("data");
    let connect = |server: &ServerProcess| {
        Client::connect(&server.url(), Format::GraphBinary1, ANSWER_TIME_MAX).expect("a server accepts connections")
    };
    let mut server =
        ServerProcess::start(&data, free_port().expect("a free port"), &[]).expect("an empty disk will do");
    let mut client = connect(&server);
    let bindings = [(text("blob"), Value::String("x".repeat(BLOB_BYTES).into()))].into_iter().collect();
    let options = Options { bindings, ..Options::alias("g") };
    let mut acknowledged = 0;
    let refusal = loop {
        assert!(acknowledged < WRITES_MAX, "the disk never fills");
        // Every value is different, so that none can be shared with another.
        let write = format!("g.addV('blob').property('n',{acknowledged}).property('bytes',blob)");
        match client.submit(&write, &options) {
            Ok(_) => acknowledged += 1,
            Err(refusal) => break refusal,
        }
    };
    let Failure::Refused { status, message, .. } = &refusal else { panic!("expected a status, found {refusal}") };
    assert!((500..600).contains(status), "status {status}: {message}");
    assert!(acknowledged > 0, "nothing fits the disk: {message}");
    assert!(server.is_alive(), "a full disk ended the server:\n{}", server.log_tail());
    assert_eq!(count(&mut client), acknowledged, "reads see what was acknowledged, and nothing else");
    let again = client.submit("g.addV('blob')", &options);
    assert!(again.is_err() || count(&mut client) == acknowledged + 1, "a write is refused or done");
    let done = acknowledged + usize::from(again.is_ok());
    server.kill();

    disk.enlarge();
    let server = ServerProcess::start(&data, free_port().expect("a free port"), &[]);
    let server = server.unwrap_or_else(|error| panic!("the server must start again: {error}"));
    let mut client = connect(&server);
    let found = count(&mut client);
    assert!(found >= done, "{done} were acknowledged, {found} are there");
    client.submit("g.addV('blob')", &Options::alias("g")).expect("there is room again");
    assert_eq!(count(&mut client), found + 1);
}
