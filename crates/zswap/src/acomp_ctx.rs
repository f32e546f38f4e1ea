//! The per-CPU compression context.

use crate::design::{Context, Design};
use kernel_sim::{CpuId, Machine, Mutex, SpinLock};

/// `struct crypto_acomp_ctx`: what a CPU has for (de)compressing.
#[derive(Clone, Copy, Debug)]
pub struct AcompCtx {
    /// Held over the use of the compression request.
    pub mutex: Mutex,
    /// Held over the use of the decompression request. The shared design has
    /// one request for both, so this is the same mutex.
    pub decompress_mutex: Mutex,
    /// The compressor's own per-CPU state; a spinlock, taken inside the mutex
    /// and over the whole (de)compression in both directions.
    pub stream: SpinLock,
}

impl AcompCtx {
    /// The context of a CPU.
    pub fn new(machine: &mut Machine, design: Design, cpu: CpuId) -> AcompCtx {
        let mutex = machine.mutex(format!("acomp_ctx.mutex of CPU {cpu}"));
        let decompress_mutex = match design.context {
            Context::Shared => mutex,
            Context::Split | Context::Onstack => {
                machine.mutex(format!("acomp_ctx.decompress_mutex of CPU {cpu}"))
            }
        };
        let stream = machine.spin_lock(format!("{} stream of CPU {cpu}", design.algorithm));
        AcompCtx {
            mutex,
            decompress_mutex,
            stream,
        }
    }
}
