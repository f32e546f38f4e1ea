//! Block devices that pages are swapped to: a ramdisk, an SSD, a disk.
//!
//! Invariants:
//! 1. A ramdisk costs the CPU of who submits and nothing else: its request is
//!    done when it has been submitted (the memory reference, section 7: brd is
//!    a synchronous device).
//! 2. An SSD serves several requests at a time; their data share one link, which
//!    they are given in the order in which they were begun.
//! 3. A disk serves one request at a time, first come, first served: it moves
//!    its head to the track, waits until the page comes round, and transfers.
//!    Where the platter stands follows from the time alone.
//!
//! Left out: caches and write buffers of the drives, flushes, wear, and an SSD's
//! own housekeeping.
//!
//! The reference has no times of devices. All defaults are assumptions, of the
//! order that data sheets give, to be replaced where it matters.
//!
//! ```
//! use kernel_sim::{Io, Machine, MachineConfig, SsdOptions};
//! let mut machine = Machine::new(MachineConfig::default())?;
//! let ssd = machine.ssd("nvme0n1", SsdOptions::default());
//! machine.spawn("reader", 0, move |task| async move {
//!     let request = task.submit_io(ssd, Io::read(7, 1)).await;
//!     assert_eq!(task.wait_for_request(request).await, Ok(()));
//!     assert!(task.now_ns() >= SsdOptions::default().read_latency_ns);
//! })?;
//! machine.run_until(1_000_000)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::machine::Machine;
use crate::request::{Command, Direction, Service, Submit};
use crate::task::Task;

/// Length in ns of an interrupt of a device: that of a tick (scheduler
/// reference, 4.1).
pub(crate) const IRQ_NS: u64 = 1_500;

/// A block device of the machine: a handle that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device(u16);

impl Device {
    /// The number under which records speak of it.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

/// What a block device is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoKind {
    /// To bring pages back.
    Read,
    /// To keep pages.
    Write,
}

/// A request to a block device, of pages that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// What to do.
    pub kind: IoKind,
    /// The first page on the device.
    pub page: u64,
    /// How many pages.
    pub pages: u64,
    /// The device will fail to carry it out.
    pub fails: bool,
}

impl Io {
    /// Reads so many pages from this one on.
    #[must_use]
    pub fn read(page: u64, pages: u64) -> Io {
        Io {
            kind: IoKind::Read,
            page,
            pages,
            fails: false,
        }
    }

    /// Writes so many pages from this one on.
    #[must_use]
    pub fn write(page: u64, pages: u64) -> Io {
        Io {
            kind: IoKind::Write,
            ..Io::read(page, pages)
        }
    }

    /// The same, but it will fail.
    #[must_use]
    pub fn failing(self) -> Io {
        Io {
            fails: true,
            ..self
        }
    }

    fn command(self) -> Command {
        Command {
            direction: match self.kind {
                IoKind::Read => Direction::Back,
                IoKind::Write => Direction::Out,
            },
            first_page: self.page,
            pages: self.pages,
            fails: self.fails,
        }
    }
}

/// A ramdisk.
#[derive(Clone, Debug)]
pub struct RamdiskOptions {
    /// CPU time of a request, in ns.
    pub submit_ns: u64,
    /// CPU time to copy a page, in ns.
    pub copy_page_ns: u64,
}

impl Default for RamdiskOptions {
    /// Assumed: some function calls, and 4 KiB at 10 GB/s.
    fn default() -> RamdiskOptions {
        RamdiskOptions {
            submit_ns: 300,
            copy_page_ns: 400,
        }
    }
}

impl Service for RamdiskOptions {
    fn submit_ns(&self, command: &Command) -> u64 {
        let copy_ns = command.pages.saturating_mul(self.copy_page_ns);
        self.submit_ns.saturating_add(copy_ns)
    }

    fn irq_ns(&self) -> Option<u64> {
        None
    }

    fn parallel(&self) -> u32 {
        0
    }

    fn serve(&mut self, now_ns: u64, _: &Command) -> u64 {
        now_ns
    }
}

/// An SSD.
#[derive(Clone, Debug)]
pub struct SsdOptions {
    /// Requests that it serves at a time.
    pub parallel: u32,
    /// Time until the data of a read are there, in ns.
    pub read_latency_ns: u64,
    /// Time until a write is taken, beside the transfer, in ns.
    pub write_latency_ns: u64,
    /// Time that the link takes for a page, in ns.
    pub transfer_page_ns: u64,
    /// CPU time of who submits, in ns.
    pub submit_ns: u64,
    /// Length of the completion interrupt, in ns.
    pub irq_ns: u64,
}

impl Default for SsdOptions {
    /// Assumed, of an NVMe drive of a server: 80 µs to read, 20 µs to write,
    /// 3 GB/s, 64 requests at a time; 2 µs of block layer and driver.
    fn default() -> SsdOptions {
        SsdOptions {
            parallel: 64,
            read_latency_ns: 80_000,
            write_latency_ns: 20_000,
            transfer_page_ns: 1_365,
            submit_ns: 2_000,
            irq_ns: IRQ_NS,
        }
    }
}

#[derive(Debug)]
struct Ssd {
    options: SsdOptions,
    /// When the link has carried what was begun so far.
    link_free_ns: u64,
}

impl Service for Ssd {
    fn submit_ns(&self, _: &Command) -> u64 {
        self.options.submit_ns
    }

    fn irq_ns(&self) -> Option<u64> {
        Some(self.options.irq_ns)
    }

