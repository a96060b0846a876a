//! The program's own code in large pages.
//!
//! A request that comes after a rest finds nothing in the caches of its processor, nor in those that know where pages are. A small query runs through
//! 400 kB of code that lie in 700 pages of 4 KiB, and to find a page costs as much as reading from it; of pages of 2 MiB there are nine. The system
//! has large pages for memory, and for few files, so the code is copied into memory that asks for them, and this memory takes the place of the file's
//! pages. What it is worth is in `docs/benchmarks/store.md`.
//!
//! The third module with unsafe code: where code lies is nothing that the language speaks of. It costs memory of its size, once; and who profiles the
//! process finds addresses without names, so there is a setting against it. Wherever it cannot be done, everything goes on as it was.
#![allow(unsafe_code)]

/// Moves the code of this process into large pages, once; bytes that lie in them now, or why there are none.
pub fn enlarge() -> Result<usize, &'static str> {
    static DONE: std::sync::OnceLock<Result<usize, &'static str>> = std::sync::OnceLock::new();
    *DONE.get_or_init(system::enlarge)
}

// Other processors would have to be told that code has changed.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod system {
    use std::ffi::c_void;
    use std::fs::{self, File};
    use std::io;
    use std::ops::Range;
    use std::os::unix::fs::FileExt;
    use std::ptr;

    use rustix::mm::{MprotectFlags, MremapFlags, mprotect, mremap_fixed, munmap};

    use crate::allocator::{LARGE_PAGE as LARGE, large_memory};

    /// Code as the system has mapped it.
    struct Code {
        addresses: Range<usize>,
        /// Where in the file the first address is.
        offset: u64,
    }

    pub fn enlarge() -> Result<usize, &'static str> {
        match fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled") {
            Ok(enabled) if !enabled.contains("[never]") => {}
            _ => return Err("the system gives no large pages to those who ask"),
        }
        let maps = fs::read_to_string("/proc/self/maps").map_err(|_| "/proc/self/maps cannot be read")?;
        let mapped = code_among(&maps, enlarge as fn() -> Result<usize, &'static str> as usize)
            .ok_or("the code is not where /proc/self/maps says")?;
        let addresses = mapped.addresses.start.next_multiple_of(LARGE)..mapped.addresses.end / LARGE * LARGE;
        if addresses.is_empty() {
            return Err("the code is smaller than a large page");
        }
        let offset = mapped.offset + (addresses.start - mapped.addresses.start) as u64;
        let mut code = vec![0; addresses.len()];
        File::open("/proc/self/exe")
            .and_then(|file| file.read_exact_at(&mut code, offset))
            .map_err(|_| "the program's file cannot be read")?;
        // SAFETY: the range is mapped for reading and execution, as /proc/self/maps said, and nobody unmaps or changes the code of a process that runs,
        // except for a debugger, of whose changes no byte's type could suffer.
        let running = unsafe { std::slice::from_raw_parts(addresses.start as *const u8, addresses.len()) };
        if running != code {
            return Err("a debugger or a probe has changed the code");
        }
        replace(&addresses, &code).map(|()| addresses.len()).map_err(|_| "the system refuses to")
    }

    /// The mapping that an address is in, if it is one of code.
    fn code_among(maps: &str, address: usize) -> Option<Code> {
        maps.lines().find_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (start, end) = fields.next()?.split_once('-')?;
            let addresses = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
            let is_code = fields.next()?.starts_with("r-x") && addresses.contains(&address);
            let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
            is_code.then_some(Code { addresses, offset })
        })
    }

    /// Puts large pages with the same bytes where the code is.
    fn replace(addresses: &Range<usize>, code: &[u8]) -> io::Result<()> {
        let length = code.len();
        let memory = large_memory(length)?;
        let place: *mut c_void = ptr::with_exposed_provenance_mut(addresses.start);
        // SAFETY: the memory is new and as long as the code, and written to before anybody may run it. What lies at `place` holds the same bytes with
        // the same rights, and the system changes one for the other under the lock that every other thread waits for that would run into the gap.
        // So nobody can tell the difference, this thread included. Where it is refused, nobody has been told of the memory.
        unsafe {
            ptr::copy_nonoverlapping(code.as_ptr(), memory.cast(), length);
            let moved = mprotect(memory, length, MprotectFlags::READ | MprotectFlags::EXEC)
                .and_then(|()| mremap_fixed(memory, length, length, MremapFlags::MAYMOVE, place));
            if moved.is_err() {
                munmap(memory, length)?;
            }
            moved?;
        }
        Ok(())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_mapping_of_an_address_is_found() {
            let maps = "5605255000-5605255400 r--p 00000000 fe:00 5317967    /bin/ficus\n\
                        5605255400-5605257400 r-xp 00000300 fe:00 5317967    /bin/ficus\n\
                        5605257400-5605257500 rw-p 00002300 fe:00 5317967    /bin/ficus\n";
            let code = code_among(maps, 0x5605255400).expect("it is there");
            assert_eq!((code.addresses, code.offset), (0x5605255400..0x5605257400, 0x300));
            assert!(code_among(maps, 0x5605257400).is_none(), "data is no code");
            assert!(code_among("what is this", 0x5605255400).is_none());
        }

        #[test]
        fn the_code_runs_on_where_it_was() {
            let threads: Vec<_> = (0..4u64)
                .map(|seed| {
                    std::thread::spawn(move || (0..2_000_000).fold(seed, |sum, next| sum.rotate_left(3) ^ next))
                })
                .collect();
            let outcome = super::super::enlarge();
            let sums: Vec<u64> = threads.into_iter().map(|thread| thread.join().expect("it runs on")).collect();
            let again: Vec<u64> =
                (0..4u64).map(|seed| (0..2_000_000).fold(seed, |sum, next| sum.rotate_left(3) ^ next)).collect();
            assert_eq!(sums, again);
            assert!(std::panic::catch_unwind(|| panic!("unwinds as before")).is_err());
            assert_eq!(super::super::enlarge(), outcome, "a second time changes nothing");
            if let Ok(bytes) = outcome {
                assert!(bytes >= LARGE && bytes.is_multiple_of(LARGE));
                let maps = fs::read_to_string("/proc/self/maps").expect("it was there before");
                let code = code_among(&maps, enlarge as fn() -> Result<usize, &'static str> as usize);
                let line =
                    maps.lines().find(|line| line.contains("r-xp") && !line.contains('/') && !line.contains('['));
                assert!(code.is_some() && line.is_some(), "memory has taken the place of the file:\n{maps}");
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod system {
    pub fn enlarge() -> Result<usize, &'static str> {
        Err("not on this system")
    }
}
