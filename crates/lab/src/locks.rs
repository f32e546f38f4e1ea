//! Which locks a path takes, in which order and for how long, and whether all
//! tasks take them in one order.
//!
//! Both are folded from records. Locks of one kind, as those of all size
//! classes, are one *class* here.
//!
//! Invariants:
//! 1. An order is a violation if it closes a cycle: some task once held the
//!    one lock while it took the other, and now it is the other way round.
//! 2. What a zspage is held with counts as a lock that is shared.
//!
//! ```
//! use zswap_lab::lock_table;
//! use zswap_paths::Preset;
//! let table = lock_table(Preset::Patch2.design())?;
//! let load = &table.iter().find(|path| path.path == "load").expect("a row").locks;
//! assert!(load.iter().all(|lock| lock.lock != "acomp_ctx.mutex"));
//! # Ok::<(), zswap_lab::RunError>(())
//! ```

use crate::run::RunError;
use crate::scenario::Scenario;
use core::fmt::Write;
use kernel_sim::{Device, Event, EventKind, LockInfo, Machine, MachineConfig, SsdOptions, Task};
use std::rc::Rc;
use zswap_mm::{Page, PageContent, SwapSlot};
use zswap_paths::{Design, Folio, Probe, Zswap, ZswapOptions};
use zswap_paths::{swap_free, swap_read_folio, swap_writeout, write_back_oldest};

/// The class of a lock, by its name.
pub(crate) fn class_of(name: &str) -> &str {
    const PREFIXES: [&str; 8] = [
        "acomp_ctx.mutex",
        "acomp_ctx.decompress_mutex",
        "pool->lock",
        "class->lock",
        "xa_lock",
        "tree->lock",
        "pool->lru_lock",
        "list_lru lock",
    ];
    let prefix = PREFIXES.into_iter().find(|prefix| name.starts_with(prefix));
    match prefix {
        Some(prefix) => prefix,
        None if name.contains(" stream of CPU ") => "stream lock",
        None => name,
    }
}

const ZSPAGE: &str = "zspage lock";

/// What a record says of a lock.
#[derive(Clone, Copy)]
enum Said {
    Takes { shared: bool },
    Leaves,
}

/// What a record says, and of which lock; none is a zspage.
fn said(event: &Event) -> Option<(Said, Option<usize>)> {
    let lock = usize::try_from(event.arg).ok();
    let takes = |shared| Said::Takes { shared };
    match event.kind {
        EventKind::LockAcquire => Some((takes(false), lock)),
        EventKind::ReadAcquire => Some((takes(true), lock)),
        EventKind::LockRelease | EventKind::ReadRelease => Some((Said::Leaves, lock)),
        EventKind::Probe if event.aux == Probe::ZspageHold as u16 => Some((takes(true), None)),
        EventKind::Probe if event.aux == Probe::ZspageLetGo as u16 => Some((Said::Leaves, None)),
        _ => None,
    }
}

fn name_of(lock: Option<usize>, locks: &[LockInfo]) -> &str {
    let info = lock.map(|lock| locks.get(lock));
    match info {
        None => ZSPAGE,
        Some(info) => info.map_or("?", |lock| class_of(&lock.name)),
    }
}

/// Which locks were taken inside which, in a run whose locks are all there from
/// the start.
#[derive(Clone, Debug)]
pub struct LockOrder {
    /// Names of the classes; the first is the zspages'.
    classes: Vec<String>,
    /// The class of each lock.
    class: Vec<usize>,
    /// What each task holds.
    held: Vec<Vec<usize>>,
    /// For each class, a bit for each that was taken inside it.
    inside: Vec<u64>,
}

/// Two tasks take two locks in different orders.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("lock order: {taken} is taken inside {held}, and elsewhere the other way round")]
pub struct OrderViolation {
    /// The lock that is held.
    pub held: String,
    /// The lock that is taken.
    pub taken: String,
}

impl LockOrder {
    /// Nothing is held yet.
    #[must_use]
    pub fn new(locks: &[LockInfo]) -> LockOrder {
        let mut classes = vec![ZSPAGE.to_owned()];
        let mut class = Vec::new();
        for lock in locks {
            let name = class_of(&lock.name);
            let known = classes.iter().position(|class| class == name);
            class.push(known.unwrap_or(classes.len()));
            if known.is_none() {
                classes.push(name.to_owned());
            }
        }
        assert!(
            classes.len() <= 64,
            "at most 64 classes of locks are followed"
        );
        LockOrder {
            inside: vec![0; classes.len()],
            classes,
            class,
            held: Vec::new(),
        }
    }

    /// Follows a record.
    ///
    /// # Errors
    /// If it closes a cycle.
    pub fn follow(&mut self, event: &Event) -> Result<(), OrderViolation> {
        let Some((said, lock)) = said(event) else {
            return Ok(());
        };
        let class = lock.map_or(0, |lock| self.class[lock]);
        let task = event.task.index();
        if self.held.len() <= task {
            self.held.resize(task + 1, Vec::new());
        }
        if let Said::Leaves = said {
            let held = &mut self.held[task];
            if let Some(at) = held.iter().rposition(|held| *held == class) {
                held.remove(at);
            }
            return Ok(());
        }
        for number in 0..self.held[task].len() {
            let outer = self.held[task][number];
            if self.inside[outer] >> class & 1 == 1 {
                continue;
            }
            if outer == class || self.leads(class, outer) {
                return Err(OrderViolation {
                    held: self.classes[outer].clone(),
                    taken: self.classes[class].clone(),
                });
            }
            self.inside[outer] |= 1 << class;
        }
        self.held[task].push(class);
        Ok(())
    }

