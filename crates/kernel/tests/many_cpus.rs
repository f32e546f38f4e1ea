//! Several CPUs: whole machines whose outcome follows from the rules.

mod common;

use common::{events, spinner as spin};
use kernel_sim::{Acquired, Event, EventKind, Machine, Task, TaskId};

fn machine(cpus: u8, seed: u64) -> Machine {
    common::machine(|config| {
        config.cpus = cpus;
        config.seed = seed;
    })
}

fn count(events: &[Event], kind: EventKind) -> usize {
    events.iter().filter(|event| event.kind == kind).count()
}

#[test]
fn as_many_spinners_as_cpus_have_one_each_and_stay() {
    for cpus in [2, 8, 64] {
        let mut machine = machine(cpus, 1);
        let tasks: Vec<TaskId> = (0..cpus)
            .map(|_| spin(&mut machine, "spinner", 0))
            .collect();
        machine.run_until(2_000_000_000).expect("no rule is broken");
        let events = events(&mut machine);
        assert_eq!(count(&events, EventKind::Migrate), 0);
        for task in tasks {
            assert!(machine.cpu_time_ns(task) > 1_990_000_000);
        }
    }
}

#[test]
fn three_equal_spinners_on_two_cpus_take_turns_at_being_alone() {
    let mut machine = machine(2, 1);
    let tasks = [0, 1, 2].map(|_| spin(&mut machine, "spinner", 0));
    machine
        .run_until(20_000_000_000)
        .expect("no rule is broken");
    let moves = count(&events(&mut machine), EventKind::Migrate);
    // One busy pass of each CPU every 31 to 63 ms; about every second one moves.
    assert!((100..=700).contains(&moves), "{moves}");
    for task in tasks {
        let share = machine.cpu_time_ns(task) / 200_000_000;
        assert!((50..=83).contains(&share), "{share} % of a CPU");
    }
}

#[test]
fn tasks_that_sleep_now_and_then_still_keep_the_cpus_busy() {
    let mut machine = machine(4, 3);
    // Eight tasks that want 70 % of a CPU each, out of step.
    let tasks: Vec<TaskId> = (0..8_u64)
        .map(|number| {
            let body = move |task: Task| async move {
                loop {
                    task.run_user(700_000 + number * 130_000).await;
                    task.sleep(300_000 + number * 70_000).await;
                }
            };
            machine.spawn("task", 0, body).expect("a valid nice")
        })
        .collect();
    machine.run_until(2_000_000_000).expect("no rule is broken");
    let times_ns: Vec<u64> = tasks
        .iter()
        .map(|&task| machine.cpu_time_ns(task))
        .collect();
    let busy_percent = times_ns.iter().sum::<u64>() / 80_000_000;
    assert!(busy_percent >= 85, "{busy_percent} %");
    let (least, most) = (times_ns.iter().min(), times_ns.iter().max());
    assert!(most.copied() < least.map(|least| least * 2), "{times_ns:?}");
}

#[test]
fn a_mutex_held_by_a_running_task_is_spun_for_and_not_slept_on() {
    let mut machine = machine(2, 1);
    let mutex = machine.mutex("mutex");
    let body = move |task: Task| async move {
        loop {
            task.mutex_lock(mutex).await;
            task.run_kernel(3_000).await;
            task.mutex_unlock(mutex).await;
            task.run_kernel(2_000).await;
        }
    };
    for _ in 0..2 {
        machine.spawn("task", 0, body).expect("a valid nice");
    }
    machine.run_until(100_000_000).expect("no rule is broken");
    let events = events(&mut machine);
    let spins = count(&events, EventKind::LockSpin);
    assert!(spins > 10_000, "{spins}");
    assert_eq!(count(&events, EventKind::LockWait), 0);
    assert_owned_by_one(&events);
}

