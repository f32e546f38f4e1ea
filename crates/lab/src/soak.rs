//! Random mixes of all paths on random machines, for as long as you like.
//!
//! A round is a machine with a random design, number of CPUs, preemption model,
//! compressor, device and size of memory. Its tasks page out, fault, change,
//! give up and read ahead their memory while compressors are switched, CPUs come
//! and go, allocations, the device and the accelerator fail, and limits are hit.
//!
//! Invariants that each round checks:
//! 1. Every page that is read equals what was stored last.
//! 2. No task breaks a rule of the kernel, and no two take two locks in
//!    different orders.
//! 3. After swapoff every page is in memory, and all memory is accounted for.
//!
//! Left out: failing decompressions in the designs that have a `BUG_ON` there.
//!
//! ```
//! use zswap_lab::{Soak, soak};
//! let report = soak(Soak { ops: 2_000, seed: 1 })?;
//! assert!(report.ops >= 2_000);
//! # Ok::<(), zswap_lab::SoakError>(())
//! ```

use crate::locks::{LockOrder, OrderViolation};
use crate::scenario::Scenario;
use core::cell::Cell;
use kernel_sim::{AcceleratorOptions, ConfigError, CpuId, Device, Event, Fault, Machine};
use kernel_sim::{MachineConfig, Preemption, RamdiskOptions, SpawnError, SsdOptions, Stream, Task};
use std::rc::Rc;
use zswap_mm::cgroup::CgroupId;
use zswap_mm::counters::ZswapCounters;
use zswap_mm::lifecycle::PoolError;
use zswap_mm::{Algorithm, Failslab, IndexKind, Page, PageContent, SwapSlot};
use zswap_paths::{Allocator, Context, ContextLife, Design, Mm, Preset, Zswap, ZswapOptions};
use zswap_paths::{do_swap_page, madvise_pageout, swap_free, swapoff, zswap_setup};
use zswap_paths::{zswap_compressor_param_set, zswap_cpu_down, zswap_cpu_up};

/// How much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Soak {
    /// Operations of tasks, at least.
    pub ops: u64,
    /// Seed of all rounds.
    pub seed: u64,
}

/// What a soak has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoakReport {
    /// Machines.
    pub rounds: u64,
    /// Operations of their tasks.
    pub ops: u64,
    /// Faults that brought a page back, each compared with what went out.
    pub reads: u64,
    /// Changes of the compressor.
    pub switches: u64,
    /// Records.
    pub events: u64,
    /// zswap's counters over all rounds.
    pub counters: ZswapCounters,
}

/// What a soak has found.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// There can be no such machine.
    #[error(transparent)]
    Machine(#[from] ConfigError),
    /// A task could not be created.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The first pool could not be created.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A rule is broken, or a page was not what it should be.
    #[error("round {round} ({design:?}): {fault}")]
    Fault {
        /// Which round.
        round: u64,
        /// Its design.
        design: Box<Design>,
        /// The fault.
        fault: Fault,
    },
    /// Two locks are taken in different orders.
    #[error("round {round} ({design:?}): {violation}")]
    Order {
        /// Which round.
        round: u64,
        /// Its design.
        design: Box<Design>,
        /// The violation.
        violation: OrderViolation,
    },
    /// Memory is not accounted for, a page did not come back, or tasks stopped.
    #[error("round {round} ({design:?}): {what}")]
    Books {
        /// Which round.
        round: u64,
        /// Its design.
        design: Box<Design>,
        /// What does not add up.
        what: String,
    },
}

/// Operations of a round.
const ROUND_OPS: u64 = 4_000;
/// Pages of a task.
const PAGES: usize = 96;
/// Contents are drawn from so many seeds, so that most are compressed once.
const CONTENTS: u64 = 24;

fn pick<T: Copy, const N: usize>(random: &mut Stream, from: [T; N]) -> T {
    from[random.below(N as u64) as usize]
}

