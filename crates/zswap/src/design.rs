//! The designs of zswap, as data: which requests, locks, trees, allocators and
//! lists a machine's zswap is made of.
//!
//! Every choice names the kernels that had it. They combine freely;
//! [`crate::Preset`] has the combinations that were.
//!
//! Left out: loads that leave the compressed copy where it is
//! (`exclusive_loads=N`, until 6.8), and the reference count of the entries of
//! the rb-tree designs, whose work the folio lock does here.
//!
//! ```
//! use zswap_paths::{Allocator, Design};
//! let design = Design {
//!     allocator: Allocator::ZsmallocPoolLock,
//!     zpools: 32,
//!     ..Design::default()
//! };
//! assert!(!design.loads_on_stack());
//! ```

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use zswap_mm::fill::{Incompressible, SameFilled};
use zswap_mm::limits::LimitRule;
use zswap_mm::zpool::ZpoolKind;
use zswap_mm::{Algorithm, IndexKind};

/// What the (de)compressions on a CPU share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Context {
    /// One request and one mutex per CPU, for stores and loads alike (up to the
    /// two patches of 2026).
    Shared,
    /// A request and a mutex each for compression and for decompression
    /// (patch 1).
    Split,
    /// As `Split`; a load whose compressor needs no request of its own keeps
    /// the request on its stack and takes no lock of zswap (patch 2).
    Onstack,
}

impl Context {
    /// All of them, from the oldest.
    pub const ALL: [Context; 3] = [Context::Shared, Context::Split, Context::Onstack];

    /// The name that scenarios and links use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Context::Shared => "shared",
            Context::Split => "split",
            Context::Onstack => "onstack",
        }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no context design of this name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownContext;

impl FromStr for Context {
    type Err = UnknownContext;

    fn from_str(name: &str) -> Result<Context, UnknownContext> {
        let named = |context: &Context| context.name() == name;
        Context::ALL.into_iter().find(named).ok_or(UnknownContext)
    }
}

/// The allocator behind a pool, with its locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocator {
    /// zsmalloc with one spinlock per pool for everything (6.2 to 6.10, since
    /// c0547d0b6a4b).
    ZsmallocPoolLock,
    /// zsmalloc with a lock per size class inside a reader/writer lock of the
    /// pool, and a spinning reader/writer lock per zspage (6.11 to 6.14, since
    /// 64bd0197ae0c).
    ZsmallocClassLocks,
    /// The same, but who reads a zspage may sleep (since 6.15).
    ZsmallocReaders,
    /// zbud with its one spinlock (until 6.14).
    Zbud,
    /// z3fold, of whose locks only that of the pool is here (until 6.14).
    Z3fold,
}

impl Allocator {
    /// All of them.
    pub const ALL: [Allocator; 5] = [
        Allocator::ZsmallocPoolLock,
        Allocator::ZsmallocClassLocks,
        Allocator::ZsmallocReaders,
        Allocator::Zbud,
        Allocator::Z3fold,
    ];

    /// Which allocator it is, whatever its locks.
    #[must_use]
    pub fn kind(self) -> ZpoolKind {
        match self {
            Allocator::Zbud => ZpoolKind::Zbud,
            Allocator::Z3fold => ZpoolKind::Z3fold,
            _ => ZpoolKind::Zsmalloc,
        }
    }

    /// Whether size classes have locks of their own.
    #[must_use]
    pub fn has_class_locks(self) -> bool {
        matches!(
            self,
            Allocator::ZsmallocClassLocks | Allocator::ZsmallocReaders
        )
    }
}

/// What a load decompresses from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mapping {
    /// A copy made before the mutex is taken (until 6.8).
    CopiedBeforeTheMutex,
    /// A copy made under the mutex (until 6.14).
    Copied,
    /// The object itself, which is held meanwhile (since 6.15; zbud and z3fold
    /// always).
    Held,
}

/// Whose entries share a list of least recent use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LruDesign {
    /// Those of a pool; without second chance (until 6.8).
    PerPool,
    /// All (since 6.9); entries that were used get a second chance.
    Global,
}

