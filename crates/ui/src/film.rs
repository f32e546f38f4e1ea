//! The windows of a run that the page has, and moving about in them.
//!
//! Invariants:
//! 1. A place is a window and a number of records before it in that window; the
//!    state at a place does not depend on how it was reached.
//! 2. The end of a window and the start of the next are the same moment.

use crate::protocol::WINDOW_NS;
use std::rc::Rc;
use zswap_lab::{Player, Recording};
use zswap_view::timeline::Timeline;

/// So many windows are kept.
const KEPT: usize = 64;

/// A window that is here.
struct Reel {
    number: u64,
    player: Player,
    timeline: Rc<Timeline>,
}

/// The windows that are here.
#[derive(Default)]
pub struct Film {
    /// In the order of their numbers.
    reels: Vec<Reel>,
    /// The window that was last sought.
    current: Option<u64>,
}

/// The number of the window that a moment belongs to: records at the very end
/// of a window are in it.
pub fn window_of(at_ns: u64) -> u64 {
    at_ns.saturating_sub(1) / WINDOW_NS
}

impl Film {
    /// Takes a window in. Of too many, those farthest from the window `centre`
    /// go: that is the one to be shown, whether it is here yet or not.
    pub fn insert(&mut self, number: u64, recording: Recording, centre: u64) {
        let timeline = Rc::new(Timeline::of(&recording));
        let player = Player::new(recording);
        let reel = Reel {
            number,
            player,
            timeline,
        };
        match self.find(number) {
            Ok(index) => self.reels[index] = reel,
            Err(index) => self.reels.insert(index, reel),
        }
        while self.reels.len() > KEPT {
            let numbers = self.reels.iter().map(|reel| reel.number).enumerate();
            // What is on show stays until there is something else to show.
            let others = numbers.filter(|&(_, other)| Some(other) != self.current);
            let far = others.max_by_key(|(_, other)| other.abs_diff(centre));
            match far {
                Some((index, _)) => self.reels.remove(index),
                None => break,
            };
        }
    }

    /// The index of a window, or else where it would have to be.
    fn find(&self, number: u64) -> Result<usize, usize> {
        self.reels.binary_search_by_key(&number, |reel| reel.number)
    }

    fn player_of(&mut self, number: u64) -> Option<&mut Player> {
        let index = self.find(number).ok()?;
        Some(&mut self.reels[index].player)
    }

    /// Whether a window is here.
    pub fn has(&self, number: u64) -> bool {
        self.find(number).is_ok()
    }

    /// The player of the current window.
    pub fn player(&self) -> Option<&Player> {
        let index = self.find(self.current?).ok()?;
        Some(&self.reels[index].player)
    }

    /// The current window.
    pub fn current(&self) -> Option<u64> {
        self.current
    }

    /// Goes to the place after all records up to and including `at_ns`; says
    /// whether its window is here.
    pub fn seek_ns(&mut self, at_ns: u64) -> bool {
        let number = window_of(at_ns);
        let Some(player) = self.player_of(number) else {
            return false;
        };
        player.seek_ns(at_ns);
        self.current = Some(number);
        true
    }

    /// Goes on by one record, or back, and gives the time there; nothing if the
    /// window that this leads to is not here.
    pub fn step(&mut self, is_forward: bool) -> Option<u64> {
        let number = self.current?;
        let player = self.player_of(number)?;
        let (position, last) = (player.position(), player.recording().events.len());
        if is_forward && position < last {
            return Some(player.step(1));
        }
        if !is_forward && position > 0 {
            return Some(player.step(-1));
        }
        let next = if is_forward {
            number + 1
        } else {
            number.checked_sub(1)?
        };
        let player = self.player_of(next)?;
        let records = player.recording().events.len();
        player.seek(if is_forward {
            1
        } else {
            records.saturating_sub(1)
        });
        let at_ns = player.step(0);
        self.current = Some(next);
        Some(at_ns)
    }

    /// The timelines of the windows that overlap a stretch of time.
    pub fn timelines(&self, from_ns: u64, to_ns: u64) -> Vec<Rc<Timeline>> {
        let range = window_of(from_ns)..=window_of(to_ns).max(window_of(from_ns));
        let shown = self
            .reels
            .iter()
            .filter(|reel| range.contains(&reel.number));
        shown.map(|reel| Rc::clone(&reel.timeline)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zswap_lab::{Run, Scenario};

    fn film(windows: u64) -> Film {
        let scenario = Scenario::named("b1-1cpu").expect("built in");
        let mut run = Run::start(&scenario, 1).expect("it starts");
        let mut film = Film::default();
        for number in 0..windows {
            film.insert(
                number,
                run.record((number + 1) * WINDOW_NS).expect("it runs"),
                number,
            );
        }
        film
    }

    #[test]
    fn stepping_crosses_the_seam_of_two_windows_and_comes_back() {
        let mut film = film(2);
        assert!(film.seek_ns(WINDOW_NS));
        let there = film.player().expect("here").state().clone();
        assert_eq!(film.current(), Some(0));
        let at_ns = film.step(true).expect("the next window is here");
        assert!(at_ns > WINDOW_NS && film.current() == Some(1));
        film.step(false).expect("the same window");
        assert_eq!(film.player().map(Player::state), Some(&there));
        film.step(false).expect("the window before");
        assert_eq!(film.current(), Some(0));
        film.step(true).expect("still there");
        assert_eq!(film.player().map(Player::state), Some(&there));
    }

    #[test]
    fn what_is_far_from_the_moment_sought_goes_first() {
        let mut film = film(KEPT as u64);
        assert!(film.seek_ns(1));
        let player = film.player().expect("here");
        let far = 10_000;
        film.insert(far, player.recording().clone(), far);
        assert!(film.has(far) && !film.has(1) && film.has(2));
        assert!(film.has(0), "what is on show has gone");
    }

    #[test]
    fn what_is_not_here_is_not_gone_to() {
        let mut film = film(1);
        assert!(!film.seek_ns(WINDOW_NS + 1));
        assert!(film.seek_ns(WINDOW_NS));
        assert_eq!(film.step(true), None);
    }
}
