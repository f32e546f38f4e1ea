//! Load weights of the nice levels.
//!
//! A weight is a share of CPU time: two tasks that both want the CPU get it in
//! the ratio of their weights, and one nice level is worth about 25 %.
//! The numbers are the kernel's own table (`sched_prio_to_weight`).

/// Lowest nice value: the most important task.
pub const NICE_MIN: i8 = -20;
/// Highest nice value: the least important task.
pub const NICE_MAX: i8 = 19;
/// Weight of nice 0. One nanosecond at this weight is one virtual nanosecond.
pub const NICE_0_WEIGHT: i64 = 1024;
/// Weight of `SCHED_IDLE` (`WEIGHT_IDLEPRIO`).
pub const IDLE_WEIGHT: u32 = 3;

const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight of a nice level, or `None` outside −20..=19.
///
/// ```
/// use kernel_sim::weight_of_nice;
/// assert_eq!(weight_of_nice(0), Some(1024));
/// assert_eq!(weight_of_nice(-19), Some(71755));
/// assert_eq!(weight_of_nice(20), None);
/// ```
#[must_use]
pub fn weight_of_nice(nice: i8) -> Option<u32> {
    let index = i16::from(nice) - i16::from(NICE_MIN);
    usize::try_from(index)
        .ok()
        .and_then(|index| WEIGHTS.get(index).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_level_is_worth_about_a_quarter() {
        for pair in WEIGHTS.windows(2) {
            let percent = pair[0] * 100 / pair[1];
            assert!((117..=130).contains(&percent), "{pair:?}");
        }
        assert_eq!(weight_of_nice(NICE_MIN), Some(88761));
        assert_eq!(weight_of_nice(NICE_MAX), Some(15));
        assert_eq!(weight_of_nice(NICE_MIN - 1), None);
    }
}