    /// Whether `to` was ever taken, directly or not, inside `from`.
    fn leads(&self, from: usize, to: usize) -> bool {
        let inside = self.inside[from];
        let mut inner = (0..self.classes.len()).filter(|class| inside >> class & 1 == 1);
        inner.any(|next| next == to || self.leads(next, to))
    }

    /// The pairs of an outer and an inner lock that were seen.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = &self.classes;
        self.inside
            .iter()
            .enumerate()
            .flat_map(move |(outer, inside)| {
                let inner = (0..names.len()).filter(move |class| inside >> class & 1 == 1);
                inner.map(move |inner| (names[outer].as_str(), names[inner].as_str()))
            })
    }
}

/// A lock that a path takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockUse {
    /// Its class.
    pub lock: String,
    /// It is shared with other readers.
    pub shared: bool,
    /// What the task holds meanwhile, outermost first.
    pub inside: Vec<String>,
    /// For how long it was held, in ns.
    pub held_ns: u64,
}

/// The locks of a path, in order of their taking.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathLocks {
    /// `store`, `load`, `writeback` or `invalidate`.
    pub path: &'static str,
    /// The locks.
    pub locks: Vec<LockUse>,
}

/// Runs one store, load, writeback and invalidation in a design, alone on a
/// machine, and tells which locks each takes.
///
/// # Errors
/// If the machine cannot be, or a rule is broken.
pub fn lock_table(design: Design) -> Result<Vec<PathLocks>, RunError> {
    let mut machine = Machine::new(MachineConfig::default())?;
    let ssd: Device = machine.ssd("ssd", SsdOptions::default());
    let costs = Scenario::default().costs;
    let options = ZswapOptions {
        device: Some(ssd),
        ..ZswapOptions::new(design, costs, 64, 1)
    };
    let zswap = Rc::new(Zswap::new(
        &mut machine,
        options,
        design.algorithm.new_compressor(),
    )?);
    let paths = Rc::clone(&zswap);
    let body = move |task| async move { walk(&task, &paths).await };
    let spawned = machine.spawn("walker", 0, body);
    spawned.map_err(|error| RunError::Spawn {
        name: "walker".to_owned(),
        error,
    })?;
    machine.run_until(1_000_000_000)?;
    let mut events = Vec::new();
    machine.take_events(&mut events);
    Ok(fold(&events, &machine.locks()))
}

/// Codes of the records that separate the paths.
const MARKS: [(u16, &str); 4] = [
    (900, "store"),
    (901, "load"),
    (902, "writeback"),
    (903, "invalidate"),
];
const MARK_END: u16 = 910;

async fn walk(task: &Task, zswap: &Zswap) {
    let mut page = Page::zeroed();
    let slot = SwapSlot(5);
    PageContent::Text.fill(1, &mut page);
    for (code, path) in MARKS {
        if path != "store" {
            let _ = swap_writeout(task, zswap, &Folio::of(slot, &page)).await;
        }
        task.probe(code, 0);
        match path {
            "store" => drop(swap_writeout(task, zswap, &Folio::of(slot, &page)).await),
            "load" => drop(swap_read_folio(task, zswap, slot, &mut page).await),
            "writeback" => write_back_oldest(task, zswap).await,
            _ => swap_free(task, zswap, slot).await,
        }
        task.probe(MARK_END, 0);
        swap_free(task, zswap, slot).await;
    }
}

fn fold(events: &[Event], locks: &[LockInfo]) -> Vec<PathLocks> {
    let mut paths: Vec<PathLocks> = Vec::new();
    let mut open = false;
    let mut held: Vec<(String, usize, u64)> = Vec::new();
    for event in events {
        if event.kind == EventKind::Probe {
            let mark = MARKS.iter().find(|(code, _)| *code == event.aux);
            if let Some((_, path)) = mark {
                let locks = Vec::new();
                paths.push(PathLocks { path, locks });
                open = true;
            }
            open &= event.aux != MARK_END;
        }
        let Some(path) = paths.last_mut().filter(|_| open) else {
            continue;
        };
        let Some((said, lock)) = said(event) else {
            continue;
        };
        let lock = name_of(lock, locks).to_owned();
        match said {
            Said::Takes { shared } => {
                let inside = held.iter().map(|(lock, ..)| lock.clone()).collect();
                held.push((lock.clone(), path.locks.len(), event.at_ns));
                path.locks.push(LockUse {
                    lock,
                    shared,
                    inside,
                    held_ns: 0,
                });
            }
            Said::Leaves => {
                if let Some(at) = held.iter().rposition(|(held, ..)| *held == lock) {
                    let (_, number, since_ns) = held.remove(at);
                    path.locks[number].held_ns = event.at_ns - since_ns;
                }
            }
        }
    }
    paths
}

/// The table as text: each lock indented below what it is taken in.
#[must_use]
pub fn lock_table_text(table: &[PathLocks]) -> String {
    let mut text = String::new();
    for path in table {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", path.path);
        if path.locks.is_empty() {
            text.push_str("  no lock\n");
        }
        for lock in &path.locks {
            let indent = 2 + 2 * lock.inside.len();
            let shared = if lock.shared { ", shared" } else { "" };
            let name = format!("{:indent$}{}{shared}", "", lock.lock);
            let _ = writeln!(text, "{name:<46} {:>7} ns", lock.held_ns);
        }
    }
    text
}
