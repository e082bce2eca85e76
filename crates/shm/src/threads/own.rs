//! What a thread knows of itself, in thread-local storage that a signal handler may use at any moment.

use std::sync::atomic::{AtomicPtr, AtomicU64};

use super::table::Slot;

pub(super) use tls::with;

/// [`Own::instance`] of a thread without a slot: no attach has this number. Not 0, which is the number of a process that
/// is not attached, so that one comparison answers both questions.
pub(super) const NEVER: u64 = u64::MAX;

/// What a thread knows of itself.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Own {
    /// Which attach of which process `slot` belongs to; [`NEVER`] for none.
    pub(super) instance: AtomicU64,
    /// The thread's slot, once `instance` is another value.
    pub(super) slot: AtomicPtr<Slot>,
    /// Which attach the thread found no slot in.
    pub(super) crowd: AtomicU64,
    /// For the crowd: others have it in their slot.
    pub(super) tid: AtomicU64,
    /// Value of `SWEEPS` when it last looked for a slot.
    pub(super) sweeps: AtomicU64,
    /// How often it is inside as one of the crowd.
    pub(super) crowded: AtomicU64,
}

#[cfg(target_arch = "x86_64")]
mod tls {
    //! Initial-exec thread-local storage, which stable Rust can't ask for. In a shared library a `thread_local!` costs
    //! a call to `__tls_get_addr` (1.2 ns more), and its first use in a dlopened library calls malloc, which emit must
    //! not do in a signal handler.

    use super::Own;

    core::arch::global_asm!(
        ".pushsection .tdata.__nrt_trace_own,\"awT\",@progbits",
        ".hidden __nrt_trace_own",
        ".globl __nrt_trace_own",
        ".type __nrt_trace_own, @object",
        ".size __nrt_trace_own, 48",
        ".p2align 3",
        "__nrt_trace_own:",
        ".quad -1",
        ".zero 40",
        ".popsection",
    );

    const _: () = assert!(size_of::<Own>() == 48 && align_of::<Own>() == 8);

    #[inline]
    pub(in super::super) fn with<R>(f: impl FnOnce(&Own) -> R) -> R {
        let own: *const Own;
        // SAFETY: reads the thread pointer and the symbol's offset from it, which the loader has fixed; touches nothing
        // else, and the result is the same at each execution in a thread.
        unsafe {
            core::arch::asm!(
                "mov {own}, qword ptr fs:[0]",
                "add {own}, qword ptr [rip + __nrt_trace_own@GOTTPOFF]",
                own = out(reg) own,
                options(pure, nomem, nostack),
            );
        }
        // SAFETY: the symbol is 48 bytes (NEVER, then zeros), aligned to 8, in this thread's static TLS block, which
        // outlives every call made on the thread. `Own` is six atomics, for which those are valid values, so a signal
        // handler on the same thread may use it too.
        f(unsafe { &*own })
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod tls {
    //! Where initial-exec storage can't be asked for: a constant, drop-free thread-local.

    use super::{AtomicPtr, AtomicU64, NEVER, Own};

    thread_local! {
        static OWN: Own = const {
            Own {
                instance: AtomicU64::new(NEVER),
                slot: AtomicPtr::new(std::ptr::null_mut()),
                crowd: AtomicU64::new(0),
                tid: AtomicU64::new(0),
                sweeps: AtomicU64::new(0),
                crowded: AtomicU64::new(0),
            }
        };
    }

    #[inline]
    pub(in super::super) fn with<R>(f: impl FnOnce(&Own) -> R) -> R {
        OWN.with(f)
    }
}
