//! Random machines and random programs, as strategies whose failures shrink.
//!
//! A program is a list of steps for each task. It takes whatever it locks in
//! one place and releases it there, so that it ends without a lock; taken in
//! the order of the locks' numbers it has no deadlock, in any order it may.
#![allow(dead_code, reason = "not every test uses every helper")]

use kernel_sim::{
    CpuMask, Hrtick, Inheritance, LagClamp, Machine, MachineConfig, Mutex, MutexOptions, Policy,
    Preemption, RwLock, RwSem, SliceProtection, SpinLock, Task, TaskId, TaskOptions,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// How many locks of each kind a program has.
pub const LOCKS: u8 = 3;

/// So many cases, always the same, so that a test fails for what was changed;
/// other ones if the environment asks for them (`PROPTEST_CASES`,
/// `PROPTEST_RNG_SEED`).
pub fn cases(normally: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let asked = asked.and_then(|cases| cases.parse().ok());
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: asked.unwrap_or(normally),
        rng_seed: match default.rng_seed {
            RngSeed::Random => RngSeed::Fixed(0),
            fixed @ RngSeed::Fixed(_) => fixed,
        },
        failure_persistence: None,
        ..default
    }
}

/// Something a task does and has done before it goes on.
#[derive(Clone, Debug)]
pub enum Step {
    User(u64),
    Kernel(u64),
    Sleep(u64),
    Offer,
    Renice { who: u16, nice: i8 },
    Spin(Section),
    Share(Shared),
    Lock(Section, Vec<Step>),
    Fork(TaskOptions, Vec<Step>),
}

/// A section under locks of one kind.
#[derive(Clone, Debug)]
pub struct Section {
    /// The locks by number, in the order of taking; none twice.
    pub locks: Vec<u8>,
    /// Whether the first to be taken is the first to be released.
    pub released_in_order: bool,
    /// Time between one lock and the next, and with all of them, in ns.
    pub between_ns: u64,
}

/// A section under the reader/writer lock or semaphore; nothing is taken in it.
#[derive(Clone, Debug)]
pub struct Shared {
    pub writes: bool,
    pub kernel_ns: u64,
    /// Under the semaphore, for which one sleeps and under which one may.
    pub sleep_ns: Option<u64>,
}

/// The tasks of a program, with what each does.
pub type Program = Vec<(TaskOptions, Vec<Step>)>;

/// The order in which a program takes its locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// By number.
    Global,
    /// Any.
    Any,
}

fn times_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..2_000_u64,
        4 => 1_000..50_000_u64,
        4 => 50_000..2_000_000_u64,
        1 => 2_000_000..40_000_000_u64,
    ]
}

fn short_times_ns() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..3_000_u64, 3_000..100_000_u64]
}

fn section(order: Order) -> impl Strategy<Value = Section> {
    let locks = vec(0..LOCKS, 1..=3).prop_map(move |mut locks| {
        if order == Order::Global {
            locks.sort_unstable();
        }
        let mut once = Vec::new();
        for lock in locks {
            if !once.contains(&lock) {
                once.push(lock);
            }
        }
        once
    });
    (locks, any::<bool>(), short_times_ns()).prop_map(|(locks, released_in_order, between_ns)| {
        Section {
            locks,
            released_in_order,
            between_ns,
        }
    })
}

fn shared() -> impl Strategy<Value = Shared> {
    let sleep_ns = option::of(short_times_ns());
    (any::<bool>(), short_times_ns(), sleep_ns).prop_map(|(writes, kernel_ns, sleep_ns)| Shared {
        writes,
        kernel_ns,
        sleep_ns,
    })
}

fn nice() -> impl Strategy<Value = i8> {
    prop_oneof![Just(0), -20..=19_i8]
}

/// What a task may do while it owns mutexes, too.
fn inner_step(order: Order) -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => times_ns().prop_map(Step::User),
        4 => times_ns().prop_map(Step::Kernel),
        2 => times_ns().prop_map(Step::Sleep),
        1 => Just(Step::Offer),
        1 => (0..12_u16, nice()).prop_map(|(who, nice)| Step::Renice { who, nice }),
        2 => section(order).prop_map(Step::Spin),
        2 => shared().prop_map(Step::Share),
    ]
}

fn step(order: Order) -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => inner_step(order),
        3 => (section(order), vec(inner_step(order), 0..3))
            .prop_map(|(section, inner)| Step::Lock(section, inner)),
    ]
}

fn steps(order: Order) -> impl Strategy<Value = Vec<Step>> {
    let fork =
        (options(), vec(step(order), 0..4)).prop_map(|(options, steps)| Step::Fork(options, steps));
    vec(prop_oneof![9 => step(order), 1 => fork], 0..20)
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        6 => nice().prop_map(|nice| Policy::Normal { nice }),
        1 => nice().prop_map(|nice| Policy::Batch { nice }),
        1 => Just(Policy::Idle),
        1 => (1..=99_u8).prop_map(|priority| Policy::Fifo { priority }),
    ]
}

