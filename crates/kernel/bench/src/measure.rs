//! How rates are measured: all of them in turn, round after round, so that what
//! else the computer does hits all alike. The median of the rounds counts.

use std::time::Duration;

/// How often each is measured.
const ROUNDS: usize = 7;
/// For how long each time, at least; the first round only warms up.
const ROUND: Duration = Duration::from_millis(150);

/// How much was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count(pub u64);

/// How much is done in a second.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Rate(pub f64);

impl Rate {
    /// How long one takes, in ns.
    #[must_use]
    pub fn ns_each(self) -> f64 {
        1e9 / self.0
    }
}

/// A clock: the time since some moment, which stays the same.
pub type Clock = fn() -> Duration;

/// The rate of each of `works`, which do a part of their work at each call.
pub fn rates(clock: Clock, works: &mut [&mut dyn FnMut() -> Count]) -> Vec<Rate> {
    let mut measured = vec![Vec::new(); works.len()];
    for round in 0..=ROUNDS {
        for (work, measured) in works.iter_mut().zip(&mut measured) {
            let rate = one_round(clock, work);
            if round > 0 {
                measured.push(rate);
            }
        }
    }
    measured.into_iter().map(median).collect()
}

fn one_round(clock: Clock, work: &mut dyn FnMut() -> Count) -> Rate {
    let begin = clock();
    let mut done = 0;
    loop {
        done += work().0;
        let spent = clock() - begin;
        if spent >= ROUND {
            return Rate(done as f64 / spent.as_secs_f64());
        }
    }
}

fn median(mut rates: Vec<Rate>) -> Rate {
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    rates[rates.len() / 2]
}
