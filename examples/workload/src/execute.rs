//! One execution of the training step on the "device", with the host's events around it and the device's after it.
//!
//! As on the real thing the device notes its own times on its own clock, and the host emits the hardware events when
//! it reads those notes, after the fact: their record time says little, and the sync point of the execution is what
//! brings `nc_timestamp_ns` to the host's clock.

use std::io;

use nrt_trace_client::payload::{
    CcExecBarrierStart, CcExecBarrierStop, CcExecStart, CcExecStop, CcPrepare, CcSchedule,
    ConsumeErrorNotifications, ConsumePoolStdio, ConsumeTopspCcNotifications,
    ConsumeTpbStatusNotifications, DeviceExecStart, DeviceExecStop, DmemBufBatchCopyin, EncBarrier,
    EncBarrierRecv, EncBarrierSend, ExecCore, ExecPost, ExecPre, ExecWait, ExecuteApi, HostccExec,
    HostccWait, HwNotify, ModelSubmit, ModelSwitch, NcModelSwitchStart, NcModelSwitchStop,
    NumErrInstant, RuntimeExecute, TimestampSync,
};

use crate::collective::Ring;
use crate::device::{Clock, Moment, Notes};
use crate::instrument::Instrument;
use crate::mlp::{LAYERS, Model, Scratch};
use crate::tensor::{HBM, bytes, narrow};

const CC_OP_ALL_REDUCE: u32 = 1;
const ALGORITHM_RING: u32 = 0;

/// What an execution works with.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) model: Model,
    pub(crate) scratch: Scratch,
    pub(crate) ring: Ring,
    /// Rows of the whole batch.
    pub(crate) divisor: f32,
    pub(crate) clock: Clock,
}

/// Which execution it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    pub(crate) exec_id: u64,
    pub(crate) model_id: u64,
    /// Host core that runs it.
    pub(crate) core: u32,
    /// True for a core's first, which switches to the model.
    pub(crate) first: bool,
    /// Fault injection: end the process in the middle.
    pub(crate) kill: bool,
}

impl Execution {
    /// Executes, and returns the loss over all replicas. An error means that another replica has gone.
    pub(crate) fn run(
        self,
        i: &Instrument,
        device: &mut Device,
        input: &[f32],
        target: &[f32],
    ) -> io::Result<f32> {
        let Self {
            exec_id,
            model_id,
            core,
            ..
        } = self;
        let _execute = i.span(ExecuteApi { model_id });
        let _manager = i.span(RuntimeExecute { model_id });
        {
            let _pre = i.span(ExecPre { exec_id, model_id });
            let floats: usize = device.model.weights.iter().map(Vec::len).sum();
            let _copy = i.span(DmemBufBatchCopyin {
                mem_type: HBM,
                num_batches: narrow(LAYERS),
                total_num_ops: narrow(LAYERS),
                total_size: bytes(floats),
            });
            device.scratch.load_weights(&device.model);
        }
        if self.first {
            drop(i.span(ModelSwitch {
                device_core_idx: core,
                model_id,
                is_neuron_core_work: true,
            }));
        }
        {
            let _core = i.span(ExecCore { exec_id, model_id });
            drop(i.span(ModelSubmit { model_id }));
        }
        let (loss, notes) = {
            let _wait = i.span(ExecWait { exec_id, model_id });
            self.compute(i, device, input, target)?
        };
        self.consume(i, &device.model, &notes, loss);
        Ok(loss)
    }

