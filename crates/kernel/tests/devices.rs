//! Devices: when requests are done follows by hand from the options.

use kernel_sim::{
    AcceleratorOptions, DeviceError, DiskOptions, EventKind, Io, Job, Machine, RamdiskOptions,
    SsdOptions, Task,
};
use std::rc::Rc;

mod common;
use common::{Log, count, events, fault_of, log, machine, with_cpus};

/// A machine whose interrupts and switches take no time.
fn free_machine(cpus: u8) -> Machine {
    machine(|config| {
        config.cpus = cpus;
        config.switch_ns = 0;
        config.timer_irq_ns = 0;
        config.wake_ns = 0;
    })
}

fn ssd() -> SsdOptions {
    SsdOptions {
        parallel: 2,
        read_latency_ns: 80_000,
        write_latency_ns: 20_000,
        transfer_page_ns: 1_000,
        submit_ns: 0,
        irq_ns: 0,
    }
}

#[test]
fn a_ramdisk_costs_the_caller_and_is_done_at_once() {
    let mut machine = free_machine(1);
    let options = RamdiskOptions {
        submit_ns: 300,
        copy_page_ns: 400,
    };
    let ram = machine.ramdisk("ram0", options);
    let seen: Log = log();
    let writes = Rc::clone(&seen);
    let writer = move |task: Task| async move {
        let request = task.submit_io(ram, Io::write(0, 3)).await;
        assert!(task.request_done(&request));
        let outcome = task.wait_for_request(request).await;
        assert_eq!(outcome, Ok(()));
        writes.borrow_mut().push((0, task.now_ns()));
    };
    let writer = machine.spawn("writer", 0, writer).expect("a valid nice");
    machine.run_until(1_000_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(0, 1_500)]);
    assert_eq!(machine.cpu_time_ns(writer), 1_500);
    assert_eq!(count(&events(&mut machine), EventKind::IoWait), 0);
}

#[test]
fn an_ssd_overlaps_latencies_but_not_transfers() {
    let mut machine = free_machine(1);
    let ssd = machine.ssd("nvme", ssd());
    let seen: Log = log();
    let reads = Rc::clone(&seen);
    let reader = move |task: Task| async move {
        let mut requests = Vec::new();
        for number in 0..3 {
            requests.push(task.submit_io(ssd, Io::read(number, 4)).await);
        }
        for request in requests {
            let number = request.number();
            task.wait_for_request(request).await.expect("it succeeds");
            reads.borrow_mut().push((number, task.now_ns()));
        }
    };
    machine.spawn("reader", 0, reader).expect("a valid nice");
    machine.run_until(1_000_000).expect("no rule is broken");
    // Two at a time: the second one's data wait for the link, the third begins
    // when the first is done.
    assert_eq!(*seen.borrow(), [(0, 84_000), (1, 88_000), (2, 168_000)]);
}

#[test]
fn a_disk_seeks_waits_for_the_page_and_goes_on_without_either() {
    let mut machine = free_machine(1);
    let options = DiskOptions {
        pages: 10_000,
        track_pages: 100,
        page_ns: 80_000,
        next_track_ns: 1_000_000,
        full_seek_ns: 5_000_000,
        submit_ns: 0,
        irq_ns: 0,
    };
    let disk = machine.disk("sda", options);
    let seen: Log = log();
    let reads = Rc::clone(&seen);
    let reader = move |task: Task| async move {
        let mut requests = Vec::new();
        for io in [Io::read(5_050, 2), Io::read(5_052, 1), Io::write(5_000, 1)] {
            requests.push(task.submit_io(disk, io).await);
        }
        for request in requests {
            let number = request.number();
            task.wait_for_request(request).await.expect("it succeeds");
            reads.borrow_mut().push((number, task.now_ns()));
        }
    };
    machine.spawn("reader", 0, reader).expect("a valid nice");
    machine.run_until(100_000_000).expect("no rule is broken");
    // Half of the tracks away: 1 ms + 4 ms × 50 / 100 = 3 ms. The page passes at
    // 50 × 80 µs = 4 ms, and is through 2 pages later. The next one follows at
    // once; the last one passes at the next rotation, of 8 ms.
    assert_eq!(
        *seen.borrow(),
        [(0, 4_160_000), (1, 4_240_000), (2, 8_080_000)]
    );
}

#[test]
fn engines_take_jobs_in_order_and_a_full_queue_refuses() {
    let mut machine = free_machine(1);
    let options = AcceleratorOptions {
        engines: 2,
        queue_max: 1,
        compress_page_ns: 10_000,
        decompress_page_ns: 4_000,
        submit_ns: 0,
        irq_ns: 0,
    };
    let iaa = machine.accelerator("iaa", options);
    let seen: Log = log();
    let jobs = Rc::clone(&seen);
    let submitter = move |task: Task| async move {
        let mut requests = Vec::new();
        for job in [
            Job::compress(1),
            Job::decompress(1),
            Job::compress(2),
            Job::compress(1),
        ] {
            requests.push(task.submit_job(iaa, job).await);
        }
        let refused = requests.pop().expect("there are four");
        assert_eq!(task.wait_for_request(refused).await, Err(DeviceError::Busy));
        for request in [1, 0, 0].map(|at| requests.remove(at)) {
            let number = request.number();
            task.wait_for_request(request).await.expect("it succeeds");
            jobs.borrow_mut().push((number, task.now_ns()));
        }
    };
    machine
        .spawn("submitter", 0, submitter)
        .expect("a valid nice");
    machine.run_until(1_000_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(1, 4_000), (0, 10_000), (2, 24_000)]);
}

