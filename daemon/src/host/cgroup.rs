//! CPU and memory of the cgroups that attached processes are in, version 1, 2, or both side by side.
//!
//! Processes of one group share its files, which are read once a tick.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::reader::{Buffer, Kept, Shape};
use super::text::{Bad, lines, words};

/// Version 1 says that there is no limit by a number near 2^63, rounded down to pages.
const NO_LIMIT: u64 = 1 << 62;

/// Where a process's CPU and memory are counted: paths below the hierarchies, as its `cgroup` file has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    cpu: Option<Group>,
    memory: Option<Group>,
}

/// A group of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    /// Of version 1: its controllers, which name its folder.
    controllers: Option<String>,
    path: String,
}

impl Place {
    /// Path of the group that is told.
    pub(crate) fn path(&self) -> &str {
        let group = self.memory.as_ref().or(self.cpu.as_ref());
        group.map_or("/", |group| &group.path)
    }
}

/// What a group used; `None` for what is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) cpu_ns: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) memory_limit_bytes: Option<u64>,
}

/// All groups that are sampled.
#[derive(Debug)]
pub(crate) struct Cgroups {
    root: PathBuf,
    open: BTreeMap<Arc<Place>, Open>,
    tick: u64,
}

#[derive(Debug)]
struct Open {
    cpu: Option<Kept>,
    /// Version 1 counts nanoseconds, version 2 microseconds among other things.
    cpu_is_v1: bool,
    memory: Option<Kept>,
    limit: Option<Kept>,
    tick: u64,
    values: Values,
}

impl Cgroups {
    /// Groups whose hierarchies are mounted at or below `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            open: BTreeMap::new(),
            tick: 1,
        }
    }

    /// Ends a tick: values are read again in the next, and groups that nobody asked for are closed.
    pub(crate) fn end_tick(&mut self) {
        let tick = self.tick;
        self.open.retain(|_, open| open.tick == tick);
        self.tick += 1;
    }

    /// The place of a process, from its `cgroup` file.
    pub(crate) fn place(&self, text: &[u8]) -> Option<Arc<Place>> {
        let place = Arc::new(parse(text)?);
        let known = self.open.get_key_value(&place);
        Some(known.map_or(place, |(known, _)| known.clone()))
    }

    /// What a place's groups used.
    pub(crate) fn read(
        &mut self,
        place: &Arc<Place>,
        buffer: &mut Buffer,
        bad: &mut Bad,
    ) -> Values {
        let (root, tick) = (&self.root, self.tick);
        let open = self
            .open
            .entry(place.clone())
            .or_insert_with(|| Open::new(root, place));
        if open.tick != tick {
            open.tick = tick;
            open.values = open.read(buffer, bad);
        }
        open.values
    }
}

impl Open {
    fn new(root: &Path, place: &Place) -> Self {
        let file = |group: &Option<Group>, v1: &str, v2: &str| {
            let group = group.as_ref()?;
            let name = if group.controllers.is_some() { v1 } else { v2 };
            Some(Kept::new(folder(root, group).join(name), Shape::Whole))
        };
        Self {
            cpu: file(&place.cpu, "cpuacct.usage", "cpu.stat"),
            cpu_is_v1: place
                .cpu
                .as_ref()
                .is_some_and(|group| group.controllers.is_some()),
            memory: file(&place.memory, "memory.usage_in_bytes", "memory.current"),
            limit: file(&place.memory, "memory.limit_in_bytes", "memory.max"),
            tick: 0,
            values: Values::default(),
        }
    }

    fn read(&mut self, buffer: &mut Buffer, bad: &mut Bad) -> Values {
        let mut number = |file: &mut Option<Kept>| {
            let text = file.as_mut()?.read(buffer)?.trim_ascii();
            if text == b"max" {
                None
            } else {
                bad.number(text)
            }
        };
        let (memory_bytes, limit) = (number(&mut self.memory), number(&mut self.limit));
        let cpu_ns = if self.cpu_is_v1 {
            number(&mut self.cpu)
        } else {
            self.cpu
                .as_mut()
                .and_then(|file| usage_of(file.read(buffer)?, bad))
        };
        Values {
            cpu_ns,
            memory_bytes,
            memory_limit_bytes: limit.filter(|limit| *limit < NO_LIMIT),
        }
    }
}

/// `usage_usec` of a `cpu.stat`.
fn usage_of(text: &[u8], bad: &mut Bad) -> Option<u64> {
    lines(text).find_map(|line| {
        let mut words = words(line);
        if words.next()? != b"usage_usec" {
            return None;
        }
        bad.number(words.next()?)?.checked_mul(1000)
    })
}

