//! A reference count that costs nothing until it is killed (`percpu_ref`).
//!
//! While it lives every CPU counts for itself, so nobody can say what the sum
//! is. Killing it drops the reference that its creator had, and adds the counts
//! up after a grace period; from then on the last `put` is noticed.
//!
//! Invariants:
//! 1. Getting and putting take no time (scheduler reference, section 6: 1 to 2
//!    ns).
//! 2. Zero is noticed once, not before the grace period of the kill is over, and
//!    never while somebody has a reference. Then what was to be done at zero is
//!    done.
//! 3. `tryget_live` fails from the kill on, `tryget` only from zero on.
//! 4. To put what nobody has, to get from zero, to kill twice is a fault.
//!
//! Left out: the atomic operations that a killed one takes.
//!
//! ```
//! use kernel_sim::{Deferred, Machine, MachineConfig};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let gone = machine.completion("pool gone");
//! let pool = machine.percpu_ref("pool->ref", Deferred::Complete(gone));
//! machine.spawn("switch", 0, move |task| async move {
//!     assert!(task.ref_tryget(pool));
//!     task.ref_kill(pool);
//!     assert!(!task.ref_tryget_live(pool));
//!     task.ref_put(pool);
//!     task.wait_for_completion(gone).await;
//!     assert!(!task.ref_tryget(pool));
//! })?;
//! machine.run_until(50_000_000)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::asks::Thing;
use crate::ids::TaskId;
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::rcu::{Callback, Deferred};
use crate::task::Task;
use core::panic::Location;

/// A reference count of the machine: a handle that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PercpuRef(u16);

impl PercpuRef {
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

/// A reference count as the kernel sees it.
#[derive(Debug)]
pub(crate) struct RefState {
    name: String,
    /// The sum of all counts, that of the creator included.
    count: u64,
    phase: Phase,
    /// How often it was killed: what the grace period of an earlier kill says
    /// does not count.
    kills: u64,
    at_zero: Deferred,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Counted by CPU.
    Live,
    /// Killed; a grace period is to pass before the counts are added up.
    Killed,
    /// Counted in one place.
    Summed,
    /// Zero was noticed.
    Zero,
}

impl Kernel {
    fn percpu_ref(&mut self, counted: PercpuRef) -> &mut RefState {
        &mut self.objects.refs[usize::from(counted.0)]
    }

    fn ref_fault(&mut self, task: TaskId, does: &str, counted: PercpuRef) {
        let name = &self.objects.refs[usize::from(counted.0)].name;
        let what = format!("{does} {name}");
        self.fail(task, what);
    }

    fn ref_get(&mut self, counted: PercpuRef) -> bool {
        let state = self.percpu_ref(counted);
        let lives = state.phase != Phase::Zero;
        state.count += u64::from(lives);
        lives
    }

    fn ref_put(&mut self, task: TaskId, counted: PercpuRef) {
        let state = self.percpu_ref(counted);
        if state.count == 0 || state.phase == Phase::Live && state.count == 1 {
            return self.ref_fault(task, "puts a reference that nobody has to", counted);
        }
        state.count -= 1;
        self.ref_check(counted);
    }

    fn ref_kill(&mut self, task: TaskId, counted: PercpuRef) {
        let state = self.percpu_ref(counted);
        if state.phase != Phase::Live {
            return self.ref_fault(task, "kills what is killed already:", counted);
        }
        state.phase = Phase::Killed;
        state.kills += 1;
        state.count -= 1;
        let kills = state.kills;
        let cpu = self.task(task).cpu;
        self.call_rcu(cpu, Callback::Summed(counted, kills));
    }

    fn ref_resurrect(&mut self, task: TaskId, counted: PercpuRef) {
        let state = self.percpu_ref(counted);
        if matches!(state.phase, Phase::Live | Phase::Zero) {
            return self.ref_fault(task, "resurrects what is not dying:", counted);
        }
        state.phase = Phase::Live;
        state.count += 1;
    }

    /// The grace period of a kill is over.
    pub(crate) fn ref_summed(&mut self, counted: PercpuRef, kills: u64) {
        let state = self.percpu_ref(counted);
        if state.phase == Phase::Killed && state.kills == kills {
            state.phase = Phase::Summed;
            self.ref_check(counted);
        }
    }

    /// Notices zero.
    fn ref_check(&mut self, counted: PercpuRef) {
        let state = self.percpu_ref(counted);
        if state.phase == Phase::Summed && state.count == 0 {
            state.phase = Phase::Zero;
            let at_zero = state.at_zero;
            self.run_deferred(at_zero);
        }
    }
}

impl Machine {
    /// Creates a reference count with one reference, its creator's, and what is
    /// to be done when it has come to zero.
    pub fn percpu_ref(&mut self, name: impl Into<String>, at_zero: Deferred) -> PercpuRef {
        let kernel = &mut *self.kernel.borrow_mut();
        let count = kernel.objects.refs.len();
        let counted = PercpuRef(kernel.number_for(count, "reference counts"));
        kernel.is_given(at_zero.into());
        kernel.objects.refs.push(RefState {
            name: name.into(),
            count: 1,
            phase: Phase::Live,
            kills: 0,
            at_zero,
        });
        counted
    }
}

impl Task {
    /// Runs `act` on the kernel, called from this place.
    #[track_caller]
    fn on_ref<T: Default>(&self, counted: PercpuRef, act: impl FnOnce(&mut Kernel) -> T) -> T {
        let kernel = &mut *self.kernel.borrow_mut();
        if !kernel.asks_about(Thing::Ref(counted), self.id(), Location::caller()) {
            return T::default();
        }
        kernel.enter_kernel(self.id());
        act(kernel)
    }

    /// Gets a reference; the caller knows that there is one.
    #[track_caller]
    pub fn ref_get(&self, counted: PercpuRef) {
        self.on_ref(counted, |kernel| {
            if !kernel.ref_get(counted) {
                kernel.ref_fault(self.id(), "gets a reference, none being left, to", counted);
            }
        });
    }

    /// Gets a reference unless the count has come to zero; says whether it did.
    #[track_caller]
    #[must_use]
    pub fn ref_tryget(&self, counted: PercpuRef) -> bool {
        self.on_ref(counted, |kernel| kernel.ref_get(counted))
    }

    /// Gets a reference unless the count was killed; says whether it did.
    #[track_caller]
    #[must_use]
    pub fn ref_tryget_live(&self, counted: PercpuRef) -> bool {
        self.on_ref(counted, |kernel| {
            kernel.percpu_ref(counted).phase == Phase::Live && kernel.ref_get(counted)
        })
    }

    /// Gives a reference back.
    #[track_caller]
    pub fn ref_put(&self, counted: PercpuRef) {
        self.on_ref(counted, |kernel| kernel.ref_put(self.id(), counted));
    }

    /// Drops the creator's reference, after which the count can come to zero;
    /// does not sleep.
    #[track_caller]
    pub fn ref_kill(&self, counted: PercpuRef) {
        self.on_ref(counted, |kernel| kernel.ref_kill(self.id(), counted));
    }

    /// Takes a kill back, while somebody has a reference.
    #[track_caller]
    pub fn ref_resurrect(&self, counted: PercpuRef) {
        self.on_ref(counted, |kernel| kernel.ref_resurrect(self.id(), counted));
    }
}
