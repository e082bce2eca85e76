//! A case in a line of text.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::thread;

/// How many events a ring has taken when the case begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filling {
    Empty,
    Half,
    Full,
    Wrapping,
}

impl Filling {
    pub(crate) const ALL: [Self; 4] = [Self::Empty, Self::Half, Self::Full, Self::Wrapping];

    /// Events that make it, in a ring of `cap`.
    pub(crate) fn events(self, cap: u64) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Half => cap / 2,
            Self::Full => cap,
            Self::Wrapping => 2 * cap + cap.div_ceil(2),
        }
    }
}

/// What happens to the threads that have stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Their process is killed; of two processes the first.
    Kill,
    /// They go on after a full lap of the others, the first one first; of two processes, after both have stopped.
    Lap,
    /// As `Lap`, the second one first; of two processes the second is killed.
    Reverse,
    /// The run is stopped meanwhile and another one started; then they go on.
    Stop,
}

impl Then {
    pub(crate) const ALL: [Self; 4] = [Self::Kill, Self::Lap, Self::Reverse, Self::Stop];
}

/// A case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// 1 or 2.
    pub processes: usize,
    /// Where a thread stops, or two.
    pub labels: Vec<String>,
    pub filling: Filling,
    /// Slots of the ring.
    pub cap: u64,
    pub then: Then,
    /// Whether the daemon reads the rings while the threads are stopped.
    pub look: bool,
}

impl Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {:?} {} {:?} {}",
            self.processes,
            self.labels.join(","),
            self.filling,
            self.cap,
            self.then,
            if self.look { "look" } else { "blind" }
        )
    }
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no case");
        let words: Vec<&str> = text.split(' ').collect();
        let [processes, labels, filling, cap, then, look] = words[..] else {
            return Err(bad());
        };
        let named = |of: Option<_>| of.ok_or_else(bad);
        Ok(Self {
            processes: processes.parse().map_err(|_| bad())?,
            labels: labels.split(',').map(str::to_owned).collect(),
            filling: named(
                Filling::ALL
                    .into_iter()
                    .find(|f| format!("{f:?}") == filling),
            )?,
            cap: cap.parse().map_err(|_| bad())?,
            then: Then::ALL
                .into_iter()
                .find(|t| format!("{t:?}") == then)
                .ok_or_else(bad)?,
            look: look == "look",
        })
    }
}

/// Says, when the test fails while it lives, which case that was and how to repeat it.
#[derive(Debug)]
pub(crate) struct Told(String);

impl Told {
    pub(crate) fn case(case: &impl Display) -> Self {
        Self(format!(
            "NRT_TRACE_CASE='{case}' cargo test -p nrt-trace-tests --test crash by_name"
        ))
    }

    /// A case that has no name of its own: repeated with its whole test.
    pub(crate) fn of_test(test: &str, case: &impl Display) -> Self {
        Self(format!(
            "cargo test -p nrt-trace-tests --test crash {test}   # {case}"
        ))
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("FAILED, repeat with: {}", self.0);
        }
    }
}

#[test]
fn a_case_survives_its_name() {
    let spec = Spec {
        processes: 2,
        labels: vec!["push:half".into(), "name:bytes".into()],
        filling: Filling::Wrapping,
        cap: 3,
        then: Then::Stop,
        look: true,
    };
    assert_eq!(spec.to_string().parse(), Ok(spec));
}
