//! The stream of records: counted, hashed, and kept when somebody asks.
//!
//! Invariants:
//! 1. The hash covers every record of the run, kept or not, so it does not
//!    depend on who is watching.
//! 2. The hash of a run's first part does not depend on what follows.

use crate::event::Event;
use crate::ids::SiteId;
use core::panic::Location;

/// Multiplier of the record hash: 2^64 divided by the golden ratio, odd.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// What becomes of the records of a machine. Counted and hashed they are anyway.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sink {
    /// They are dropped.
    None,
    /// They are kept until somebody takes them
    /// ([`Machine::take_events`](crate::Machine::take_events)), for metrics or
    /// for a recording.
    #[default]
    Keep,
}

/// Counts, hashes and collects records.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    count: u64,
    sink: Sink,
    pending: Vec<Event>,
}

impl Trace {
    pub(crate) fn push(&mut self, event: Event) {
        let tag = u64::from(event.task.0)
            | u64::from(event.aux) << 16
            | u64::from(event.cpu.0) << 32
            | (event.kind as u64) << 40;
        for word in [event.at_ns, event.arg, tag] {
            self.hash = (self.hash.rotate_left(23) ^ word).wrapping_mul(HASH_MULTIPLIER);
        }
        self.count += 1;
        if self.sink == Sink::Keep {
            self.pending.push(event);
        }
    }

    /// From now on this becomes of the records.
    pub(crate) fn set_sink(&mut self, sink: Sink) {
        self.sink = sink;
    }

    /// The hash of every record so far.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How many records there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Moves the records since the last call into `into`, which is cleared.
    pub fn take_into(&mut self, into: &mut Vec<Event>) {
        into.clear();
        core::mem::swap(&mut self.pending, into);
    }
}

/// A place in the source.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Site {
    /// Path of the file, as the compiler was given it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// Number of slots of the pointer cache in front of the table; a power of two
/// well above the number of await points in the paths.
const CACHE_SLOTS: usize = 256;

/// The source places that tasks have asked the kernel from, numbered in the
/// order of first use.
#[derive(Debug)]
pub struct Sites {
    sites: Vec<Site>,
    /// File and line of each, as the compiler wrote them; only new ones are
    /// looked for here.
    places: Vec<(&'static str, u32)>,
    /// Remembers the number of a `Location` by its address. Only a shortcut:
    /// the same place may have several addresses.
    cache: Vec<(usize, SiteId)>,
}

impl Default for Sites {
    fn default() -> Sites {
        let start = Site {
            file: String::new(),
            line: 0,
        };
        Sites {
            sites: vec![start],
            places: vec![("", 0)],
            cache: vec![(0, Sites::START); CACHE_SLOTS],
        }
    }
}

impl Sites {
    /// The site of a task that has not asked for anything yet.
    pub const START: SiteId = SiteId(0);

    pub(crate) fn number(&mut self, place: &'static Location<'static>) -> SiteId {
        let address = core::ptr::from_ref(place) as usize;
        // `Location` is 24 bytes natively and 16 in wasm: drop the low bits
        // that are the same for all.
        let slot = (address >> 3) % CACHE_SLOTS;
        let (cached, site) = self.cache[slot];
        if cached == address {
            return site;
        }
        let site = self.look_up(place);
        self.cache[slot] = (address, site);
        site
    }

    fn look_up(&mut self, place: &'static Location<'static>) -> SiteId {
        let (file, line) = (place.file(), place.line());
        let is_here = |known: &(&str, u32)| known.1 == line && known.0 == file;
        let known = self.places.iter().position(is_here);
        let index = known.unwrap_or_else(|| {
            self.places.push((file, line));
            self.sites.push(Site {
                file: file.replace('\\', "/"),
                line,
            });
            self.sites.len() - 1
        });
        SiteId(u16::try_from(index).unwrap_or(u16::MAX))
    }

    /// All sites met so far; the index is the [`SiteId`].
    #[must_use]
    pub fn all(&self) -> &[Site] {
        &self.sites
    }
}
