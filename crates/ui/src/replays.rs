//! Replays of a run, parked at several moments, so that a window anywhere in it
//! is never far from one of them.
//!
//! Invariants:
//! 1. A window is recorded by a replay that has not passed its start.
//! 2. Work is done in parts of a few ms, between which the worker listens.

use crate::codecs::Codecs;
use crate::protocol::WINDOW_NS;
use zswap_lab::{Recording, Run, RunError, Scenario};

/// A replay is parked at the start and at so many places after it.
const POSTS: u64 = 6;

/// Virtual length of one part of the work: about a millisecond of real time.
const PART_NS: u64 = 5_000_000;

/// The replays of one run.
pub struct Replays {
    scenario: Scenario,
    seed: u64,
    codecs: Codecs,
    end_ns: u64,
    parked: Vec<Run>,
    /// The one that fills an empty post, on its way there.
    walking: Option<(Run, u64)>,
}

impl Replays {
    pub fn new(scenario: Scenario, seed: u64, codecs: Codecs) -> Replays {
        Replays {
            end_ns: scenario.duration_s * 1_000_000_000,
            scenario,
            seed,
            codecs,
            parked: Vec::new(),
            walking: None,
        }
    }

    /// Works on a window: gives it, or nothing if there is more to do.
    pub fn work_on(&mut self, number: u64) -> Result<Option<Recording>, RunError> {
        let from_ns = number * WINDOW_NS;
        let mut run = self.take_nearest(from_ns)?;
        let now_ns = run.now_ns();
        let window = if now_ns < from_ns {
            run.advance(from_ns.min(now_ns + PART_NS))?;
            None
        } else {
            Some(run.record(from_ns + WINDOW_NS)?)
        };
        self.park(run);
        Ok(window)
    }

    /// The replay that has the shortest way to a moment.
    fn take_nearest(&mut self, at_ns: u64) -> Result<Run, RunError> {
        let before = self
            .parked
            .iter()
            .enumerate()
            .filter(|(_, run)| run.now_ns() <= at_ns);
        let nearest = before.max_by_key(|(_, run)| run.now_ns());
        match nearest.map(|(index, _)| index) {
            Some(index) => Ok(self.parked.swap_remove(index)),
            None => self.codecs.start(&self.scenario, self.seed),
        }
    }

    /// Keeps a replay. Where there are too many, one of the two others that are
    /// closest to each other goes: never the one that just worked, which would
    /// have to do the same work again, for ever.
    fn park(&mut self, run: Run) {
        if self.parked.len() as u64 >= POSTS + 2 {
            zswap_view::sort_few(&mut self.parked, Run::now_ns);
            let pairs = self.parked.windows(2).enumerate();
            let closest = pairs.min_by_key(|(_, pair)| pair[1].now_ns() - pair[0].now_ns());
            if let Some((index, _)) = closest {
                self.parked.remove(index);
            }
        }
        self.parked.push(run);
    }

    /// Fills the posts that are empty, a part at a time; says whether there is
    /// more to do.
    pub fn fill_posts(&mut self) -> Result<bool, RunError> {
        if let Some((mut run, post_ns)) = self.walking.take() {
            run.advance(post_ns.min(run.now_ns() + PART_NS))?;
            if run.now_ns() < post_ns {
                self.walking = Some((run, post_ns));
            } else {
                self.park(run);
            }
            return Ok(true);
        }
        let Some(post_ns) = self.empty_post() else {
            return Ok(false);
        };
        // A new one: taking a parked one away would only move the gap.
        let run = self.codecs.start(&self.scenario, self.seed)?;
        self.walking = Some((run, post_ns));
        Ok(true)
    }

    /// The first post with no replay between it and the next.
    fn empty_post(&self) -> Option<u64> {
        let step_ns = self.end_ns / POSTS;
        let is_filled = |post_ns: u64| {
            let stretch = post_ns..post_ns + step_ns / 2;
            self.parked
                .iter()
                .any(|run| stretch.contains(&run.now_ns()))
        };
        (0..POSTS)
            .map(|post| post * step_ns)
            .find(|&post_ns| !is_filled(post_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replays() -> Replays {
        let mut scenario = Scenario::named("b1-1cpu").expect("built in");
        scenario.set("duration_s", "1").expect("a duration");
        Replays::new(scenario, 1, Codecs::default())
    }

    fn window(replays: &mut Replays, number: u64) -> Recording {
        // From the start it takes one part per window before it.
        for _ in 0..=number {
            if let Some(window) = replays.work_on(number).expect("it runs") {
                return window;
            }
        }
        panic!("work on window {number} does not come to an end")
    }

    #[test]
    fn a_window_does_not_depend_on_the_way_to_it() {
        let mut replays = replays();
        let late = window(&mut replays, 30);
        let early = window(&mut replays, 3);
        assert_eq!((late.from_ns, early.from_ns), (150_000_000, 15_000_000));
        assert_eq!(window(&mut replays, 30), late);
        assert_eq!(window(&mut replays, 3), early);
    }

    #[test]
    fn posts_are_filled_and_stay_few() {
        let mut replays = replays();
        while replays.fill_posts().expect("it runs") {}
        assert_eq!(replays.parked.len() as u64, POSTS);
        for number in [
            180, 7, 90, 120, 60, 33, 150, 149, 148, 147, 146, 145, 144, 143, 89,
        ] {
            window(&mut replays, number);
        }
        assert!(replays.parked.len() as u64 <= POSTS + 2);
    }
}
