//! Requests to devices: submitting, serving, the interrupt, waiting.
//!
//! A device serves up to so many requests at a time and queues the others, first
//! come, first served. How long one takes is the device's affair
//! ([`crate::device`], [`crate::accelerator`]).
//!
//! Invariants:
//! 1. Every request is done once: with success, or with an error that goes to
//!    who waits for it.
//! 2. The interrupt that says so comes on the CPU that the request was
//!    submitted on, wherever the task is by then.
//! 3. A request that fails takes as long as one that does not.
//! 4. A request belongs to one owner, who waits for it or gives it up; then its
//!    place is used again.
//!
//! Left out: merging and reordering in a block layer, a limit to what may be
//! queued for a block device, interrupts that stand for several requests, and
//! polling for the end.

use crate::asks::Thing;
use crate::completion::Completion;
use crate::event::EventKind;
use crate::ids::{CpuId, TaskId};
use crate::kernel::{Kernel, Op};
use crate::machine::Shared;
use crate::task::Task;
use crate::timer::Timed;
use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::collections::VecDeque;

/// A request's place in the machine's table; used again when it is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RequestSlot(u32);

impl From<RequestSlot> for Thing {
    fn from(slot: RequestSlot) -> Thing {
        Thing::Request(slot.0 as usize)
    }
}

/// A request that was submitted. Its owner waits for it
/// ([`Task::wait_for_request`]) or gives it up ([`Task::forget_request`]).
#[derive(PartialEq, Eq, Debug)]
#[must_use = "wait for it or give it up"]
pub struct Request {
    slot: RequestSlot,
    number: u64,
}

impl Request {
    /// The number under which records speak of it.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// Why a request was not carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceError {
    /// The device tried and failed.
    Failed,
    /// The device's own queue was full.
    Busy,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceError::Failed => "the device failed to carry out the request",
            DeviceError::Busy => "the device's queue is full",
        })
    }
}

impl core::error::Error for DeviceError {}

/// Where pages go, as seen from memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// Out of it: written, compressed.
    Out,
    /// Back into it: read, decompressed.
    Back,
}

/// What a device is asked to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub direction: Direction,
    pub first_page: u64,
    pub pages: u64,
    pub fails: bool,
}

/// How a kind of device does what it is asked.
pub(crate) trait Service: fmt::Debug {
    /// CPU time in ns of the task that submits.
    fn submit_ns(&self, command: &Command) -> u64;
    /// Length of the completion interrupt in ns; `None` if the request is done
    /// when it has been submitted.
    fn irq_ns(&self) -> Option<u64>;
    /// How many requests it serves at a time.
    fn parallel(&self) -> u32;
    /// How many more it can queue.
    fn queue_max(&self) -> usize {
        usize::MAX
    }
    /// Begins to serve a request; returns when that will be done.
    fn serve(&mut self, now_ns: u64, command: &Command) -> u64;
}

/// A device as the kernel sees it.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    service: Box<dyn Service>,
    /// Requests being served.
    busy: u32,
    queue: VecDeque<RequestSlot>,
    /// So many of the requests to come will fail.
    fail_next: u32,
}

/// The requests of a machine.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: Vec<RequestState>,
    free: Vec<RequestSlot>,
    /// How many there have been.
    count: u64,
}

impl Requests {
    /// How many places there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }
}

#[derive(Debug)]
struct RequestState {
    number: u64,
    server: u16,
    command: Command,
    /// Where it was submitted.
    cpu: CpuId,
    completion: Completion,
    outcome: Result<(), DeviceError>,
    /// Nobody will wait for it.
    forgotten: bool,
}

impl Kernel {
    pub(crate) fn new_server(&mut self, name: String, service: Box<dyn Service>) -> u16 {
        let number = self.number_for(self.objects.servers.len(), "devices");
        self.objects.servers.push(Server {
            name,
            service,
            busy: 0,
            queue: VecDeque::new(),
            fail_next: 0,
        });
        number
    }

