//! The mutex: the kernel's protocol in every order, and the simulator beside it.
#![cfg(not(target_arch = "wasm32"))]

mod protocol;

use kernel_sim::Acquired;
use protocol::explore::explore;
use protocol::mutex::{Bug, KernelMutex};
use protocol::simulated::{self, Kind};
use protocol::{Outcomes, judge, occurs};

const ALL: [Acquired; 4] = [
    Acquired::Fast,
    Acquired::Stolen,
    Acquired::Woken,
    Acquired::HandedOff,
];

/// Everything that the protocol allows. The tests that compare allow so many
/// interruptions that one or two more make no further outcome.
fn allowed(rounds: &'static [usize], preemptions: usize, bug: Option<Bug>) -> Outcomes {
    let new = move |log| KernelMutex::new(rounds.len(), bug, log);
    explore(rounds, preemptions, new, judge)
}

/// What the simulator does is among it, and shows every way of getting the lock.
fn compare(rounds: &'static [usize], preemptions: usize) {
    let allowed = allowed(rounds, preemptions, None);
    let simulated = simulated::outcomes(Kind::Mutex, rounds, judge);
    let others: Vec<_> = simulated.difference(&allowed).collect();
    assert!(others.is_empty(), "only the simulator does {others:#?}");
    for how in ALL {
        assert!(occurs(&allowed, how), "{how:?} is never allowed");
        assert!(occurs(&simulated, how), "{how:?} is never simulated");
    }
}

#[test]
fn two_tasks_do_only_what_the_protocol_allows() {
    compare(&[2, 2], 7);
}

#[test]
fn three_tasks_do_only_what_the_protocol_allows() {
    compare(&[1, 1, 1], 4);
}

/// The first waiter, one behind it, and one who steals twice.
#[test]
fn a_waiter_behind_the_first_has_its_turn_too() {
    let outcomes = allowed(&[2, 1, 1], 3, None);
    assert!(ALL.iter().all(|&how| occurs(&outcomes, how)));
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_unlock_that_forgets_the_waiter_is_caught() {
    allowed(&[1, 1], 2, Some(Bug::ForgetsWaiter));
}

#[test]
#[should_panic(expected = "two owners")]
fn a_waiter_that_does_not_look_again_is_caught() {
    allowed(&[2, 1], 2, Some(Bug::NoRecheck));
}

#[test]
#[should_panic(expected = "it is handed to another")]
fn a_handover_that_anyone_picks_up_is_caught() {
    allowed(&[3, 1], 3, Some(Bug::AnyonePicksUp));
}

#[test]
#[should_panic(expected = "another is woken")]
fn a_handover_to_the_last_waiter_is_caught() {
    allowed(&[2, 1, 1], 2, Some(Bug::HandsToLast));
}
