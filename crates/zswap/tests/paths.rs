//! The paths on whole machines: what is read is what was stored, and who waits
//! for whom in which design.

use kernel_sim::{Event, EventKind, LockId, Machine, MachineConfig, Preemption, Stream, Task};
use std::cell::RefCell;
use std::rc::Rc;
use zswap_mm::fill::{Incompressible, SameFilled};
use zswap_mm::{Algorithm, Failslab, Page, PageContent, SwapSlot};
use zswap_paths::{Context, Costs, Design, Folio, LoadError, Preset, Probe, Zswap, ZswapOptions};
use zswap_paths::{swap_free, swap_read_folio, swap_writeout};

const COSTS: Costs = Costs {
    compress_ns: 16_000,
    decompress_ns: 6_000,
    store_ns: 4_000,
    load_ns: 2_750,
    store_locked_ns: 1_800,
    load_locked_ns: 600,
};

/// Slots of each task of the mixes.
const SLOTS: u64 = 40;
const TASKS: u64 = 5;

/// A task that stores, stores anew, loads and frees at random, and knows what
/// each of its slots must hold.
async fn mix(task: Task, zswap: Rc<Zswap>, first_slot: u64, seed: u64, steps: Rc<RefCell<u64>>) {
    let mut random = Stream::new(seed, "mix");
    let mut held: Vec<Option<Page>> = vec![None; SLOTS as usize];
    let mut landing = Page::zeroed();
    loop {
        let index = random.below(SLOTS) as usize;
        let slot = SwapSlot(first_slot + index as u64);
        match random.below(4) {
            0 | 1 => {
                let kind = random.below(PageContent::ALL.len() as u64) as usize;
                let mut page = Page::zeroed();
                PageContent::ALL[kind].fill(random.next_u64(), &mut page);
                let stored = swap_writeout(&task, &zswap, &Folio::of(slot, &page)).await;
                held[index] = stored.is_ok().then_some(page);
            }
            2 => {
                let read = swap_read_folio(&task, &zswap, slot, &mut landing).await;
                match held[index].take() {
                    Some(page) => {
                        assert!(read.is_ok() && landing == page, "{slot:?}");
                        // Loads are exclusive, but the zeromap keeps its note.
                        let noted = zswap.design().same_filled == SameFilled::Zeromap;
                        held[index] = (noted && page == Page::zeroed()).then_some(page);
                    }
                    None => assert_eq!(read, Err(LoadError::NotFound), "{slot:?}"),
                }
            }
            _ => {
                swap_free(&task, &zswap, slot).await;
                held[index] = None;
            }
        }
        *steps.borrow_mut() += 1;
        task.run_user(100).await;
    }
}

struct Mixed {
    events: Vec<Event>,
    zswap: Rc<Zswap>,
    steps: u64,
    hash: u64,
}

fn run_mix(design: Design, preempt: Preemption, seed: u64, faults: u32) -> Mixed {
    run_mix_for(MIX_NS, design, preempt, seed, faults)
}

/// Virtual time of a mix: long enough for every path to be taken often.
const MIX_NS: u64 = 100_000_000;

fn run_mix_for(mix_ns: u64, design: Design, preempt: Preemption, seed: u64, faults: u32) -> Mixed {
    let config = MachineConfig {
        preempt,
        checks: true,
        ..MachineConfig::default()
    };
    let mut machine = Machine::new(config).expect("a machine that can be");
    let options = ZswapOptions::new(design, COSTS, SLOTS * TASKS, seed);
    let codec = design.algorithm.new_compressor();
    let zswap = Rc::new(Zswap::new(&mut machine, options, codec).expect("no failure is injected"));
    if faults > 0 {
        zswap.inject_faults(&Failslab::per_million(faults, seed));
    }
    let steps = Rc::new(RefCell::new(0));
    for (number, nice) in (0..TASKS).zip([-10, 0, 0, 5, 10]) {
        let (zswap, steps) = (Rc::clone(&zswap), Rc::clone(&steps));
        let body = move |task| mix(task, zswap, number * SLOTS, seed + number, steps);
        machine
            .spawn(format!("mixer {number}"), nice, body)
            .expect("a valid nice");
    }
    machine.run_until(mix_ns).expect("no rule is broken");
    let mut events = Vec::new();
    machine.take_events(&mut events);
    let steps = *steps.borrow();
    Mixed {
        events,
        zswap,
        steps,
        hash: machine.trace_hash(),
    }
}

fn design(context: Context, algorithm: Algorithm) -> Design {
    Design {
        context,
        algorithm,
        ..Design::default()
    }
}

fn designs() -> impl Iterator<Item = Design> {
    let algorithms = [
        Algorithm::Zstd,
        Algorithm::Deflate,
        Algorithm::Lz4,
        Algorithm::DeflateIaa,
    ];
    Preset::ALL.into_iter().flat_map(move |preset| {
        algorithms.map(|algorithm| Design {
            algorithm,
            ..preset.design()
        })
    })
}

