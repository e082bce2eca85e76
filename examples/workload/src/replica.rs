//! One replica of the model on one NeuronCore: load, training step, unload, with the events of the runtime's calls.

use std::hint::black_box;
use std::io;

use nrt_trace_client::EventType;
use nrt_trace_client::payload::{
    AsyncSemaWait, CcLoadStart, CcLoadStop, DmemBufBatchCopyin, DmemBufBatchCopyout,
    DmemBufCopyout, HostccBuildContext, HostccLoad, ModelLoadStop, PostRequest, TensorRead,
    TensorReadBatch, TensorWriteBatch,
};

use crate::collective::Ring;
use crate::config::Config;
use crate::device::{Clock, Memory};
use crate::execute::{Device, Execution};
use crate::instrument::Instrument;
use crate::mlp::{LAYERS, Model, Scratch, Teacher, divisor};
use crate::tensor::{HBM, Tensor, bytes, narrow, take_memory, usage};

/// Name of the compiled model that every replica runs.
const MODEL_NAME: &str = "mlp_train_step.neff";

const ENC_OP_ALL_REDUCE: u32 = 1;
const DTYPE_FLOAT32: u32 = 10;

/// A replica with everything loaded.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) instrument: Instrument,
    device: Device,
    /// Number of the replica among all of them, and of the host core that it drives.
    number: usize,
    rows: usize,
    teacher: Teacher,
    memory: Memory,
    model_id: u64,
    loss_id: u64,
    activations_id: u64,
    /// Tensors that stay, weights first.
    weights: Vec<Tensor>,
    input: Tensor,
    target: Tensor,
    /// Step in whose middle the process is to end by SIGKILL.
    kill_at: Option<usize>,
}

impl Replica {
    /// Loads the model: allocates and fills its tensors, and prepares the collectives.
    pub(crate) fn load(
        config: &Config,
        number: usize,
        ring: Ring,
        instrument: Instrument,
        kill_at: Option<usize>,
    ) -> Self {
        let (width, rows) = (config.size, config.rows);
        let model_id = instrument.name(MODEL_NAME);
        let mut memory = Memory::new();
        let i = &instrument;

        let load = i.bare_span(EventType::ModelLoad);
        let code = bytes(width * width);
        take_memory(i, &mut memory, usage::INSTR_PE, code, || {
            black_box(vec![0; width * width])
        });
        let model = Model::new(width);
        let mut tensor = |name: &str, usage, floats| {
            let id = i.name(name);
            Tensor::allocate(i, &mut memory, id, usage, floats)
        };
        let weights =
            (0..LAYERS).map(|n| tensor(&format!("layer{n}.weight"), usage::WEIGHT, width * width));
        let mut weights: Vec<_> = weights.collect();
        let input = tensor("input0", usage::TENSOR, rows * width);
        let target = tensor("target0", usage::TENSOR, rows * width);
        {
            let _write = i.span(TensorWriteBatch {
                num_batches: narrow(LAYERS),
            });
            let _copy = i.span(DmemBufBatchCopyin {
                mem_type: HBM,
                num_batches: narrow(LAYERS),
                total_num_ops: narrow(LAYERS),
                total_size: bytes(width * width * LAYERS),
            });
            for (tensor, weights) in weights.iter_mut().zip(&model.weights) {
                tensor.data.copy_from_slice(weights);
            }
        }
        load.stop_with(ModelLoadStop { model_id });

        let (id, count) = (narrow(number), narrow(ring.size()));
        let collectives = i.span(CcLoadStart {
            g_device_id: id,
            g_device_count: count,
        });
        drop(i.span(HostccBuildContext {
            ctx_device_id: id,
            ctx_device_count: count,
        }));
        for tensor in &weights {
            let num_elem = tensor.data.len() as u64;
            drop(i.span(HostccLoad {
                enc_op: ENC_OP_ALL_REDUCE,
                dtype: DTYPE_FLOAT32,
                num_elem,
            }));
        }
        collectives.stop_with(CcLoadStop { model_id });

        Self {
            device: Device {
                model,
                scratch: Scratch::new(width, rows),
                ring,
                divisor: divisor(rows * config.replicas()),
                clock: Clock::new(1_000_000_000_000 * (number as u64 + 1)),
            },
            number,
            rows,
            teacher: Teacher::new(width),
            memory,
            model_id,
            loss_id: i.name("loss"),
            activations_id: i.name("activations"),
            weights,
            input,
            target,
            kill_at,
            instrument,
        }
    }

    /// One training step; returns the loss over the whole batch.
    ///
    /// An error means that another replica has gone. Every span is stopped then.
    pub(crate) fn step(&mut self, step: usize) -> io::Result<f32> {
        let exec_id = step as u64 + 1;
        let (input, target) = self.teacher.batch(self.number, step, self.rows);
        let i = &self.instrument;
        let activations = Tensor::allocate(
            i,
            &mut self.memory,
            self.activations_id,
            usage::SCRATCHPAD,
            input.len() * LAYERS,
        );
        self.input.write(i, &input);
        self.target.write(i, &target);

        drop(i.span(AsyncSemaWait {
            available_request_slots: 1,
            has_work: true,
        }));
        let request = PostRequest {
            model_id: self.model_id,
            request_id: narrow(exec_id),
        };
        let exec_id = i.asynchronous(request, exec_id, || black_box(exec_id));

        let execution = Execution {
            exec_id,
            model_id: self.model_id,
            core: narrow(self.number),
            first: step == 0,
            kill: self.kill_at == Some(step),
        };
        let loss = execution.run(i, &mut self.device, &self.input.data, &self.target.data);
        let loss = loss.map(|loss| {
            let _read = i.span(TensorRead {
                tensor_id: self.loss_id,
                size: 4,
            });
            let _copy = i.span(DmemBufCopyout {
                mem_type: HBM,
                mem_handle: self.loss_id,
                offset: 0,
                size: 4,
            });
            black_box(loss)
        });
        activations.free(i, &mut self.memory);
        loss
    }

    /// The model as trained so far.
    pub(crate) fn model(&self) -> &Model {
        &self.device.model
    }

    /// Reads the weights back, frees every tensor, and returns what was counted and the trained model.
    pub(crate) fn unload(self) -> (Instrument, Model) {
        let Self {
            instrument,
            device,
            mut memory,
            mut weights,
            input,
            target,
            ..
        } = self;
        {
            let _read = instrument.span(TensorReadBatch {
                num_batches: narrow(LAYERS),
            });
            let _copy = instrument.span(DmemBufBatchCopyout {
                mem_type: HBM,
                num_batches: narrow(LAYERS),
                total_num_ops: narrow(LAYERS),
                total_size: weights.iter().map(Tensor::size).sum(),
            });
            for (tensor, weights) in weights.iter_mut().zip(&device.model.weights) {
                tensor.data.copy_from_slice(weights);
            }
        }
        for tensor in weights.into_iter().chain([input, target]) {
            tensor.free(&instrument, &mut memory);
        }
        (instrument, device.model)
    }
}