/// A design that was, or one whose parts were never together.
fn random_design(random: &mut Stream) -> Design {
    let preset = pick(random, Preset::ALL).design();
    let design = Design {
        algorithm: pick(random, Algorithm::ALL),
        ..preset
    };
    if random.below(2) == 0 {
        return design;
    }
    Design {
        context: pick(random, Context::ALL),
        index: pick(random, IndexKind::ALL),
        allocator: pick(random, Allocator::ALL),
        zpools: pick(random, [1, 32]),
        context_life: pick(random, [ContextLife::CpuDead, ContextLife::Pool]),
        same_filled: pick(random, Preset::ALL).design().same_filled,
        incompressible: pick(random, Preset::ALL).design().incompressible,
        ..design
    }
}

fn content(random: &mut Stream) -> Page {
    let kind = pick(random, PageContent::ALL);
    let mut page = Page::zeroed();
    kind.fill(random.below(CONTENTS), &mut page);
    page
}

/// What the tasks of a round share.
struct Shared {
    zswap: Rc<Zswap>,
    ops: Cell<u64>,
    reads: Cell<u64>,
    switches: Cell<u64>,
    running: Cell<u64>,
}

fn bump(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// Uses its memory in all ways there are.
async fn mixer(task: Task, shared: Rc<Shared>, mm: Rc<Mm>, ops: u64, seed: u64) {
    let random = &mut Stream::new(seed, "mixer");
    let zswap = &shared.zswap;
    for _ in 0..ops {
        let page = random.below(PAGES as u64) as usize;
        match random.below(12) {
            0..=3 => {
                let end = PAGES.min(page + 1 + random.below(8) as usize);
                madvise_pageout(&task, zswap, &mm, page..end).await;
            }
            4..=8 => fault(&task, &shared, &mm, page).await,
            9..=10 => {
                fault(&task, &shared, &mm, page).await;
                let new = content(random);
                if mm.is_resident(page) {
                    mm.write(page, |old| *old = new);
                }
            }
            _ => {
                swap_free(&task, zswap, mm.slot(page)).await;
                mm.bring_in(page);
            }
        }
        bump(&shared.ops);
        task.run_user(200).await;
    }
    shared.running.set(shared.running.get() - 1);
}

/// Faults until the page is there: a device that fails, fails a few times only,
/// and so does the accelerator.
async fn fault(task: &Task, shared: &Shared, mm: &Mm, page: usize) {
    for _ in 0..50 {
        if mm.is_resident(page) || do_swap_page(task, &shared.zswap, mm, page).await.is_ok() {
            bump(&shared.reads);
            return;
        }
    }
    task.fail(format!("slot {} cannot be read", mm.slot(page).0));
}

/// Changes the compressor, lets CPUs come and go, switches zswap off and on.
async fn manager(task: Task, shared: Rc<Shared>, algorithms: Vec<Algorithm>, cpus: u8, seed: u64) {
    let random = &mut Stream::new(seed, "manager");
    let zswap = &shared.zswap;
    while shared.running.get() > 0 {
        task.sleep(1_000_000 + random.below(4_000_000)).await;
        match random.below(6) {
            0..=2 => {
                let at = random.below(algorithms.len() as u64) as usize;
                let switched = zswap_compressor_param_set(&task, zswap, algorithms[at]).await;
                shared
                    .switches
                    .set(shared.switches.get() + u64::from(switched.is_ok()));
            }
            3..=4 => {
                let cpu = CpuId(random.below(cpus.into()) as u8);
                zswap_cpu_down(&task, zswap, cpu).await;
                task.sleep(random.below(100_000)).await;
                zswap_cpu_up(&task, zswap, cpu).await;
            }
            _ => {
                zswap.set_enabled(false);
                task.sleep(random.below(200_000)).await;
                zswap.set_enabled(true);
            }
        }
    }
}

/// A machine and what is needed to make it fail.
struct Round {
    number: u64,
    design: Design,
    machine: Machine,
    device: Device,
    shared: Rc<Shared>,
    mms: Vec<Rc<Mm>>,
    order: LockOrder,
    events: Vec<Event>,
}

/// Soaks.
///
/// # Errors
/// What was found first.
pub fn soak(soak: Soak) -> Result<SoakReport, SoakError> {
    let mut report = SoakReport::default();
    while report.ops < soak.ops {
        let seed = soak
            .seed
            .wrapping_mul(1_000_003)
            .wrapping_add(report.rounds);
        let mut random = Stream::new(seed, "round");
        let ops = ROUND_OPS.min(soak.ops - report.ops).max(64);
        let mut round = Round::start(report.rounds, &mut random, seed, ops)?;
        round.run(&mut random)?;
        round.swapoff()?;
        report.rounds += 1;
        report.ops += round.shared.ops.get();
        report.reads += round.shared.reads.get();
        report.switches += round.shared.switches.get();
        report.events += round.machine.event_count();
        add(&mut report.counters, &round.shared.zswap.counters());
    }
    Ok(report)
}

impl Round {
    fn start(number: u64, random: &mut Stream, seed: u64, ops: u64) -> Result<Round, SoakError> {
        let design = random_design(random);
        let cpus = 1 + random.below(4) as u8;
        let config = MachineConfig {
            cpus,
            seed,
            preempt: pick(
                random,
                [Preemption::Lazy, Preemption::Full, Preemption::None],
            ),
            // They look at every lock at every step.
            checks: random.below(4) == 0 && !(design.allocator.has_class_locks()),
            ..MachineConfig::default()
        };
        let mut machine = Machine::new(config)?;
        let device = if random.below(2) == 0 {
            machine.ramdisk("ram0", RamdiskOptions::default())
        } else {
            machine.ssd("ssd", SsdOptions::default())
        };
        let tasks = 2 + random.below(4);
        // The tasks' memory lies in two trees.
        let first_slot = |task: u64| task * PAGES as u64 + task % 2 * (1 << 14);
        let others = Algorithm::ALL
            .into_iter()
            .filter(|other| *other != design.algorithm);
        let options = ZswapOptions {
            totalram_pages: pick(random, [200, 1_000, 1 << 30]),
            pools: 6,
            algorithms: others.take(2).collect(),
            new_compressor: Some(Algorithm::new_compressor),
            device: Some(device),
            accelerator: AcceleratorOptions {
                queue_max: pick(random, [0, 2, 128]),
                engines: pick(random, [1, 8]),
                ..AcceleratorOptions::default()
            },
            ..ZswapOptions::new(design, Scenario::default().costs, 2 << 14, seed)
        };
        let algorithms = [&options.algorithms[..], &[design.algorithm]].concat();
        let zswap = Rc::new(Zswap::new(
            &mut machine,
            options,
            design.algorithm.new_compressor(),
        )?);
        zswap_setup(&mut machine, &zswap)?;
        if random.below(2) == 0 {
            zswap.inject_faults(&Failslab::per_million(pick(random, [1_000, 30_000]), seed));
        }
        let shared = Rc::new(Shared {
            zswap: Rc::clone(&zswap),
            ops: Cell::new(0),
            reads: Cell::new(0),
            switches: Cell::new(0),
            running: Cell::new(tasks),
        });
        let mut mms = Vec::new();
        for task in 0..tasks {
            let cgroup = zswap.with_cgroups(|cgroups| cgroups.create(CgroupId::ROOT));
            zswap.with_cgroups(|cgroups| match random.below(4) {
                0 => cgroups.set_zswap_max(cgroup, Some(random.below(20))),
                1 => cgroups.set_writeback(cgroup, false),
                _ => {}
            });
            let pages = (0..PAGES).map(|_| content(random)).collect();
            let mut mm = Mm::new(cgroup, SwapSlot(first_slot(task)), pages);
            mm.max_pages = pick(random, [8, 64, PAGES]);
            mm.page_cluster = pick(random, [0, 0, 3]);
            mm.shrinker_enabled = random.below(2) == 0;
            let mm = Rc::new(mm);
            mms.push(Rc::clone(&mm));
            let nice = pick(random, [-19, -5, 0, 0, 10, 19]);
            let shared = Rc::clone(&shared);
            let seed = seed ^ task << 32;
            machine.spawn(format!("mixer {task}"), nice, move |handle| {
                mixer(handle, shared, mm, ops.div_ceil(tasks), seed)
            })?;
        }
        let of_manager = Rc::clone(&shared);
        machine.spawn("manager", 0, move |task| {
            manager(task, of_manager, algorithms, cpus, seed)
        })?;
        let order = LockOrder::new(&machine.locks());
        Ok(Round {
            number,
            design,
            machine,
            device,
            shared,
            mms,
            order,
            events: Vec::new(),
        })
    }

    fn books(&self, what: String) -> SoakError {
        SoakError::Books {
            round: self.number,
            design: Box::new(self.design),
            what,
        }
    }

    /// Goes on for so long, and looks at the records.
    fn advance(&mut self, ns: u64) -> Result<(), SoakError> {
        let until_ns = self.machine.now_ns() + ns;
        let ran = self.machine.run_until(until_ns);
        let design = || Box::new(self.design);
        let round = self.number;
        ran.map_err(|fault| SoakError::Fault {
            round,
            design: design(),
            fault,
        })?;
        self.machine.take_events(&mut self.events);
        for event in &self.events {
            let followed = self.order.follow(event);
            followed.map_err(|violation| SoakError::Order {
                round,
                design: design(),
                violation,
            })?;
        }
        Ok(())
    }

    fn run(&mut self, random: &mut Stream) -> Result<(), SoakError> {
        let mut before = 0;
        let mut idle = 0;
        while self.shared.running.get() > 0 {
            if random.below(4) == 0 {
                self.machine
                    .fail_next_io(self.device, 1 + random.below(3) as u32);
            }
            self.advance(10_000_000)?;
            let ops = self.shared.ops.get();
            idle = if ops == before { idle + 1 } else { 0 };
            before = ops;
            if idle > 3_000 {
                return Err(self.books("no operation has ended for 30 s".to_owned()));
            }
        }
        self.machine.fail_next_io(self.device, 0);
        // The manager ends, the work items and grace periods pass.
        self.advance(300_000_000)
    }

    fn swapoff(&mut self) -> Result<(), SoakError> {
        let zswap = Rc::clone(&self.shared.zswap);
        zswap.inject_faults(&Failslab::never());
        let checked = zswap.check();
        checked.map_err(|what| self.books(format!("before swapoff: {what}")))?;
        let mms = self.mms.clone();
        let shared = Rc::clone(&self.shared);
        shared.running.set(1);
        self.machine.spawn("swapoff", 0, move |task| async move {
            let given = |slot: SwapSlot, page: &Page| give_back(&task, &mms, slot, page);
            if let Err(lost) = swapoff(&task, &shared.zswap, given).await {
                task.fail(format!("swapoff cannot read {} slots", lost.len()));
            }
            shared.running.set(0);
        })?;
        while self.shared.running.get() > 0 {
            self.advance(50_000_000)?;
        }
        self.advance(300_000_000)?;
        let checked = zswap.check();
        checked.map_err(|what| self.books(format!("after swapoff: {what}")))?;
        let resident = self.mms.iter().all(|mm| mm.resident() == mm.len());
        if !resident || zswap.counters().stored_pages > 0 {
            return Err(self.books("after swapoff a page is not in memory".to_owned()));
        }
        Ok(())
    }
}

/// A page comes back to its owner, who knows what it must be.
fn give_back(task: &Task, mms: &[Rc<Mm>], slot: SwapSlot, page: &Page) {
    let mm = mms.iter().find(|mm| {
        let first = mm.first_slot.0;
        (first..first + mm.len() as u64).contains(&slot.0)
    });
    let Some(mm) = mm else {
        task.fail(format!("slot {} has a page and no owner", slot.0));
        return;
    };
    let index = (slot.0 - mm.first_slot.0) as usize;
    if !mm.is_resident(index) && mm.contents(index) != *page {
        task.fail(format!(
            "slot {} holds other bytes than it was given",
            slot.0
        ));
    }
    mm.bring_in(index);
}

fn add(sum: &mut ZswapCounters, one: &ZswapCounters) {
    sum.pool_limit_hit += one.pool_limit_hit;
    sum.reject_reclaim_fail += one.reject_reclaim_fail;
    sum.reject_alloc_fail += one.reject_alloc_fail;
    sum.reject_kmemcache_fail += one.reject_kmemcache_fail;
    sum.reject_compress_fail += one.reject_compress_fail;
    sum.reject_compress_poor += one.reject_compress_poor;
    sum.decompress_fail += one.decompress_fail;
    sum.written_back_pages += one.written_back_pages;
    sum.duplicate_entry += one.duplicate_entry;
    sum.zswpin += one.zswpin;
    sum.zswpout += one.zswpout;
    sum.zswpwb += one.zswpwb;
}
