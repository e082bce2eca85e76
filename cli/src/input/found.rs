//! What a filter had before it, step by step, for somebody whose filter fits nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use nrt_trace_model::EventType;

use crate::output::human;

/// Types or processes that are named.
const SHOWN: usize = 16;

/// The steps of a filter, in the order in which an event takes them.
const STEPS: [&str; 4] = ["--process", "--nc", "--events", "--after and --before"];

/// Which of those there are.
pub(crate) type Set = [bool; STEPS.len()];

/// What came as far as each step of a filter, whether it passed or not.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Processes that have events; those that nobody described have no pid.
    processes: BTreeSet<Option<i32>>,
    /// NeuronCores of the processes that passed.
    cores: BTreeSet<u32>,
    /// Types on the NeuronCores that passed.
    types: BTreeSet<u32>,
    /// First and last time of the types that passed, ns since 1970.
    times: Option<(u64, u64)>,
}

impl Found {
    pub(crate) fn process(&mut self, pid: Option<i32>) {
        self.processes.insert(pid);
    }

    pub(crate) fn core(&mut self, core: u32) {
        self.cores.insert(core);
    }

    pub(crate) fn kind(&mut self, value: u32) {
        self.types.insert(value);
    }

    pub(crate) fn time(&mut self, time: u64) {
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
    }

    /// Which step let nothing pass, and what was there. `started` is when capturing began.
    pub(crate) fn misfit(&self, set: Set, started: Option<u64>) -> String {
        // What never came to a step was held up by the one before.
        let step = [
            self.cores.is_empty(),
            self.types.is_empty(),
            self.times.is_none(),
        ];
        let step = step.iter().position(|empty| *empty).unwrap_or(step.len());
        let before: Vec<&str> = (STEPS[..step].iter().zip(set))
            .filter_map(|(name, is_set)| is_set.then_some(*name))
            .collect();
        let of = match before.as_slice() {
            [] => "of them".to_owned(),
            [one] => format!("of those that {one} leaves"),
            more => format!("of those that {} leave", more.join(" and ")),
        };
        let there = match step {
            0 => self.of_processes(),
            1 => {
                let cores: Vec<u32> = self.cores.iter().copied().collect();
                format!("they are on nc {}", human::ranges(&cores))
            }
            2 => self.of_types(),
            _ => self.of_times(started),
        };
        let fits = if step == 3 { "fit" } else { "fits" };
        format!("{} {fits} none {of}; {there}", STEPS[step])
    }

    fn of_processes(&self) -> String {
        let pids = self.processes.iter().flatten().map(ToString::to_string);
        match shown(pids) {
            Some(pids) => format!("they are of the processes {pids}"),
            None => "the trace does not tell the pids of its processes".to_owned(),
        }
    }

    fn of_types(&self) -> String {
        let name = |value: &u32| match EventType::from_value(*value) {
            Some(kind) => kind.name().to_owned(),
            None => format!("unknown ({value})"),
        };
        let types = shown(self.types.iter().map(name)).unwrap_or_default();
        format!("they are of the types {types}")
    }

    fn of_times(&self, started: Option<u64>) -> String {
        let (first, last) = self.times.unwrap_or_default();
        let since = |started: u64| {
            let span = |time: u64| {
                let ns = time.checked_sub(started)?;
                Some(format!("+{}", human::span(Duration::from_nanos(ns))))
            };
            Some((span(first)?, span(last)?))
        };
        match started.and_then(since) {
            Some((from, to)) => {
                format!("they are from {from} to {to} ({first} to {last} ns since 1970)")
            }
            None => format!("they are from {first} to {last} ns since 1970"),
        }
    }
}

/// The first few, and how many more there are; `None` for nothing.
fn shown(all: impl Iterator<Item = String>) -> Option<String> {
    let mut all: Vec<String> = all.collect();
    if all.len() > SHOWN {
        let more = all.len() - SHOWN;
        all.truncate(SHOWN);
        all.push(format!("and {more} more"));
    }
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_that_lets_nothing_pass_is_named() {
        let mut found = Found::default();
        found.process(Some(42));
        found.process(None);
        assert_eq!(
            found.misfit([true, false, false, false], None),
            "--process fits none of them; they are of the processes 42"
        );
        for core in [0, 1, 3] {
            found.core(core);
        }
        assert_eq!(
            found.misfit([true, true, false, false], None),
            "--nc fits none of those that --process leaves; they are on nc 0-1,3"
        );
        found.kind(EventType::ExecuteApi.value());
        assert_eq!(
            found.misfit([true, true, true, false], None),
            "--events fits none of those that --process and --nc leave; they are of the types nrt_execute"
        );
        found.time(2_000_000_500);
        found.time(2_000_000_000);
        assert_eq!(
            found.misfit([false, false, false, true], Some(1_000_000_000)),
            "--after and --before fit none of them; they are from +1.0 s to +1.0 s (2000000000 to 2000000500 ns since 1970)"
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let mut found = Found::default();
        for pid in 1..=18 {
            found.process(Some(pid));
        }
        let said = found.misfit([true, false, false, false], None);
        assert!(said.ends_with("15, 16, and 2 more"), "{said}");
    }
}