    /// Makes so many of the requests to come fail.
    pub(crate) fn fail_next(&mut self, server: u16, count: u32) {
        if self.is_given(Thing::Server(server)) {
            self.server(server).fail_next = count;
        }
    }

    fn server(&mut self, server: u16) -> &mut Server {
        &mut self.objects.servers[usize::from(server)]
    }

    fn request(&mut self, slot: RequestSlot) -> &mut RequestState {
        &mut self.objects.requests.slots[slot.0 as usize]
    }

    pub(crate) fn cpu_of_request(&self, slot: RequestSlot) -> CpuId {
        self.objects.requests.slots[slot.0 as usize].cpu
    }

    /// A place for a new request, with a completion that is as good as new.
    fn new_request(&mut self, server: u16, cpu: CpuId, mut command: Command) -> RequestSlot {
        let state = self.server(server);
        if state.fail_next > 0 {
            state.fail_next -= 1;
            command.fails = true;
        }
        let number = self.objects.requests.count;
        self.objects.requests.count += 1;
        let (slot, completion) = match self.objects.requests.free.pop() {
            Some(slot) => {
                let completion = self.request(slot).completion;
                self.reinit_completion(completion);
                (slot, completion)
            }
            None => {
                let count = self.objects.requests.slots.len();
                let slot = RequestSlot(u32::try_from(count).unwrap_or(u32::MAX));
                (slot, self.new_completion("a request".to_owned()))
            }
        };
        let state = RequestState {
            number,
            server,
            command,
            cpu,
            completion,
            outcome: Ok(()),
            forgotten: false,
        };
        let slots = &mut self.objects.requests.slots;
        match slots.get_mut(slot.0 as usize) {
            Some(old) => *old = state,
            None => slots.push(state),
        }
        slot
    }

    fn submit(&mut self, task: TaskId, server: u16, command: Command) -> Request {
        let cpu = self.task(task).cpu;
        let slot = self.new_request(server, cpu, command);
        let number = self.request(slot).number;
        self.emit(task, EventKind::IoSubmit, number, server);
        let state = self.server(server);
        if state.service.irq_ns().is_none() {
            self.finish_request(slot);
        } else if state.busy >= state.service.parallel()
            && state.queue.len() >= state.service.queue_max()
        {
            self.request(slot).outcome = Err(DeviceError::Busy);
            self.finish_request(slot);
        } else {
            state.queue.push_back(slot);
            self.serve_queue(server);
        }
        Request { slot, number }
    }

    /// Lets a device begin with what it has room for.
    fn serve_queue(&mut self, server: u16) {
        let now_ns = self.now_ns;
        loop {
            let state = &mut self.objects.servers[usize::from(server)];
            if state.busy >= state.service.parallel() {
                return;
            }
            let Some(slot) = state.queue.pop_front() else {
                return;
            };
            state.busy += 1;
            let command = &self.objects.requests.slots[slot.0 as usize].command;
            let at_ns = state.service.serve(now_ns, command);
            self.timers.arm(at_ns, Timed::Request(slot));
        }
    }

    /// The interrupt that says that a request is done.
    pub(crate) fn request_irq(&mut self, cpu: CpuId, slot: RequestSlot) {
        let (server, number) = (self.request(slot).server, self.request(slot).number);
        let state = self.server(server);
        state.busy -= 1;
        let irq_ns = state.service.irq_ns().unwrap_or(0);
        self.enter_irq(cpu, irq_ns);
        let failed = self.request(slot).command.fails;
        self.emit_irq(cpu, EventKind::IoDone, number, failed.into());
        self.serve_queue(server);
        self.finish_request(slot);
    }

    /// A request is done: who waits for it is woken.
    fn finish_request(&mut self, slot: RequestSlot) {
        let state = self.request(slot);
        if state.command.fails {
            state.outcome = state.outcome.and(Err(DeviceError::Failed));
        }
        if state.forgotten {
            self.objects.requests.free.push(slot);
        } else {
            let completion = state.completion;
            self.complete(completion, TaskId::NONE);
        }
    }

