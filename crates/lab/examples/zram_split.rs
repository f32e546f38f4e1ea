//! The published test of zram's split streams, in shape: on each CPU four
//! writers of nice 19, a task of nice 0 that only runs, and a reader of nice
//! −19; preempt=full. Prints the reads per second and their mean latency.
//!
//! The publication (5 October 2026) has 1 CPU, zstd at level 12 and fio: 1,278
//! reads a second of 762 µs before, 43,300 of 10 µs after. What fio does between
//! two reads, how much it writes and what compressing a page at level 12 takes
//! is not published. Assumed here: 2 µs of user time between two requests of a
//! task, and nothing else, or in the reader a sleep of 10 µs, which lets others
//! run at each read; random pages of a device that all tasks use, of text;
//! decompression as at level 3. Compression is tried with three costs, of which
//! 11 µs is that of level 3. Nothing is fitted.

use kernel_sim::{Machine, MachineConfig, Preemption, Stream, Task};
use std::cell::Cell;
use std::io::Write as _;
use std::rc::Rc;
use zswap_mm::{Page, PageContent};
use zswap_paths::zram::{Zram, ZramCosts, ZramDesign, ZramOptions, zram_bio_read, zram_bio_write};

const PAGES: u32 = 4096;
/// User time of a task between two requests (assumed).
const USER_NS: u64 = 2_000;
/// What the reader does beside between two reads (assumed).
const SLEEPS_NS: [u64; 2] = [0, 10_000];
const RUN_NS: u64 = 2_000_000_000;
const CHUNK_NS: u64 = 10_000_000;

#[derive(Default)]
struct Reads {
    count: Cell<u64>,
    sum_ns: Cell<u64>,
    slowest_ns: Cell<u64>,
    writes: Cell<u64>,
}

fn text(seed: u64) -> Page {
    let mut page = Page::zeroed();
    PageContent::Text.fill(seed % 64, &mut page);
    page
}

async fn writer(task: Task, zram: Rc<Zram>, seed: u64, reads: Rc<Reads>) {
    let mut random = Stream::new(seed, "writer");
    loop {
        let index = random.below(PAGES.into()) as u32;
        let wrote = zram_bio_write(&task, &zram, index, &text(index.into())).await;
        wrote.expect("no failure is injected");
        reads.writes.update(|writes| writes + 1);
        task.run_user(USER_NS).await;
    }
}

async fn reader(task: Task, zram: Rc<Zram>, sleep_ns: u64, reads: Rc<Reads>) {
    let mut random = Stream::new(9, "reader");
    let mut page = Page::zeroed();
    loop {
        let index = random.below(PAGES.into()) as u32;
        let begun_ns = task.now_ns();
        let read = zram_bio_read(&task, &zram, index, &mut page).await;
        read.expect("good data");
        let took_ns = task.now_ns() - begun_ns;
        reads.count.update(|count| count + 1);
        reads.sum_ns.update(|sum_ns| sum_ns + took_ns);
        reads.slowest_ns.update(|ns| ns.max(took_ns));
        task.run_user(USER_NS).await;
        if sleep_ns > 0 {
            task.sleep(sleep_ns).await;
        }
    }
}

fn run(
    design: ZramDesign,
    compress_ns: u64,
    sleep_ns: u64,
) -> Result<Rc<Reads>, Box<dyn std::error::Error>> {
    let config = MachineConfig {
        cpus: 1,
        preempt: Preemption::Full,
        ..MachineConfig::default()
    };
    let mut machine = Machine::new(config)?;
    machine.set_sink(kernel_sim::Sink::None);
    let options = ZramOptions {
        design,
        pages: PAGES,
        costs: ZramCosts {
            compress_ns,
            ..ZramCosts::ZSTD_3
        },
        ..ZramOptions::default()
    };
    let zram = Rc::new(Zram::new(&mut machine, options)?);
    let device = Rc::clone(&zram);
    let filled = Rc::new(Cell::new(false));
    let flag = Rc::clone(&filled);
    machine.spawn("fill", 0, move |task| async move {
        for index in 0..PAGES {
            let wrote = zram_bio_write(&task, &device, index, &text(index.into())).await;
            wrote.expect("no failure is injected");
        }
        flag.set(true);
    })?;
    while !filled.get() {
        machine.run_until(machine.now_ns() + CHUNK_NS)?;
    }
    let reads = Rc::new(Reads::default());
    for seed in 0..4 {
        let (zram, reads) = (Rc::clone(&zram), Rc::clone(&reads));
        let body = move |task| writer(task, zram, seed, reads);
        machine.spawn(format!("writer {seed}"), 19, body)?;
    }
    machine.spawn("hog", 0, |task| async move {
        loop {
            task.run_user(1_000_000).await;
        }
    })?;
    let (device, counted) = (Rc::clone(&zram), Rc::clone(&reads));
    machine.spawn("reader", -19, move |task| {
        reader(task, device, sleep_ns, counted)
    })?;
    machine.run_until(machine.now_ns() + RUN_NS)?;
    Ok(reads)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();
    for sleep_ns in SLEEPS_NS {
        for compress_ns in [11_050, 50_000, 200_000] {
            for design in ZramDesign::ALL {
                let reads = run(design, compress_ns, sleep_ns)?;
                let count = reads.count.get().max(1);
                let (mean_ns, slowest_ns) = (reads.sum_ns.get() / count, reads.slowest_ns.get());
                writeln!(
                    out,
                    "sleep {:>2} µs, compression {:>3} µs, {:<10}: {:>6} reads/s, \
                     mean {:>5}.{} µs, slowest {:>6} µs, {:>5} writes/s",
                    sleep_ns / 1_000,
                    compress_ns / 1_000,
                    design.name(),
                    count * 1_000_000_000 / RUN_NS,
                    mean_ns / 1_000,
                    mean_ns % 1_000 / 100,
                    slowest_ns / 1_000,
                    reads.writes.get() * 1_000_000_000 / RUN_NS,
                )?;
            }
        }
    }
    Ok(())
}
