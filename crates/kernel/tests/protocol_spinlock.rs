//! The queued spinlock: the kernel's protocol in every order, and the simulator
//! beside it.
#![cfg(not(target_arch = "wasm32"))]

mod protocol;

use kernel_sim::Acquired;
use protocol::explore::explore;
use protocol::simulated::{self, Kind};
use protocol::spinlock::{Bug, QueuedSpinLock};
use protocol::{Outcomes, judge_spinlock, occurs};

/// Everything that the protocol allows. The tests that compare allow so many
/// interruptions that one more makes no further outcome.
fn allowed(rounds: &'static [usize], preemptions: usize, bug: Option<Bug>) -> Outcomes {
    let new = move |log| QueuedSpinLock::new(rounds.len(), bug, log);
    explore(rounds, preemptions, new, judge_spinlock)
}

/// What the simulator does is among it; both know waiting and not waiting.
fn compare(rounds: &'static [usize], preemptions: usize) {
    let allowed = allowed(rounds, preemptions, None);
    let simulated = simulated::outcomes(Kind::SpinLock, rounds, judge_spinlock);
    let others: Vec<_> = simulated.difference(&allowed).collect();
    assert!(others.is_empty(), "only the simulator does {others:#?}");
    for how in [Acquired::Fast, Acquired::HandedOff] {
        assert!(occurs(&allowed, how), "{how:?} is never allowed");
        assert!(occurs(&simulated, how), "{how:?} is never simulated");
    }
}

#[test]
fn two_tasks_do_only_what_the_protocol_allows() {
    compare(&[2, 2], 5);
}

#[test]
fn three_tasks_do_only_what_the_protocol_allows() {
    compare(&[1, 1, 1], 4);
}

/// One owns it, one is pending, two queue.
#[test]
fn four_tasks_get_it_in_the_order_of_their_coming() {
    allowed(&[1, 1, 1, 1], 2, None);
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_unlock_that_clears_the_queue_is_caught() {
    allowed(&[1, 1, 1], 2, Some(Bug::ClearsQueue));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_head_of_the_queue_that_overtakes_is_caught() {
    allowed(&[1, 1, 1], 2, Some(Bug::IgnoresPending));
}
