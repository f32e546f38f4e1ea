//! Who writes entries back: the limit worker, a cgroup over its limit, and the
//! dynamic shrinker.
//!
//! Left out: memory nodes; there is one.

use crate::design::LruDesign;
use crate::writeback::{Walked, WritebackError, shrink_memcg_cb, zswap_reclaim_entry};
use crate::zswap::{Works, Zswap};
use kernel_sim::{Machine, SpawnError, Task};
use std::rc::Rc;
use zswap_mm::cgroup::CgroupId;
use zswap_mm::limits;
use zswap_mm::lru::shrinker_count;

/// Why shrinking a cgroup led to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShrinkError {
    /// There was no entry that might be written back (`-ENOENT`).
    NoEntry,
    /// Entries were looked at, and none was written back (`-EAGAIN`).
    Again,
}

/// How often the limit worker may fail before it gives up.
const MAX_RECLAIM_RETRIES: u32 = 16;

/// `zswap_setup`: creates the work items of zswap. It spawns two tasks, the
/// workers of their queues.
///
/// # Errors
/// If these cannot be spawned.
pub fn zswap_setup(machine: &mut Machine, zswap: &Rc<Zswap>) -> Result<(), SpawnError> {
    let queue = machine.workqueue("zswap-shrink")?;
    let events = machine.workqueue("events")?;
    let weak = Rc::downgrade(zswap);
    let shrink = machine.work(queue, "shrink_worker", move |task| {
        let zswap = weak.upgrade();
        async move {
            if let Some(zswap) = zswap {
                shrink_worker(&task, &zswap).await;
            }
        }
    });
    let weak = Rc::downgrade(zswap);
    let release = machine.work(events, "__zswap_pool_release", move |_| {
        let zswap = weak.upgrade();
        async move {
            if let Some(zswap) = zswap {
                zswap.pools.borrow_mut().run_release_work();
            }
        }
    });
    zswap.works.set(Some(Works { shrink, release }));
    Ok(())
}

impl Zswap {
    /// Has the limit worker begin, if there is one.
    pub(crate) async fn queue_shrink_work(&self, task: &Task) {
        if let Some(works) = self.works.get() {
            task.queue_work(works.shrink).await;
        }
    }

    fn above_threshold(&self) -> bool {
        !self.limits.borrow().can_accept(self.pool_pages())
    }

    /// `mem_cgroup_iter`: the cgroup after the cursor, which it becomes; none
    /// at the end of a walk.
    fn next_memcg(&self) -> Option<CgroupId> {
        let cgroups = self.cgroups.borrow();
        let cursor = self.next_shrink.get();
        let next = cgroups.online().find(|cgroup| *cgroup > cursor);
        self.next_shrink.set(next.unwrap_or(CgroupId::ROOT));
        next
    }
}

/// `shrink_worker`: writes entries back until the pools are down to the
/// threshold, or it has failed too often.
pub(crate) async fn shrink_worker(task: &Task, zswap: &Zswap) {
    match zswap.design.lru {
        LruDesign::PerPool => shrink_pool(task, zswap).await,
        LruDesign::Global => shrink_cgroups(task, zswap).await,
    }
}

/// Until 6.8: the oldest entries of the pool that was created first.
async fn shrink_pool(task: &Task, zswap: &Zswap) {
    let Some(pool) = zswap.pools.borrow().live().next() else {
        return;
    };
    let mut failures = 0;
    while zswap.above_threshold() && failures < MAX_RECLAIM_RETRIES {
        match zswap_reclaim_entry(task, zswap, zswap.lru_of(pool)).await {
            Walked::Removed | Walked::Rotated => {}
            Walked::Failed(WritebackError::Gone) => failures += 1,
            Walked::Failed(_) | Walked::Empty => return,
        }
        task.cond_resched().await;
    }
}

/// Since 6.9: a few entries of each cgroup in turn. A walk without anything
/// that could be written back, and a cgroup of which nothing was, count as
/// failures.
async fn shrink_cgroups(task: &Task, zswap: &Zswap) {
    let (mut failures, mut candidates) = (0, 0);
    while zswap.above_threshold() && failures < MAX_RECLAIM_RETRIES {
        let cgroup = zswap.next_memcg();
        let shrunk = shrink_memcg(task, zswap, cgroup.unwrap_or(CgroupId::ROOT)).await;
        match shrunk {
            Ok(()) => candidates += 1,
            Err(ShrinkError::Again) => {
                candidates += 1;
                failures += 1;
            }
            Err(ShrinkError::NoEntry) => {}
        }
        if cgroup.is_none() {
            failures += u32::from(candidates == 0);
            candidates = 0;
        }
        task.cond_resched().await;
    }
}

/// `shrink_memcg`: looks at the oldest entries of a cgroup.
///
/// # Errors
/// If none was written back.
pub(crate) async fn shrink_memcg(
    task: &Task,
    zswap: &Zswap,
    cgroup: CgroupId,
) -> Result<(), ShrinkError> {
    let possible = {
        let cgroups = zswap.cgroups.borrow();
        cgroups.writeback_enabled(cgroup) && cgroups.is_online(cgroup)
    };
    if !possible || zswap.design.lru == LruDesign::PerPool {
        return Err(ShrinkError::NoEntry);
    }
    let (mut walked, mut removed) = (0, 0);
    while walked < zswap.design.shrink_batch {
        match shrink_memcg_cb(task, zswap, 0, cgroup).await {
            Walked::Empty => break,
            Walked::Removed => removed += 1,
            Walked::Rotated | Walked::Failed(_) => {}
        }
        walked += 1;
    }
    match (walked, removed) {
        (0, _) => Err(ShrinkError::NoEntry),
        (_, 0) => Err(ShrinkError::Again),
        _ => Ok(()),
    }
}

/// `zswap_shrinker_count`: how many entries the dynamic shrinker offers, the
/// fewer the better they are compressed, and the fewer pages had to come from
/// the device lately.
#[must_use]
pub fn zswap_shrinker_count(zswap: &Zswap, cgroup: CgroupId) -> u64 {
    let cgroups = zswap.cgroups.borrow();
    if !cgroups.writeback_enabled(cgroup) {
        return 0;
    }
    let backing_pages = limits::bytes_to_pages(cgroups.zswap_current(cgroup));
    let mut swapins = zswap.disk_swapins.borrow_mut();
    let swapins = swapins.entry(cgroup).or_default();
    let (count, left) = shrinker_count(
        zswap.lru_len(cgroup),
        backing_pages,
        cgroups.zswapped(cgroup),
        *swapins,
    );
    *swapins = left;
    count
}

/// `zswap_shrinker_scan`: looks at up to so many entries, and stops at a page
/// that is in memory, since those behind it are warm too. Returns how many
/// were written back.
pub async fn zswap_shrinker_scan(task: &Task, zswap: &Zswap, cgroup: CgroupId, scan: u64) -> u64 {
    let mut removed = 0;
    for _ in 0..scan {
        match shrink_memcg_cb(task, zswap, 0, cgroup).await {
            Walked::Empty | Walked::Failed(WritebackError::Exists) => break,
            Walked::Removed => removed += 1,
            Walked::Rotated | Walked::Failed(_) => {}
        }
    }
    removed
}
