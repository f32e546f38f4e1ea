//! Limits, writeback, pools, hotplug, hardware and failures, each alone on a
//! machine.

use core::future::Future;
use kernel_sim::{
    CpuId, Device, Event, EventKind, Fault, Job, Machine, MachineConfig, SsdOptions, Task,
};
use std::cell::Cell;
use std::rc::Rc;
use zswap_mm::cgroup::CgroupId;
use zswap_mm::lifecycle::ErrorPath;
use zswap_mm::{Algorithm, AllocSite, Failslab, IndexKind, Page, PageContent, SwapSlot};
use zswap_paths::{
    Allocator, Costs, Design, Folio, LoadError, Preset, Probe, StoreError, SwitchError,
};
use zswap_paths::{Zswap, ZswapOptions, swap_cluster_readahead, swap_free, swap_read_folio};
use zswap_paths::{swap_writeout, swapoff, write_back_oldest, zswap_compressor_param_set};
use zswap_paths::{zswap_cpu_down, zswap_cpu_up, zswap_setup, zswap_shrinker_count};
use zswap_paths::{zswap_shrinker_scan, zswap_store};

const COSTS: Costs = Costs {
    compress_ns: 16_000,
    decompress_ns: 6_000,
    store_ns: 4_000,
    load_ns: 2_750,
    store_locked_ns: 1_800,
    load_locked_ns: 600,
};

fn page(kind: PageContent, seed: u64) -> Page {
    let mut page = Page::zeroed();
    kind.fill(seed, &mut page);
    page
}

fn text(seed: u64) -> Page {
    page(PageContent::Text, seed)
}

struct Bench {
    machine: Machine,
    zswap: Rc<Zswap>,
    device: Device,
}

impl Bench {
    fn new(design: Design, change: impl FnOnce(&mut ZswapOptions)) -> Bench {
        let mut machine = Machine::new(MachineConfig::default()).expect("a machine");
        let device = machine.ssd("ssd", SsdOptions::default());
        let mut options = ZswapOptions::new(design, COSTS, 1 << 15, 1);
        options.device = Some(device);
        change(&mut options);
        options.new_compressor = Some(Algorithm::new_compressor);
        let codec = design.algorithm.new_compressor();
        let zswap = Rc::new(Zswap::new(&mut machine, options, codec).expect("a pool"));
        zswap_setup(&mut machine, &zswap).expect("two workers");
        Bench {
            machine,
            zswap,
            device,
        }
    }

