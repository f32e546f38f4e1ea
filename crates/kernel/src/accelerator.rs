//! Hardware that compresses: engines with one queue and a completion interrupt.
//!
//! Invariants:
//! 1. An engine does one job at a time; jobs go to the engines first come,
//!    first served.
//! 2. A job that finds the queue full is refused at once, with
//!    [`crate::DeviceError::Busy`]: the driver then has the CPU do it.
//!
//! Left out: jobs that share the bandwidth to memory, batches, and a driver that
//! polls instead of sleeping.
//!
//! The memory reference (section 11) knows no times of a page on such hardware:
//! the defaults are assumptions.
//!
//! ```
//! use kernel_sim::{AcceleratorOptions, Job, Machine, MachineConfig};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let iaa = machine.accelerator("iaa", AcceleratorOptions::default());
//! machine.spawn("store", 0, move |task| async move {
//!     let request = task.submit_job(iaa, Job::compress(1)).await;
//!     assert_eq!(task.wait_for_request(request).await, Ok(()));
//! })?;
//! machine.run_until(1_000_000)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::device::IRQ_NS;
use crate::machine::Machine;
use crate::request::{Command, Direction, Service, Submit};
use crate::task::Task;

/// An accelerator of the machine: a handle that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accelerator(u16);

impl Accelerator {
    /// The number under which records speak of it, as of any device.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

/// What an accelerator is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobKind {
    /// To compress.
    Compress,
    /// To decompress.
    Decompress,
}

/// A job for an accelerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// What to do.
    pub kind: JobKind,
    /// With how many pages.
    pub pages: u64,
    /// The accelerator will fail to carry it out.
    pub fails: bool,
}

impl Job {
    /// Compresses so many pages.
    #[must_use]
    pub fn compress(pages: u64) -> Job {
        Job {
            kind: JobKind::Compress,
            pages,
            fails: false,
        }
    }

    /// Decompresses so many pages.
    #[must_use]
    pub fn decompress(pages: u64) -> Job {
        Job {
            kind: JobKind::Decompress,
            ..Job::compress(pages)
        }
    }

    /// The same, but it will fail.
    #[must_use]
    pub fn failing(self) -> Job {
        Job {
            fails: true,
            ..self
        }
    }

    fn command(self) -> Command {
        Command {
            direction: match self.kind {
                JobKind::Compress => Direction::Out,
                JobKind::Decompress => Direction::Back,
            },
            first_page: 0,
            pages: self.pages,
            fails: self.fails,
        }
    }
}

/// An accelerator.
#[derive(Clone, Debug)]
pub struct AcceleratorOptions {
    /// Engines: jobs that it does at a time.
    pub engines: u32,
    /// Jobs that can wait for an engine.
    pub queue_max: usize,
    /// Time to compress a page, in ns.
    pub compress_page_ns: u64,
    /// Time to decompress a page, in ns.
    pub decompress_page_ns: u64,
    /// CPU time of who submits, in ns.
    pub submit_ns: u64,
    /// Length of the completion interrupt, in ns.
    pub irq_ns: u64,
}

impl Default for AcceleratorOptions {
    /// Assumed, of the order of one Intel IAA device: 8 engines behind a queue
    /// of 128, and a page in a few µs either way; 1 µs to write a descriptor
    /// and map two buffers.
    fn default() -> AcceleratorOptions {
        AcceleratorOptions {
            engines: 8,
            queue_max: 128,
            compress_page_ns: 5_000,
            decompress_page_ns: 2_500,
            submit_ns: 1_000,
            irq_ns: IRQ_NS,
        }
    }
}

impl Service for AcceleratorOptions {
    fn submit_ns(&self, _: &Command) -> u64 {
        self.submit_ns
    }

    fn irq_ns(&self) -> Option<u64> {
        Some(self.irq_ns)
    }

    fn parallel(&self) -> u32 {
        self.engines.max(1)
    }

    fn queue_max(&self) -> usize {
        self.queue_max
    }

    fn serve(&mut self, now_ns: u64, command: &Command) -> u64 {
        let page_ns = match command.direction {
            Direction::Out => self.compress_page_ns,
            Direction::Back => self.decompress_page_ns,
        };
        now_ns.saturating_add(command.pages.saturating_mul(page_ns))
    }
}

impl Machine {
    /// Adds an accelerator.
    pub fn accelerator(
        &mut self,
        name: impl Into<String>,
        options: AcceleratorOptions,
    ) -> Accelerator {
        let mut kernel = self.kernel.borrow_mut();
        Accelerator(kernel.new_server(name.into(), Box::new(options)))
    }

    /// Makes the next `count` jobs of an accelerator fail.
    pub fn fail_next_jobs(&mut self, accelerator: Accelerator, count: u32) {
        self.kernel.borrow_mut().fail_next(accelerator.0, count);
    }
}

impl Task {
    /// Submits a job to an accelerator.
    #[track_caller]
    pub fn submit_job(&self, accelerator: Accelerator, job: Job) -> Submit<'_> {
        self.submit(accelerator.0, job.command())
    }
}
