//! The paths of zswap, one `async` function each, and the designs they exist in.
//!
//! The functions read like the kernel's: the same steps, the same locks, in the
//! same order. The page shows this very source, with each task's line marked.
//!
//! | path | file |
//! | --- | --- |
//! | store, and the compressor below it | `store.rs`, `compress.rs` |
//! | load | `load.rs` |
//! | invalidate | `invalidate.rs` |
//! | writeback; who calls for it | `writeback.rs`, `shrink.rs` |
//! | pools, CPU hotplug | `pool.rs`, `hotplug.rs` |
//! | the swap code around zswap | `swap.rs`, `swap_cache.rs`, `swapfile.rs`, `reclaim.rs` |
//! | zram, the block device beside it | `zram/` |
//! | the locks below the paths | `acomp_ctx.rs`, `tree.rs`, `lru.rs`, `zpool.rs` |
//!
//! Invariants:
//! 1. A page that was stored is read back equal, or the run stops.
//! 2. Lock order: folio; mutex of a context; stream; and, from the folio again,
//!    tree, LRU, pool, class. Where trees are xarrays, the tree's lock is held
//!    over nothing else.
//! 3. Nothing of the shared state is borrowed across an await.
//! 4. With no path under way all memory is accounted for: [`Zswap::check`].

mod account;
mod acomp_ctx;
mod compress;
mod costs;
mod design;
mod hotplug;
mod invalidate;
mod load;
mod lru;
mod pool;
mod preset;
mod probe;
mod reclaim;
mod shrink;
mod source;
mod store;
mod swap;
mod swap_cache;
mod swapfile;
mod tree;
mod writeback;
mod zpool;
pub mod zram;
mod zswap;

pub use costs::Costs;
pub use design::{Allocator, Context, ContextLife, Design, LruDesign, UnknownContext};
pub use hotplug::{zswap_cpu_comp_dead, zswap_cpu_comp_prepare, zswap_cpu_down, zswap_cpu_up};
pub use invalidate::zswap_invalidate;
pub use load::{LoadError, zswap_load};
pub use pool::{SwitchError, zswap_compressor_param_set};
pub use preset::{Preset, UnknownPreset};
pub use probe::{ObjectPlace, Probe};
pub use reclaim::{Mm, do_swap_page, madvise_pageout};
pub use shrink::{ShrinkError, zswap_setup, zswap_shrinker_count, zswap_shrinker_scan};
pub use source::source_of;
pub use store::{StoreError, zswap_store};
pub use swap::{Folio, swap_free, swap_read_folio, swap_writeout};
pub use swapfile::{swap_cluster_readahead, swapoff, zswap_swapon};
pub use writeback::{WritebackError, write_back_oldest};
pub use zswap::{Counters, Zswap, ZswapOptions};
