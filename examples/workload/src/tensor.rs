//! The runtime's calls on tensors and device memory, each with its events.

use nrt_trace_client::payload::{
    DmaMemAllocStart, DmaMemAllocStop, DmaMemDeallocStart, DmaMemDeallocStop, DmemBufCopyin,
    TensorAlloc, TensorFree, TensorWrite,
};

use crate::device::Memory;
use crate::instrument::Instrument;

/// Usage types of device memory, as the model numbers them.
pub(crate) mod usage {
    /// Code of the matrix engine.
    pub(crate) const INSTR_PE: u32 = 1;
    /// Weights.
    pub(crate) const WEIGHT: u32 = 6;
    /// Scratch memory of an execution.
    pub(crate) const SCRATCHPAD: u32 = 11;
    /// Input and output tensors.
    pub(crate) const TENSOR: u32 = 12;
}

/// The memory kind of all device buffers: HBM.
pub(crate) const HBM: u8 = 2;

/// A tensor on the device.
#[derive(Debug)]
pub(crate) struct Tensor {
    /// Id of its name.
    pub(crate) id: u64,
    usage: u32,
    address: u64,
    pub(crate) data: Vec<f32>,
}

impl Tensor {
    /// Allocates a tensor of `floats` zeros.
    pub(crate) fn allocate(
        instrument: &Instrument,
        memory: &mut Memory,
        id: u64,
        usage: u32,
        floats: usize,
    ) -> Self {
        let size = bytes(floats);
        let _span = instrument.span(TensorAlloc {
            tensor_id: id,
            size,
        });
        let (address, data) = take_memory(instrument, memory, usage, size, || vec![0.0; floats]);
        Self {
            id,
            usage,
            address,
            data,
        }
    }

    /// Bytes.
    pub(crate) fn size(&self) -> u64 {
        bytes(self.data.len())
    }

    /// Fills the tensor from host memory of the same length.
    pub(crate) fn write(&mut self, instrument: &Instrument, from: &[f32]) {
        let _write = instrument.span(TensorWrite {
            tensor_id: self.id,
            size: self.size(),
        });
        let (mem_handle, size) = (self.address, narrow(self.size()));
        let _copy = instrument.span(DmemBufCopyin {
            mem_type: HBM,
            mem_handle,
            offset: 0,
            size,
        });
        self.data.copy_from_slice(from);
    }

    /// Frees the tensor.
    pub(crate) fn free(self, instrument: &Instrument, memory: &mut Memory) {
        let size = self.size();
        let _span = instrument.span(TensorFree {
            tensor_id: self.id,
            size,
            ref_count: 0,
        });
        let usage_type = self.usage;
        let span = instrument.span(DmaMemDeallocStart {
            hbm_idx: instrument.nc(),
            is_nc_hbm: true,
            mla_idx: 0,
            usage_type,
            physical_address: self.address,
        });
        drop(self.data);
        memory.give_back(usage_type, size);
        let (usage_type_total_bytes, total_bytes) = memory.in_use(usage_type);
        span.stop_with(DmaMemDeallocStop {
            freed_bytes: size,
            usage_type_total_bytes,
            total_bytes,
        });
    }
}

/// Takes device memory and gives its address, and what `make` makes to stand in it.
pub(crate) fn take_memory<T>(
    instrument: &Instrument,
    memory: &mut Memory,
    usage_type: u32,
    size: u64,
    make: impl FnOnce() -> T,
) -> (u64, T) {
    let (hbm_idx, mla_idx) = (instrument.nc(), 0);
    let span = instrument.span(DmaMemAllocStart {
        hbm_idx,
        usage_type,
        is_nc_hbm: true,
        is_aligned: true,
        mla_idx,
    });
    let made = make();
    let physical_address = memory.take(usage_type, size);
    let (usage_type_total_bytes, total_bytes) = memory.in_use(usage_type);
    span.stop_with(DmaMemAllocStop {
        allocated_bytes: size,
        physical_address,
        return_code: 0,
        usage_type_total_bytes,
        total_bytes,
    });
    (physical_address, made)
}

/// Bytes of that many floats.
pub(crate) const fn bytes(floats: usize) -> u64 {
    floats as u64 * 4
}

/// For payload fields of 32 bits: sizes and counts of a run are far below (`Config::check`).
pub(crate) fn narrow(n: impl TryInto<u32>) -> u32 {
    n.try_into().unwrap_or(u32::MAX)
}
