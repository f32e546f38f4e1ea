//! zram on whole machines: what is read is what was written, all memory is
//! accounted for, and who waits for whom in which design.

use kernel_sim::{Event, EventKind, Fault, Machine, MachineConfig, Preemption, Stream};
use kernel_sim::{Task, TaskActivity, TaskId};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use zswap_mm::{AllocSite, Failslab, Page, PageContent};
use zswap_paths::Probe;
use zswap_paths::zram::{Zram, ZramDesign, ZramError, ZramOptions, zram_bio_discard};
use zswap_paths::zram::{zram_bio_read, zram_bio_write, zram_slot_free_notify};

fn page(kind: PageContent, seed: u64) -> Page {
    let mut page = Page::zeroed();
    kind.fill(seed, &mut page);
    page
}

fn any_page(random: &mut Stream) -> Page {
    let kinds = PageContent::ALL;
    let kind = random.below(kinds.len() as u64 + 1) as usize;
    let mut filled = Page::zeroed();
    match kinds.get(kind) {
        Some(kind) => kind.fill(random.next_u64(), &mut filled),
        None => filled.fill_word(random.next_u64()),
    }
    filled
}

fn machine(cpus: u8, preempt: Preemption, checks: bool) -> Machine {
    let config = MachineConfig {
        cpus,
        preempt,
        checks,
        ..MachineConfig::default()
    };
    Machine::new(config).expect("a machine that can be")
}

fn device(machine: &mut Machine, options: ZramOptions) -> Rc<Zram> {
    Rc::new(Zram::new(machine, options).expect("no failure is injected"))
}

/// Runs until so many tasks have counted themselves as done.
fn run_until_done(machine: &mut Machine, done: &Cell<u32>, tasks: u32) -> Result<(), Fault> {
    for _ in 0..10_000 {
        if done.get() == tasks {
            return Ok(());
        }
        machine.run_until(machine.now_ns() + 1_000_000)?;
    }
    panic!("{} of {tasks} tasks have ended", done.get());
}

/// Slots of each task of the mixes, and slots that all share.
const OWN: u32 = 24;
const SHARED: u32 = 4;
const STEPS: u32 = 120;

/// What the shared slots may hold: every page that somebody ever wrote there.
type Written = Rc<RefCell<BTreeMap<u32, BTreeSet<Vec<u8>>>>>;

fn note(written: &Written, slot: u32, bytes: Vec<u8>) {
    let mut slots = written.borrow_mut();
    slots.entry(slot).or_default().insert(bytes);
}

/// A task that writes, reads and frees its own slots at random, and knows what
/// each must hold, and now and then does so with a slot of all.
async fn mix(task: Task, zram: Rc<Zram>, number: u32, seed: u64, written: Written) {
    let mut random = Stream::new(seed, "mix");
    let mut held = vec![Page::zeroed(); OWN as usize];
    let mut landing = Page::zeroed();
    for _ in 0..STEPS {
        let at = random.below(OWN.into()) as usize;
        let index = SHARED + number * OWN + at as u32;
        let shared = random.below(SHARED.into()) as u32;
        match random.below(8) {
            0..=2 => {
                let page = any_page(&mut random);
                let wrote = zram_bio_write(&task, &zram, index, &page).await;
                if wrote.is_ok() {
                    held[at] = page;
                }
            }
            3 | 4 => {
                let read = zram_bio_read(&task, &zram, index, &mut landing).await;
                assert!(read.is_ok() && landing == held[at], "slot {index}");
            }
            5 if random.below(2) == 0 => {
                zram_slot_free_notify(&task, &zram, index).await;
                held[at] = Page::zeroed();
            }
            5 => {
                zram_bio_discard(&task, &zram, index, 1).await;
                held[at] = Page::zeroed();
            }
            6 => {
                let page = any_page(&mut random);
                let bytes = page.bytes().to_vec();
                note(&written, shared, bytes);
                // That it may fail is part of the mix.
                let _ = zram_bio_write(&task, &zram, shared, &page).await;
            }
            _ if random.below(4) == 0 => zram_slot_free_notify(&task, &zram, shared).await,
            _ => {
                let read = zram_bio_read(&task, &zram, shared, &mut landing).await;
                let slots = written.borrow();
                let pages = slots.get(&shared);
                let known = pages.is_some_and(|pages| pages.contains(&landing.bytes()[..]));
                assert!(read.is_ok() && (known || landing == Page::zeroed()));
            }
        }
        task.run_user(100).await;
    }
}

struct Mixed {
    zram: Rc<Zram>,
    hash: u64,
}

