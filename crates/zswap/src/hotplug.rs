//! CPU hotplug: the contexts of a CPU come and, in the older design, go.
//!
//! The machine's CPUs all go on running. So in the design whose contexts die
//! with their CPU, who needs one meanwhile tries again until it is back.

use crate::design::ContextLife;
use crate::zswap::Zswap;
use kernel_sim::{CpuId, Task};
use zswap_mm::PAGE_SIZE;
use zswap_mm::lifecycle::PoolId;

/// Time to allocate requests and a buffer, in ns. Assumed.
const ALLOC_NS: u64 = 2_000;

/// `zswap_cpu_comp_prepare`: allocates what a CPU needs outside of the mutex,
/// since the allocation may itself have to reclaim through zswap, and publishes
/// it under the mutex. A context that is there already is left alone.
pub async fn zswap_cpu_comp_prepare(task: &Task, zswap: &Zswap, pool: PoolId, cpu: CpuId) {
    let ctx = zswap.contexts.of(pool, cpu);
    if ctx.present.get() {
        return;
    }
    task.run_kernel(ALLOC_NS).await;
    let buffer = Vec::with_capacity(PAGE_SIZE);
    task.mutex_lock(ctx.mutex).await;
    ctx.buffer.replace(buffer);
    ctx.present.set(true);
    task.mutex_unlock(ctx.mutex).await;
}

/// `zswap_cpu_comp_dead` (until 2026): frees under the mutex, and leaves NULL
/// for those who wait for it. Where contexts live as long as their pool there
/// is no such callback.
pub async fn zswap_cpu_comp_dead(task: &Task, zswap: &Zswap, pool: PoolId, cpu: CpuId) {
    if zswap.design.context_life == ContextLife::Pool {
        return;
    }
    let ctx = zswap.contexts.of(pool, cpu);
    task.mutex_lock(ctx.mutex).await;
    if ctx.decompress_mutex != ctx.mutex {
        task.mutex_lock(ctx.decompress_mutex).await;
    }
    ctx.present.set(false);
    ctx.buffer.take();
    if ctx.decompress_mutex != ctx.mutex {
        task.mutex_unlock(ctx.decompress_mutex).await;
    }
    task.mutex_unlock(ctx.mutex).await;
}

/// A CPU comes up: every pool prepares its context.
pub async fn zswap_cpu_up(task: &Task, zswap: &Zswap, cpu: CpuId) {
    for pool in zswap.live_pools() {
        zswap_cpu_comp_prepare(task, zswap, pool, cpu).await;
    }
}

/// A CPU has gone down: every pool takes its context away.
pub async fn zswap_cpu_down(task: &Task, zswap: &Zswap, cpu: CpuId) {
    for pool in zswap.live_pools() {
        zswap_cpu_comp_dead(task, zswap, pool, cpu).await;
    }
}

impl Zswap {
    fn live_pools(&self) -> Vec<PoolId> {
        self.pools.borrow().live().collect()
    }
}
