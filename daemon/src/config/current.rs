//! The settings as they are now: a reload changes them while others use them.

use std::sync::{Arc, PoisonError, RwLock};

use super::Config;

/// The settings as they are now.
#[derive(Clone, Debug)]
pub(crate) struct Current(Arc<RwLock<Arc<Config>>>);

impl Current {
    /// These.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self(Arc::new(RwLock::new(config)))
    }

    /// What they are. Whoever needs two of them asks once.
    pub(crate) fn get(&self) -> Arc<Config> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Replaces them.
    pub(crate) fn set(&self, config: Arc<Config>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }
}
