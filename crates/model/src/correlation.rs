//! What one event says about others of the same execution.
//!
//! Events of the device know their execution's number but neither its model nor the host's time. Two kinds of event
//! tell: those of the host's execute path carry execution and model together, and a timestamp sync point pairs the
//! device's clock with the host's. Whoever reads a ring keeps the last [`REMEMBERED`] executions of it; daemon and
//! exporters share these rules so that their answers agree.

use crate::event::HARDWARE_MASK;
use crate::payload::{
    CcExecBarrierStart, CcExecBarrierStop, CcExecStart, CcExecStop, DeviceExecStart,
    DeviceExecStop, ExecCore, ExecPost, ExecPre, ExecWait, HwNotify, NcModelSwitchStart,
    NcModelSwitchStop, NumErrInstant, TimestampSync,
};
use crate::{EventType, Phase};

/// Executions that are remembered for each ring, newest first to stay.
pub const REMEMBERED: usize = 65_536;

/// The same moment on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync {
    /// Device clock, ns.
    pub nc_timestamp_ns: u64,
    /// Host clock, ns.
    pub cpu_timestamp_ns: u64,
}

impl Sync {
    /// The host's time at device time `nc_timestamp_ns`; `None` if no 64-bit time is meant (the words are a
    /// producer's, who may write anything).
    #[inline]
    #[must_use]
    pub const fn host_time(&self, nc_timestamp_ns: u64) -> Option<u64> {
        if nc_timestamp_ns >= self.nc_timestamp_ns {
            self.cpu_timestamp_ns
                .checked_add(nc_timestamp_ns - self.nc_timestamp_ns)
        } else {
            self.cpu_timestamp_ns
                .checked_sub(self.nc_timestamp_ns - nc_timestamp_ns)
        }
    }
}

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The model that the execution runs.
    Model(u64),
    /// A sync point of the execution.
    Sync(Sync),
}

/// Execution and fact that an event tells, if it tells one. The execution's number is cut to the 32 bits that
/// payloads of hardware events have. A later fact about an execution replaces the earlier.
#[inline]
#[must_use]
pub fn told_by(trace_type: u32, phase: u32, data: &[u64; 5]) -> Option<(u32, Fact)> {
    // Types 17..=20 and 25, in one comparison: nearly every event tells nothing.
    const TELLING: u64 = 0b1111 << 17 | 1 << 25;
    if trace_type >= 64 || TELLING >> trace_type & 1 == 0 {
        return None;
    }
    Phase::from_value(phase)?;
    let model = |exec_id, model_id| Some((exec_id, Fact::Model(model_id)));
    let (exec_id, fact) = match EventType::from_value(trace_type)? {
        EventType::ExecPre => {
            let p = ExecPre::from_data(data);
            model(p.exec_id, p.model_id)
        }
        EventType::ExecCore => {
            let p = ExecCore::from_data(data);
            model(p.exec_id, p.model_id)
        }
        EventType::ExecWait => {
            let p = ExecWait::from_data(data);
            model(p.exec_id, p.model_id)
        }
        EventType::ExecPost => {
            let p = ExecPost::from_data(data);
            model(p.exec_id, p.model_id)
        }
        EventType::TimestampSync => {
            let TimestampSync {
                exec_id,
                nc_timestamp_ns,
                cpu_timestamp_ns,
            } = TimestampSync::from_data(data);
            Some((
                exec_id,
                Fact::Sync(Sync {
                    nc_timestamp_ns,
                    cpu_timestamp_ns,
                }),
            ))
        }
        _ => None,
    }?;
    Some((exec_key(exec_id), fact))
}

/// When and in which execution something happened on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnDevice {
    /// Device clock, ns.
    pub nc_timestamp_ns: u64,
    /// Execution (its low 32 bits). The end of a span does not say: it is the one of the start with the same event
    /// type, NeuronCore and `tracking_id`.
    pub exec_id: Option<u32>,
    /// Whether JSON shows the model, which this event does not know itself.
    pub wants_model: bool,
}

