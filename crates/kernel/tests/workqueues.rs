//! Work items: the rule of the pending bit, order, flushing.

use kernel_sim::{EventKind, Machine, Task, Work};
use std::cell::Cell;
use std::rc::Rc;

mod common;
use common::{Log, count, events, fault_of, log, with_cpus};

/// An item that runs for 2 ms and writes down when it began.
fn item(machine: &mut Machine, seen: &Log, number: u64) -> Work {
    let queue = machine.workqueue("events").expect("few tasks");
    item_of(machine, queue, seen, number)
}

fn item_of(machine: &mut Machine, queue: kernel_sim::Workqueue, seen: &Log, number: u64) -> Work {
    let seen = Rc::clone(seen);
    machine.work(queue, "item", move |task| {
        let seen = Rc::clone(&seen);
        async move {
            seen.borrow_mut().push((number, task.now_ns() / 1_000_000));
            task.run_kernel(2_000_000).await;
        }
    })
}

#[test]
fn what_is_queued_while_pending_runs_once_and_while_running_once_more() {
    let mut machine = with_cpus(2);
    let seen = log();
    let work = item(&mut machine, &seen, 0);
    let queuer = move |task: Task| async move {
        task.sleep(1_000_000).await;
        assert!(task.queue_work(work).await);
        // It is on its way to its worker's CPU.
        assert!(task.work_pending(work));
        assert!(!task.queue_work(work).await);
        task.run_kernel(1_000_000).await;
        assert!(!task.work_pending(work), "it runs");
        assert!(task.queue_work(work).await);
        assert!(!task.queue_work(work).await);
    };
    machine.spawn("queuer", 0, queuer).expect("a valid nice");
    machine.run_until(20_000_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(0, 1), (0, 3)]);
}

#[test]
fn items_run_in_order_one_at_a_time() {
    let mut machine = with_cpus(4);
    let seen = log();
    let queue = machine.workqueue("events").expect("few tasks");
    let items = [0, 1, 2].map(|number| item_of(&mut machine, queue, &seen, number));
    let queuer = move |task: Task| async move {
        for work in [items[2], items[0], items[1]] {
            assert!(task.queue_work(work).await);
        }
    };
    machine.spawn("queuer", 0, queuer).expect("a valid nice");
    machine.run_until(20_000_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(2, 0), (0, 2), (1, 4)]);
    let events = events(&mut machine);
    let mut running = 0;
    for event in &events {
        match event.kind {
            EventKind::WorkBegin => running += 1,
            EventKind::WorkEnd => running -= 1,
            _ => {}
        }
        assert!(running <= 1);
    }
    assert_eq!(count(&events, EventKind::WorkEnd), 3);
}

#[test]
fn flush_waits_for_what_was_queued_before_and_no_more() {
    let mut machine = with_cpus(2);
    let seen = log();
    let work = item(&mut machine, &seen, 0);
    let flushed_ms = Rc::new(Cell::new(0));
    let flushed = Rc::clone(&flushed_ms);
    let flusher = move |task: Task| async move {
        task.flush_work(work).await;
        assert!(task.now_ns() < 10_000, "nothing is queued");
        task.queue_work(work).await;
        task.run_kernel(1_000_000).await;
        task.queue_work(work).await;
        task.flush_work(work).await;
        flushed.set(task.now_ns() / 1_000_000);
    };
    machine.spawn("flusher", 0, flusher).expect("a valid nice");
    // Keeps queueing.
    let queuer = move |task: Task| async move {
        loop {
            task.sleep(500_000).await;
            task.queue_work(work).await;
        }
    };
    machine.spawn("queuer", 0, queuer).expect("a valid nice");
    machine.run_until(50_000_000).expect("no rule is broken");
    // It runs from 0 to 2 and from 2 to 4 ms.
    assert_eq!(flushed_ms.get(), 4);
}

#[test]
fn more_work_does_not_wake_a_worker_that_waits_for_a_lock() {
    let mut machine = with_cpus(1);
    let mutex = machine.mutex("shrink_lock");
    let queue = machine.workqueue("shrink").expect("few tasks");
    let work = machine.work(queue, "shrink", move |task| async move {
        task.mutex_lock(mutex).await;
        task.mutex_unlock(mutex).await;
    });
    let queuer = move |task: Task| async move {
        task.mutex_lock(mutex).await;
        for _ in 0..5 {
            task.queue_work(work).await;
            task.sleep(1_000_000).await;
        }
        task.mutex_unlock(mutex).await;
    };
    machine.spawn("queuer", 0, queuer).expect("a valid nice");
    machine.run_until(20_000_000).expect("no rule is broken");
    let events = events(&mut machine);
    assert_eq!(count(&events, EventKind::LockWait), 1);
    assert_eq!(count(&events, EventKind::WorkEnd), 2);
}

#[test]
fn an_item_that_keeps_a_lock_is_a_fault_that_names_it() {
    let mut machine = with_cpus(1);
    let mutex = machine.mutex("pools_lock");
    let queue = machine.workqueue("release").expect("few tasks");
    let work = machine.work(queue, "pool release", move |task| async move {
        task.mutex_lock(mutex).await;
    });
    let queuer = move |task: Task| async move {
        task.queue_work(work).await;
    };
    machine.spawn("queuer", 0, queuer).expect("a valid nice");
    let fault = fault_of(&mut machine);
    for part in [
        "kworker/release",
        "pool release",
        "pools_lock",
        "workqueues.rs:",
    ] {
        assert!(fault.contains(part), "{fault}");
    }
}

#[test]
fn an_item_that_flushes_itself_is_a_fault() {
    let mut machine = with_cpus(1);
    let queue = machine.workqueue("events").expect("few tasks");
    let own: Rc<Cell<Option<Work>>> = Rc::default();
    let inside = Rc::clone(&own);
    let work = machine.work(queue, "loop", move |task| {
        let own = inside.get();
        async move {
            if let Some(own) = own {
                task.flush_work(own).await;
            }
        }
    });
    own.set(Some(work));
    let queuer = move |task: Task| async move {
        task.queue_work(work).await;
    };
    machine.spawn("queuer", 0, queuer).expect("a valid nice");
    let fault = fault_of(&mut machine);
    assert!(fault.contains("wait for itself"), "{fault}");
}

#[test]
fn what_was_queued_while_it_ran_is_still_pending_afterwards() {
    let mut machine = with_cpus(2);
    let seen = log();
    let queue = machine.workqueue("events").expect("few tasks");
    let [own, other] = [0, 1].map(|number| item_of(&mut machine, queue, &seen, number));
    let queuer = move |task: Task| async move {
        task.queue_work(own).await;
        task.run_kernel(1_000_000).await;
        task.queue_work(other).await;
        assert!(task.queue_work(own).await, "it runs");
        task.run_kernel(2_000_000).await;
        assert!(!task.queue_work(own).await, "the other one runs");
    };
    machine.spawn("queuer", 0, queuer).expect("a valid nice");
    machine.run_until(20_000_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(0, 0), (1, 2), (0, 4)]);
}
