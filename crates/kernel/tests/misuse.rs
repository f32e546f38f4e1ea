//! Bad use of the machine: it is refused or a fault that says who did what; it
//! never panics, and it never keeps a run from its end.

mod common;

use common::{ideal, machine, with_cpus};
use kernel_sim::{
    AcceleratorOptions, ConfigError, Deferred, DiskOptions, Fault, Io, Job, Machine, MachineConfig,
    Policy, RamdiskOptions, SpawnError, SsdOptions, Task, TaskId, TaskOptions,
};
use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

const SECOND_NS: u64 = 1_000_000_000;

/// Polls a future once, whatever comes of it, and drops it.
async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Ends with the first of two futures.
struct Either<A, B>(Pin<Box<A>>, Pin<Box<B>>);

impl<A: Future, B: Future> Future for Either<A, B> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let first = self.0.as_mut().poll(context).is_ready();
        let second = self.1.as_mut().poll(context).is_ready();
        if first || second {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

fn either<A: Future, B: Future>(a: A, b: B) -> Either<A, B> {
    Either(Box::pin(a), Box::pin(b))
}

/// What a task that does this alone is told.
fn fault_of<F>(body: impl FnOnce(Task) -> F) -> Fault
where
    F: Future<Output = ()> + 'static,
{
    let mut machine = with_cpus(2);
    fault_in(&mut machine, body)
}

fn fault_in<F>(machine: &mut Machine, body: impl FnOnce(Task) -> F) -> Fault
where
    F: Future<Output = ()> + 'static,
{
    machine.spawn("culprit", 0, body).expect("a valid nice");
    machine.run_until(SECOND_NS).expect_err("it breaks a rule")
}

fn names_the_culprit(fault: &Fault, what: &str) {
    assert_eq!(fault.task, "culprit", "{fault}");
    assert!(fault.site.file.ends_with("misuse.rs"), "{fault}");
    assert!(fault.what.contains(what), "{fault}");
}

#[test]
fn a_body_may_use_its_task_before_its_future_exists() {
    let mut machine = with_cpus(2);
    let order = Rc::new(RefCell::new(Vec::new()));
    let note = |name: &'static str| {
        let order = Rc::clone(&order);
        move |task: Task| {
            let id = task.id();
            let made_ns = task.now_ns();
            async move {
                assert!(task.now_ns() > made_ns);
                order.borrow_mut().push((name, id, task.id()));
            }
        }
    };
    let (first, inner) = (note("first"), note("inner"));
    let normal = TaskOptions::from(Policy::Normal { nice: 0 });
    machine
        .spawn("outer", 0, move |outer| async move {
            // While the body of the one is made, the other is forked.
            let nested = |task: Task| {
                let forked = outer.spawn("inner", normal, inner);
                assert_eq!(forked, Ok(TaskId(3)));
                async move { task.run_user(10).await }
            };
            let nested = outer.spawn("nested", normal, nested);
            assert_eq!(nested, Ok(TaskId(2)));
        })
        .expect("a valid nice");
    let last = machine.spawn("first", 0, first).expect("a valid nice");
    machine.run_until(SECOND_NS).expect("nobody breaks a rule");
    let mut order = order.borrow().clone();
    order.sort_by_key(|entry| entry.0);
    assert_eq!(
        order,
        [("first", last, last), ("inner", TaskId(3), TaskId(3))]
    );
    for id in 0..4 {
        assert_eq!(
            machine.wait_chain(TaskId(id))[0].activity,
            kernel_sim::TaskActivity::Ended
        );
    }
}

#[test]
fn two_things_at_once_are_a_fault() {
    let fault = fault_of(|task| async move {
        either(task.sleep(1_000), task.run_kernel(2_000)).await;
    });
    names_the_culprit(&fault, "one thing after the other");
    let mut machine = with_cpus(1);
    let mutex = machine.mutex("mutex");
    machine
        .spawn("owner", 0, move |task| async move {
            task.mutex_lock(mutex).await;
            task.sleep(SECOND_NS / 2).await;
            task.mutex_unlock(mutex).await;
        })
        .expect("a valid nice");
    let fault = fault_in(&mut machine, |task| async move {
        task.sleep(1_000_000).await;
        either(task.mutex_lock(mutex), task.sleep(1_000)).await;
    });
    names_the_culprit(&fault, "one thing after the other");
}

