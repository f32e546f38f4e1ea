//! Fullness groups.
//!
//! Each class keeps its zspages in lists by how full they are. Allocation
//! takes from the fullest list that is not full, compaction empties the
//! emptiest, and neither has to sort.
//!
//! 1. An empty zspage is in the first group and a full one in the last,
//!    whatever the number of groups.
//! 2. A zspage with more objects is never in a lower group.
//!
//! Since 6.3 there are twelve groups, about ten per cent wide; before, four.
//! Left out: the four-group code also put the fuller of two zspages first
//! within a list.

use serde::{Deserialize, Serialize};

/// How many groups there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FullnessRule {
    /// 0 %, 10 % … 90 %, 99 %, 100 % (since 6.3).
    #[default]
    Twelve,
    /// Empty, almost empty (up to three quarters), almost full, full.
    Four,
}

/// A fullness group, by its number: 0 is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FullnessGroup(pub u8);

impl FullnessGroup {
    /// The group of empty zspages.
    pub const EMPTY: FullnessGroup = FullnessGroup(0);
    /// The most groups there can be.
    pub const MAX_GROUPS: usize = 12;
}

impl FullnessRule {
    /// Number of groups.
    pub const fn groups(self) -> usize {
        match self {
            FullnessRule::Twelve => 12,
            FullnessRule::Four => 4,
        }
    }

    /// The group of full zspages.
    pub const fn full(self) -> FullnessGroup {
        FullnessGroup(self.groups() as u8 - 1)
    }

    /// The group of a zspage with `inuse` of `objs_per_zspage` objects.
    #[inline]
    pub const fn group(self, inuse: u16, objs_per_zspage: u16) -> FullnessGroup {
        if inuse == 0 {
            return FullnessGroup::EMPTY;
        }
        if inuse == objs_per_zspage {
            return self.full();
        }
        let (inuse, objs) = (inuse as u32, objs_per_zspage as u32);
        match self {
            // The kernel takes whole per cent and then tenths of them, which is
            // the same for whole numbers.
            FullnessRule::Twelve => FullnessGroup((10 * inuse / objs + 1) as u8),
            FullnessRule::Four => FullnessGroup(if inuse <= 3 * objs / 4 { 1 } else { 2 }),
        }
    }

    /// What the kernel's statistics call a group.
    pub const fn label(self, group: FullnessGroup) -> &'static str {
        const TWELVE: [&str; 12] = [
            "0%", "10%", "20%", "30%", "40%", "50%", "60%", "70%", "80%", "90%", "99%", "100%",
        ];
        const FOUR: [&str; 4] = ["empty", "almost_empty", "almost_full", "full"];
        match self {
            FullnessRule::Twelve => TWELVE[group.0 as usize],
            FullnessRule::Four => FOUR[group.0 as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_begin_where_the_kernel_begins_them() {
        let group = |inuse, objs| FullnessRule::Twelve.group(inuse, objs).0;
        assert_eq!(group(0, 127), 0);
        assert_eq!(group(1, 127), 1);
        assert_eq!(group(12, 127), 1);
        assert_eq!(group(13, 127), 2);
        assert_eq!(group(126, 127), 10);
        assert_eq!(group(127, 127), 11);
        assert_eq!(group(1, 2), 6);
        assert_eq!(group(1, 1), 11);
    }

    #[test]
    fn tenths_taken_at_once_are_tenths_of_whole_per_cent() {
        for objs in 2..=1365_u16 {
            for inuse in 1..objs {
                let (wide_inuse, wide_objs) = (u32::from(inuse), u32::from(objs));
                let kernels = 100 * wide_inuse / wide_objs / 10 + 1;
                assert_eq!(
                    u32::from(FullnessRule::Twelve.group(inuse, objs).0),
                    kernels
                );
            }
        }
    }

    #[test]
    fn more_objects_never_mean_a_lower_group() {
        for rule in [FullnessRule::Twelve, FullnessRule::Four] {
            for objs in 1..=1365 {
                let groups: Vec<u8> = (0..=objs).map(|inuse| rule.group(inuse, objs).0).collect();
                assert!(groups.is_sorted(), "{rule:?}, {objs} objects");
                assert_eq!(groups[0], 0);
                assert_eq!(usize::from(groups[usize::from(objs)]), rule.groups() - 1);
                assert!(
                    groups[1..usize::from(objs)]
                        .iter()
                        .all(|group| { *group > 0 && usize::from(*group) < rule.groups() - 1 })
                );
            }
        }
    }
}
