//! How rates are measured: all of them in turn, in many short rounds, so that what
//! else the computer does hits all alike. It only ever slows, so the fast rounds
//! count: the one that a tenth of them surpass.

use std::time::Duration;

/// How often each is measured.
const ROUNDS: usize = 40;
/// As many rounds before only warm up.
const WARM_UP: usize = 4;
/// For how long each time, at least: many ticks of a coarse clock.
const ROUND: Duration = Duration::from_millis(25);

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
    for round in 0..WARM_UP + ROUNDS {
        for (work, measured) in works.iter_mut().zip(&mut measured) {
            let rate = one_round(clock, work);
            if round >= WARM_UP {
                measured.push(rate);
            }
        }
    }
    measured.into_iter().map(fast).collect()
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

fn fast(mut rates: Vec<Rate>) -> Rate {
    rates.sort_by(|a, b| b.0.total_cmp(&a.0));
    rates[rates.len() / 10]
}
