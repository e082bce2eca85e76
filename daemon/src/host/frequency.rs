//! Clock rates of the cores: `/sys/devices/system/cpu/cpuN/cpufreq/scaling_cur_freq`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cpu::Cores;
use super::reader::{Buffer, Kept, Shape};
use super::text::Bad;

/// Cores that are read in a tick. There is a file for each, and a machine may have 512: they take turns, and a core whose turn
/// it is not has no rate in that tick.
const IN_A_TICK: usize = 16;

/// The files.
#[derive(Debug)]
pub(crate) struct Frequencies {
    root: PathBuf,
    files: BTreeMap<u16, Kept>,
    /// The core before the one whose turn is next.
    last: Option<u16>,
}

impl Frequencies {
    /// Files below `sys_root`.
    pub(crate) fn new(sys_root: &Path) -> Self {
        Self {
            root: sys_root.join("devices/system/cpu"),
            files: BTreeMap::new(),
            last: None,
        }
    }

    /// The rates of some of `cores`, MHz.
    pub(crate) fn read(
        &mut self,
        cores: &Cores,
        buffer: &mut Buffer,
        bad: &mut Bad,
    ) -> BTreeMap<u16, u16> {
        self.files.retain(|core, _| cores.contains_key(core));
        let mut rates = BTreeMap::new();
        let last = self.last;
        let after = cores
            .keys()
            .filter(|core| last.is_none_or(|last| **core > last));
        let turn = after.chain(cores.keys()).take(cores.len().min(IN_A_TICK));
        for core in turn {
            self.last = Some(*core);
            let file = self.files.entry(*core).or_insert_with(|| {
                let path = format!("cpu{core}/cpufreq/scaling_cur_freq");
                Kept::new(self.root.join(path), Shape::Whole)
            });
            let khz = file
                .read(buffer)
                .and_then(|text| bad.number(text.trim_ascii()));
            if let Some(mhz) = khz.and_then(|khz| u16::try_from(khz / 1000).ok()) {
                rates.insert(*core, mhz);
            }
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::cpu::Times;
    use super::*;

    #[test]
    fn cores_take_turns_where_there_are_many() {
        let folder = tempfile::tempdir().unwrap();
        let cores: Cores = (0..20).map(|core| (core * 2, Times::default())).collect();
        for core in cores.keys().filter(|core| **core != 4) {
            let path = folder
                .path()
                .join(format!("devices/system/cpu/cpu{core}/cpufreq"));
            fs::create_dir_all(&path).unwrap();
            fs::write(
                path.join("scaling_cur_freq"),
                format!("{}000\n", 2000 + core),
            )
            .unwrap();
        }
        let (mut buffer, mut bad) = (Buffer::new(), Bad::default());
        let mut frequencies = Frequencies::new(folder.path());
        let first = frequencies.read(&cores, &mut buffer, &mut bad);
        assert_eq!(first.len(), 15, "16 without the one that has no file");
        assert_eq!((first[&0], first[&30], first.get(&4)), (2000, 2030, None));
        let second = frequencies.read(&cores, &mut buffer, &mut bad);
        assert!(second.contains_key(&32) && second.contains_key(&38) && second.contains_key(&0));
        assert_eq!((second.len(), bad.0), (15, 0));
        let few: Cores = [(0, Times::default())].into();
        assert_eq!(frequencies.read(&few, &mut buffer, &mut bad).len(), 1);
    }
}
