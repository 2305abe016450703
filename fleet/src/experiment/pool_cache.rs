//! Pools of samples that trials share while they run.

use std::sync::{Arc, Mutex, PoisonError};

use super::ExperimentError;
use super::runner::LoadPool;
use super::setup::Setup;
use crate::data::{DataRequest, Dataset, SamplePool};

/// Pools by their key: read when first needed, dropped after their last trial.
pub(crate) struct PoolCache {
    pools: Mutex<Vec<CachedPool>>,
}

struct CachedPool {
    key: PoolKey,
    /// Trials that have not released it yet.
    users: usize,
    pool: Option<Arc<SamplePool>>,
}

/// Everything that a pool depends on; the strategy and most corruptions are not part of it.
#[derive(PartialEq, Eq)]
struct PoolKey {
    dataset: Dataset,
    request: DataRequest,
}

impl PoolKey {
    fn of(setup: &Setup) -> Self {
        Self { dataset: setup.dataset, request: setup.scenario().data_request() }
    }
}

impl PoolCache {
    pub(crate) fn new(setups: &[&Setup]) -> Self {
        let mut pools: Vec<CachedPool> = Vec::new();
        for setup in setups {
            let key = PoolKey::of(setup);
            match pools.iter_mut().find(|cached| cached.key == key) {
                Some(cached) => cached.users += 1,
                None => pools.push(CachedPool { key, users: 1, pool: None }),
            }
        }
        Self { pools: Mutex::new(pools) }
    }

    /// The pool of a trial. Others wait while it is read: most likely for the same one.
    pub(crate) fn take(
        &self,
        setup: &Setup,
        load: &LoadPool<'_>,
    ) -> Result<Arc<SamplePool>, ExperimentError> {
        let key = PoolKey::of(setup);
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = pools.iter_mut().find(|cached| cached.key == key);
        let cached = cached.expect("the cache has an entry for every trial");
        match &cached.pool {
            Some(pool) => Ok(Arc::clone(pool)),
            None => Ok(Arc::clone(cached.pool.insert(Arc::new(load(setup)?)))),
        }
    }

    pub(crate) fn release(&self, setup: &Setup) {
        let key = PoolKey::of(setup);
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = pools.iter_mut().find(|cached| cached.key == key) {
            cached.users -= 1;
            if cached.users == 0 {
                cached.pool = None;
            }
        }
    }
}
