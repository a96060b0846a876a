//! Log files that are missing, of half a copy or in the wrong place: a start refuses them, again and again, and leaves every byte as it was, so that
//! whoever finds the missing file loses nothing. What a crash leaves while a file is being made is no such thing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ficus_model::Value;
use ficus_storage::simulated_disk::SimulatedDisk;
use ficus_storage::{Disk, Environment, ErrorKind, Finding, Graph, Store, StoreError, StoreOptions};

/// What is in a directory.
type Files = BTreeMap<String, Vec<u8>>;

fn options() -> StoreOptions {
    let mut options = StoreOptions::default();
    options.tablet_bits = 1;
    options.log_segment_bytes = 500;
    options
}

fn open(disk: &SimulatedDisk) -> Result<Arc<Store>, StoreError> {
    Store::open(options(), disk.environment())
}

fn write(graph: &Arc<Graph>, number: i64) {
    let mut writing = graph.begin();
    writing.add_vertex("v", Some(Value::Long(number))).unwrap();
    writing.commit().unwrap();
}

fn files_of(disk: &SimulatedDisk) -> Files {
    let names = disk.list().unwrap().into_iter();
    names.map(|name| (name.clone(), disk.content(&name).unwrap())).collect()
}

fn disk_of(files: &Files) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    files.iter().for_each(|(name, content)| disk.put(name, content.clone()));
    disk
}

fn directory_of(files: &Files) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, content)| std::fs::write(directory.path().join(name), content).unwrap());
    directory
}

/// Without the file that says who has the directory open.
fn files_in(directory: &Path) -> Files {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    named.filter(|(name, _)| name != "LOCK").map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
}

/// The files of a store with 20 vertices in several log files, as after a power cut.
fn filled() -> Files {
    let disk = SimulatedDisk::new();
    let store = open(&disk).unwrap();
    let graph = store.create_graph("g").unwrap();
    (0..20).for_each(|number| write(&graph, number));
    let mut files = files_of(&disk.crash(1));
    files.retain(|name, _| is_log(name));
    assert!(files.len() > 3, "{:?}", files.keys());
    files
}

/// As [`filled`], with a checkpoint after ten of them.
fn filled_behind_a_checkpoint() -> Files {
    let disk = SimulatedDisk::new();
    let store = open(&disk).unwrap();
    let graph = store.create_graph("g").unwrap();
    (0..10).for_each(|number| write(&graph, number));
    store.checkpoint().unwrap();
    (10..20).for_each(|number| write(&graph, number));
    files_of(&disk.crash(1))
}

fn is_log(name: &str) -> bool {
    name.starts_with("log-") && name.ends_with(".ficus")
}

fn log_name(start: u64) -> String {
    format!("log-{start:016x}.ficus")
}

/// The starts of the log files, ascending.
fn log_starts(files: &Files) -> Vec<u64> {
    let names = files.keys().filter(|name| is_log(name));
    names.map(|name| u64::from_str_radix(&name[4..20], 16).unwrap()).collect()
}

/// Cuts what was made ahead off the last file, as closing does; returns where that file starts and ends.
fn cut_unused(files: &mut Files) -> (u64, u64) {
    let start = *log_starts(files).last().unwrap();
    let content = files.get_mut(&log_name(start)).unwrap();
    let mut end = 32;
    // Every record tells its length, and its position.
    while end + 24 <= content.len() && content[end + 8..end + 16] == (start + end as u64).to_le_bytes() {
        end += 24 + u32::from_le_bytes(content[end..end + 4].try_into().unwrap()) as usize;
    }
    content.truncate(end);
    (start, start + end as u64)
}

/// What a crash or half a copy leaves of a file whose making, or copying, had just begun.
fn beginnings() -> Vec<Vec<u8>> {
    let header = filled().into_values().next().unwrap()[..32].to_vec();
    let mut damaged = header.clone();
    damaged[20] ^= 1;
    vec![Vec::new(), header[..10].to_vec(), header[..31].to_vec(), vec![0; 32], vec![0; 500], damaged]
}

