//! Where the memory of a server lies, as the system tells it.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const MEBIBYTE: u64 = 1 << 10;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A part of a process's addresses, in kibibytes.
#[derive(Debug, Default)]
struct Part {
    size: u64,
    resident: u64,
    /// No file lies behind it.
    is_memory: bool,
    is_code: bool,
    /// Large pages were asked for.
    large: bool,
}

/// A server with a sample graph that has been started in this way, and the parts of its memory.
fn parts(setting: &str, environment: &[(&str, &str)]) -> Vec<Part> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ficus"));
    command.args(["serve", "--format", "json", "--listen", "127.0.0.1:0", "--demo", "air-routes", "--set", setting]);
    command.envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Server(command.spawn().expect("it starts"));
    let stdout = server.0.stdout.take().expect("stdout is piped");
    let mut banner = String::new();
    BufReader::new(stdout).read_line(&mut banner).expect("it says where it listens");
    assert!(banner.contains("address"), "{banner}");
    let text = std::fs::read_to_string(format!("/proc/{}/smaps", server.0.id())).expect("the system says it");
    let mut parts = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index).and_then(|field| field.parse().ok()).unwrap_or(0);
        match (fields[0], parts.last_mut()) {
            ("Size:", Some(Part { size, .. })) => *size = number(1),
            ("Rss:", Some(Part { resident, .. })) => *resident = number(1),
            ("VmFlags:", Some(Part { large, .. })) => *large = fields.contains(&"hg"),
            (name, _) if !name.ends_with(':') => {
                parts.push(Part { is_memory: fields.len() < 6, is_code: fields[1].contains('x'), ..Part::default() });
            }
            _ => {}
        }
    }
    parts
}

/// Memory of many pieces, which the allocator divides by itself: without such a place it would ask the system for every few pieces.
fn places(parts: &[Part]) -> impl Iterator<Item = &Part> {
    parts
        .iter()
        .filter(|part| part.is_memory && !part.is_code && part.size >= 32 * MEBIBYTE && part.resident >= MEBIBYTE)
}

#[test]
fn code_and_the_first_memory_lie_in_large_pages_if_wanted() {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if enabled.is_empty() || enabled.contains("[never]") {
        // There is nothing to see here; that it starts all the same is asked below.
        assert!(!parts("engine.large_pages=true", &[]).is_empty());
        return;
    }
    let large = parts("engine.large_pages=true", &[]);
    let place: Vec<_> = places(&large).filter(|part| part.large).collect();
    assert!(matches!(place[..], [Part { size: 65_536.., .. }]), "{place:?}");
    if cfg!(target_arch = "x86_64") {
        assert!(large.iter().any(|part| part.is_memory && part.is_code && part.large), "{large:?}");
    }

    let small = parts("engine.large_pages=false", &[]);
    assert!(places(&small).next().is_some(), "the allocator has places of many pieces: {small:?}");
    assert!(!small.iter().any(|part| part.large), "{small:?}");
    assert!(!small.iter().any(|part| part.is_memory && part.is_code && part.size > MEBIBYTE), "{small:?}");
}

#[test]
fn who_sets_the_allocator_has_it_as_it_is() {
    let own = parts("engine.large_pages=true", &[("MIMALLOC_PURGE_DELAY", "100")]);
    assert!(places(&own).next().is_some(), "{own:?}");
    assert!(!own.iter().any(|part| part.large && !part.is_code), "{own:?}");
}
