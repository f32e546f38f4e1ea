//! The designs that were, by name.
//!
//! ```
//! use zswap_paths::Preset;
//! let preset: Preset = "6.10".parse()?;
//! assert_eq!(preset.design().zpools, 32);
//! # Ok::<(), zswap_paths::UnknownPreset>(())
//! ```

use crate::design::{Allocator, Context, ContextLife, Design, LruDesign};
use core::fmt;
use core::str::FromStr;
use zswap_mm::IndexKind;
use zswap_mm::fill::{Incompressible, SameFilled};
use zswap_mm::limits::LimitRule;

/// A design of a kernel or of a patch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// Linux 6.7.
    V6_7,
    /// 6.7 with the tree split, as the series of December 2023 has it.
    V6_8SplitTree,
    /// Linux 6.10.
    V6_10,
    /// 6.10 with one allocator pool and nothing else.
    V6_10OnePool,
    /// Linux 6.11.
    V6_11,
    /// Linux 6.18.
    V6_18,
    /// 2026, before the two patches.
    BeforeTheSplit,
    /// With the first.
    Patch1,
    /// With both.
    Patch2,
}

impl Preset {
    /// All of them, from the oldest.
    pub const ALL: [Preset; 9] = [
        Preset::V6_7,
        Preset::V6_8SplitTree,
        Preset::V6_10,
        Preset::V6_10OnePool,
        Preset::V6_11,
        Preset::V6_18,
        Preset::BeforeTheSplit,
        Preset::Patch1,
        Preset::Patch2,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Preset::V6_7 => "6.7",
            Preset::V6_8SplitTree => "6.8-split-tree",
            Preset::V6_10 => "6.10",
            Preset::V6_10OnePool => "6.10-onepool",
            Preset::V6_11 => "6.11",
            Preset::V6_18 => "6.18",
            Preset::BeforeTheSplit => "before-the-split",
            Preset::Patch1 => "patch-1",
            Preset::Patch2 => "patch-2",
        }
    }

    /// The published change it comes from.
    #[must_use]
    pub fn change(self) -> &'static str {
        match self {
            Preset::V6_7 => "b8cf32dc6e8c: 32 allocator pools; one rb-tree per swap device",
            Preset::V6_8SplitTree => "44c7c734a513: an rb-tree per 64 MB of swap",
            Preset::V6_10 => "796c2c23e14e: xarrays instead of rb-trees; one LRU for all pools",
            Preset::V6_10OnePool => "8edc9c4e72fe alone: one allocator pool, its lock still one",
            Preset::V6_11 => "64bd0197ae0c: locks per size class; then 8edc9c4e72fe: one pool",
            Preset::V6_18 => "5c3f8be0c6b1: zsmalloc without a layer; zspage readers may sleep",
            Preset::BeforeTheSplit => {
                "contexts live as long as their pool; what the series starts from"
            }
            Preset::Patch1 => "patch 1 of 2: a request and a mutex for each direction",
            Preset::Patch2 => "patch 2 of 2: loads with the request on the stack",
        }
    }

    /// The design.
    #[must_use]
    pub fn design(self) -> Design {
        let now = Design::default();
        let v6_18 = Design {
            context_life: ContextLife::CpuDead,
            ..now
        };
        let v6_11 = Design {
            allocator: Allocator::ZsmallocClassLocks,
            same_filled: SameFilled::InZswap,
            incompressible: Incompressible::Refuse,
            shrink_batch: 1,
            ..v6_18
        };
        let v6_10 = Design {
            allocator: Allocator::ZsmallocPoolLock,
            zpools: 32,
            ..v6_11
        };
        let v6_8 = Design {
            index: IndexKind::RbTreePer64M,
            lru: LruDesign::PerPool,
            mutex_of_all_pools: true,
            ..v6_10
        };
        match self {
            Preset::V6_7 => Design {
                index: IndexKind::RbTree,
                limit_rule: LimitRule::Exclusive,
                ..v6_8
            },
            Preset::V6_8SplitTree => v6_8,
            Preset::V6_10 => v6_10,
            Preset::V6_10OnePool => Design { zpools: 1, ..v6_10 },
            Preset::V6_11 => v6_11,
            Preset::V6_18 => v6_18,
            Preset::BeforeTheSplit => now,
            Preset::Patch1 => Design {
                context: Context::Split,
                ..now
            },
            Preset::Patch2 => Design {
                context: Context::Onstack,
                ..now
            },
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no preset of this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPreset(pub String);

impl fmt::Display for UnknownPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown preset `{}`: use one of", self.0)?;
        for preset in Preset::ALL {
            write!(f, " {preset}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownPreset {}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Preset, UnknownPreset> {
        let named = |preset: &Preset| preset.name() == name;
        let preset = Preset::ALL.into_iter().find(named);
        preset.ok_or_else(|| UnknownPreset(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_no_two_are_the_same() {
        for preset in Preset::ALL {
            assert_eq!(preset.name().parse(), Ok(preset));
            let same = Preset::ALL
                .into_iter()
                .filter(|other| other.design() == preset.design());
            assert_eq!(same.count(), 1, "{preset}");
        }
        let error = "7.7".parse::<Preset>().expect_err("no such preset");
        assert!(error.to_string().starts_with("unknown preset `7.7`: use"));
    }

    #[test]
    fn only_kernels_before_6_18_erase_before_they_decompress() {
        let erases_first = |preset: &Preset| preset.design().erases_first();
        let found: Vec<Preset> = Preset::ALL.into_iter().filter(erases_first).collect();
        assert_eq!(found, [Preset::V6_10, Preset::V6_10OnePool, Preset::V6_11]);
    }
}