#[test]
fn a_contended_spinlock_goes_round_in_order() {
    let mut machine = machine(4, 1);
    let lock = machine.spin_lock("lock");
    let body = move |task: Task| async move {
        loop {
            task.spin_lock_bh(lock).await;
            task.run_kernel(1_000).await;
            task.spin_unlock_bh(lock).await;
            task.run_kernel(100).await;
        }
    };
    let tasks: Vec<TaskId> = (0..4)
        .map(|_| machine.spawn("task", 0, body).expect("a valid nice"))
        .collect();
    machine.run_until(10_000_000).expect("no rule is broken");
    let events = events(&mut machine);
    assert_owned_by_one(&events);
    let mut queue = Vec::new();
    for event in &events {
        match event.kind {
            EventKind::LockSpin => queue.push(event.task),
            EventKind::LockAcquire if Acquired::from_aux(event.aux) == Acquired::HandedOff => {
                assert_eq!(queue.remove(0), event.task);
            }
            _ => {}
        }
    }
    let owned = |task: TaskId| {
        let is = |event: &&Event| event.task == task && event.kind == EventKind::LockAcquire;
        events.iter().filter(is).count()
    };
    let counts: Vec<usize> = tasks.into_iter().map(owned).collect();
    let (least, most) = (counts.iter().min(), counts.iter().max());
    assert!(most.copied() <= least.map(|least| least + 2), "{counts:?}");
    // One at a time: 1 µs and two cache lines each.
    assert!(counts.iter().sum::<usize>() <= 10_000, "{counts:?}");
}

fn assert_owned_by_one(events: &[Event]) {
    let mut owner = None;
    for event in events {
        match event.kind {
            EventKind::LockAcquire => {
                assert_eq!(owner, None, "two owners");
                owner = Some(event.task);
            }
            EventKind::LockRelease => assert_eq!(owner.take(), Some(event.task)),
            _ => {}
        }
    }
}

#[test]
fn a_busy_cpu_learns_of_a_lazy_request_at_its_tick_and_of_a_full_one_at_once() {
    let delay_ns = |nice: i8, preempt| {
        let mut machine = common::machine(|config| {
            config.cpus = 2;
            config.preempt = preempt;
            config.hrtick = kernel_sim::Hrtick::Off;
        });
        let mutex = machine.mutex("mutex");
        // The holder keeps CPU 0; the waiter queues on CPU 1, where a hog in the
        // kernel then runs until it is woken from CPU 0.
        let holder = move |task: Task| async move {
            task.mutex_lock(mutex).await;
            task.sleep(4_300_000).await;
            task.mutex_unlock(mutex).await;
            task.run_user(100_000_000).await;
        };
        machine.spawn("holder", 0, holder).expect("a valid nice");
        let waiter = move |task: Task| async move {
            task.run_user(10_000).await;
            task.mutex_lock(mutex).await;
            task.mutex_unlock(mutex).await;
        };
        let waiter = machine.spawn("waiter", nice, waiter).expect("a valid nice");
        for _ in 0..2 {
            let hog = |task: Task| async move {
                task.run_kernel(50_000_000).await;
            };
            machine.spawn("hog", 5, hog).expect("a valid nice");
        }
        machine.run_until(20_000_000).expect("no rule is broken");
        let events = events(&mut machine);
        let woken = events
            .iter()
            .find(|event| event.task == waiter && event.kind == EventKind::Wake)
            .expect("it is woken");
        let back = |event: &&Event| {
            event.task == waiter && event.kind == EventKind::SwitchIn && event.at_ns >= woken.at_ns
        };
        events.iter().find(back).expect("it runs").at_ns - woken.at_ns
    };
    let full_ns = delay_ns(-10, kernel_sim::Preemption::Full);
    let lazy_ns = delay_ns(-10, kernel_sim::Preemption::Lazy);
    assert!(full_ns < 20_000, "{full_ns}");
    assert!((100_000..=1_100_000).contains(&lazy_ns), "{lazy_ns}");
}

#[test]
fn the_same_program_gives_the_same_trace_on_any_number_of_cpus() {
    for cpus in [1, 3, 8, 64] {
        let run = |seed: u64, step_ns: u64| {
            let mut machine = machine(cpus, seed);
            let mutex = machine.mutex("mutex");
            for number in 0..20_u64 {
                let body = move |task: Task| async move {
                    loop {
                        task.mutex_lock(mutex).await;
                        task.run_kernel(2_000 + number * 100).await;
                        task.mutex_unlock(mutex).await;
                        task.run_user(20_000 + number * 1_000).await;
                        if number % 3 == 0 {
                            task.sleep(50_000 * number).await;
                        }
                    }
                };
                let nice = i8::try_from(number).expect("small") - 10;
                machine.spawn("task", nice, body).expect("a valid nice");
            }
            let mut at_ns = 0;
            while at_ns < 50_000_000 {
                at_ns += step_ns;
                machine
                    .run_until(at_ns.min(50_000_000))
                    .expect("no rule is broken");
            }
            machine.trace_hash()
        };
        assert_eq!(run(1, 50_000_000), run(1, 70_001), "{cpus} CPUs");
    }
}