    /// The owner has no more to do with a request.
    fn forget_request(&mut self, slot: RequestSlot) {
        let completion = self.request(slot).completion;
        if self.completion_done(completion) {
            self.objects.requests.free.push(slot);
        } else {
            self.request(slot).forgotten = true;
        }
    }

    /// One look of a task that waits for a request.
    fn wait_for_request(
        &mut self,
        task: TaskId,
        slot: RequestSlot,
    ) -> Poll<Result<(), DeviceError>> {
        let &mut RequestState {
            number,
            server,
            completion,
            outcome,
            ..
        } = self.request(slot);
        let record = (EventKind::IoWait, number, server);
        if self.wait_turn(completion, task, record).is_pending() {
            return Poll::Pending;
        }
        self.objects.requests.free.push(slot);
        Poll::Ready(outcome)
    }
}

impl Task {
    #[track_caller]
    pub(crate) fn submit(&self, server: u16, command: Command) -> Submit<'_> {
        Submit {
            kernel: &self.kernel,
            task: self.id(),
            server,
            command,
            place: Location::caller(),
            started: false,
        }
    }

    /// Waits until a request is done, and says how it went.
    #[track_caller]
    pub fn wait_for_request(&self, request: Request) -> WaitForRequest<'_> {
        WaitForRequest {
            kernel: &self.kernel,
            task: self.id(),
            slot: request.slot,
            place: Location::caller(),
            started: false,
        }
    }

    /// Whether waiting for a request would not sleep.
    #[track_caller]
    #[must_use]
    pub fn request_done(&self, request: &Request) -> bool {
        let kernel = &mut *self.kernel.borrow_mut();
        if !kernel.asks_about(request.slot.into(), self.id(), Location::caller()) {
            return false;
        }
        let completion = kernel.request(request.slot).completion;
        kernel.completion_done(completion)
    }

    /// Lets a request be carried out without anybody waiting for it.
    #[track_caller]
    pub fn forget_request(&self, request: Request) {
        let kernel = &mut *self.kernel.borrow_mut();
        if kernel.asks_about(request.slot.into(), self.id(), Location::caller()) {
            kernel.forget_request(request.slot);
        }
    }
}

/// Submits a request; ends as soon as the device has it.
#[must_use = "futures do nothing unless awaited"]
pub struct Submit<'a> {
    kernel: &'a Shared,
    task: TaskId,
    server: u16,
    command: Command,
    place: &'static Location<'static>,
    started: bool,
}

impl Future for Submit<'_> {
    type Output = Request;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Request> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        let (task, server) = (self.task, self.server);
        if !core::mem::replace(&mut self.started, true) {
            if !kernel.asks_about(Thing::Server(server), task, self.place) {
                return Poll::Pending;
            }
            kernel.enter_kernel(task);
            let left_ns = kernel.server(server).service.submit_ns(&self.command);
            if left_ns > 0 {
                kernel.task(task).op = Op::Run { left_ns };
                return Poll::Pending;
            }
        }
        Poll::Ready(kernel.submit(task, server, self.command))
    }
}

/// Waits for a request; see [`Task::wait_for_request`].
#[must_use = "futures do nothing unless awaited"]
pub struct WaitForRequest<'a> {
    kernel: &'a Shared,
    task: TaskId,
    slot: RequestSlot,
    place: &'static Location<'static>,
    started: bool,
}

impl Future for WaitForRequest<'_> {
    type Output = Result<(), DeviceError>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.kernel;
        let kernel = &mut *shared.borrow_mut();
        let (task, slot) = (self.task, self.slot);
        if !core::mem::replace(&mut self.started, true) {
            if !kernel.asks_about(slot.into(), task, self.place) {
                return Poll::Pending;
            }
            kernel.enter_kernel(task);
            let server = kernel.request(slot).server;
            let does = |kernel: &Kernel| {
                let name = &kernel.objects.servers[usize::from(server)].name;
                format!("waits for {name}")
            };
            if !kernel.might_sleep(task, does) {
                return Poll::Pending;
            }
        }
        kernel.wait_for_request(task, slot)
    }
}