fn run_mix(cpus: u8, design: ZramDesign, preempt: Preemption, seed: u64, faults: u32) -> Mixed {
    let mut machine = machine(cpus, preempt, true);
    let tasks = u32::from(cpus) + 2;
    let options = ZramOptions {
        design,
        pages: SHARED + tasks * OWN,
        seed,
        ..ZramOptions::default()
    };
    let zram = device(&mut machine, options);
    if faults > 0 {
        zram.inject_faults(&Failslab::per_million(faults, seed));
    }
    let done = Rc::new(Cell::new(0));
    let written = Written::default();
    for number in 0..tasks {
        let (zram, done, written) = (Rc::clone(&zram), Rc::clone(&done), Rc::clone(&written));
        let nice = [-10, 0, 0, 5, 19][number as usize % 5];
        let spawned = machine.spawn(format!("mixer {number}"), nice, move |task| async move {
            mix(task, zram, number, seed + u64::from(number), written).await;
            done.set(done.get() + 1);
        });
        spawned.expect("a valid nice");
    }
    run_until_done(&mut machine, &done, tasks).expect("no rule is broken");
    Mixed {
        zram,
        hash: machine.trace_hash(),
    }
}

#[test]
fn every_page_reads_as_it_was_written_last_and_all_memory_is_accounted_for() {
    for design in ZramDesign::ALL {
        for (cpus, preempt, faults) in [
            (1, Preemption::Full, 0),
            (1, Preemption::Lazy, 60_000),
            (2, Preemption::Full, 60_000),
            (4, Preemption::Lazy, 60_000),
            (8, Preemption::Full, 60_000),
        ] {
            let zram = run_mix(cpus, design, preempt, 7 + u64::from(cpus), faults).zram;
            assert_eq!(zram.check(), Ok(()), "{design} {cpus}");
            let stats = zram.stats();
            assert_eq!(stats.failed_writes > 0, faults > 0, "{design} {cpus}");
            assert_eq!(stats.failed_reads, 0);
            assert!(stats.same_pages > 0 && stats.huge_pages > 0, "{stats:?}");
        }
    }
}

#[test]
fn the_same_run_has_the_same_records() {
    for design in ZramDesign::ALL {
        let hash = || run_mix(2, design, Preemption::Full, 3, 10_000).hash;
        assert_eq!(hash(), hash());
    }
}

