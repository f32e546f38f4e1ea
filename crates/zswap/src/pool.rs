//! The life of a zswap pool: created, current, replaced, released.
//!
//! The error path of the creation is there in the three versions that a review
//! in June 2024 knew ([`ErrorPath`]). The model finds out by itself what is
//! wrong with two of them: [`Zswap::check`] finds the leak, and the run stops
//! where NULL is used.

use crate::hotplug::zswap_cpu_comp_prepare;
use crate::zswap::Zswap;
use kernel_sim::{CpuId, Task};
use zswap_mm::Algorithm;
use zswap_mm::lifecycle::{ErrorPath, PoolDraft, PoolError, PoolId};

/// Why the compressor was not changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SwitchError {
    /// The machine was made without this compressor.
    Unknown(Algorithm),
    /// There is no pool for it.
    Pool(PoolError),
}

impl core::fmt::Display for SwitchError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            SwitchError::Unknown(algorithm) => {
                write!(f, "this machine has no compressor {algorithm}")
            }
            SwitchError::Pool(error) => write!(f, "no pool could be created: {error}"),
        }
    }
}

impl core::error::Error for SwitchError {}

/// `zswap_compressor_param_set`: makes the pool of a compressor the current
/// one, an old one that is still there or a new one. The former stays as long
/// as it has entries. The work items must be there ([`crate::zswap_setup`]).
///
/// # Errors
/// If there is no such compressor, or no pool could be created; the current
/// pool stays.
pub async fn zswap_compressor_param_set(
    task: &Task,
    zswap: &Zswap,
    algorithm: Algorithm,
) -> Result<PoolId, SwitchError> {
    if !zswap.contexts.knows(algorithm) {
        return Err(SwitchError::Unknown(algorithm));
    }
    task.mutex_lock(zswap.param_lock).await;
    let kind = zswap.design.allocator.kind();
    let found = zswap.pools.borrow_mut().find_get(algorithm, kind);
    let pool = match found {
        Some(pool) => Ok(pool),
        None => zswap_pool_create(task, zswap, algorithm).await,
    };
    if let Ok(pool) = pool {
        zswap.make_current(task, pool);
    }
    task.mutex_unlock(zswap.param_lock).await;
    pool.map_err(SwitchError::Pool)
}

impl Zswap {
    /// Replaces the current pool, whose reference for being that is given back.
    fn make_current(&self, task: &Task, pool: PoolId) {
        let mut pools = self.pools.borrow_mut();
        let old = pools.current().filter(|old| *old != pool);
        if let Some(old) = old {
            // So that the last reference is given back in `pool_put`.
            pools.get(old);
        }
        pools.make_current(pool);
        drop(pools);
        if let Some(old) = old {
            self.pool_put(task, old);
        }
    }
}

/// `zswap_pool_create`: what was allocated is undone in reverse order when a
/// later step fails.
async fn zswap_pool_create(
    task: &Task,
    zswap: &Zswap,
    algorithm: Algorithm,
) -> Result<PoolId, PoolError> {
    let mut pool = zswap.pools.borrow_mut().draft(algorithm)?;
    let options = zswap.pool_options.borrow().clone();
    let created = zswap.pools.borrow_mut().create_zpools(&mut pool, &options);
    if let Err(failed) = created {
        if zswap.pools.borrow().error_path() == ErrorPath::ReturnNull {
            return Err(failed.into());
        }
        error(task, zswap, pool);
        return Err(failed.into());
    }
    let contexts = zswap.pools.borrow_mut().alloc_contexts(&mut pool);
    if let Err(failed) = contexts {
        error(task, zswap, pool);
        return Err(failed.into());
    }
    let published = zswap.pools.borrow_mut().publish(pool);
    match published {
        Ok(id) => {
            cpuhp_state_add_instance(task, zswap, id).await;
            Ok(id)
        }
        Err((pool, failed)) => {
            error(task, zswap, pool);
            Err(PoolError::from(failed))
        }
    }
}

/// Has each CPU prepare its context.
async fn cpuhp_state_add_instance(task: &Task, zswap: &Zswap, pool: PoolId) {
    for cpu in 0..zswap.contexts.cpus() {
        zswap_cpu_comp_prepare(task, zswap, pool, CpuId(cpu)).await;
    }
}

/// The label `error`: frees the contexts, destroys the allocator pool if there
/// is one, frees the pool.
fn error(task: &Task, zswap: &Zswap, mut pool: PoolDraft) {
    let mut pools = zswap.pools.borrow_mut();
    let checked = pools.error_path() != ErrorPath::GotoErrorUnchecked;
    if pool.has_zpools() || !checked {
        let destroyed = pools.destroy_zpools(&mut pool);
        if let Err(null) = destroyed {
            task.fail(format!("zswap_pool_create {null}"));
        }
    }
    pools.free_draft(pool);
}