/// How long the contexts of a CPU live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContextLife {
    /// Until the CPU is dead; who finds one gone tries again (until 2026).
    CpuDead,
    /// As long as the pool (since 2026).
    Pool,
}

/// A design of zswap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Design {
    /// What the (de)compressions on a CPU share.
    pub context: Context,
    /// The mutex of a CPU is one for all pools, as its buffer was (until 6.8).
    pub mutex_of_all_pools: bool,
    /// What finds the entry of a swap slot.
    pub index: IndexKind,
    /// The allocator.
    pub allocator: Allocator,
    /// Allocator pools per zswap pool: 1, or 32 from 6.6 (b8cf32dc6e8c) to 6.10
    /// (8edc9c4e72fe).
    pub zpools: u8,
    /// The lists of least recent use.
    pub lru: LruDesign,
    /// How long contexts live.
    pub context_life: ContextLife,
    /// Who deals with pages of one repeated word.
    pub same_filled: SameFilled,
    /// What happens to pages that do not shrink.
    pub incompressible: Incompressible,
    /// How the limits are compared.
    pub limit_rule: LimitRule,
    /// Entries of a cgroup and node that the limit worker looks at in one go: 1
    /// (until 2026) or 32.
    pub shrink_batch: u32,
    /// The compressor of the first pool.
    pub algorithm: Algorithm,
}

impl Default for Design {
    /// The state of 2026 before the two patches, with zstd.
    fn default() -> Design {
        Design {
            context: Context::Shared,
            mutex_of_all_pools: false,
            index: IndexKind::XarrayPer64M,
            allocator: Allocator::ZsmallocReaders,
            zpools: 1,
            lru: LruDesign::Global,
            context_life: ContextLife::Pool,
            same_filled: SameFilled::Zeromap,
            incompressible: Incompressible::StoreRaw,
            limit_rule: LimitRule::Inclusive,
            shrink_batch: 32,
            algorithm: Algorithm::Zstd,
        }
    }
}

impl Design {
    /// Whether a load of the first compressor decompresses with a request on
    /// its own stack.
    #[must_use]
    pub fn loads_on_stack(&self) -> bool {
        self.decompresses_on_stack(self.algorithm)
    }

    /// Whether `algorithm` decompresses with a request on the caller's stack.
    /// That needs a compressor which is done when it returns, since the stack
    /// frame goes away, and which keeps nothing in the request, since the stack
    /// request has no room for it.
    #[must_use]
    pub fn decompresses_on_stack(&self, algorithm: Algorithm) -> bool {
        self.context == Context::Onstack && algorithm.on_stack_request()
    }

    /// What a load decompresses from.
    pub(crate) fn mapping(&self) -> Mapping {
        match self.allocator {
            Allocator::ZsmallocReaders | Allocator::Zbud | Allocator::Z3fold => Mapping::Held,
            _ if self.mutex_of_all_pools => Mapping::CopiedBeforeTheMutex,
            _ => Mapping::Copied,
        }
    }

    /// Whether a load takes its entry out before it decompresses (6.10 to
    /// 6.17), or after.
    #[must_use]
    pub fn erases_first(&self) -> bool {
        self.index == IndexKind::XarrayPer64M && self.incompressible == Incompressible::Refuse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_synchronous_compressors_get_by_without_a_request() {
        let on_stack = |context, algorithm| {
            let design = Design {
                context,
                algorithm,
                ..Design::default()
            };
            design.loads_on_stack()
        };
        assert!(on_stack(Context::Onstack, Algorithm::Zstd));
        assert!(!on_stack(Context::Onstack, Algorithm::DeflateIaa));
        assert!(!on_stack(Context::Split, Algorithm::Zstd));
    }

    #[test]
    fn names_round_trip() {
        for context in Context::ALL {
            assert_eq!(context.to_string().parse(), Ok(context));
        }
        assert_eq!("both".parse::<Context>(), Err(UnknownContext));
    }
}