/// Runs one task on a machine of its own.
fn run_alone<F>(options: ZramOptions, body: impl FnOnce(Task, Rc<Zram>) -> F + 'static) -> Rc<Zram>
where
    F: Future<Output = ()> + 'static,
{
    let mut machine = machine(1, Preemption::Full, true);
    let zram = device(&mut machine, options);
    let done = Rc::new(Cell::new(0));
    let (device, ended) = (Rc::clone(&zram), Rc::clone(&done));
    let spawned = machine.spawn("test", 0, move |task| async move {
        body(task, device).await;
        ended.set(1);
    });
    spawned.expect("a valid nice");
    run_until_done(&mut machine, &done, 1).expect("no rule is broken");
    assert_eq!(zram.check(), Ok(()));
    zram
}

#[test]
fn when_everything_is_discarded_the_pool_has_no_page() {
    for design in ZramDesign::ALL {
        let options = ZramOptions {
            design,
            ..ZramOptions::default()
        };
        let zram = run_alone(options, |task, zram| async move {
            let mut random = Stream::new(5, "fill");
            for index in 0..zram.pages() {
                let page = any_page(&mut random);
                assert_eq!(zram_bio_write(&task, &zram, index, &page).await, Ok(()));
            }
            assert_eq!(zram.stats().pages_stored, 256);
            assert!(zram.used_pages() > 0);
            zram_bio_discard(&task, &zram, 0, 1_000).await;
            let mut back = page(PageContent::Text, 1);
            assert_eq!(zram_bio_read(&task, &zram, 9, &mut back).await, Ok(()));
            assert!(back == Page::zeroed());
        });
        let stats = zram.stats();
        assert_eq!(zram.used_pages(), 0);
        assert_eq!((stats.pages_stored, stats.compr_data_size), (0, 0));
        assert_eq!((stats.notify_free, stats.miss_free), (256, 0));
        assert!(stats.huge_pages_since > 0 && stats.max_used_pages > 0);
    }
}

#[test]
fn a_page_is_stored_as_a_word_as_it_is_or_compressed() {
    let zram = run_alone(ZramOptions::default(), |task, zram| async move {
        let mut word = Page::zeroed();
        word.fill_word(0x0123_4567_89ab_cdef);
        let pages = [
            word,
            page(PageContent::Random, 1),
            page(PageContent::Text, 1),
        ];
        for (index, page) in (0..).zip(&pages) {
            assert_eq!(zram_bio_write(&task, &zram, index, page).await, Ok(()));
            let mut back = Page::zeroed();
            assert_eq!(zram_bio_read(&task, &zram, index, &mut back).await, Ok(()));
            assert!(back == *page);
        }
        let beyond = zram_bio_write(&task, &zram, 256, &pages[0]).await;
        assert_eq!(beyond, Err(ZramError::BeyondTheEnd));
    });
    let stats = zram.stats();
    assert_eq!(
        (stats.pages_stored, stats.same_pages, stats.huge_pages),
        (3, 1, 1)
    );
    assert!((4097..8192).contains(&stats.compr_data_size), "{stats:?}");
}

#[test]
fn a_write_that_fails_leaves_the_slot_as_it_was() {
    for site in [AllocSite::ZsHandle, AllocSite::Zspage, AllocSite::PageFrame] {
        for kind in [PageContent::HalfRandom, PageContent::Random] {
            let zram = run_alone(ZramOptions::default(), move |task, zram| async move {
                let text = page(PageContent::Text, 1);
                assert_eq!(zram_bio_write(&task, &zram, 4, &text).await, Ok(()));
                zram.inject_faults(&Failslab::nth(1).only_at(site));
                let failed = zram_bio_write(&task, &zram, 4, &page(kind, 2)).await;
                assert!(matches!(failed, Err(ZramError::Alloc(_))), "{failed:?}");
                let mut back = Page::zeroed();
                assert_eq!(zram_bio_read(&task, &zram, 4, &mut back).await, Ok(()));
                assert!(back == text);
            });
            assert_eq!(zram.stats().failed_writes, 1);
        }
    }
}

#[test]
fn a_device_at_its_limit_refuses_and_keeps_what_it_has() {
    let options = ZramOptions {
        limit_pages: 20,
        ..ZramOptions::default()
    };
    let zram = run_alone(options, |task, zram| async move {
        let mut stored = 0;
        for index in 0..100 {
            let page = page(PageContent::HalfRandom, index.into());
            match zram_bio_write(&task, &zram, index, &page).await {
                Ok(()) => stored = index + 1,
                Err(error) => assert_eq!(error, ZramError::Limit),
            }
        }
        assert!((20..100).contains(&stored), "{stored}");
        let mut back = Page::zeroed();
        assert_eq!(zram_bio_read(&task, &zram, 0, &mut back).await, Ok(()));
        assert!(back == page(PageContent::HalfRandom, 0));
    });
    assert!(zram.used_pages() <= 20);
}

#[test]
fn a_slot_in_use_is_not_freed_on_notice() {
    let mut machine = machine(2, Preemption::Full, true);
    let zram = device(&mut machine, ZramOptions::default());
    let device = Rc::clone(&zram);
    let reader = machine.spawn("reader", 0, move |task| async move {
        let text = page(PageContent::Text, 1);
        assert_eq!(zram_bio_write(&task, &device, 0, &text).await, Ok(()));
        let mut back = Page::zeroed();
        for _ in 0..200 {
            assert_eq!(zram_bio_read(&task, &device, 0, &mut back).await, Ok(()));
        }
    });
    reader.expect("a valid nice");
    let device = Rc::clone(&zram);
    let swap = machine.spawn("swap", 0, move |task| async move {
        task.sleep(100_000).await;
        for _ in 0..200 {
            zram_slot_free_notify(&task, &device, 0).await;
            task.run_user(300).await;
        }
    });
    swap.expect("a valid nice");
    machine.run_until(10_000_000).expect("no rule is broken");
    let stats = zram.stats();
    assert!(0 < stats.miss_free && stats.miss_free < 200, "{stats:?}");
    assert_eq!((stats.notify_free, stats.pages_stored), (200, 0));
    assert_eq!(zram.check(), Ok(()));
}

/// Slots of the contest: each writer has its own, and so has the reader.
const CONTEST: u32 = 8;

struct Contest {
    /// How often the reader waited for a stream that a writer had.
    waits_for_writers: u64,
    /// How often it was seen asleep while the writer that it waits for was queued.
    seen_behind_a_preempted_writer: u64,
    reads: u64,
    slowest_ns: u64,
}

/// Four writers of nice 19 and a reader of nice −19 for each CPU, with a task of
/// nice 0 that only runs.
fn contest(cpus: u8, design: ZramDesign) -> Contest {
    let mut machine = machine(cpus, Preemption::Full, false);
    let tasks = 5 * u32::from(cpus);
    let options = ZramOptions {
        design,
        pages: tasks * CONTEST,
        ..ZramOptions::default()
    };
    let zram = device(&mut machine, options);
    let mut readers = Vec::new();
    let mut writers = Vec::new();
    for number in 0..tasks {
        let device = Rc::clone(&zram);
        let first = number * CONTEST;
        if number % 5 == 4 {
            let body = move |task| reader(task, device, first);
            let spawned = machine.spawn(format!("reader {number}"), -19, body);
            readers.push(spawned.expect("a valid nice"));
            let hog = |task: Task| async move {
                loop {
                    task.run_user(100_000).await;
                }
            };
            let spawned = machine.spawn(format!("hog {number}"), 0, hog);
            spawned.expect("a valid nice");
        } else {
            let body = move |task| writer(task, device, first);
            let spawned = machine.spawn(format!("writer {number}"), 19, body);
            writers.push(spawned.expect("a valid nice"));
        }
    }
    let mut result = Contest {
        waits_for_writers: 0,
        seen_behind_a_preempted_writer: 0,
        reads: 0,
        slowest_ns: 0,
    };
    let mut events = Vec::new();
    let mut seen = Waits::new(&machine);
    for _ in 0..400 {
        let until_ns = machine.now_ns() + 1_000_000;
        machine.run_until(until_ns).expect("no rule is broken");
        for reader in &readers {
            let chain = machine.wait_chain(*reader);
            let behind = chain.get(1).is_some_and(|link| {
                writers.contains(&link.task) && link.activity == TaskActivity::Queued
            });
            result.seen_behind_a_preempted_writer += u64::from(behind);
        }
        machine.take_events(&mut events);
        for event in &events {
            seen.note(event, &readers, &writers, &mut result);
        }
    }
    result
}

/// Folds records to who has which stream, and who waits.
struct Waits {
    streams: BTreeSet<u64>,
    owners: BTreeMap<u64, TaskId>,
    begun_ns: BTreeMap<u16, u64>,
}

impl Waits {
    fn new(machine: &Machine) -> Waits {
        let locks = machine.locks();
        let is_stream = |lock: &kernel_sim::LockInfo| lock.name.starts_with("zcomp");
        let streams = (0..).zip(&locks).filter(|(_, lock)| is_stream(lock));
        Waits {
            streams: streams.map(|(number, _)| number).collect(),
            owners: BTreeMap::new(),
            begun_ns: BTreeMap::new(),
        }
    }

    fn note(&mut self, event: &Event, readers: &[TaskId], writers: &[TaskId], into: &mut Contest) {
        let is_reader = readers.contains(&event.task);
        let owner = self.owners.get(&event.arg);
        match event.kind {
            EventKind::LockAcquire if self.streams.contains(&event.arg) => {
                self.owners.insert(event.arg, event.task);
            }
            EventKind::LockRelease => {
                self.owners.remove(&event.arg);
            }
            EventKind::LockWait | EventKind::LockSpin if is_reader => {
                let writes = owner.is_some_and(|owner| writers.contains(owner));
                into.waits_for_writers += u64::from(writes);
            }
            EventKind::Probe if is_reader && event.aux == Probe::LoadBegin as u16 => {
                self.begun_ns.insert(event.task.0, event.at_ns);
            }
            EventKind::Probe if is_reader && event.aux == Probe::LoadEnd as u16 => {
                let begun_ns = self.begun_ns.get(&event.task.0);
                let took_ns = event.at_ns - begun_ns.copied().unwrap_or(event.at_ns);
                into.reads += 1;
                into.slowest_ns = into.slowest_ns.max(took_ns);
            }
            _ => {}
        }
    }
}

async fn writer(task: Task, zram: Rc<Zram>, first: u32) {
    for round in 0.. {
        let index = first + round % CONTEST;
        let page = page(PageContent::Text, (index % 64).into());
        assert_eq!(zram_bio_write(&task, &zram, index, &page).await, Ok(()));
    }
}

async fn reader(task: Task, zram: Rc<Zram>, first: u32) {
    let text = page(PageContent::Text, 1);
    for index in first..first + CONTEST {
        assert_eq!(zram_bio_write(&task, &zram, index, &text).await, Ok(()));
    }
    let mut back = Page::zeroed();
    for round in 0.. {
        let index = first + round % CONTEST;
        assert_eq!(zram_bio_read(&task, &zram, index, &mut back).await, Ok(()));
        assert!(back == text);
        task.sleep(200_000).await;
    }
}

#[test]
fn a_reader_waits_for_a_preempted_writer_where_the_stream_is_shared_and_only_there() {
    for cpus in [1, 2] {
        let [local, shared, split] = ZramDesign::ALL.map(|design| contest(cpus, design));
        assert!(shared.waits_for_writers > 0);
        assert!(shared.seen_behind_a_preempted_writer > 0);
        assert!(shared.slowest_ns > 5_000_000, "{}", shared.slowest_ns);
        for other in [local, split] {
            assert_eq!(other.waits_for_writers, 0);
            assert_eq!(other.seen_behind_a_preempted_writer, 0);
            assert!(other.slowest_ns < shared.slowest_ns / 5);
            assert!(other.reads > shared.reads);
        }
    }
}
