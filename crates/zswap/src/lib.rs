//! The paths of zswap, one `async` function each, and the designs they exist in.
//!
//! The functions read like the kernel's: the same steps, the same locks, in the
//! same order. The page shows this very source, with each task's line marked.
//!
//! Invariants:
//! 1. A page that was stored is read back equal, or the run stops.
//! 2. The mutex of a context is outside the stream lock, never inside.
//! 3. Nothing of the shared state is borrowed across an await.
//!
//! Left out so far: writeback, shrinkers, limits, cgroups, CPU hotplug, large
//! folios, several pools.

mod acomp_ctx;
mod compress;
mod costs;
mod design;
mod invalidate;
mod load;
mod probe;
mod source;
mod store;
mod swap;
mod zeromap;
mod zswap;

pub use acomp_ctx::AcompCtx;
pub use costs::Costs;
pub use design::{Context, Design, UnknownContext};
pub use invalidate::zswap_invalidate;
pub use load::{LoadError, zswap_load};
pub use probe::{ObjectPlace, Probe};
pub use source::source_of;
pub use store::{StoreError, zswap_store};
pub use swap::{swap_free, swap_read_folio, swap_writeout};
pub use zswap::{Counters, Zswap, ZswapOptions};
