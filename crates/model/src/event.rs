//! Event types, phases and categories.

use std::fmt;

include!(concat!(env!("OUT_DIR"), "/events.rs"));

/// What the table says of an event type.
struct Info {
    name: &'static str,
    suffix: &'static str,
    aliases: &'static [&'static str],
    attested: Attested,
}

/// How well public sources attest a display name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attested {
    /// Seen in output of the original.
    High,
    /// Seen in documentation, or follows its pattern.
    Medium,
    /// The best reading of sources that disagree.
    Low,
}

impl EventType {
    /// The type with this value; `None` above 45.
    #[inline]
    #[must_use]
    pub fn from_value(value: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(value).ok()?).copied()
    }

    /// The record's `trace_type`.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u32 {
        self as u32
    }

    /// Position in [`EventType::ALL`].
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name that is printed, and stands in JSON's `event_type`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Other names that are accepted.
    #[must_use]
    pub fn aliases(self) -> &'static [&'static str] {
        self.info().aliases
    }

    /// What follows `NRT_SYS_TRACE_EVENT_TYPE_` in the C header.
    #[must_use]
    pub fn c_suffix(self) -> &'static str {
        self.info().suffix
    }

    /// How well the display name is attested.
    #[must_use]
    pub fn attested(self) -> Attested {
        self.info().attested
    }

    /// Device or host.
    #[must_use]
    pub const fn category(self) -> Category {
        if HARDWARE_MASK >> self.value() & 1 != 0 {
            Category::Hardware
        } else {
            Category::Software
        }
    }

    /// The type with this display name or alias, spelled exactly.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|t| t.name() == name || t.aliases().contains(&name))
    }

    fn info(self) -> &'static Info {
        &INFO[self.index()]
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where an event stands in its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Phase {
    /// The span begins.
    Start = 0,
    /// The span ends.
    Stop = 1,
    /// No duration.
    Instant = 2,
}

impl Phase {
    /// All three, by value.
    pub const ALL: [Self; 3] = [Self::Start, Self::Stop, Self::Instant];

    /// The phase with this value; `None` above 2.
    #[inline]
    #[must_use]
    pub const fn from_value(value: u32) -> Option<Self> {
        match value {
            0 => Some(Self::Start),
            1 => Some(Self::Stop),
            2 => Some(Self::Instant),
            _ => None,
        }
    }

    /// The record's `phase`.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u32 {
        self as u32
    }

    /// `start`, `stop` or `instant`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Instant => "instant",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether an event comes from the device or from the host. The values are those of the C enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Category {
    /// Not an event type.
    Unknown = 0,
    /// Reported by the device.
    Hardware = 1,
    /// Emitted by host code.
    Software = 2,
}

impl Category {
    /// The category of a type's value; [`Category::Unknown`] for values that are no type, negative ones included.
    #[must_use]
    pub fn of_value(value: i64) -> Self {
        u32::try_from(value)
            .ok()
            .and_then(EventType::from_value)
            .map_or(Self::Unknown, EventType::category)
    }

    /// `unknown`, `hardware` or `software`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Hardware => "hardware",
            Self::Software => "software",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_names_and_positions_agree_for_all_46() {
        assert_eq!(EventType::ALL.len(), 46);
        for (position, kind) in EventType::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), position);
            assert_eq!(EventType::from_value(kind.value()), Some(kind));
            assert_eq!(EventType::from_name(kind.name()), Some(kind));
            for alias in kind.aliases() {
                assert_eq!(EventType::from_name(alias), Some(kind), "{alias}");
            }
        }
        assert_eq!(EventType::from_value(46), None);
        assert_eq!(EventType::from_value(u32::MAX), None);
        assert_eq!(EventType::from_name("NRT_LOAD"), None, "names are exact");
        assert_eq!(EventType::from_name(""), None);
    }

    #[test]
    fn rust_names_follow_the_c_suffix() {
        assert_eq!(
            (EventType::Generic.value(), EventType::HostccWait.value()),
            (0, 45)
        );
        assert_eq!(
            EventType::ConsumeTopspCcNotifications.c_suffix(),
            "CONSUME_TOPSP_CC_NOTIFICATIONS"
        );
        assert_eq!(EventType::DeviceExec.name(), "nc_exec_running");
        assert_eq!(
            EventType::from_name("device_exec"),
            Some(EventType::DeviceExec)
        );
    }

    #[test]
    fn exactly_the_seven_types_of_the_mask_are_hardware() {
        assert_eq!(HARDWARE_MASK, 0x70021C0);
        let hardware: Vec<u32> = EventType::ALL
            .iter()
            .filter(|t| t.category() == Category::Hardware)
            .map(|t| t.value())
            .collect();
        assert_eq!(hardware, [6, 7, 8, 13, 24, 25, 26]);
        assert_eq!(Category::of_value(24), Category::Hardware);
        assert_eq!(Category::of_value(45), Category::Software);
        for no_type in [-1, 46, i64::MAX, i64::MIN] {
            assert_eq!(Category::of_value(no_type), Category::Unknown);
        }
    }

    #[test]
    fn the_classifier_follows_the_mask_and_refuses_the_rest() {
        for value in 0..46 {
            let hardware = 0x70021C0_u64 >> value & 1 == 1;
            assert_eq!(
                Category::of_value(value) as u32,
                if hardware { 1 } else { 2 }
            );
        }
        // What a C int can hold besides: its ends, and values that a shift by their low bits would take for a type.
        let (least, most) = (i64::from(i32::MIN), i64::from(i32::MAX));
        for no_type in [
            least,
            least + 6,
            -58,
            -1,
            46,
            47,
            63,
            64 + 6,
            256 + 24,
            most - 1,
            most,
        ] {
            assert_eq!(Category::of_value(no_type), Category::Unknown, "{no_type}");
        }
    }

    #[test]
    fn weakly_attested_names_are_marked() {
        let low: Vec<u32> = EventType::ALL
            .iter()
            .filter(|t| t.attested() == Attested::Low)
            .map(|t| t.value())
            .collect();
        assert_eq!(low, [2, 4, 40, 41, 45]);
    }

    #[test]
    fn phases_have_their_three_values() {
        for phase in Phase::ALL {
            assert_eq!(Phase::from_value(phase.value()), Some(phase));
        }
        assert_eq!(Phase::from_value(3), None);
        assert_eq!(
            format!("{:>7}|{}", Phase::Stop, Phase::Instant),
            "   stop|instant"
        );
    }
}