    /// What the device does while the host waits: forward, then backward, all-reduce and update layer by layer.
    fn compute(
        self,
        i: &Instrument,
        device: &mut Device,
        input: &[f32],
        target: &[f32],
    ) -> io::Result<(f32, Notes)> {
        let Device {
            model,
            scratch,
            ring,
            divisor,
            clock,
        } = device;
        let mut notes = Notes {
            sync: clock.sync(),
            ..Notes::default()
        };
        notes.barrier.start = clock.read();
        self.barrier(i, ring)?;
        notes.barrier.stop = clock.read();

        notes.execution.start = clock.read();
        let mut loss = scratch.forward(model, input, target, *divisor);
        if self.kill {
            rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            )?;
        }
        for (op, layer) in (0..LAYERS).rev().enumerate() {
            scratch.backward(layer, input);
            let gradient = &mut scratch.gradients[layer];
            // The loss travels with the first bucket.
            if op == 0 {
                gradient.push(loss);
            }
            let (ctx_device_id, ctx_device_count) = (self.core, narrow(ring.size()));
            drop(i.span(CcPrepare {
                ctx_device_id,
                ctx_device_count,
                cc_op: CC_OP_ALL_REDUCE,
            }));
            drop(i.span(CcSchedule {
                ctx_device_id,
                ctx_device_count,
            }));
            let _running = i.span(HostccExec {
                stream_id: narrow(op),
            });
            notes.collectives[op].start = clock.read();
            let reduced = {
                let total_notif_expected = 2 * (ctx_device_count - 1);
                let _wait = i.span(HostccWait {
                    total_notif_expected,
                });
                ring.all_reduce(gradient)
            };
            notes.collectives[op].stop = clock.read();
            if op == 0 {
                loss = gradient.pop().unwrap_or(loss);
            }
            reduced?;
            model.update(layer, gradient);
        }
        notes.updated = clock.read();
        notes.execution.stop = clock.read();
        Ok((loss, notes))
    }

    /// Tells the next replica that this one is ready, and waits for the previous.
    fn barrier(self, i: &Instrument, ring: &mut Ring) -> io::Result<()> {
        let exec_id = self.exec_id;
        let rank = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let (next, previous) = ring.neighbours();
        let nec_dev_id = rank(self.core as usize);
        let _barrier = i.span(EncBarrier {
            peer_id: -1,
            exec_id,
            nec_dev_id,
        });
        {
            let _send = i.span(EncBarrierSend {
                peer_id: rank(next),
                exec_id,
                nec_dev_id,
            });
            ring.send_token()?;
        }
        let _receive = i.span(EncBarrierRecv {
            peer_id: rank(previous),
            exec_id,
            nec_dev_id,
        });
        ring.receive_token()
    }

    /// Reads the device's notes, and emits what they tell.
    fn consume(self, i: &Instrument, model: &Model, notes: &Notes, loss: f32) {
        let Self {
            exec_id, model_id, ..
        } = self;
        let _post = i.span(ExecPost { exec_id, model_id });
        {
            let _status = i.span(ConsumeTpbStatusNotifications { exec_id });
            self.emit_status(i, notes);
        }
        {
            let _collectives = i.span(ConsumeTopspCcNotifications { exec_id, model_id });
            self.emit_collectives(i, notes);
        }
        {
            let _errors = i.span(ConsumeErrorNotifications { exec_id, model_id });
            if !loss.is_finite() || !model.is_finite() {
                let Moment {
                    nc: nc_timestamp_ns,
                    cpu: cpu_timestamp_ns,
                } = notes.execution.stop;
                let (device_core_idx, exec_id) = (self.core, narrow(exec_id));
                i.instant(NumErrInstant {
                    device_core_idx,
                    exec_id,
                    nc_timestamp_ns,
                    cpu_timestamp_ns,
                });
            }
        }
        drop(i.span(ConsumePoolStdio { exec_id, model_id }));
    }

    fn emit_status(self, i: &Instrument, notes: &Notes) {
        let Self {
            exec_id,
            model_id,
            core: device_core_idx,
            ..
        } = self;
        let emit_sync = || {
            let Moment {
                nc: nc_timestamp_ns,
                cpu: cpu_timestamp_ns,
            } = notes.sync;
            i.instant(TimestampSync {
                exec_id,
                nc_timestamp_ns,
                cpu_timestamp_ns,
            });
        };
        // The sync point comes out of another queue than the events that need it: either may be first.
        let sync_first = exec_id.is_multiple_of(2);
        if sync_first {
            emit_sync();
        }
        if self.first {
            let Moment {
                nc: nc_timestamp_ns,
                cpu: cpu_timestamp_ns,
            } = notes.sync;
            let start = NcModelSwitchStart {
                device_core_idx,
                model_id,
                exec_id,
                nc_timestamp_ns,
                cpu_timestamp_ns,
            };
            let Moment {
                nc: nc_timestamp_ns,
                cpu: cpu_timestamp_ns,
            } = notes.barrier.start;
            i.span(start).stop_with(NcModelSwitchStop {
                nc_timestamp_ns,
                cpu_timestamp_ns,
            });
        }
        let Moment {
            nc: nc_timestamp_ns,
            cpu: cpu_timestamp_ns,
        } = notes.execution.start;
        let exec_id_32 = narrow(exec_id);
        let start = DeviceExecStart {
            device_core_idx,
            exec_id: exec_id_32,
            nc_timestamp_ns,
            cpu_timestamp_ns,
        };
        let Moment {
            nc: nc_timestamp_ns,
            cpu: cpu_timestamp_ns,
        } = notes.execution.stop;
        i.span(start).stop_with(DeviceExecStop {
            nc_timestamp_ns,
            cpu_timestamp_ns,
        });
        let Moment {
            nc: nc_timestamp_ns,
            cpu: cpu_timestamp_ns,
        } = notes.updated;
        let (hint, custom_data) = (1, exec_id_32);
        i.instant(HwNotify {
            device_core_idx,
            hint,
            custom_data,
            exec_id,
            nc_timestamp_ns,
            cpu_timestamp_ns,
        });
        if !sync_first {
            emit_sync();
        }
    }

    fn emit_collectives(self, i: &Instrument, notes: &Notes) {
        let (model_id, exec_id) = (self.model_id, narrow(self.exec_id));
        let Moment {
            nc: nc_timestamp_ns,
            cpu: cpu_timestamp_ns,
        } = notes.barrier.start;
        let start = CcExecBarrierStart {
            model_id,
            exec_id,
            nc_timestamp_ns,
            cpu_timestamp_ns,
        };
        let Moment {
            nc: nc_timestamp_ns,
            cpu: cpu_timestamp_ns,
        } = notes.barrier.stop;
        i.span(start).stop_with(CcExecBarrierStop {
            nc_timestamp_ns,
            cpu_timestamp_ns,
        });
        for (op, lapse) in notes.collectives.iter().enumerate() {
            let Moment {
                nc: nc_timestamp_ns,
                cpu: cpu_timestamp_ns,
            } = lapse.start;
            let (gid, op_id, algo) = (self.core, narrow(op), ALGORITHM_RING);
            let start = CcExecStart {
                gid,
                op_id,
                exec_id,
                nc_timestamp_ns,
                cpu_timestamp_ns,
                algo,
            };
            let Moment {
                nc: nc_timestamp_ns,
                cpu: cpu_timestamp_ns,
            } = lapse.stop;
            i.span(start).stop_with(CcExecStop {
                nc_timestamp_ns,
                cpu_timestamp_ns,
            });
        }
    }
}
