//! What the machine has, as far as the system tells.

use std::path::Path;

/// Memory that this process may use: that of the machine, or less where a control group of it (a container) is given less. `None` where the
/// system tells nothing.
pub fn machine_memory_bytes() -> Option<usize> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = total_memory(&read(Path::new("/proc/meminfo"))?)?;
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    Some(group_limits(&groups, read).min().map_or(machine, |limit| limit.min(machine)))
}

/// Bytes under `MemTotal` of a text of sizes, as the system writes it.
fn total_memory(sizes: &str) -> Option<usize> {
    let line = sizes.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: usize = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The limits of all groups that a process is in, and of the groups around them: a group has no more than what is around it.
///
/// A line of `groups` is `number:controllers:path`; a system of one hierarchy has one line, without controllers. Within a container the path may be one
/// that is only seen from outside, where the group's own folder is the root of what is mounted.
fn group_limits<'a>(
    groups: &'a str,
    read: impl Fn(&Path) -> Option<String> + Copy + 'a,
) -> impl Iterator<Item = usize> + 'a {
    let of_line = move |line: &'a str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let folders = Path::new(path).ancestors().map(move |folder| {
            let below = folder.strip_prefix("/").unwrap_or(folder);
            Path::new(root).join(below).join(file)
        });
        // `max` is no number: no limit.
        Some(folders.filter_map(move |path| read(&path)?.trim().parse().ok()))
    };
    groups.lines().filter_map(of_line).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_around_a_process_counts() {
        let file = |path: &Path| {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/a/b/memory.max" => "max\n",
                "/sys/fs/cgroup/a/memory.max" => "4096\n",
                "/sys/fs/cgroup/memory.max" => "8192\n",
                "/sys/fs/cgroup/memory/old/memory.limit_in_bytes" => "9223372036854771712\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "1024\n",
                _ => return None,
            };
            Some(text.to_string())
        };
        let limits = |groups: &'static str| group_limits(groups, file).collect::<Vec<_>>();
        assert_eq!(limits("0::/a/b\n"), [4096, 8192]);
        assert_eq!(limits("0::/seen/from/outside\n"), [8192]);
        assert_eq!(limits("9:cpu,memory:/old\n3:cpuset:/\n"), [9223372036854771712, 1024]);
        assert!(limits("3:cpuset:/a\nnonsense\n").is_empty());
        assert_eq!(total_memory("MemFree: 1 kB\nMemTotal:       2048 kB\n"), Some(2 << 20));
        assert_eq!(total_memory("MemTotal: much\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_tells_its_memory() {
        assert!(machine_memory_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