fn folder(root: &Path, group: &Group) -> PathBuf {
    let below = |hierarchy: &str| {
        root.join(hierarchy)
            .join(group.path.trim_start_matches('/'))
    };
    match &group.controllers {
        // Mounted under all its controllers' names, or, as some do, under each by itself.
        Some(controllers) => {
            let all = below(controllers);
            let first = || controllers.split(',').map(below).find(|path| path.exists());
            if all.exists() {
                all
            } else {
                first().unwrap_or(all)
            }
        }
        None => {
            let beside = below("unified");
            if beside.exists() { beside } else { below(".") }
        }
    }
}

/// Reads `/proc/PID/cgroup`: one line for each hierarchy, `number:controllers:path`.
fn parse(text: &[u8]) -> Option<Place> {
    let (mut v2, mut cpu, mut memory) = (None, None, None);
    for line in lines(text) {
        let mut parts = str::from_utf8(line).ok()?.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        // Outside this process's cgroup namespace: nothing of that is mounted here.
        if path.split('/').any(|part| part == "..") || !path.starts_with('/') {
            continue;
        }
        let group = |controllers| Group {
            controllers,
            path: path.to_owned(),
        };
        let has = |name| controllers.split(',').any(|controller| controller == name);
        if number == "0" && controllers.is_empty() {
            v2 = Some(group(None));
        }
        if has("cpuacct") {
            cpu = Some(group(Some(controllers.to_owned())));
        }
        if has("memory") {
            memory = Some(group(Some(controllers.to_owned())));
        }
    }
    let place = Place {
        cpu: cpu.or_else(|| v2.clone()),
        memory: memory.or(v2),
    };
    (place.cpu.is_some() || place.memory.is_some()).then_some(place)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn values(root: &Path, text: &str) -> (Values, u64) {
        let (mut cgroups, mut bad) = (Cgroups::new(root), Bad::default());
        let place = cgroups.place(text.as_bytes()).unwrap();
        let values = cgroups.read(&place, &mut Buffer::new(), &mut bad);
        (values, bad.0)
    }

    #[test]
    fn version_2_alone() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            "a/b:c/cpu.stat",
            "usage_usec 1500\nuser_usec 1000\n",
        );
        write(folder.path(), "a/b:c/memory.current", "4194304\n");
        write(folder.path(), "a/b:c/memory.max", "max\n");
        let (values, bad) = values(folder.path(), "0::/a/b:c\n");
        assert_eq!(
            (values.cpu_ns, values.memory_bytes),
            (Some(1_500_000), Some(4_194_304))
        );
        assert_eq!((values.memory_limit_bytes, bad), (None, 0));
    }

    #[test]
    fn version_1_beside_an_empty_version_2() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "cpu,cpuacct/x/cpuacct.usage", "77\n");
        write(folder.path(), "memory/y/memory.usage_in_bytes", "5\n");
        write(
            folder.path(),
            "memory/y/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        let text = "12:pids:/z\n4:memory:/y\n3:cpu,cpuacct:/x\n1:name=systemd:/s\n0::/s\n";
        let (read, bad) = values(folder.path(), text);
        assert_eq!(
            (read.cpu_ns, read.memory_bytes, read.memory_limit_bytes, bad),
            (Some(77), Some(5), None, 0)
        );
        write(folder.path(), "memory/y/memory.limit_in_bytes", "100\n");
        write(folder.path(), "cpuacct/x/cpuacct.usage", "78\n");
        fs::remove_dir_all(folder.path().join("cpu,cpuacct")).unwrap();
        let (read, _) = values(folder.path(), text);
        assert_eq!(
            (read.cpu_ns, read.memory_limit_bytes),
            (Some(78), Some(100))
        );
    }

    #[test]
    fn what_is_not_mounted_or_makes_no_sense_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(values(folder.path(), "0::/gone\n"), (Values::default(), 0));
        write(folder.path(), "cpu.stat", "usage_usec -5\n");
        write(folder.path(), "memory.current", "many\n");
        assert_eq!(values(folder.path(), "0::/\n"), (Values::default(), 2));
        for text in ["", "0::/../../other\n", "nonsense\n", "5:pids:/x\n"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_group_is_read_once_a_tick_and_closed_when_nobody_asks() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "memory.current", "1\n");
        let (mut cgroups, mut bad) = (Cgroups::new(folder.path()), Bad::default());
        let mut buffer = Buffer::new();
        let place = cgroups.place(b"0::/\n").unwrap();
        assert_eq!(
            cgroups.read(&place, &mut buffer, &mut bad).memory_bytes,
            Some(1)
        );
        write(folder.path(), "memory.current", "2\n");
        assert_eq!(
            cgroups.read(&place, &mut buffer, &mut bad).memory_bytes,
            Some(1)
        );
        cgroups.end_tick();
        assert_eq!(
            cgroups.read(&place, &mut buffer, &mut bad).memory_bytes,
            Some(2)
        );
        cgroups.end_tick();
        cgroups.end_tick();
        assert!(cgroups.open.is_empty());
    }
}