/// What a hardware event says of device time; `None` for host events and for phases without payload.
#[inline]
#[must_use]
pub fn on_device(trace_type: u32, phase: u32, data: &[u64; 5]) -> Option<OnDevice> {
    if trace_type >= 64 || HARDWARE_MASK >> trace_type & 1 == 0 {
        return None;
    }
    let (nc_timestamp_ns, exec_id) = match (
        EventType::from_value(trace_type)?,
        Phase::from_value(phase)?,
    ) {
        (EventType::CcExecBarrier, Phase::Start) => {
            let p = CcExecBarrierStart::from_data(data);
            (p.nc_timestamp_ns, Some(p.exec_id))
        }
        (EventType::DeviceExec, Phase::Start) => {
            let p = DeviceExecStart::from_data(data);
            (p.nc_timestamp_ns, Some(p.exec_id))
        }
        (EventType::CcExec, Phase::Start) => {
            let p = CcExecStart::from_data(data);
            (p.nc_timestamp_ns, Some(p.exec_id))
        }
        (EventType::NumErr, Phase::Instant) => {
            let p = NumErrInstant::from_data(data);
            (p.nc_timestamp_ns, Some(p.exec_id))
        }
        (EventType::HwNotify, _) => {
            let p = HwNotify::from_data(data);
            (p.nc_timestamp_ns, Some(exec_key(p.exec_id)))
        }
        (EventType::TimestampSync, _) => {
            let p = TimestampSync::from_data(data);
            (p.nc_timestamp_ns, Some(exec_key(p.exec_id)))
        }
        (EventType::NcModelSwitch, Phase::Start) => {
            let p = NcModelSwitchStart::from_data(data);
            (p.nc_timestamp_ns, Some(exec_key(p.exec_id)))
        }
        (EventType::CcExecBarrier, Phase::Stop) => {
            (CcExecBarrierStop::from_data(data).nc_timestamp_ns, None)
        }
        (EventType::DeviceExec, Phase::Stop) => {
            (DeviceExecStop::from_data(data).nc_timestamp_ns, None)
        }
        (EventType::CcExec, Phase::Stop) => (CcExecStop::from_data(data).nc_timestamp_ns, None),
        (EventType::NcModelSwitch, Phase::Stop) => {
            (NcModelSwitchStop::from_data(data).nc_timestamp_ns, None)
        }
        _ => return None,
    };
    let wants_model = exec_id.is_some() && matches!(trace_type, 7 | 13);
    Some(OnDevice {
        nc_timestamp_ns,
        exec_id,
        wants_model,
    })
}

/// An execution's number as executions are compared: its low 32 bits.
#[inline]
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    reason = "payloads of hardware events hold no more"
)]
pub const fn exec_key(exec_id: u64) -> u32 {
    exec_id as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{FieldValue, layout};

    #[test]
    fn only_the_execute_path_and_sync_points_tell() {
        let data = [(1 << 32) | 7, 8, 9, 0, 0];
        for event in EventType::ALL {
            let told = told_by(event.value(), 0, &data);
            match event.value() {
                17..=20 => assert_eq!(told, Some((7, Fact::Model(8))), "{event}"),
                25 => {
                    let sync = Sync {
                        nc_timestamp_ns: 8,
                        cpu_timestamp_ns: 9,
                    };
                    assert_eq!(told, Some((7, Fact::Sync(sync))));
                }
                _ => assert_eq!(told, None, "{event}"),
            }
        }
        assert_eq!(
            told_by(17, 3, &data),
            None,
            "an unknown phase has no payload"
        );
        assert_eq!(told_by(64 + 17, 0, &data), None);
    }

    /// The typed match above against the table: every hardware payload with a device time is covered.
    #[test]
    fn device_times_are_those_of_the_layouts() {
        let data = std::array::from_fn(|i| 0x1111_1111_2222_2222 * (i as u64 + 1));
        for event in EventType::ALL {
            for phase in Phase::ALL {
                let hardware = HARDWARE_MASK >> event.value() & 1 != 0;
                let layout = layout(event, phase).filter(|_| hardware);
                let read = |name: &str| match layout?.field(name)?.read(&data) {
                    FieldValue::Unsigned(value) => Some(value),
                    _ => None,
                };
                let expected = read("nc_timestamp_ns").map(|nc_timestamp_ns| OnDevice {
                    nc_timestamp_ns,
                    exec_id: read("exec_id").map(exec_key),
                    wants_model: layout
                        .is_some_and(|l| l.json_keys.iter().any(|k| k.field.is_none())),
                });
                assert_eq!(
                    on_device(event.value(), phase.value(), &data),
                    expected,
                    "{event} {phase}"
                );
            }
        }
        assert_eq!(on_device(7, 3, &data), None);
        assert_eq!(on_device(64 + 7, 0, &data), None);
    }

    #[test]
    fn device_time_moves_to_the_host_both_ways_and_never_wraps() {
        let sync = Sync {
            nc_timestamp_ns: 100,
            cpu_timestamp_ns: 5_000,
        };
        assert_eq!(sync.host_time(150), Some(5_050));
        assert_eq!(sync.host_time(40), Some(4_940));
        assert_eq!(
            Sync {
                cpu_timestamp_ns: 50,
                ..sync
            }
            .host_time(0),
            None
        );
        assert_eq!(
            Sync {
                cpu_timestamp_ns: u64::MAX,
                ..sync
            }
            .host_time(101),
            None
        );
    }
}
