//! A deterministic virtual kernel.
//!
//! Time is an integer number of nanoseconds; tasks are `async` functions that
//! run, sleep and lock on it. It schedules as Linux's fair class does (virtual
//! deadlines, lag, slice protection, lazy preemption) and locks as its mutex
//! does, from the rules and not from a result that it should have.
//!
//! Beside the mutex and the spinlocks there are reader/writer locks that spin
//! ([`RwLock`]) and that sleep ([`RwSem`]), completions, workqueues, RCU, per-CPU
//! reference counts, block devices and accelerators with interrupts, and the
//! kernel threads of a real machine ([`Machine::spawn_background`]).
//!
//! Invariants:
//! 1. The same program on the same [`MachineConfig`] gives the same records,
//!    natively and in wasm: [`Machine::trace_hash`].
//! 2. No float, no hash map and no clock of the outside takes part.
//! 3. A task that breaks a rule stops the run with a [`Fault`] that names it.
//!
//! Left out: SMT and several caches, deadline scheduling, control groups.
//!
//! ```
//! use kernel_sim::{Machine, MachineConfig};
//!
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let mutex = machine.mutex("mutex");
//! for nice in [0, 10] {
//!     machine.spawn(format!("nice {nice}"), nice, move |task| async move {
//!         for _ in 0..1000 {
//!             task.mutex_lock(mutex).await;
//!             task.run_kernel(5_000).await;
//!             task.mutex_unlock(mutex).await;
//!         }
//!     })?;
//! }
//! machine.run_until(1_000_000_000)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accelerator;
mod agenda;
mod background;
mod balance;
mod check;
mod completion;
mod config;
mod cpu;
mod device;
mod event;
pub mod fair;
mod fault;
mod ids;
mod inheritance;
mod kernel;
mod lock;
mod machine;
mod mutex;
mod objects;
pub mod pelt;
mod percpu_ref;
mod policy;
mod preempt;
mod proxy;
mod rcu;
mod renice;
mod request;
mod rng;
mod rt;
mod rwlock;
mod rwsem;
mod sched;
mod shared;
mod spawn;
mod spin;
mod spinlock;
mod task;
mod timer;
mod trace;
mod waits;
mod wakers;
mod wakeup;
mod weight;
mod workqueue;

pub use accelerator::{Accelerator, AcceleratorOptions, Job, JobKind};
pub use completion::{Complete, Completion, WaitForCompletion};
pub use config::{
    ConfigError, Hrtick, Inheritance, MachineConfig, MutexOptions, Preemption, UnknownName,
};
pub use device::{Device, DiskOptions, Io, IoKind, RamdiskOptions, SsdOptions};
pub use event::{Acquired, Event, EventKind, OutReason};
pub use fair::{LagClamp, SliceProtection};
pub use fault::Fault;
pub use ids::{CpuId, LockId, SiteId, TaskId};
pub use lock::{LockInfo, LockKind};
pub use machine::Machine;
pub use mutex::{Mutex, MutexLock, MutexUnlock};
pub use percpu_ref::PercpuRef;
pub use policy::{CpuMask, Policy, SpawnError, TaskOptions};
pub use rcu::{Deferred, RcuReadUnlock, SynchronizeRcu};
pub use request::{DeviceError, Request, Submit, WaitForRequest};
pub use rng::Stream;
pub use rwlock::{RwLock, RwLockAcquire, RwLockRelease};
pub use rwsem::{DownRwSem, RwSem, UpRwSem};
pub use spin::{PlainSpinLock, SpinLocking, SpinUnlocking};
pub use spinlock::{SpinLock, SpinLockBh, SpinUnlockBh};
pub use task::{CondResched, Run, Sleep, Task};
pub use trace::{Sink, Site, Sites};
pub use waits::{Starving, TaskActivity, WaitLink};
pub use weight::{IDLE_WEIGHT, NICE_0_WEIGHT, NICE_MAX, NICE_MIN, weight_of_nice};
pub use workqueue::{FlushWork, QueueWork, Work, Workqueue};
