//! The attached processes, as the registry tells the host monitor of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An attached process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The daemon's number for the attach.
    pub producer_id: u32,
    /// Its pid as the daemon sees it.
    pub pid: i32,
    /// When it began, clock ticks after boot: tells it from another process that has its number later.
    pub started: Option<u64>,
    /// Its name.
    pub name: String,
}

/// The list. The lock is held for the copy of a pointer: the registry never waits for a tick, nor a tick for the registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members(Arc<Mutex<Arc<Vec<Arc<Member>>>>>);

impl Members {
    /// The list is whole even if a thread panicked while it held the lock: every change is one step.
    fn lock(&self) -> MutexGuard<'_, Arc<Vec<Arc<Member>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process has attached.
    pub(crate) fn add(&self, member: Member) {
        Arc::make_mut(&mut *self.lock()).push(Arc::new(member));
    }

    /// A process has ended or detached.
    pub(crate) fn remove(&self, producer_id: u32) {
        Arc::make_mut(&mut *self.lock()).retain(|member| member.producer_id != producer_id);
    }

    /// The list as it is now, in attach order.
    pub(crate) fn now(&self) -> Arc<Vec<Arc<Member>>> {
        self.lock().clone()
    }
}
