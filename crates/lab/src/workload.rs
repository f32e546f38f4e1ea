//! What the tasks of a scenario do.

use crate::scenario::{Readers, Scenario};
use core::cell::Cell;
use kernel_sim::{Stream, Task};
use std::rc::Rc;
use zswap_mm::{Page, PageContent, SwapSlot};
use zswap_paths::{Folio, Zswap, swap_read_folio, swap_writeout};

/// The records that workloads leave beside those of the paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum WorkProbe {
    /// A timed read begins. `arg`: the number of the page.
    ReadBegin = 256,
    /// It has ended. `arg`: the number of the page.
    ReadEnd = 257,
}

impl WorkProbe {
    /// The probe with this code, if it is one of the workloads'.
    #[must_use]
    pub fn from_code(code: u16) -> Option<WorkProbe> {
        match code {
            256 => Some(WorkProbe::ReadBegin),
            257 => Some(WorkProbe::ReadEnd),
            _ => None,
        }
    }
}

/// The memory of a task: its pages, what they contain, and which of them are
/// in memory. Page `i` has swap slot `first_slot + i`.
struct Buffer {
    first_slot: u64,
    pages: Vec<Page>,
    resident: Vec<Cell<bool>>,
}

impl Buffer {
    fn new(content: PageContent, count: u64, first_slot: u64, seeds: &mut Stream) -> Buffer {
        let fill = |_| {
            let mut page = Page::zeroed();
            content.fill(seeds.next_u64(), &mut page);
            page
        };
        let pages: Vec<Page> = (0..count).map(fill).collect();
        Buffer {
            first_slot,
            resident: pages.iter().map(|_| Cell::new(true)).collect(),
            pages,
        }
    }

    fn slot(&self, page: usize) -> SwapSlot {
        SwapSlot(self.first_slot + page as u64)
    }
}

/// One task's environment.
struct Env {
    task: Task,
    zswap: Rc<Zswap>,
    buffer: Buffer,
    user_ns: u64,
}

impl Env {
    /// `MADV_PAGEOUT`: reclaims the whole buffer in the caller's own context.
    /// A page that zswap refuses stays in memory.
    async fn page_out(&self) {
        for (index, page) in self.buffer.pages.iter().enumerate() {
            if !self.buffer.resident[index].get() {
                continue;
            }
            let slot = self.buffer.slot(index);
            let stored = swap_writeout(&self.task, &self.zswap, &Folio::of(slot, page)).await;
            self.buffer.resident[index].set(stored.is_err());
        }
        self.task.run_user(self.user_ns).await;
    }

    /// Touches a page: a fault brings it back if it is out, and what comes back
    /// is compared with what went out.
    async fn touch(&self, index: usize, landing: &mut Page) {
        if !self.buffer.resident[index].get() {
            let slot = self.buffer.slot(index);
            let read = swap_read_folio(&self.task, &self.zswap, slot, landing).await;
            if let Err(error) = read {
                self.task
                    .fail(format!("reads swap slot {}: {error}", slot.0));
            } else if *landing != self.buffer.pages[index] {
                let what = format!(
                    "reads swap slot {} and gets other bytes than it stored",
                    slot.0
                );
                self.task.fail(what);
            }
            self.buffer.resident[index].set(true);
        }
        self.task.run_user(self.user_ns).await;
    }
}

async fn work(env: Env) {
    let mut landing = Page::zeroed();
    loop {
        env.page_out().await;
        for index in 0..env.buffer.pages.len() {
            env.touch(index, &mut landing).await;
        }
    }
}

async fn read(env: Env, sleep_ns: u64) {
    let mut landing = Page::zeroed();
    loop {
        env.page_out().await;
        for index in 0..env.buffer.pages.len() {
            env.task.probe(WorkProbe::ReadBegin as u16, index as u64);
            env.touch(index, &mut landing).await;
            env.task.probe(WorkProbe::ReadEnd as u16, index as u64);
            if sleep_ns > 0 {
                env.task.sleep(sleep_ns).await;
            }
        }
    }
}

/// How long a spinner computes between two looks at the machine. It has no
/// effect: nothing happens in between that would not happen anyway.
const SPIN_NS: u64 = 100_000_000;

async fn spin(task: Task) {
    loop {
        task.run_user(SPIN_NS).await;
    }
}

/// Hands out swap slots and page contents to the tasks of a scenario.
pub(crate) struct Workload {
    content: PageContent,
    contents: Stream,
    zswap: Rc<Zswap>,
    user_ns: u64,
    next_slot: u64,
}

impl Workload {
    pub(crate) fn new(scenario: &Scenario, seed: u64, zswap: Rc<Zswap>) -> Workload {
        Workload {
            content: scenario.page_content,
            contents: Stream::new(seed, "page contents"),
            zswap,
            user_ns: scenario.machine_costs.user_ns,
            next_slot: 0,
        }
    }

    fn env(&mut self, pages: u64) -> impl FnOnce(Task) -> Env + use<> {
        let buffer = Buffer::new(self.content, pages, self.next_slot, &mut self.contents);
        self.next_slot += pages;
        let zswap = Rc::clone(&self.zswap);
        let user_ns = self.user_ns;
        move |task| Env {
            task,
            zswap,
            buffer,
            user_ns,
        }
    }

    pub(crate) fn worker(&mut self, pages: u64) -> impl FnOnce(Task) -> TaskBody + use<> {
        let env = self.env(pages);
        |task| Box::pin(work(env(task)))
    }

    pub(crate) fn reader(&mut self, readers: &Readers) -> impl FnOnce(Task) -> TaskBody + use<> {
        let env = self.env(readers.pages);
        let sleep_ns = readers.sleep_us * 1_000;
        move |task| Box::pin(read(env(task), sleep_ns))
    }

    pub(crate) fn spinner() -> impl FnOnce(Task) -> TaskBody {
        |task| Box::pin(spin(task))
    }
}

/// The body of a task.
pub(crate) type TaskBody = core::pin::Pin<Box<dyn Future<Output = ()>>>;
