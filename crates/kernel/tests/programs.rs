//! Random programs on random machines: what every run promises.
//!
//! 1. No rule of the kernel is broken and no invariant of the model, which are
//!    checked after every event.
//! 2. Without a deadlock everything finishes. With one, the fault is a cycle of
//!    tasks that each own what the one before waits for.
//! 3. The run is determined by the program and the machine, and its first part
//!    does not depend on what follows.
#![cfg(not(target_arch = "wasm32"))]

mod common;
mod random;

use common::events;
use kernel_sim::{Event, EventKind, Fault, Machine, MachineConfig, TaskActivity, TaskId};
use proptest::prelude::*;
use random::{Order, Program, cases, config, cost_ns, program, start};

/// Long enough for every program: they ask for some seconds of CPU time at most.
const END_NS: u64 = 20_000_000_000;

/// Where a run is cut in two: amid the work of most programs.
fn cut_ns() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_000_u64, 0..20_000_000_u64]
}

/// How a run came out.
#[derive(PartialEq, Debug)]
struct Outcome {
    hash: u64,
    count: u64,
    fault: Option<Fault>,
}

fn run(machine: &mut Machine, until_ns: u64) -> Outcome {
    let fault = machine.run_until(until_ns).err();
    Outcome {
        hash: machine.trace_hash(),
        count: machine.event_count(),
        fault,
    }
}

/// A run in one piece and one that is cut agree, and so do their first parts.
fn check_determinism(
    config: &MachineConfig,
    program: &Program,
    cut_ns: u64,
    whole: &Outcome,
) -> Result<(), TestCaseError> {
    let mut cut = start(config, program).machine;
    let first = run(&mut cut, cut_ns);
    let again = run(&mut start(config, program).machine, cut_ns);
    prop_assert_eq!(&first, &again, "the first part differs between two runs");
    let second = run(&mut cut, END_NS);
    prop_assert_eq!(&second, whole, "a run that is cut differs");
    Ok(())
}

/// Everything has ended, having had the CPU time that it asked for.
fn check_finished(
    machine: &Machine,
    program: &Program,
    events: &[Event],
) -> Result<(), TestCaseError> {
    let spawned = events.iter().filter(|event| event.kind == EventKind::Spawn);
    let tasks: Vec<TaskId> = spawned.map(|event| event.task).collect();
    for &task in &tasks {
        let activity = machine.wait_chain(task)[0].activity;
        prop_assert_eq!(activity, TaskActivity::Ended, "task {}", task);
    }
    prop_assert_eq!(machine.stuck(), vec![]);
    prop_assert_eq!(machine.starving(), vec![]);
    let asked_ns: u64 = program.iter().map(|(_, steps)| cost_ns(steps)).sum();
    let had_ns: u64 = tasks.iter().map(|&task| machine.cpu_time_ns(task)).sum();
    prop_assert!(had_ns >= asked_ns, "{} ns asked, {} had", asked_ns, had_ns);
    Ok(())
}

/// The records about locks until the run stopped, by the names of a fault.
struct Locking {
    locks: Vec<String>,
    names: Vec<String>,
    events: Vec<Event>,
}

impl Locking {
    /// What a task did last with a lock.
    fn last(&self, task: &str, lock: &str) -> Option<EventKind> {
        let with_lock = |event: &&Event| {
            let about_locks = matches!(
                event.kind,
                EventKind::LockAcquire
                    | EventKind::LockRelease
                    | EventKind::LockWait
                    | EventKind::LockSpin
                    | EventKind::LockSpinEnd
            );
            about_locks
                && self.names[usize::from(event.task.0)] == task
                && self.locks[usize::try_from(event.arg).expect("a lock")] == lock
        };
        let last = self.events.iter().rev().find(with_lock);
        last.map(|event| event.kind)
    }

    fn owns(&self, task: &str, lock: &str) -> bool {
        self.last(task, lock) == Some(EventKind::LockAcquire)
    }

    fn waits(&self, task: &str, lock: &str) -> bool {
        use EventKind::{LockSpin, LockSpinEnd, LockWait};
        matches!(
            self.last(task, lock),
            Some(LockWait | LockSpin | LockSpinEnd)
        )
    }
}

/// The links of a deadlock as its text tells them: who, which lock, whose.
fn links(what: &str) -> Option<Vec<[&str; 3]>> {
    what.strip_prefix("deadlock: ")?
        .split(" owns")
        .filter(|link| !link.is_empty())
        .map(split_link)
        .collect()
}

fn split_link(link: &str) -> Option<[&str; 3]> {
    let (task, rest) = link.trim_start_matches(", ").split_once(" waits for ")?;
    let (lock, owner) = rest.split_once(", which ")?;
    Some([task, lock, owner])
}

/// A fault of a program that may deadlock is a cycle that is really there.
fn check_cycle(fault: &Fault, locking: &Locking) -> Result<(), TestCaseError> {
    let links = links(&fault.what);
    prop_assert!(links.is_some(), "not a deadlock: {}", fault);
    let links = links.unwrap_or_default();
    prop_assert!(links.len() > 1, "{}", fault);
    for (link, next) in links.iter().zip(links.iter().cycle().skip(1)) {
        let [task, lock, owner] = *link;
        prop_assert_eq!(owner, next[0], "{}", fault);
        prop_assert!(locking.owns(owner, lock), "{}: {} owns", fault, owner);
        // The fault comes before the record of the wait that closes the cycle.
        let waits = locking.waits(task, lock);
        prop_assert!(waits || task == fault.task, "{}: {} waits", fault, task);
        prop_assert!(!locking.owns(task, lock), "{}: {} waits", fault, task);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn without_a_deadlock_everything_finishes(
        config in config(),
        program in program(Order::Global),
        cut_ns in cut_ns(),
    ) {
        let mut started = start(&config, &program);
        let whole = run(&mut started.machine, END_NS);
        prop_assert_eq!(&whole.fault, &None);
        let events = events(&mut started.machine);
        check_finished(&started.machine, &program, &events)?;
        check_determinism(&config, &program, cut_ns, &whole)?;
    }

    #[test]
    fn a_deadlock_is_a_cycle_that_is_really_there(
        config in config(),
        program in program(Order::Any),
        cut_ns in cut_ns(),
    ) {
        let mut started = start(&config, &program);
        let whole = run(&mut started.machine, END_NS);
        let events = events(&mut started.machine);
        match &whole.fault {
            None => check_finished(&started.machine, &program, &events)?,
            Some(fault) => {
                let locks = started.machine.locks();
                let locking = Locking {
                    locks: locks.into_iter().map(|lock| lock.name).collect(),
                    names: started.names(),
                    events,
                };
                check_cycle(fault, &locking)?;
            }
        }
        check_determinism(&config, &program, cut_ns, &whole)?;
    }
}

#[test]
fn a_task_that_ends_is_never_a_delayed_sleeper() {
    let mut machine = common::ideal(1, |_| ());
    let ends = machine.spawn(
        "ends",
        0,
        |task| async move { task.run_user(100_000).await },
    );
    let ends = ends.expect("a valid nice");
    common::spinner(&mut machine, "spinner", 0);
    machine.run_until(10_000_000).expect("no rule is broken");
    let events = events(&mut machine);
    // It has had 0.1 ms before the other one ran, and so it is in debt.
    assert_eq!(common::times(&events, ends, EventKind::Exit), [100_000]);
    assert_eq!(common::times(&events, ends, EventKind::DelayDequeue), []);
}