    /// Runs a task to its end, and then what it leaves to others.
    fn run<F>(&mut self, body: impl FnOnce(Task, Rc<Zswap>) -> F + 'static) -> Result<(), Fault>
    where
        F: Future<Output = ()> + 'static,
    {
        let zswap = Rc::clone(&self.zswap);
        let done = Rc::new(Cell::new(false));
        let ended = Rc::clone(&done);
        let spawned = self.machine.spawn("test", 0, move |task| async move {
            body(task, zswap).await;
            ended.set(true);
        });
        spawned.expect("a valid nice");
        for _ in 0..1_000 {
            if done.get() {
                break;
            }
            let until_ns = self.machine.now_ns() + 10_000_000;
            self.machine.run_until(until_ns)?;
        }
        assert!(done.get(), "the task ends");
        let until_ns = self.machine.now_ns() + 200_000_000;
        self.machine.run_until(until_ns)
    }
}

async fn store(task: &Task, zswap: &Zswap, slot: u64, page: &Page) -> Result<(), StoreError> {
    swap_writeout(task, zswap, &Folio::of(SwapSlot(slot), page)).await
}

async fn load(task: &Task, zswap: &Zswap, slot: u64) -> Result<Page, LoadError> {
    let mut page = Page::zeroed();
    let read = swap_read_folio(task, zswap, SwapSlot(slot), &mut page).await;
    read.map(|()| page)
}

#[test]
fn a_failed_pool_creation_leaks_crashes_or_is_right_by_its_error_path() {
    for (path, leaks, crashes) in [
        (ErrorPath::ReturnNull, true, false),
        (ErrorPath::GotoErrorUnchecked, false, true),
        (ErrorPath::GotoError, false, false),
    ] {
        let mut bench = Bench::new(Design::default(), |options| {
            options.pools = 2;
            options.algorithms = vec![Algorithm::Lz4];
        });
        bench.zswap.with_pools(|pools| pools.set_error_path(path));
        bench
            .zswap
            .inject_faults(&Failslab::nth(1).only_at(AllocSite::Zpool));
        let ran = bench.run(|task, zswap| async move {
            let switched = zswap_compressor_param_set(&task, &zswap, Algorithm::Lz4).await;
            assert!(matches!(switched, Err(SwitchError::Pool(_))));
            // The current pool stays.
            assert_eq!(store(&task, &zswap, 1, &text(1)).await, Ok(()));
            assert_eq!(load(&task, &zswap, 1).await, Ok(text(1)));
        });
        match ran {
            Err(fault) => assert!(crashes && fault.to_string().contains("at NULL"), "{fault}"),
            Ok(()) => {
                assert!(!crashes);
                let leak = bench.zswap.check();
                assert_eq!(leak.is_err(), leaks, "{path:?} {leak:?}");
                assert!(
                    leak.err()
                        .is_none_or(|what| what.contains("struct zswap_pool: 2"))
                );
            }
        }
    }
}

#[test]
fn each_allocation_that_fails_raises_the_kernels_counter_and_loses_nothing() {
    for (site, preset) in [
        (AllocSite::ZswapEntry, Preset::BeforeTheSplit),
        (AllocSite::ZsHandle, Preset::V6_7),
        (AllocSite::Zspage, Preset::V6_11),
        (AllocSite::PageFrame, Preset::V6_18),
        (AllocSite::IndexNode, Preset::V6_10),
        (AllocSite::ListLru, Preset::Patch2),
    ] {
        let mut bench = Bench::new(preset.design(), |_| ());
        bench.zswap.inject_faults(&Failslab::nth(1).only_at(site));
        let ran = bench.run(|task, zswap| async move {
            // An older copy under the slot must not come back.
            assert_eq!(store(&task, &zswap, 9, &text(1)).await, Ok(()));
            assert_eq!(store(&task, &zswap, 9, &text(2)).await, Ok(()));
            assert_eq!(load(&task, &zswap, 9).await, Ok(text(2)));
        });
        ran.expect("no rule is broken");
        let counters = bench.zswap.counters();
        let entry = u64::from(site == AllocSite::ZswapEntry);
        let alloc = u64::from(site != AllocSite::ZswapEntry && site != AllocSite::ListLru);
        assert_eq!(counters.reject_kmemcache_fail, entry, "{site}");
        assert_eq!(counters.reject_alloc_fail, alloc, "{site}");
        assert_eq!(bench.zswap.check(), Ok(()), "{site}");
    }
}

#[test]
fn a_full_zswap_refuses_until_the_worker_is_down_to_the_threshold() {
    for preset in [Preset::V6_7, Preset::V6_11, Preset::BeforeTheSplit] {
        // 40 pages at most, 36 to accept again.
        let design = Design {
            zpools: 1,
            ..preset.design()
        };
        let mut bench = Bench::new(design, |options| options.totalram_pages = 200);
        let ran = bench.run(move |task, zswap| async move {
            for slot in 0..400 {
                let stored = store(&task, &zswap, slot, &text(slot)).await;
                assert_eq!(stored, Ok(()), "what zswap refuses goes to the device");
            }
            task.sleep(100_000_000).await;
            let pages = zswap.pool_pages();
            let settled =
                zswap.with_limits(|limits| !limits.reached_full || limits.can_accept(pages));
            assert!(settled, "{preset}: {pages} pages");
            for slot in 0..400 {
                assert_eq!(
                    load(&task, &zswap, slot).await,
                    Ok(text(slot)),
                    "{preset} {slot}"
                );
            }
        });
        ran.expect("no rule is broken");
        let counters = bench.zswap.counters();
        assert!(
            counters.pool_limit_hit > 0 && counters.written_back_pages > 20,
            "{counters:?}"
        );
        assert_eq!(counters.written_back_pages, counters.zswpwb);
        assert_eq!(bench.zswap.check(), Ok(()));
    }
}

#[test]
fn a_device_that_fails_to_write_leaves_the_page_where_it_can_be_read() {
    let mut bench = Bench::new(Design::default(), |_| ());
    bench.machine.fail_next_io(bench.device, 2);
    let ran = bench.run(|task, zswap| async move {
        assert_eq!(store(&task, &zswap, 3, &text(3)).await, Ok(()));
        write_back_oldest(&task, &zswap).await;
        task.sleep(5_000_000).await;
        assert_eq!(zswap.counters().written_back_pages, 1, "it left zswap");
        assert_eq!(
            load(&task, &zswap, 3).await,
            Ok(text(3)),
            "and is in the swap cache"
        );
        // A page that zswap refuses and the device does not take stays in memory.
        zswap.set_enabled(false);
        assert_eq!(
            store(&task, &zswap, 4, &text(4)).await,
            Err(StoreError::Device)
        );
        assert_eq!(load(&task, &zswap, 4).await, Err(LoadError::NotFound));
    });
    ran.expect("no rule is broken");
    assert_eq!(bench.zswap.check(), Ok(()));
}

#[test]
fn a_device_that_fails_to_read_says_so_and_keeps_the_page() {
    let mut bench = Bench::new(Design::default(), |_| ());
    let wrote = bench.run(|task, zswap| async move {
        zswap.set_enabled(false);
        assert_eq!(store(&task, &zswap, 3, &text(3)).await, Ok(()));
    });
    wrote.expect("no rule is broken");
    bench.machine.fail_next_io(bench.device, 1);
    let read = bench.run(|task, zswap| async move {
        assert_eq!(load(&task, &zswap, 3).await, Err(LoadError::Io));
        assert_eq!(load(&task, &zswap, 3).await, Ok(text(3)));
    });
    read.expect("no rule is broken");
}

#[test]
fn entries_have_a_second_chance_and_swapins_from_the_device_count_against_shrinking() {
    let mut bench = Bench::new(Design::default(), |_| ());
    let ran = bench.run(|task, zswap| async move {
        for slot in 0..20 {
            assert_eq!(store(&task, &zswap, slot, &text(slot)).await, Ok(()));
        }
        let root = CgroupId::ROOT;
        assert_eq!(
            zswap_shrinker_scan(&task, &zswap, root, 20).await,
            0,
            "all rotated"
        );
        let before = zswap_shrinker_count(&zswap, root);
        assert!(before > 0);
        assert_eq!(zswap_shrinker_scan(&task, &zswap, root, 10).await, 10);
        task.sleep(10_000_000).await;
        assert_eq!(zswap_shrinker_scan(&task, &zswap, root, 0).await, 0);
        let offered = zswap_shrinker_count(&zswap, root);
        // Pages 0 to 9 are on the device or on their way; the writes are done.
        write_back_oldest(&task, &zswap).await;
        for slot in 0..5 {
            assert_eq!(load(&task, &zswap, slot).await, Ok(text(slot)));
        }
        assert!(
            zswap_shrinker_count(&zswap, root) < offered,
            "the credit was used"
        );
    });
    ran.expect("no rule is broken");
    assert_eq!(bench.zswap.check(), Ok(()));
}

#[test]
fn a_slot_with_a_folio_is_warm_and_is_not_written_back() {
    let mut bench = Bench::new(Design::default(), |_| ());
    let ran = bench.run(|task, zswap| async move {
        for slot in 8..16 {
            assert_eq!(store(&task, &zswap, slot, &text(slot)).await, Ok(()));
        }
        // The window of slot 12 comes into the swap cache, and leaves zswap.
        swap_cluster_readahead(&task, &zswap, SwapSlot(12), 3).await;
        assert_eq!(zswap.counters().stored_pages, 1);
        assert_eq!(zswap.counters().zswpin, 7);
        for slot in 8..16 {
            assert_eq!(load(&task, &zswap, slot).await, Ok(text(slot)));
        }
        assert_eq!(zswap.counters().zswpin, 8);
        swap_cluster_readahead(&task, &zswap, SwapSlot(12), 0).await;
    });
    ran.expect("no rule is broken");
    assert_eq!(bench.zswap.check(), Ok(()));
}

#[test]
fn pages_of_an_old_compressor_stay_readable_and_keep_its_pool() {
    for preset in Preset::ALL {
        let mut bench = Bench::new(preset.design(), |options| {
            options.pools = 3;
            options.algorithms = vec![Algorithm::Lz4, Algorithm::Lzo];
        });
        let ran = bench.run(|task, zswap| async move {
            assert_eq!(store(&task, &zswap, 1, &text(1)).await, Ok(()));
            let lz4 = zswap_compressor_param_set(&task, &zswap, Algorithm::Lz4).await;
            assert!(lz4.is_ok());
            assert_eq!(store(&task, &zswap, 2, &text(2)).await, Ok(()));
            task.sleep(50_000_000).await;
            assert_eq!(zswap.with_pools(|pools| pools.live().count()), 2);
            assert_eq!(load(&task, &zswap, 1).await, Ok(text(1)));
            assert_eq!(load(&task, &zswap, 2).await, Ok(text(2)));
            task.sleep(50_000_000).await;
            assert_eq!(zswap.with_pools(|pools| pools.live().count()), 1);
            let none = zswap_compressor_param_set(&task, &zswap, Algorithm::Deflate).await;
            assert_eq!(none, Err(SwitchError::Unknown(Algorithm::Deflate)));
        });
        ran.expect("no rule is broken");
        assert_eq!(bench.zswap.check(), Ok(()), "{preset}");
    }
}

#[test]
fn a_dead_cpus_context_is_gone_in_the_older_design_only() {
    for (preset, waits) in [(Preset::V6_18, true), (Preset::Patch1, false)] {
        let mut bench = Bench::new(preset.design(), |_| ());
        let stored = Rc::new(Cell::new(false));
        let flag = Rc::clone(&stored);
        let zswap = Rc::clone(&bench.zswap);
        let spawned = bench.machine.spawn("store", 0, move |task| async move {
            task.sleep(1_000_000).await;
            assert_eq!(store(&task, &zswap, 1, &text(1)).await, Ok(()));
            flag.set(true);
        });
        spawned.expect("a valid nice");
        let ran = bench.run(move |task, zswap| async move {
            zswap_cpu_down(&task, &zswap, CpuId(0)).await;
            task.sleep(10_000_000).await;
            assert_eq!(stored.get(), !waits);
            zswap_cpu_up(&task, &zswap, CpuId(0)).await;
            task.sleep(10_000_000).await;
            assert!(stored.get());
        });
        ran.expect("no rule is broken");
    }
}

#[test]
fn swapoff_brings_everything_back_from_wherever_it_is() {
    let mut bench = Bench::new(Design::default(), |_| ());
    let ran = bench.run(|task, zswap| async move {
        for slot in 0..10 {
            assert_eq!(store(&task, &zswap, slot, &text(slot)).await, Ok(()));
        }
        assert_eq!(store(&task, &zswap, 10, &Page::zeroed()).await, Ok(()));
        write_back_oldest(&task, &zswap).await;
        let mut back = Vec::new();
        let off = swapoff(&task, &zswap, |slot, page| {
            back.push((slot.0, page.clone()))
        })
        .await;
        assert_eq!(off, Ok(()));
        let mut expected: Vec<(u64, Page)> = (0..10).map(|slot| (slot, text(slot))).collect();
        expected.push((10, Page::zeroed()));
        assert!(back == expected);
    });
    ran.expect("no rule is broken");
    assert_eq!(bench.zswap.counters().stored_pages, 0);
    assert_eq!(bench.zswap.check(), Ok(()));
}

#[test]
fn a_large_folio_is_stored_whole_or_not_at_all() {
    let mut bench = Bench::new(Design::default(), |options| options.device = None);
    let pages: Vec<Page> = (0..16).map(text).collect();
    let ran = bench.run(|task, zswap| async move {
        let folio = Folio {
            pages: &pages,
            ..Folio::of(SwapSlot(64), &pages[0])
        };
        assert_eq!(zswap_store(&task, &zswap, &folio).await, Ok(()));
        assert_eq!(zswap.counters().stored_pages, 16);
        zswap.inject_faults(&Failslab::nth(5).only_at(AllocSite::ZswapEntry));
        assert!(zswap_store(&task, &zswap, &folio).await.is_err());
        assert_eq!(
            zswap.counters().stored_pages,
            0,
            "older copies are gone too"
        );
    });
    ran.expect("no rule is broken");
    assert_eq!(bench.zswap.check(), Ok(()));
}

#[test]
fn hardware_compresses_and_a_full_queue_makes_the_cpu_do_it() {
    for (queue_max, by_cpu) in [(128, 0), (0, 1)] {
        let design = Design {
            algorithm: Algorithm::DeflateIaa,
            ..Design::default()
        };
        let mut bench = Bench::new(design, |options| {
            options.accelerator.engines = 1;
            options.accelerator.queue_max = queue_max;
        });
        // Somebody else has the only engine for 100 µs.
        let zswap = Rc::clone(&bench.zswap);
        let other = bench
            .machine
            .spawn("hardware user", 0, move |task| async move {
                let hardware = zswap.accelerator().expect("an asynchronous compressor");
                let request = task.submit_job(hardware, Job::compress(20)).await;
                assert_eq!(task.wait_for_request(request).await, Ok(()));
            });
        other.expect("a valid nice");
        let ran = bench.run(move |task, zswap| async move {
            assert_eq!(store(&task, &zswap, 1, &text(1)).await, Ok(()));
            task.sleep(1_000_000).await;
            assert_eq!(load(&task, &zswap, 1).await, Ok(text(1)));
        });
        ran.expect("no rule is broken");
        let mut events = Vec::new();
        bench.machine.take_events(&mut events);
        let begins = |event: &&Event| {
            event.kind == EventKind::Probe && event.aux == Probe::CompressBegin as u16
        };
        assert_eq!(events.iter().filter(begins).count(), by_cpu, "{queue_max}");
    }
}

#[test]
fn a_cgroup_at_its_limit_and_one_without_writeback_keep_their_pages() {
    let mut bench = Bench::new(Design::default(), |_| ());
    let ran = bench.run(|task, zswap| async move {
        let cgroup = zswap.with_cgroups(|cgroups| {
            let cgroup = cgroups.create(CgroupId::ROOT);
            cgroups.set_zswap_max(cgroup, Some(0));
            cgroups.set_writeback(cgroup, false);
            cgroup
        });
        let page = text(1);
        let folio = Folio {
            cgroup,
            ..Folio::of(SwapSlot(1), &page)
        };
        let stored = swap_writeout(&task, &zswap, &folio).await;
        assert_eq!(stored, Err(StoreError::CgroupLimit));
        swap_free(&task, &zswap, SwapSlot(1)).await;
    });
    ran.expect("no rule is broken");
}

#[test]
fn every_allocator_and_index_stores_and_loads() {
    for allocator in Allocator::ALL {
        for index in IndexKind::ALL {
            for zpools in [1, 32] {
                let design = Design {
                    allocator,
                    index,
                    zpools,
                    ..Design::default()
                };
                let mut bench = Bench::new(design, |_| ());
                let ran = bench.run(move |task, zswap| async move {
                    for slot in 0..40 {
                        let contents = page(PageContent::ALL[slot as usize % 6], slot);
                        assert_eq!(store(&task, &zswap, slot * 700, &contents).await, Ok(()));
                    }
                    for slot in 0..40 {
                        let contents = page(PageContent::ALL[slot as usize % 6], slot);
                        let loaded = load(&task, &zswap, slot * 700).await;
                        assert!(loaded == Ok(contents), "{design:?} {slot}");
                    }
                });
                ran.expect("no rule is broken");
                assert_eq!(bench.zswap.check(), Ok(()));
            }
        }
    }
}
