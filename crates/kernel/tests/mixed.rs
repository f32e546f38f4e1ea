//! Everything at once: nothing gets stuck, and the same program gives the same
//! trace.

use kernel_sim::{
    Accelerator, AcceleratorOptions, Completion, Deferred, Device, Inheritance, Io, Job, Machine,
    Mutex, PercpuRef, PlainSpinLock, Preemption, RamdiskOptions, RwLock, RwSem, SpinLock,
    SsdOptions, Task, Work,
};
use std::cell::Cell;
use std::rc::Rc;

mod common;
use common::machine;

/// What the tasks share.
#[derive(Clone, Copy)]
struct World {
    mutex: Mutex,
    stream: SpinLock,
    class: PlainSpinLock,
    pool: RwLock,
    sem: RwSem,
    done: Completion,
    work: Work,
    live: PercpuRef,
    devices: [Device; 2],
    engines: Accelerator,
}

fn world(machine: &mut Machine) -> World {
    let queue = machine.workqueue("zswap-shrink").expect("few tasks");
    let (class, sem) = (machine.plain_spin_lock("class"), machine.rw_sem("sem"));
    let work = machine.work(queue, "shrink", move |task| async move {
        task.down_read(sem).await;
        task.spin_lock(class).await;
        task.run_kernel(3_000).await;
        task.spin_unlock(class).await;
        task.up_read(sem).await;
    });
    let gone = machine.completion("gone");
    World {
        mutex: machine.mutex("mutex"),
        stream: machine.spin_lock("stream"),
        class,
        pool: machine.rw_lock("pool"),
        sem,
        done: machine.completion("done"),
        work,
        live: machine.percpu_ref("live", Deferred::Complete(gone)),
        devices: [
            machine.ssd("ssd", SsdOptions::default()),
            machine.ramdisk("ram0", RamdiskOptions::default()),
        ],
        engines: machine.accelerator("iaa", AcceleratorOptions::default()),
    }
}

/// One round of a task, which holds no more than two things at a time.
async fn round(task: &Task, world: &World, what: u64) {
    match what % 9 {
        0 => {
            task.mutex_lock(world.mutex).await;
            task.spin_lock_bh(world.stream).await;
            task.run_kernel(16_000).await;
            task.spin_unlock_bh(world.stream).await;
            task.mutex_unlock(world.mutex).await;
        }
        1 => {
            task.read_lock(world.pool).await;
            task.spin_lock(world.class).await;
            task.run_kernel(400).await;
            task.spin_unlock(world.class).await;
            task.read_unlock(world.pool).await;
        }
        2 => {
            task.write_lock(world.pool).await;
            task.run_kernel(2_000).await;
            task.write_unlock(world.pool).await;
        }
        3 => {
            task.down_write(world.sem).await;
            task.run_kernel(10_000).await;
            task.up_write(world.sem).await;
        }
        4 => {
            let pages = 1 + what % 3;
            let device = world.devices[usize::from(what.is_multiple_of(2))];
            let request = task.submit_io(device, Io::write(what, pages)).await;
            task.down_read(world.sem).await;
            let outcome = task.wait_for_request(request).await;
            task.up_read(world.sem).await;
            outcome.expect("no request fails");
        }
        5 => {
            let job = task.submit_job(world.engines, Job::compress(1)).await;
            task.complete(world.done).await;
            task.wait_for_request(job).await.expect("the queue is long");
        }
        6 => {
            task.wait_for_completion(world.done).await;
            task.complete(world.done).await;
        }
        7 => {
            task.rcu_read_lock();
            assert!(task.ref_tryget_live(world.live));
            task.run_kernel(1_000).await;
            task.rcu_read_unlock().await;
            task.queue_work(world.work).await;
            task.flush_work(world.work).await;
            task.ref_put(world.live);
        }
        _ => task.synchronize_rcu().await,
    }
}

#[test]
fn nothing_gets_stuck_and_steps_of_any_size_give_the_same_trace() {
    const TASKS: u64 = 12;
    const ROUNDS: u64 = 60;
    let run = |cpus, preempt, inheritance, step_ns: u64| {
        let mut machine = machine(|config| {
            config.cpus = cpus;
            config.preempt = preempt;
            config.mutex.inheritance = inheritance;
        });
        let world = world(&mut machine);
        machine.spawn_background(1).expect("few tasks");
        let ended = Rc::new(Cell::new(0));
        for number in 0..TASKS {
            let ended = Rc::clone(&ended);
            let body = move |task: Task| async move {
                // Somebody has to begin.
                task.complete(world.done).await;
                for turn in 0..ROUNDS {
                    round(&task, &world, turn * (number + 1) + number).await;
                    task.run_user(3_000 + 500 * number).await;
                }
                ended.set(ended.get() + 1);
            };
            let nice = i8::try_from(number).expect("small") - 6;
            machine.spawn("task", nice, body).expect("a valid nice");
        }
        let mut at_ns = 0;
        while at_ns < 2_000_000_000 {
            at_ns += step_ns;
            let until_ns = at_ns.min(2_000_000_000);
            machine.run_until(until_ns).expect("no rule is broken");
        }
        assert_eq!(
            ended.get(),
            TASKS,
            "{cpus} CPUs, {preempt:?}, {inheritance:?}"
        );
        (machine.event_count(), machine.trace_hash())
    };
    for preempt in [
        Preemption::None,
        Preemption::Voluntary,
        Preemption::Full,
        Preemption::Lazy,
    ] {
        for inheritance in [Inheritance::Off, Inheritance::Priority, Inheritance::Proxy] {
            for cpus in [1, 2, 7] {
                let whole = run(cpus, preempt, inheritance, 2_000_000_000);
                let steps = run(cpus, preempt, inheritance, 313_131);
                assert_eq!(whole, steps, "{cpus} CPUs, {preempt:?}, {inheritance:?}");
            }
        }
    }
}
