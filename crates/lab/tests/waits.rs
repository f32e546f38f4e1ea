//! Who waits for whom, over long runs: the chains of waits, link by link.

use kernel_sim::{Event, EventKind, Machine, MachineConfig, SsdOptions};
use std::rc::Rc;
use zswap_mm::cgroup::CgroupId;
use zswap_mm::{Algorithm, Page, PageContent, SwapSlot};
use zswap_paths::{Design, Mm, Preset, Probe, Zswap, ZswapOptions};
use zswap_paths::{do_swap_page, madvise_pageout, write_back_oldest};

/// What a task is at when it waits or is waited for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Path {
    None,
    Store,
    Load,
    Writeback,
}

/// For every wait for a mutex of zswap by one at `Path`, the paths of all those
/// up the chain.
fn chains(events: &[Event], locks: &[kernel_sim::LockInfo]) -> Vec<(Path, Vec<Path>)> {
    let mut paths = [Path::None; 64];
    let mut waits: [Option<usize>; 64] = [None; 64];
    let mut owners: Vec<Option<usize>> = vec![None; locks.len()];
    let mut found = Vec::new();
    for event in events {
        let task = event.task.index().min(63);
        let lock = usize::try_from(event.arg).unwrap_or(0).min(locks.len() - 1);
        match (event.kind, Probe::from_code(event.aux)) {
            (EventKind::Probe, Some(Probe::StoreBegin)) => paths[task] = Path::Store,
            (EventKind::Probe, Some(Probe::LoadBegin)) => paths[task] = Path::Load,
            (EventKind::Probe, Some(Probe::WritebackBegin)) => paths[task] = Path::Writeback,
            (
                EventKind::Probe,
                Some(
                    Probe::StoreEnd
                    | Probe::StoreRejected
                    | Probe::LoadEnd
                    | Probe::WritebackEnd
                    | Probe::WritebackFailed,
                ),
            ) => paths[task] = Path::None,
            (EventKind::LockAcquire, _) => {
                owners[lock] = Some(task);
                waits[task] = None;
            }
            (EventKind::LockRelease, _) => owners[lock] = None,
            (EventKind::LockWait, _) if locks[lock].name.starts_with("acomp_ctx") => {
                waits[task] = Some(lock);
                let mut chain = Vec::new();
                let mut at = lock;
                while let Some(owner) = owners[at] {
                    chain.push(paths[owner]);
                    let Some(next) = waits[owner] else { break };
                    at = next;
                }
                found.push((paths[task], chain));
            }
            _ => {}
        }
    }
    found
}

/// Four tasks of several priorities page in and out for a second while a
/// fifth writes back; returns the chains and how many loads there were.
fn run(design: Design, cpus: u8) -> (Vec<(Path, Vec<Path>)>, u64) {
    let config = MachineConfig {
        cpus,
        ..MachineConfig::default()
    };
    let mut machine = Machine::new(config).expect("a machine");
    let device = machine.ssd("ssd", SsdOptions::default());
    let costs = zswap_lab::Scenario::default().costs;
    let options = ZswapOptions {
        device: Some(device),
        ..ZswapOptions::new(design, costs, 1 << 10, 1)
    };
    let zswap = Rc::new(
        Zswap::new(&mut machine, options, design.algorithm.new_compressor()).expect("a pool"),
    );
    for (number, nice) in (0..6_u64).zip([10, 10, 5, 0, -19, -19]) {
        let zswap = Rc::clone(&zswap);
        let page = |index| {
            let mut page = Page::zeroed();
            PageContent::Text.fill(number << 8 | index, &mut page);
            page
        };
        let mm = Mm::new(
            CgroupId::ROOT,
            SwapSlot(number * 64),
            (0..64).map(page).collect(),
        );
        let body = move |task: kernel_sim::Task| async move {
            loop {
                madvise_pageout(&task, &zswap, &mm, 0..64).await;
                for page in 0..64 {
                    if do_swap_page(&task, &zswap, &mm, page).await.is_err() {
                        task.fail("a page cannot be read".to_owned());
                    }
                    if nice < 0 {
                        task.sleep(50_000).await;
                    }
                }
            }
        };
        machine
            .spawn(format!("pager {number}"), nice, body)
            .expect("a valid nice");
    }
    let of_writer = Rc::clone(&zswap);
    let writer = move |task: kernel_sim::Task| async move {
        loop {
            // Long enough to lose the CPU in the middle of one.
            for _ in 0..30 {
                write_back_oldest(&task, &of_writer).await;
            }
            task.sleep(1_000_000).await;
        }
    };
    machine
        .spawn("writeback", 10, writer)
        .expect("a valid nice");
    let mut found = Vec::new();
    machine.run_until(1_000_000_000).expect("no rule is broken");
    let mut events = Vec::new();
    machine.take_events(&mut events);
    found.extend(chains(&events, &machine.locks()));
    (found, zswap.counters().zswpin)
}

fn waits_of_loads(found: &[(Path, Vec<Path>)], on: Path) -> usize {
    let loads = found.iter().filter(|(path, _)| *path == Path::Load);
    loads.filter(|(_, chain)| chain.contains(&on)).count()
}

#[test]
fn before_the_split_loads_wait_for_stores() {
    let (found, _) = run(Preset::BeforeTheSplit.design(), 1);
    assert!(waits_of_loads(&found, Path::Store) > 10);
}

#[test]
fn with_patch_1_they_wait_for_loads_and_writebacks_and_never_for_a_store() {
    let mut of_loads = 0;
    let mut of_writebacks = 0;
    for cpus in [1, 3] {
        let (found, loads) = run(Preset::Patch1.design(), cpus);
        assert!(loads > 500);
        assert_eq!(waits_of_loads(&found, Path::Store), 0, "{cpus} CPUs");
        of_loads += waits_of_loads(&found, Path::Load);
        of_writebacks += waits_of_loads(&found, Path::Writeback);
    }
    assert!(
        of_loads > 0 && of_writebacks > 0,
        "{of_loads} {of_writebacks}"
    );
}

#[test]
fn with_patch_2_they_wait_for_nobody_unless_hardware_decompresses() {
    let (found, loads) = run(Preset::Patch2.design(), 1);
    assert!(loads > 500);
    assert!(found.iter().all(|(path, _)| *path == Path::Store));
    let hardware = Design {
        algorithm: Algorithm::DeflateIaa,
        ..Preset::Patch2.design()
    };
    let (found, _) = run(hardware, 1);
    assert!(found.iter().any(|(path, _)| *path == Path::Load));
    assert_eq!(waits_of_loads(&found, Path::Store), 0);
}
