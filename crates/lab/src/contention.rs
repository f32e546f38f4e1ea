//! How often tasks wait for each other's spinlocks: one allocator pool against
//! 32, one tree against one per 64 MB.
//!
//! On every CPU a task pages memory out and reads it back, each in a part of
//! the swap device of its own. What is counted comes from the records.
//!
//! Invariant: waiting times are those between the record of the spinning and
//! that of the acquisition; mutexes, which sleep, are not counted.
//!
//! ```
//! use zswap_lab::contention;
//! use zswap_paths::Preset;
//! let row = contention(Preset::V6_11.design(), 2, 1)?;
//! assert!(row.cycles > 100);
//! # Ok::<(), zswap_lab::RunError>(())
//! ```

use crate::locks::class_of;
use crate::run::RunError;
use crate::scenario::Scenario;
use core::fmt::Write;
use kernel_sim::{Event, EventKind, LockInfo, LockKind, Machine, MachineConfig};
use std::collections::BTreeMap;
use std::rc::Rc;
use zswap_mm::{Page, PageContent, SwapSlot};
use zswap_paths::{Design, Mm, Zswap, ZswapOptions, do_swap_page, madvise_pageout};

/// What is counted of a class of locks.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LockCount {
    /// How often one was taken.
    pub taken: u64,
    /// How often the task had to spin for it.
    pub contended: u64,
    /// For how long, in ns, over all tasks.
    pub waited_ns: u64,
}

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contention {
    /// Pages stored and loaded again.
    pub cycles: u64,
    /// Pages that the pools hold at the end.
    pub pool_pages: u64,
    /// The spinlocks by class.
    pub locks: BTreeMap<String, LockCount>,
}

/// Pages of a task.
const PAGES: usize = 64;
/// Virtual time of a run.
const RUN_NS: u64 = 50_000_000;
/// Slots between the tasks' memories: each has a tree of its own.
const APART: u64 = 1 << 14;

/// Runs a design on so many CPUs for 50 ms.
///
/// # Errors
/// If the machine cannot be, or a rule is broken.
pub fn contention(design: Design, cpus: u8, seed: u64) -> Result<Contention, RunError> {
    let mut machine = Machine::new(MachineConfig {
        cpus,
        seed,
        ..MachineConfig::default()
    })?;
    let costs = Scenario::default().costs;
    let slots = APART * u64::from(cpus);
    let options = ZswapOptions::new(design, costs, slots, seed);
    let zswap = Rc::new(Zswap::new(
        &mut machine,
        options,
        design.algorithm.new_compressor(),
    )?);
    for number in 0..u64::from(cpus) {
        let page = |index| {
            let mut page = Page::zeroed();
            PageContent::HalfRandom.fill(seed ^ number << 16 ^ index, &mut page);
            page
        };
        let pages = (0..PAGES as u64).map(page).collect();
        let cgroup = zswap_mm::cgroup::CgroupId::ROOT;
        let mm = Mm::new(cgroup, SwapSlot(number * APART), pages);
        let zswap = Rc::clone(&zswap);
        let body = move |task| async move {
            loop {
                madvise_pageout(&task, &zswap, &mm, 0..PAGES).await;
                for page in 0..PAGES {
                    if do_swap_page(&task, &zswap, &mm, page).await.is_err() {
                        task.fail(format!("page {page} cannot be read"));
                    }
                }
            }
        };
        let name = format!("pager {number}");
        let spawned = machine.spawn(name.clone(), 0, body);
        spawned.map_err(|error| RunError::Spawn { name, error })?;
    }
    machine.run_until(RUN_NS)?;
    let mut events = Vec::new();
    machine.take_events(&mut events);
    Ok(Contention {
        cycles: zswap.counters().zswpin,
        pool_pages: zswap.pool_pages(),
        locks: count(&events, &machine.locks()),
    })
}

fn count(events: &[Event], locks: &[LockInfo]) -> BTreeMap<String, LockCount> {
    let mut counts: BTreeMap<String, LockCount> = BTreeMap::new();
    let mut spins: BTreeMap<u16, u64> = BTreeMap::new();
    for event in events {
        let lock = usize::try_from(event.arg).ok();
        let lock = lock.and_then(|lock| locks.get(lock));
        match event.kind {
            EventKind::LockSpin => {
                spins.insert(event.task.0, event.at_ns);
            }
            EventKind::LockAcquire | EventKind::ReadAcquire => {
                let since_ns = spins.remove(&event.task.0);
                let Some(lock) = lock.filter(|lock| lock.kind != LockKind::Mutex) else {
                    continue;
                };
                let class = class_of(&lock.name).to_owned();
                let count = counts.entry(class).or_default();
                count.taken += 1;
                count.contended += u64::from(since_ns.is_some());
                count.waited_ns += since_ns.map_or(0, |since_ns| event.at_ns - since_ns);
            }
            EventKind::LockSpinEnd => {
                spins.remove(&event.task.0);
            }
            _ => {}
        }
    }
    counts
}

/// Runs with their names as a table.
#[must_use]
pub fn contention_text(rows: &[(String, Contention)]) -> String {
    let mut text = String::from(
        "design            page cycles  pool pages  lock               taken  contended   waited us\n",
    );
    for (name, row) in rows {
        let mut first = format!("{name:<17} {:>11} {:>11}", row.cycles, row.pool_pages);
        for (lock, count) in &row.locks {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{first:<41}  {lock:<14} {:>9} {:>10} {:>11}",
                count.taken,
                count.contended,
                count.waited_ns / 1_000
            );
            first.clear();
        }
    }
    text
}