#[test]
fn ending_in_the_middle_of_something_is_a_fault() {
    let fault = fault_of(|task| async move {
        poll_once(task.sleep(1_000)).await;
    });
    names_the_culprit(&fault, "ends");
    let fault = fault_of(|task| async move {
        poll_once(task.run_user(1_000)).await;
    });
    names_the_culprit(&fault, "ends");
    let mut machine = with_cpus(1);
    let done = machine.completion("done");
    let fault = fault_in(&mut machine, |task| async move {
        poll_once(task.wait_for_completion(done)).await;
    });
    names_the_culprit(&fault, "ends");
}

#[test]
fn a_lock_that_was_given_up_half_way_is_a_fault() {
    let mut machine = with_cpus(1);
    let mutex = machine.mutex("mutex");
    machine
        .spawn("owner", 0, move |task| async move {
            task.mutex_lock(mutex).await;
            task.sleep(5_000_000).await;
            task.mutex_unlock(mutex).await;
        })
        .expect("a valid nice");
    let fault = fault_in(&mut machine, |task| async move {
        task.sleep(1_000_000).await;
        let mut polls = 0;
        let second = std::future::poll_fn(move |_| {
            polls += 1;
            if polls > 1 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        // The second look comes first: the lock's future is dropped unfinished.
        either(second, Box::pin(task.mutex_lock(mutex))).await;
        task.run_kernel(1_000).await;
    });
    names_the_culprit(&fault, "mutex");
}

#[test]
fn a_future_that_was_never_polled_has_no_effect() {
    let mut machine = with_cpus(1);
    let mutex = machine.mutex("mutex");
    let done = machine.completion("done");
    machine
        .spawn("task", 0, move |task| async move {
            drop(task.mutex_lock(mutex));
            drop(task.mutex_unlock(mutex));
            drop(task.wait_for_completion(done));
            drop(task.sleep(1_000));
            task.mutex_lock(mutex).await;
            task.mutex_unlock(mutex).await;
        })
        .expect("a valid nice");
    machine.run_until(SECOND_NS).expect("nobody breaks a rule");
}

/// Does something with the handle of another task.
async fn borrows(
    task: Task,
    handle: Rc<RefCell<Option<Task>>>,
    what: impl AsyncFn(&Task) + 'static,
) {
    task.run_kernel(1_000).await;
    let other = handle.borrow_mut().take().expect("it was put there");
    what(&other).await;
    task.run_kernel(1_000).await;
}

fn fault_of_borrowing(what: impl AsyncFn(&Task, &kernel_sim::Mutex) + 'static) -> Fault {
    let mut machine = with_cpus(1);
    let mutex = machine.mutex("mutex");
    let handle = Rc::new(RefCell::new(None));
    let place = Rc::clone(&handle);
    machine
        .spawn("lender", 0, move |task| async move {
            *place.borrow_mut() = Some(task);
        })
        .expect("a valid nice");
    fault_in(&mut machine, move |task| async move {
        borrows(task, handle, async move |other| what(other, &mutex).await).await;
    })
}

#[test]
fn the_handle_of_another_task_is_a_fault_of_who_uses_it() {
    for fault in [
        fault_of_borrowing(async |other, mutex| other.mutex_lock(*mutex).await),
        fault_of_borrowing(async |other, _| other.sleep(1_000).await),
        fault_of_borrowing(async |other, _| other.run_user(1_000).await),
        fault_of_borrowing(async |other, _| other.rcu_read_lock()),
        fault_of_borrowing(async |other, _| other.cond_resched().await),
        fault_of_borrowing(async |other, _| {
            drop(other.spawn("child", Policy::Idle.into(), |_| async {}));
        }),
    ] {
        names_the_culprit(&fault, "lender");
    }
}

#[test]
fn a_handle_outside_the_machine_is_a_fault_of_its_task() {
    let mut machine = with_cpus(1);
    let mut leaked = None;
    let inner = &mut leaked;
    machine
        .spawn("culprit", 0, move |task| {
            *inner = Some(task);
            async {}
        })
        .expect("a valid nice");
    let task = leaked.expect("it was put there");
    task.rcu_read_lock();
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(pin!(task.sleep(5)).poll(&mut context).is_pending());
    let fault = machine.run_until(SECOND_NS).expect_err("it breaks a rule");
    names_the_culprit(&fault, "not its turn");
}

#[test]
fn a_loop_that_takes_no_time_is_a_fault() {
    let fault = fault_of(|task| async move {
        loop {
            task.run_kernel(0).await;
        }
    });
    names_the_culprit(&fault, "no time");
    let fault = fault_of(|task| async move {
        loop {
            task.cond_resched().await;
        }
    });
    names_the_culprit(&fault, "no time");
    let mut machine = with_cpus(1);
    let mutex = machine.mutex("mutex");
    let fault = fault_in(&mut machine, move |task| async move {
        loop {
            task.mutex_lock(mutex).await;
            task.mutex_unlock(mutex).await;
        }
    });
    names_the_culprit(&fault, "no time");
}

#[test]
fn cpus_that_switch_for_ever_at_one_moment_are_a_fault_without_checks_too() {
    let mut machine = ideal(1, |config| config.checks = false);
    for name in ["one", "two"] {
        machine
            .spawn(name, 0, |task| async move {
                loop {
                    task.sleep(0).await;
                }
            })
            .expect("a valid nice");
    }
    let fault = machine.run_until(SECOND_NS).expect_err("it breaks a rule");
    assert!(fault.what.contains("for ever"), "{fault}");
}

#[test]
fn many_tasks_that_end_at_one_moment_are_no_fault() {
    let mut machine = ideal(1, |config| config.checks = false);
    let options = TaskOptions::from(Policy::Fifo { priority: 1 });
    for number in 0..12_000 {
        machine
            .spawn_with(format!("task {number}"), options, |_| async {})
            .expect("room for a task");
    }
    machine.run_until(1).expect("nobody breaks a rule");
}

#[test]
fn time_does_not_run_over() {
    for checks in [false, true] {
        let mut machine = machine(|config| {
            config.cpus = 2;
            config.checks = checks;
        });
        machine
            .spawn(
                "sleeper",
                0,
                |task| async move { task.sleep(u64::MAX).await },
            )
            .expect("a valid nice");
        machine.run_until(u64::MAX).expect("nobody breaks a rule");
        let end_ns = machine.now_ns();
        // It goes on from the end of time without a word, but without harm.
        machine
            .spawn("late", 0, |task| async move { task.run_user(5).await })
            .expect("a valid nice");
        machine.run_until(u64::MAX).expect("nobody breaks a rule");
        assert_eq!(machine.now_ns(), end_ns);
    }
}

#[test]
fn a_task_may_run_for_ever_and_time_does_not_go_back() {
    for ns in [u64::MAX, u64::MAX - 1, u64::MAX / 2] {
        for user in [false, true] {
            let mut machine = with_cpus(1);
            let runner = machine
                .spawn("runner", 0, move |task| async move {
                    task.run_kernel(5_000).await;
                    if user {
                        task.run_user(ns).await;
                    } else {
                        task.run_kernel(ns).await;
                    }
                    unreachable!("it runs for ever");
                })
                .expect("a valid nice");
            machine
                .run_until(SECOND_NS / 10)
                .expect("no rule is broken");
            machine.run_until(5).expect("no rule is broken");
            machine.run_until(0).expect("no rule is broken");
            assert_eq!(machine.now_ns(), SECOND_NS / 10);
            assert!(machine.cpu_time_ns(runner) > SECOND_NS / 12);
        }
    }
}

#[test]
fn costs_beyond_measure_are_refused() {
    let edits: [fn(&mut MachineConfig) -> &mut u64; 5] = [
        |config| &mut config.switch_ns,
        |config| &mut config.timer_irq_ns,
        |config| &mut config.wake_ns,
        |config| &mut config.ipi_ns,
        |config| &mut config.line_ns,
    ];
    for edit in edits {
        let mut config = MachineConfig::default();
        *edit(&mut config) = u64::MAX;
        let refused = Machine::new(config).err();
        assert!(
            matches!(refused, Some(ConfigError::Cost(..))),
            "{refused:?}"
        );
    }
}

#[test]
fn devices_of_absurd_numbers_serve_or_never_end() {
    let numbers = [0, 1, u64::from(u32::MAX), u64::MAX];
    for number in numbers {
        for pages in [0, 1, u64::MAX] {
            let mut machine = with_cpus(2);
            let ramdisk = RamdiskOptions {
                submit_ns: number,
                copy_page_ns: number,
            };
            let ssd = SsdOptions {
                parallel: number as u32,
                read_latency_ns: number,
                write_latency_ns: number,
                transfer_page_ns: number,
                submit_ns: number,
                irq_ns: number,
            };
            let disk = DiskOptions {
                pages: number,
                track_pages: number,
                page_ns: number,
                next_track_ns: number,
                full_seek_ns: number,
                submit_ns: 0,
                irq_ns: number,
            };
            let accelerator = AcceleratorOptions {
                engines: number as u32,
                queue_max: number as usize,
                compress_page_ns: number,
                decompress_page_ns: number,
                submit_ns: 0,
                irq_ns: number,
            };
            let devices = [
                machine.ramdisk("ramdisk", ramdisk),
                machine.ssd("ssd", ssd),
                machine.disk("disk", disk),
            ];
            let accelerator = machine.accelerator("accelerator", accelerator);
            for device in devices {
                for page in [0, 77, u64::MAX] {
                    machine
                        .spawn("io", 0, move |task| async move {
                            let read = task.submit_io(device, Io::read(page, pages)).await;
                            let write = task.submit_io(device, Io::write(page, pages)).await;
                            task.forget_request(read);
                            let _ = task.wait_for_request(write).await;
                        })
                        .expect("a valid nice");
                }
            }
            machine
                .spawn("job", 0, move |task| async move {
                    let job = task.submit_job(accelerator, Job::compress(pages)).await;
                    let _ = task.wait_for_request(job).await;
                })
                .expect("a valid nice");
            machine
                .run_until(SECOND_NS / 50)
                .expect("no rule is broken");
        }
    }
}

#[test]
fn handles_of_another_machine_are_faults() {
    let mut other = with_cpus(1);
    for number in 0..3 {
        other.mutex(format!("filler {number}"));
        other.completion("filler");
    }
    let mutex = other.mutex("mutex");
    let spin = other.spin_lock("spin");
    let plain = other.plain_spin_lock("plain");
    let rw_lock = other.rw_lock("rw_lock");
    let rw_sem = other.rw_sem("rw_sem");
    let done = other.completion("done");
    let queue = other.workqueue("queue").expect("room for a task");
    let work = other.work(queue, "work", |_| async {});
    let counted = other.percpu_ref("ref", Deferred::Complete(done));
    let ssd = other.ssd("ssd", SsdOptions::default());
    for fault in [
        fault_of(move |task| async move { task.mutex_lock(mutex).await }),
        fault_of(move |task| async move { task.mutex_unlock(mutex).await }),
        fault_of(move |task| async move { task.spin_lock_bh(spin).await }),
        fault_of(move |task| async move { task.spin_unlock_bh(spin).await }),
        fault_of(move |task| async move { task.spin_lock(plain).await }),
        fault_of(move |task| async move { task.spin_unlock(plain).await }),
        fault_of(move |task| async move { task.read_lock(rw_lock).await }),
        fault_of(move |task| async move { task.write_unlock(rw_lock).await }),
        fault_of(move |task| async move {
            let _ = task.write_trylock(rw_lock);
        }),
        fault_of(move |task| async move {
            let _ = task.rw_lock_contended(rw_lock);
        }),
        fault_of(move |task| async move { task.down_write(rw_sem).await }),
        fault_of(move |task| async move { task.up_read(rw_sem).await }),
        fault_of(move |task| async move { task.wait_for_completion(done).await }),
        fault_of(move |task| async move { task.complete(done).await }),
        fault_of(move |task| async move { task.complete_all(done).await }),
        fault_of(move |task| async move {
            let _ = task.completion_done(done);
        }),
        fault_of(move |task| async move {
            let _ = task.try_wait_for_completion(done);
        }),
        fault_of(move |task| async move { task.reinit_completion(done) }),
        fault_of(move |task| async move {
            let _ = task.queue_work(work).await;
        }),
        fault_of(move |task| async move { task.flush_work(work).await }),
        fault_of(move |task| async move {
            let _ = task.work_pending(work);
        }),
        fault_of(move |task| async move { task.ref_get(counted) }),
        fault_of(move |task| async move {
            let _ = task.ref_tryget_live(counted);
        }),
        fault_of(move |task| async move { task.ref_put(counted) }),
        fault_of(move |task| async move { task.ref_kill(counted) }),
        fault_of(move |task| async move { task.call_rcu(Deferred::Complete(done)) }),
        fault_of(move |task| async move { task.call_rcu(Deferred::Queue(work)) }),
        fault_of(move |task| async move {
            let request = task.submit_io(ssd, Io::read(0, 1)).await;
            task.forget_request(request);
        }),
    ] {
        names_the_culprit(&fault, "another machine");
    }
}

#[test]
fn tasks_that_do_not_exist_have_no_name_no_time_and_no_nice_value() {
    let mut machine = with_cpus(1);
    for task in [TaskId(7), TaskId::NONE] {
        assert_eq!(machine.task_name(task), "");
        assert_eq!(machine.cpu_time_ns(task), 0);
        assert!(machine.wait_chain(task).is_empty());
        machine
            .spawn("task", 0, move |me| async move {
                let refused = me.set_user_nice(task, 5);
                assert_eq!(refused, Err(SpawnError::NoTask(task)));
            })
            .expect("a valid nice");
    }
    machine.run_until(SECOND_NS).expect("no rule is broken");
}

#[test]
fn an_ended_task_can_be_reniced() {
    let mut machine = with_cpus(2);
    let ended = machine.spawn("ended", 0, |_| async {}).expect("valid");
    machine
        .spawn("renicer", 0, move |task| async move {
            for nice in -20..=19 {
                task.sleep(1_000_000).await;
                task.set_user_nice(ended, nice).expect("a valid nice");
                task.set_user_nice(task.id(), nice).expect("a valid nice");
            }
        })
        .expect("a valid nice");
    machine.run_until(SECOND_NS).expect("no rule is broken");
}

#[test]
fn more_locks_than_can_be_numbered_are_a_fault() {
    let mut machine = with_cpus(1);
    for _ in 0..=u16::MAX {
        machine.mutex("one of many");
    }
    machine.run_until(1).expect("as many as have a number");
    machine.spin_lock("the last straw");
    let fault = machine.run_until(2).expect_err("one more has none");
    assert!(fault.what.contains("65536 locks"), "{fault}");
}

#[test]
fn ending_with_preemption_off_is_a_fault() {
    let mut machine = with_cpus(1);
    let lock = machine.plain_spin_lock("lock");
    let fault = fault_in(&mut machine, move |task| async move {
        task.spin_lock(lock).await;
    });
    names_the_culprit(&fault, "lock");
    let fault = fault_of(|task| async move { task.rcu_read_lock() });
    names_the_culprit(&fault, "preemption off");
}

#[test]
fn queueing_work_does_not_wake_a_worker_that_sleeps_in_an_item() {
    let mut machine = with_cpus(2);
    let queue = machine.workqueue("queue").expect("room for a task");
    let mutex = machine.mutex("mutex");
    let slept = Rc::new(RefCell::new(Vec::new()));
    let lengths = Rc::clone(&slept);
    let sleeps = machine.work(queue, "sleeps", move |task| {
        let lengths = Rc::clone(&lengths);
        async move {
            let from_ns = task.now_ns();
            task.sleep(10_000_000).await;
            lengths.borrow_mut().push(task.now_ns() - from_ns);
            let from_ns = task.now_ns();
            task.synchronize_rcu().await;
            lengths.borrow_mut().push(task.now_ns() - from_ns);
            task.mutex_lock(mutex).await;
            task.mutex_unlock(mutex).await;
        }
    });
    let other = machine.work(queue, "other", |_| async {});
    machine
        .spawn("queuer", 0, move |task| async move {
            task.mutex_lock(mutex).await;
            task.queue_work(sleeps).await;
            for _ in 0..200 {
                task.sleep(100_000).await;
                task.queue_work(other).await;
            }
            task.mutex_unlock(mutex).await;
            task.flush_work(other).await;
        })
        .expect("a valid nice");
    machine.run_until(SECOND_NS).expect("no rule is broken");
    let slept = slept.borrow();
    assert!(slept[0] >= 10_000_000, "{slept:?}");
    assert!(slept[1] >= 1_000_000, "{slept:?}");
}