#[test]
fn what_is_read_is_what_was_stored_last_in_every_design() {
    for design in designs() {
        for preempt in [Preemption::Lazy, Preemption::Full, Preemption::None] {
            let mixed = run_mix_for(30_000_000, design, preempt, 7, 0);
            assert!(mixed.steps > 1_000, "{design:?} {}", mixed.steps);
            let counters = mixed.zswap.counters();
            assert!(counters.zswpin > 100, "{design:?}");
            let raw = counters.stored_incompressible_pages > 0;
            assert_eq!(raw, design.incompressible == Incompressible::StoreRaw);
        }
    }
}

#[test]
fn failing_allocations_lose_nothing_and_leak_nothing() {
    for context in Context::ALL {
        let algorithm = Algorithm::Zstd;
        let mixed = run_mix(design(context, algorithm), Preemption::Lazy, 3, 100_000);
        let counters = mixed.zswap.counters();
        assert!(counters.reject_alloc_fail > 20, "{counters:?}");
        assert!(counters.reject_kmemcache_fail > 20, "{counters:?}");
        // Objects of the pool and entries of the index are the same in number.
        let count = |code: Probe| {
            let is = |event: &&Event| event.kind == EventKind::Probe && event.aux == code as u16;
            mixed.events.iter().filter(is).count() as u64
        };
        let objects = count(Probe::ObjectAlloc) - count(Probe::ObjectFree);
        // A task caught between allocation and insertion holds one more each.
        assert!((counters.stored_pages..=counters.stored_pages + TASKS).contains(&objects));
        assert_eq!(counters.zswpout, count(Probe::StoreEnd));
    }
}

#[test]
fn the_same_mix_gives_the_same_trace() {
    let design = design(Context::Shared, Algorithm::Zstd);
    let hash = |seed| run_mix(design, Preemption::Lazy, seed, 50_000).hash;
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

/// For each wait on a mutex, whether the waiter loads and whether the owner
/// stores.
fn waits(events: &[Event], mutexes: &[LockId]) -> Vec<(bool, bool)> {
    let mut stores = [false; TASKS as usize];
    let mut owners = vec![None; 256];
    let mut waits = Vec::new();
    for event in events {
        let task = event.task.index();
        match event.kind {
            EventKind::Probe if event.aux == Probe::StoreBegin as u16 => stores[task] = true,
            EventKind::Probe if event.aux == Probe::LoadBegin as u16 => stores[task] = false,
            EventKind::LockAcquire => owners[event.arg as usize] = Some(task),
            EventKind::LockRelease => owners[event.arg as usize] = None,
            EventKind::LockWait if mutexes.iter().any(|lock| u64::from(lock.0) == event.arg) => {
                if let Some(owner) = owners[event.arg as usize] {
                    waits.push((!stores[task], stores[owner]));
                }
            }
            _ => {}
        }
    }
    waits
}

#[test]
fn a_load_waits_for_stores_only_in_the_shared_design() {
    for (context, mutexes) in [
        (Context::Shared, vec![LockId(0)]),
        (Context::Split, vec![LockId(0), LockId(1)]),
        (Context::Onstack, vec![LockId(0), LockId(1)]),
    ] {
        let algorithm = Algorithm::Zstd;
        let mixed = run_mix_for(
            4 * MIX_NS,
            design(context, algorithm),
            Preemption::Lazy,
            5,
            0,
        );
        let waits = waits(&mixed.events, &mutexes);
        let count = |loads, stores| {
            waits
                .iter()
                .filter(|&&wait| wait == (loads, stores))
                .count()
        };
        assert!(count(false, true) > 0, "stores wait for stores");
        match context {
            Context::Shared => assert!(count(true, true) > 0),
            Context::Split => {
                assert_eq!(count(true, true), 0);
                assert!(count(true, false) > 0, "loads still wait for loads");
            }
            Context::Onstack => assert_eq!(count(true, true) + count(true, false), 0),
        }
    }
}

#[test]
fn an_asynchronous_compressor_keeps_its_mutex_whatever_the_design() {
    let design = design(Context::Onstack, Algorithm::DeflateIaa);
    let mixed = run_mix(design, Preemption::Lazy, 5, 0);
    let acquires = |lock: u64| {
        let is = |event: &&Event| event.kind == EventKind::LockAcquire && event.arg == lock;
        mixed.events.iter().filter(is).count() as u64
    };
    // Lock 1 is the decompression mutex: one for each page loaded, at least.
    assert!(acquires(1) >= mixed.zswap.counters().zswpin);
}

#[test]
fn the_mutex_is_taken_outside_the_stream_lock() {
    let design = design(Context::Shared, Algorithm::Zstd);
    let mixed = run_mix(design, Preemption::Lazy, 5, 0);
    let mut held = vec![Vec::new(); TASKS as usize];
    for event in &mixed.events {
        if event.arg > 1 {
            continue;
        }
        let held = &mut held[event.task.index().min(TASKS as usize - 1)];
        match event.kind {
            EventKind::LockAcquire if event.arg == 0 => assert!(held.is_empty()),
            EventKind::LockAcquire if event.arg == 1 => assert_eq!(*held, [0]),
            _ => {}
        }
        match event.kind {
            EventKind::LockAcquire => held.push(event.arg),
            EventKind::LockRelease => held.retain(|&lock| lock != event.arg),
            _ => {}
        }
    }
}
