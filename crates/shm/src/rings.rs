//! A segment's rings, ready to be written.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use nrt_trace_abi::MAX_NCS;
use nrt_trace_abi::layout::{SLOT_WORDS, SegmentLayout};
use nrt_trace_ring::Producer;

use crate::WriteMapping;

/// A mapping with the producer's view of each of its rings: where an NC's ring lies and whether it fits is worked out
/// once, not at each event.
#[derive(Debug)]
pub struct Rings {
    /// Views into `mapping`; `'static` stands for "as long as `mapping` is there", and [`Rings::get`] cuts it down.
    producers: [Padded; MAX_NCS],
    mapping: Arc<WriteMapping>,
}

/// A line of its own, so that its address is a shift away.
#[derive(Debug)]
#[repr(align(64))]
struct Padded(Option<Producer<'static>>);

impl Rings {
    /// The rings of `layout` in `mapping`; `None` if one of them lies outside.
    #[must_use]
    pub fn new(mapping: WriteMapping, layout: &SegmentLayout) -> Option<Self> {
        let mut rings = Self {
            producers: [const { Padded(None) }; MAX_NCS],
            mapping: Arc::new(mapping),
        };
        // SAFETY: the words lie in mapped memory, not in `rings`, so that moving `rings` does not move them; they stay
        // mapped for as long as anybody holds `mapping`, which this struct does until it is dropped, when `producers`,
        // a field of it without drop code, ends too. `mapping` is never replaced, and `get` gives the views out for a
        // borrow only.
        let words: &'static [AtomicU64] =
            unsafe { &*std::ptr::from_ref::<[AtomicU64]>(rings.mapping.words()) };
        for nc in layout.ncs() {
            let first = layout.ring_word(nc)?;
            let ring = words.get(first..first.checked_add(layout.ring_words())?)?;
            rings.producers[nc].0 = Some(Producer::new(ring, *layout.geometry())?);
        }
        Some(rings)
    }

    /// The ring of an NC, if it has one.
    #[inline]
    #[must_use]
    pub fn get(&self, nc: u8) -> Option<&Producer<'_>> {
        self.producers[usize::from(nc)].0.as_ref()
    }

    /// The mapping that they lie in; a clone of it stays when the rings go.
    #[must_use]
    pub fn mapping(&self) -> &Arc<WriteMapping> {
        &self.mapping
    }
}

/// Has the CPU bring a slot's lines, which are to be written soon, without waiting for them.
#[inline(always)]
pub fn prefetch(slot: &[AtomicU64; SLOT_WORDS]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that changes neither memory nor registers nor flags and can't fault; a CPU that does not know it
    // takes it for a no-op. The addresses are those of the two lines of a slot.
    unsafe {
        core::arch::asm!(
            "prefetchw byte ptr [{slot}]",
            "prefetchw byte ptr [{slot} + 64]",
            slot = in(reg) slot.as_ptr(),
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _no_hint = slot;
}

#[cfg(test)]
mod tests {
    use nrt_trace_abi::layout::WORD_BYTES;
    use nrt_trace_ring::Outcome;

    use super::*;
    use crate::memfd;

    #[test]
    fn each_nc_of_the_layout_has_its_ring_and_no_other() {
        let layout = SegmentLayout::new(5, [0, 3, 255]).unwrap();
        let fd = memfd::create("rings", layout.bytes()).unwrap();
        let rings = Rings::new(WriteMapping::map(&fd, layout.bytes()).unwrap(), &layout).unwrap();
        let with: Vec<_> = (0..=255).filter(|&nc| rings.get(nc).is_some()).collect();
        assert_eq!(with, [0, 3, 255]);
        for nc in with {
            let outcome = rings.get(nc).unwrap().push(|_| Default::default());
            assert!(matches!(outcome, Outcome::Stored { seq: 1, .. }));
        }
    }

    #[test]
    fn rings_outside_the_mapping_are_refused() {
        let layout = SegmentLayout::new(64, 0..8).unwrap();
        let short = layout.bytes() - 64 * 16 * WORD_BYTES;
        let fd = memfd::create("rings", short).unwrap();
        assert!(Rings::new(WriteMapping::map(&fd, short).unwrap(), &layout).is_none());
    }
}
