//! The per-CPU compression contexts.
//!
//! 1. The mutex of a context is outside the stream lock, never inside.
//! 2. A context that is gone is never used: who has waited for its mutex looks
//!    again whether it is still there.

use crate::design::{Context, Design};
use crate::zswap::{Zswap, ZswapOptions};
use core::cell::{Cell, RefCell};
use kernel_sim::{CpuId, Machine, Mutex, SpinLock, Task};
use zswap_mm::lifecycle::PoolId;
use zswap_mm::{Algorithm, PAGE_SIZE};

/// `struct crypto_acomp_ctx`: what a CPU has for (de)compressing.
#[derive(Debug)]
pub(crate) struct AcompCtx {
    /// Held over the use of the compression request.
    pub mutex: Mutex,
    /// Held over the use of the decompression request. The shared design has
    /// one request for both, so this is the same mutex.
    pub decompress_mutex: Mutex,
    /// Whether it has requests at all (`req` is not NULL).
    pub present: Cell<bool>,
    /// Where a page is compressed to; guarded by the compression mutex.
    pub buffer: RefCell<Vec<u8>>,
}

/// The contexts of all pools, and the streams of the compressors.
#[derive(Debug)]
pub(crate) struct AcompCtxs {
    cpus: usize,
    contexts: Vec<AcompCtx>,
    /// Each algorithm's per-CPU state; a spinlock, taken inside the mutex and
    /// over the whole (de)compression in both directions.
    streams: Vec<(Algorithm, Vec<SpinLock>)>,
}

impl AcompCtxs {
    pub(crate) fn new(machine: &mut Machine, options: &ZswapOptions) -> AcompCtxs {
        let cpus = machine.cpus();
        let mut contexts: Vec<AcompCtx> = Vec::new();
        let mut streams = Vec::new();
        for &cpu in &cpus {
            contexts.push(AcompCtx::new(machine, &options.design, &cpu.to_string()));
            let name = format!("{} stream of CPU {cpu}", options.design.algorithm);
            streams.push(machine.spin_lock(name));
        }
        for pool in 2..=options.pools {
            for (index, cpu) in cpus.iter().enumerate() {
                let name = format!("{cpu}, pool {pool}");
                contexts.push(if options.design.mutex_of_all_pools {
                    contexts[index].with_the_same_mutex()
                } else {
                    AcompCtx::new(machine, &options.design, &name)
                });
            }
        }
        let mut streams = vec![(options.design.algorithm, streams)];
        for &algorithm in &options.algorithms {
            let stream =
                |cpu: &CpuId| machine.spin_lock(format!("{algorithm} stream of CPU {cpu}"));
            streams.push((algorithm, cpus.iter().map(stream).collect()));
        }
        AcompCtxs {
            cpus: cpus.len(),
            contexts,
            streams,
        }
    }

    /// The context of a pool on a CPU.
    pub(crate) fn of(&self, pool: PoolId, cpu: CpuId) -> &AcompCtx {
        &self.contexts[(usize::from(pool.0) - 1) * self.cpus + cpu.index()]
    }

    /// The stream of an algorithm on a CPU.
    pub(crate) fn stream(&self, algorithm: Algorithm, cpu: CpuId) -> Option<SpinLock> {
        let streams = self.streams.iter().find(|(of, _)| *of == algorithm);
        streams.map(|(_, streams)| streams[cpu.index()])
    }

    /// How many CPUs have contexts.
    pub(crate) fn cpus(&self) -> u8 {
        u8::try_from(self.cpus).unwrap_or(u8::MAX)
    }

    /// Whether there are streams of an algorithm.
    pub(crate) fn knows(&self, algorithm: Algorithm) -> bool {
        self.streams.iter().any(|(of, _)| *of == algorithm)
    }
}

impl AcompCtx {
    fn new(machine: &mut Machine, design: &Design, of: &str) -> AcompCtx {
        let mutex = machine.mutex(format!("acomp_ctx.mutex of CPU {of}"));
        let decompress_mutex = match design.context {
            Context::Shared => mutex,
            Context::Split | Context::Onstack => {
                machine.mutex(format!("acomp_ctx.decompress_mutex of CPU {of}"))
            }
        };
        AcompCtx {
            mutex,
            decompress_mutex,
            present: Cell::new(true),
            buffer: RefCell::new(Vec::with_capacity(PAGE_SIZE)),
        }
    }

    fn with_the_same_mutex(&self) -> AcompCtx {
        AcompCtx {
            mutex: self.mutex,
            decompress_mutex: self.decompress_mutex,
            present: Cell::new(true),
            buffer: RefCell::default(),
        }
    }
}

/// What a context is locked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum For {
    Compress,
    Decompress,
}

impl AcompCtx {
    pub(crate) fn mutex_for(&self, direction: For) -> Mutex {
        match direction {
            For::Compress => self.mutex,
            For::Decompress => self.decompress_mutex,
        }
    }
}

/// How long somebody who found a context gone takes to come back, in ns.
const RETRY_NS: u64 = 1_000;

/// `acomp_ctx_get_cpu_lock`: the context of the CPU that the task is on now,
/// locked. Who waits for the mutex may move to another CPU meanwhile and keeps
/// the context; who finds it gone, since its CPU has died, tries again.
pub(crate) async fn acomp_ctx_get_cpu_lock<'z>(
    task: &Task,
    zswap: &'z Zswap,
    pool: PoolId,
    direction: For,
) -> &'z AcompCtx {
    loop {
        let ctx = zswap.contexts.of(pool, task.cpu());
        task.mutex_lock(ctx.mutex_for(direction)).await;
        if ctx.present.get() {
            return ctx;
        }
        task.mutex_unlock(ctx.mutex_for(direction)).await;
        task.run_kernel(RETRY_NS).await;
        // In the model the CPU may come back only by a task that waits for it.
        task.cond_resched().await;
    }
}
