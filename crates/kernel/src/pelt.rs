//! Per-entity load tracking: how much of the recent past a task was queued, and
//! how much of it it ran.
//!
//! A fraction decays with a half-life of 32 periods of 1024 × 1024 ns, which is
//! 2^25 ns: the share of a half-life that has passed is an exact shift.
//! Fractions are in 2^-32.
//!
//! Left out: the kernel's split into whole periods. The continuous form agrees
//! with it to within one period (scheduler reference, verified, step 1). Also
//! left out: that other CPUs see a busy CPU's sums as of its last own update,
//! which is at most a tick old.
//!
//! ```
//! use kernel_sim::pelt::{Activity, Pelt};
//! let mut pelt = Pelt::full(0);
//! pelt.set(0, Activity::default());
//! assert_eq!(pelt.queued(33_554_432), 1 << 31);
//! ```

/// One, as a fraction.
pub const ONE: u64 = 1 << 32;

/// 2^25 ns are a half-life; shifted by this, 2^16 are.
const HALF_LIFE_TO_Q16_SHIFT: u32 = 9;

/// 2^(-1/256) in 2^-62.
const STEP_Q62: u64 = 0x3fd3_b2d6_5447_b229;

/// 2^(-k/256) in 2^-32, for k from 0 to 256.
const POWERS: [u64; 257] = powers();

const fn powers() -> [u64; 257] {
    let mut table = [0; 257];
    let mut value_q62: u128 = 1 << 62;
    let mut k = 0;
    while k < 257 {
        table[k] = ((value_q62 + (1 << 29)) >> 30) as u64;
        value_q62 = (value_q62 * STEP_Q62 as u128) >> 62;
        k += 1;
    }
    table
}

/// What is left of a fraction after `ns`.
fn decay(ns: u64) -> u64 {
    let half_lives_q16 = ns >> HALF_LIFE_TO_Q16_SHIFT;
    let whole = half_lives_q16 >> 16;
    if whole >= 32 {
        return 0;
    }
    let part = half_lives_q16 & 0xffff;
    let (index, rest) = ((part >> 8) as usize, part & 0xff);
    let (high, low) = (POWERS[index], POWERS[index + 1]);
    (high - (((high - low) * rest) >> 8)) >> whole
}

/// A fraction of which `left` is left, after a time of activity or of none.
fn after(fraction: u64, left: u64, active: bool) -> u64 {
    if left >= ONE {
        return fraction;
    }
    // Below ONE * ONE, which is the first number that does not fit.
    let kept = (fraction * left) >> 32;
    if active { kept + (ONE - left) } else { kept }
}

/// What a task is doing, as far as load tracking cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    /// It is queued or running; a delayed sleeper still is.
    pub queued: bool,
    /// It is queued or running, and not a delayed sleeper.
    pub runnable: bool,
    /// It runs.
    pub running: bool,
}

/// The shares of the recent past in which a task did something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    /// It was queued or ran.
    pub queued: u64,
    /// So it was, and not as a delayed sleeper.
    pub runnable: u64,
    /// It ran.
    pub running: u64,
}

/// The tracked fractions of a task.
#[derive(Clone, Debug)]
pub struct Pelt {
    at_ns: u64,
    activity: Activity,
    queued: u64,
    runnable: u64,
    running: u64,
}

impl Pelt {
    /// A new task's: it counts in full from the start.
    #[must_use]
    pub fn full(at_ns: u64) -> Pelt {
        Pelt {
            at_ns,
            activity: Activity::default(),
            queued: ONE,
            runnable: ONE,
            running: ONE,
        }
    }

    /// The task does this from now on.
    pub fn set(&mut self, now_ns: u64, activity: Activity) {
        if now_ns > self.at_ns {
            let Shares {
                queued,
                runnable,
                running,
            } = self.shares(now_ns);
            (self.queued, self.runnable, self.running) = (queued, runnable, running);
            self.at_ns = now_ns;
        }
        self.activity = activity;
    }

    /// All three shares, which decay alike.
    #[must_use]
    pub fn shares(&self, now_ns: u64) -> Shares {
        let left = self.left(now_ns);
        let Activity {
            queued,
            runnable,
            running,
        } = self.activity;
        Shares {
            queued: after(self.queued, left, queued),
            runnable: after(self.runnable, left, runnable),
            running: after(self.running, left, running),
        }
    }

    fn left(&self, now_ns: u64) -> u64 {
        decay(now_ns.saturating_sub(self.at_ns))
    }

    /// The share of the recent past that it was queued.
    #[must_use]
    pub fn queued(&self, now_ns: u64) -> u64 {
        after(self.queued, self.left(now_ns), self.activity.queued)
    }

    /// The share that it was runnable.
    #[must_use]
    pub fn runnable(&self, now_ns: u64) -> u64 {
        after(self.runnable, self.left(now_ns), self.activity.runnable)
    }

    /// The share that it ran.
    #[must_use]
    pub fn running(&self, now_ns: u64) -> u64 {
        after(self.running, self.left(now_ns), self.activity.running)
    }

    /// What it was queued when it last changed, not decayed since: what
    /// `wake_affine` takes for the load of a task that wakes.
    #[must_use]
    pub fn queued_as_stored(&self) -> u64 {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_reader_decays_as_in_the_reference() {
        // 71 755 after 8, 20, 60 and 127 ms.
        let mut pelt = Pelt::full(0);
        pelt.set(0, Activity::default());
        let load = |ms: u64| (71_755 * pelt.queued(ms * 1_000_000)) >> 32;
        let loads = [8, 20, 60, 127].map(load);
        for (load, known) in loads.into_iter().zip([60_800, 47_500, 20_800, 5_200]) {
            assert!(load.abs_diff(known) < 60, "{load} {known}");
        }
    }

    #[test]
    fn half_the_time_is_half_the_fraction_and_never_more_than_one() {
        let mut pelt = Pelt::full(0);
        for step in 0..2_000_u64 {
            let busy = step % 2 == 0;
            let activity = Activity {
                queued: true,
                runnable: busy,
                running: busy,
            };
            pelt.set(step * 1_000_000, activity);
            assert!(pelt.queued <= ONE && pelt.running <= ONE);
        }
        let share = pelt.running(2_000_000_000) * 100 / ONE;
        assert!((48..=52).contains(&share), "{share}");
        assert_eq!(pelt.queued(2_000_000_000), ONE);
    }

    #[test]
    fn decay_is_monotone_and_halves() {
        assert_eq!(decay(0), ONE);
        assert_eq!(decay(1 << 25), ONE / 2);
        assert_eq!(decay(3 << 25), ONE / 8);
        assert_eq!(decay(40 << 25), 0);
        let mut last = ONE;
        for step in 0..10_000 {
            let left = decay(step * 7_919);
            assert!(left <= last);
            last = left;
        }
    }
}