/// Two starts refuse the files and change none of them, and a check says so.
fn refuses(files: &Files, context: &str) {
    let disk = disk_of(files);
    for attempt in 0..2 {
        let error = open(&disk).err().unwrap_or_else(|| panic!("{context}: attempt {attempt} is accepted"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{context}: {error}");
        assert!(files_of(&disk) == *files, "{context}: attempt {attempt} changed files: {:?}", disk.list());
    }
    let directory = directory_of(files);
    let report = Store::check(directory.path()).unwrap();
    assert_eq!(report.worst(), Finding::Bad, "{context}: {report:?}");
    for attempt in 0..2 {
        let opened = Store::open(options(), Environment::on_directory(directory.path()).unwrap());
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::Corrupt, "{context}");
        assert!(files_in(directory.path()) == *files, "{context}: attempt {attempt} changed files in the directory");
    }
}

#[test]
fn a_gap_before_a_newest_file_that_is_not_whole_is_refused_and_nothing_changes() {
    for (number, beginning) in beginnings().into_iter().enumerate() {
        let mut files = filled();
        let starts = log_starts(&files);
        let [.., missing, newest] = starts[..] else { panic!("{starts:?}") };
        files.remove(&log_name(missing));
        files.insert(log_name(newest), beginning);
        refuses(&files, &format!("beginning {number}"));
    }
}

#[test]
fn a_newest_file_that_is_not_whole_and_begins_elsewhere_is_refused_and_nothing_changes() {
    let mut whole = filled();
    let (last, end) = cut_unused(&mut whole);
    for (number, beginning) in beginnings().into_iter().enumerate() {
        // Behind a gap; and within the file before it.
        for start in [end + 1, end + 64, end + (1 << 20), end - 1, last + 40, last + 1] {
            let mut files = whole.clone();
            files.insert(log_name(start), beginning.clone());
            refuses(&files, &format!("beginning {number} at {start}, the file before it from {last} to {end}"));
        }
    }
}

#[test]
fn what_is_left_over_stays_where_a_start_is_refused() {
    let mut files = filled();
    let starts = log_starts(&files);
    files.remove(&log_name(starts[1]));
    files.insert("log-spare.unfinished".to_string(), vec![0; 500]);
    files.insert("checkpoint-0000000000000100.ficus.unfinished".to_string(), vec![7; 100]);
    refuses(&files, "a file is missing in the middle");
}

#[test]
fn a_log_that_does_not_reach_its_checkpoint_is_refused_and_nothing_changes() {
    let mut whole = filled_behind_a_checkpoint();
    let (_, end) = cut_unused(&mut whole);
    assert!(open(&disk_of(&whole)).is_ok());
    let mut files = whole.clone();
    files.retain(|name, _| !is_log(name));
    refuses(&files, "no log");
    let mut files = whole.clone();
    files.retain(|name, _| is_log(name));
    refuses(&files, "no checkpoint");
    // Only the newest file is left, and that is empty.
    for beginning in beginnings() {
        let mut files = whole.clone();
        files.retain(|name, _| !is_log(name));
        files.insert(log_name(end), beginning.clone());
        refuses(&files, "only an empty file");
        files.retain(|name, _| is_log(name));
        refuses(&files, "only an empty file, and no checkpoint");
    }
}

#[test]
fn a_record_that_cannot_be_applied_refuses_the_start_and_nothing_changes() {
    let mut files = filled();
    files.insert("checkpoint-0000000000000100.ficus.unfinished".to_string(), vec![7; 100]);
    let starts = log_starts(&files);
    let content = files.get_mut(&log_name(starts[1])).unwrap();
    // The kind of the first record, with a checksum that is right.
    let length = u32::from_le_bytes(content[32..36].try_into().unwrap()) as usize;
    content[32 + 24 + 16] = 0xee;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&content[32..36]), &content[40..56 + length]);
    content[36..40].copy_from_slice(&crc.to_le_bytes());
    refuses(&files, "a record of an unknown format");
}

/// A crash while the next file is made: it begins where the one before it ends.
#[test]
fn a_newest_file_that_was_torn_while_it_was_made_is_made_again() {
    let mut whole = filled();
    let (_, end) = cut_unused(&mut whole);
    for (number, beginning) in beginnings().into_iter().enumerate() {
        let mut files = whole.clone();
        files.insert(log_name(end), beginning);
        let directory = directory_of(&files);
        let report = Store::check(directory.path()).unwrap();
        assert_eq!(report.worst(), Finding::Harmless, "beginning {number}: {report:?}");
        let disk = disk_of(&files);
        for start in 0..2 {
            let store = open(&disk).unwrap_or_else(|error| panic!("beginning {number}: {error}"));
            let graph = store.graph("g").unwrap();
            assert_eq!(graph.vertex_count(), 20 + start, "beginning {number}");
            write(&graph, 100 + start as i64);
        }
    }
    // The very first file.
    for beginning in beginnings() {
        let files = Files::from([(log_name(0), beginning)]);
        let store = open(&disk_of(&files)).unwrap();
        assert!(store.graph_names().is_empty());
    }
}