fn options() -> impl Strategy<Value = TaskOptions> {
    let slice_ns = option::weighted(0.2, 100_000..5_000_000_u64);
    // Bit 0 is every machine's.
    let cpus =
        prop_oneof![4 => Just(CpuMask::ALL), 1 => any::<u64>().prop_map(|mask| CpuMask(mask | 1))];
    (policy(), slice_ns, cpus).prop_map(|(policy, slice_ns, cpus_allowed)| TaskOptions {
        policy,
        slice_ns,
        cpus_allowed,
    })
}

/// A program of some tasks.
pub fn program(order: Order) -> impl Strategy<Value = Program> {
    vec((options(), steps(order)), 1..12)
}

fn mutex_options() -> impl Strategy<Value = MutexOptions> {
    let inheritance = prop_oneof![
        2 => Just(Inheritance::Off),
        1 => Just(Inheritance::Priority),
        1 => Just(Inheritance::Proxy),
    ];
    (any::<bool>(), any::<bool>(), inheritance).prop_map(|(handoff, spinning, inheritance)| {
        MutexOptions {
            handoff,
            spinning,
            inheritance,
        }
    })
}

/// A machine whose invariants are checked after every event.
pub fn config() -> impl Strategy<Value = MachineConfig> {
    let cpus = prop_oneof![3 => Just(1), 6 => 2..=8_u8, 1 => Just(64)];
    let hz = prop_oneof![Just(100), Just(250), Just(300), Just(1000)];
    let hrtick = prop_oneof![Just(Hrtick::Off), Just(Hrtick::On), Just(Hrtick::Repick)];
    let preempt = prop_oneof![
        3 => Just(Preemption::Lazy),
        1 => Just(Preemption::Full),
        1 => Just(Preemption::Voluntary),
        1 => Just(Preemption::None),
    ];
    let version = prop_oneof![
        Just((LagClamp::TwoSlicesOrTick, SliceProtection::Deadline)),
        Just((LagClamp::TwoSlicesOrTick, SliceProtection::MinSlice)),
        Just((LagClamp::SlicePlusTick, SliceProtection::WhileEligible)),
        Just((
            LagClamp::SlicePlusTick,
            SliceProtection::WhileEligibleMinSlice
        )),
    ];
    let slice_ns = prop_oneof![Just(700_000), Just(2_800_000), 20_000..5_000_000_u64];
    let machine = (cpus, any::<u64>(), any::<bool>(), hz, slice_ns);
    let switches = (hrtick, preempt, version, mutex_options(), any::<bool>());
    (machine, switches).prop_map(|(machine, switches)| {
        let (cpus, seed, shared_cache, hz, base_slice_ns) = machine;
        let (hrtick, preempt, (lag_clamp, protection), mutex, costs) = switches;
        let config = MachineConfig {
            cpus,
            seed,
            shared_cache,
            hz,
            hrtick,
            base_slice_ns,
            preempt,
            lag_clamp,
            protection,
            mutex,
            checks: true,
            ..MachineConfig::default()
        };
        if costs { config } else { without_costs(config) }
    })
}

/// The machine with hardware that takes no time.
pub fn without_costs(config: MachineConfig) -> MachineConfig {
    MachineConfig {
        switch_ns: 0,
        timer_irq_ns: 0,
        wake_ns: 0,
        ipi_ns: 0,
        line_ns: 0,
        ..config
    }
}

/// What the tasks of a program share.
#[derive(Clone)]
struct Locks {
    mutexes: Rc<[Mutex]>,
    spins: Rc<[SpinLock]>,
    rw_sem: RwSem,
    rw_lock: RwLock,
    names: Rc<RefCell<Vec<String>>>,
}

/// A machine with a program on it.
pub struct Started {
    pub machine: Machine,
    names: Rc<RefCell<Vec<String>>>,
}

impl Started {
    /// The names of the tasks, by number.
    pub fn names(&self) -> Vec<String> {
        self.names.borrow().clone()
    }
}

type Body = Pin<Box<dyn Future<Output = ()>>>;

/// A machine with a program on it, not yet run.
pub fn start(config: &MachineConfig, program: &Program) -> Started {
    let mut machine = Machine::new(config.clone()).expect("a machine that can be");
    let mutex = |number| machine.mutex(format!("m{number}"));
    let mutexes = (0..LOCKS).map(mutex).collect();
    let spin_lock = |number| machine.spin_lock(format!("s{number}"));
    let locks = Locks {
        mutexes,
        spins: (0..LOCKS).map(spin_lock).collect(),
        rw_sem: machine.rw_sem("rw_sem"),
        rw_lock: machine.rw_lock("rw_lock"),
        names: Rc::default(),
    };
    for (number, (options, steps)) in program.iter().enumerate() {
        let name = format!("t{number}");
        let (steps, mine) = (steps.clone(), locks.clone());
        locks.names.borrow_mut().push(name.clone());
        machine
            .spawn_with(name, *options, |task| perform(task, steps, mine))
            .expect("options that can be");
    }
    Started {
        machine,
        names: locks.names,
    }
}