    fn parallel(&self) -> u32 {
        self.options.parallel.max(1)
    }

    fn serve(&mut self, now_ns: u64, command: &Command) -> u64 {
        let latency_ns = match command.direction {
            Direction::Back => self.options.read_latency_ns,
            Direction::Out => self.options.write_latency_ns,
        };
        let starts_ns = self.link_free_ns.max(now_ns.saturating_add(latency_ns));
        let transfer_ns = command.pages.saturating_mul(self.options.transfer_page_ns);
        self.link_free_ns = starts_ns.saturating_add(transfer_ns);
        self.link_free_ns
    }
}

/// A disk.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// Its size in pages.
    pub pages: u64,
    /// Pages of a track.
    pub track_pages: u64,
    /// Time that a page takes to pass under the head, in ns; a rotation is that
    /// of all pages of a track.
    pub page_ns: u64,
    /// Time to seek to the next track, in ns.
    pub next_track_ns: u64,
    /// Time to seek over the whole disk, in ns; in between it grows evenly.
    pub full_seek_ns: u64,
    /// CPU time of who submits, in ns.
    pub submit_ns: u64,
    /// Length of the completion interrupt, in ns.
    pub irq_ns: u64,
}

impl Default for DiskOptions {
    /// Assumed: 4 GiB of swap space at 7200 rotations a minute and 147 MB/s, so
    /// that the head moves over a small part of the disk; 2 µs of block layer
    /// and driver.
    fn default() -> DiskOptions {
        DiskOptions {
            pages: 1 << 20,
            track_pages: 300,
            page_ns: 27_778,
            next_track_ns: 1_000_000,
            full_seek_ns: 4_000_000,
            submit_ns: 2_000,
            irq_ns: IRQ_NS,
        }
    }
}

#[derive(Debug)]
struct Disk {
    options: DiskOptions,
    /// The page that the head stands before.
    head: u64,
}

impl Disk {
    fn track_pages(&self) -> u64 {
        self.options.track_pages.max(1)
    }

    fn seek_ns(&self, page: u64) -> u64 {
        let track = |page: u64| page / self.track_pages();
        let options = &self.options;
        match track(self.head).abs_diff(track(page)) {
            // A request that goes on where the last one ended finds the head
            // there: switching tracks is part of the layout.
            _ if page == self.head => 0,
            0 => 0,
            tracks => {
                let all = track(options.pages).max(1);
                let more_ns = options.full_seek_ns.saturating_sub(options.next_track_ns);
                let share = u128::from(more_ns) * u128::from(tracks.min(all)) / u128::from(all);
                // It is a part of `more_ns`.
                let share = u64::try_from(share).unwrap_or(more_ns);
                options.next_track_ns.saturating_add(share)
            }
        }
    }

    /// Time until a page comes round, from `at_ns` on.
    fn rotation_wait_ns(&self, at_ns: u64, page: u64) -> u64 {
        let [track_pages, page_ns] = [self.track_pages(), self.options.page_ns].map(u128::from);
        let rotation_ns = (track_pages * page_ns).max(1);
        let page_at_ns = u128::from(page) % track_pages * page_ns;
        let stands_at_ns = u128::from(at_ns) % rotation_ns;
        let wait_ns = match page_at_ns.checked_sub(stands_at_ns) {
            Some(ahead_ns) => ahead_ns,
            None => rotation_ns - (stands_at_ns - page_at_ns),
        };
        u64::try_from(wait_ns).unwrap_or(u64::MAX)
    }
}

impl Service for Disk {
    fn submit_ns(&self, _: &Command) -> u64 {
        self.options.submit_ns
    }

    fn irq_ns(&self) -> Option<u64> {
        Some(self.options.irq_ns)
    }

    fn parallel(&self) -> u32 {
        1
    }

    fn serve(&mut self, now_ns: u64, command: &Command) -> u64 {
        let there_ns = now_ns.saturating_add(self.seek_ns(command.first_page));
        let starts_ns =
            there_ns.saturating_add(self.rotation_wait_ns(there_ns, command.first_page));
        self.head = command.first_page.saturating_add(command.pages);
        starts_ns.saturating_add(command.pages.saturating_mul(self.options.page_ns))
    }
}

impl Machine {
    /// Adds a ramdisk.
    pub fn ramdisk(&mut self, name: impl Into<String>, options: RamdiskOptions) -> Device {
        self.device(name.into(), Box::new(options))
    }

    /// Adds an SSD.
    pub fn ssd(&mut self, name: impl Into<String>, options: SsdOptions) -> Device {
        let link_free_ns = 0;
        self.device(
            name.into(),
            Box::new(Ssd {
                options,
                link_free_ns,
            }),
        )
    }

    /// Adds a disk, its head at the first page.
    pub fn disk(&mut self, name: impl Into<String>, options: DiskOptions) -> Device {
        self.device(name.into(), Box::new(Disk { options, head: 0 }))
    }

    fn device(&mut self, name: String, service: Box<dyn Service>) -> Device {
        Device(self.kernel.borrow_mut().new_server(name, service))
    }

    /// Makes the next `count` requests to a device fail.
    pub fn fail_next_io(&mut self, device: Device, count: u32) {
        self.kernel.borrow_mut().fail_next(device.0, count);
    }
}

impl Task {
    /// Submits a request to a block device.
    #[track_caller]
    pub fn submit_io(&self, device: Device, io: Io) -> Submit<'_> {
        self.submit(device.0, io.command())
    }
}