#[test]
fn the_interrupt_hits_the_cpu_that_submitted() {
    let mut machine = with_cpus(2);
    let options = SsdOptions {
        irq_ns: 7_000,
        ..SsdOptions::default()
    };
    let device = machine.ssd("nvme", options);
    let seen: Log = log();
    let costs = Rc::clone(&seen);
    let submitter = move |task: Task| async move {
        let request = task.submit_io(device, Io::write(0, 1)).await;
        let before_ns = task.now_ns();
        task.run_kernel(100_000).await;
        costs
            .borrow_mut()
            .push((u64::from(task.cpu().0), task.now_ns() - before_ns));
        task.wait_for_request(request).await.expect("it succeeds");
    };
    let submitter = machine
        .spawn("submitter", 0, submitter)
        .expect("a valid nice");
    machine.run_until(900_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(0, 107_000)]);
    let events = events(&mut machine);
    let done = events.iter().find(|event| event.kind == EventKind::IoDone);
    let done = done.expect("it is done");
    assert_eq!((done.task, done.cpu.0, done.aux), (submitter, 0, 0));
}

#[test]
fn failures_go_to_who_waits_and_cost_the_same_time() {
    let mut machine = free_machine(1);
    let device = machine.ssd("nvme", ssd());
    machine.fail_next_io(device, 1);
    let seen: Log = log();
    let outcomes = Rc::clone(&seen);
    let writer = move |task: Task| async move {
        for io in [Io::write(0, 1), Io::write(1, 1), Io::write(2, 1).failing()] {
            let request = task.submit_io(device, io).await;
            let failed = task.wait_for_request(request).await == Err(DeviceError::Failed);
            outcomes.borrow_mut().push((failed.into(), task.now_ns()));
        }
    };
    machine.spawn("writer", 0, writer).expect("a valid nice");
    machine.run_until(1_000_000).expect("no rule is broken");
    assert_eq!(*seen.borrow(), [(1, 21_000), (0, 42_000), (1, 63_000)]);
    let events = events(&mut machine);
    let failed = |event: &&kernel_sim::Event| event.kind == EventKind::IoDone && event.aux == 1;
    assert_eq!(events.iter().filter(failed).count(), 2);
}

#[test]
fn a_forgotten_request_is_carried_out_and_its_place_used_again() {
    let mut machine = with_cpus(1);
    let device = machine.ssd("nvme", SsdOptions::default());
    let writer = move |task: Task| async move {
        for page in 0..1_000 {
            let request = task.submit_io(device, Io::write(page, 1)).await;
            task.forget_request(request);
            task.run_user(5_000).await;
        }
        let request = task.submit_io(device, Io::read(0, 1)).await;
        task.wait_for_request(request).await.expect("it succeeds");
    };
    machine.spawn("writer", 0, writer).expect("a valid nice");
    machine.run_until(100_000_000).expect("no rule is broken");
    assert_eq!(count(&events(&mut machine), EventKind::IoDone), 1_001);
}

#[test]
fn waiting_for_a_device_with_preemption_off_is_a_fault() {
    let mut machine = with_cpus(1);
    let device = machine.ssd("nvme0n1", SsdOptions::default());
    let lock = machine.spin_lock("stream");
    let reader = move |task: Task| async move {
        task.spin_lock_bh(lock).await;
        let request = task.submit_io(device, Io::read(0, 1)).await;
        task.wait_for_request(request).await.expect("never comes");
    };
    machine.spawn("reader", 0, reader).expect("a valid nice");
    let fault = fault_of(&mut machine);
    for part in ["reader", "nvme0n1", "devices.rs:", "preemption off"] {
        assert!(fault.contains(part), "{fault}");
    }
}

#[test]
fn the_same_requests_give_the_same_trace_in_steps_of_any_size() {
    let run = |step_ns: u64| {
        let mut machine = with_cpus(3);
        let disk = machine.disk("sda", DiskOptions::default());
        let iaa = machine.accelerator("iaa", AcceleratorOptions::default());
        for number in 0..6_u64 {
            let body = move |task: Task| async move {
                for page in 0_u64.. {
                    let job = task.submit_job(iaa, Job::compress(1 + number)).await;
                    let at = page * 7_919 * (number + 1) % 1_000_000;
                    let io = task.submit_io(disk, Io::write(at, 1)).await;
                    task.wait_for_request(job).await.expect("it succeeds");
                    task.run_user(10_000 * number).await;
                    task.wait_for_request(io).await.expect("it succeeds");
                }
            };
            machine.spawn("task", 0, body).expect("a valid nice");
        }
        let mut at_ns = 0;
        while at_ns < 200_000_000 {
            at_ns += step_ns;
            let until_ns = at_ns.min(200_000_000);
            machine.run_until(until_ns).expect("no rule is broken");
        }
        (machine.event_count(), machine.trace_hash())
    };
    assert_eq!(run(200_000_000), run(77_777));
}