fn perform(task: Task, steps: Vec<Step>, locks: Locks) -> Body {
    Box::pin(async move {
        for step in steps {
            match step {
                Step::Lock(section, inner) => lock(&task, &section, inner, &locks).await,
                Step::Fork(options, steps) => fork(&task, options, steps, &locks),
                step => simple(&task, step, &locks).await,
            }
        }
    })
}

fn fork(task: &Task, options: TaskOptions, steps: Vec<Step>, locks: &Locks) {
    let number = locks.names.borrow().len();
    let name = format!("t{number}");
    locks.names.borrow_mut().push(name.clone());
    let mine = locks.clone();
    let forked = task.spawn(name, options, |task| perform(task, steps, mine));
    let forked = forked.expect("options that can be");
    assert_eq!(usize::from(forked.0), number, "numbered as named");
}

async fn simple(task: &Task, step: Step, locks: &Locks) {
    match step {
        Step::User(ns) => task.run_user(ns).await,
        Step::Kernel(ns) => task.run_kernel(ns).await,
        Step::Sleep(ns) => task.sleep(ns).await,
        Step::Offer => task.cond_resched().await,
        Step::Renice { who, nice } => renice(task, who, nice),
        Step::Spin(section) => spin(task, &section, locks).await,
        Step::Share(section) => share(task, &section, locks).await,
        Step::Lock(..) | Step::Fork(..) => unreachable!("not a simple step"),
    }
}

/// Renices one of the tasks that exist: those before the caller always do.
fn renice(task: &Task, who: u16, nice: i8) {
    let who = TaskId(who % (task.id().0 + 1));
    task.set_user_nice(who, nice).expect("a valid nice");
}

async fn lock(task: &Task, section: &Section, inner: Vec<Step>, locks: &Locks) {
    for &number in &section.locks {
        task.mutex_lock(locks.mutexes[usize::from(number)]).await;
        task.run_kernel(section.between_ns).await;
    }
    for step in inner {
        simple(task, step, locks).await;
    }
    for number in section.releases() {
        task.mutex_unlock(locks.mutexes[usize::from(number)]).await;
    }
}

async fn spin(task: &Task, section: &Section, locks: &Locks) {
    for &number in &section.locks {
        task.spin_lock_bh(locks.spins[usize::from(number)]).await;
        task.run_kernel(section.between_ns).await;
    }
    for number in section.releases() {
        task.spin_unlock_bh(locks.spins[usize::from(number)]).await;
    }
}

async fn share(task: &Task, section: &Shared, locks: &Locks) {
    let Some(sleep_ns) = section.sleep_ns else {
        return share_spinning(task, section, locks).await;
    };
    if section.writes {
        task.down_write(locks.rw_sem).await;
    } else {
        task.down_read(locks.rw_sem).await;
    }
    task.run_kernel(section.kernel_ns).await;
    task.sleep(sleep_ns).await;
    if section.writes {
        task.up_write(locks.rw_sem).await;
    } else {
        task.up_read(locks.rw_sem).await;
    }
}

async fn share_spinning(task: &Task, section: &Shared, locks: &Locks) {
    if section.writes {
        task.write_lock(locks.rw_lock).await;
    } else {
        task.read_lock(locks.rw_lock).await;
    }
    task.run_kernel(section.kernel_ns).await;
    if section.writes {
        task.write_unlock(locks.rw_lock).await;
    } else {
        task.read_unlock(locks.rw_lock).await;
    }
}

impl Section {
    fn releases(&self) -> Vec<u8> {
        let mut order = self.locks.clone();
        if !self.released_in_order {
            order.reverse();
        }
        order
    }

    fn cost_ns(&self) -> u64 {
        self.locks.len() as u64 * self.between_ns
    }
}

impl Step {
    /// The CPU time that it takes without any overhead, in ns.
    pub fn cost_ns(&self) -> u64 {
        match self {
            Step::User(ns) | Step::Kernel(ns) => *ns,
            Step::Sleep(_) | Step::Offer | Step::Renice { .. } => 0,
            Step::Spin(section) => section.cost_ns(),
            Step::Share(section) => section.kernel_ns,
            Step::Lock(section, inner) => section.cost_ns() + cost_ns(inner),
            Step::Fork(_, steps) => cost_ns(steps),
        }
    }
}

/// The CPU time of steps without any overhead, in ns.
pub fn cost_ns(steps: &[Step]) -> u64 {
    steps.iter().map(Step::cost_ns).sum()
}
