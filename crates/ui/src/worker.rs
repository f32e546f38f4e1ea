//! The worker: runs the scenario once for its metrics, and makes the windows
//! that the page wants to look at.
//!
//! Invariants:
//! 1. Between two parts of work, each a few ms, it takes in messages.
//! 2. Wanted windows come first, then the pass over the whole run, then the
//!    replays parked for windows to come.

use crate::codecs::{self, Codecs};
use crate::dom;
use crate::protocol::{Progress, SlimRead, ToPage, ToWorker};
use crate::replays::Replays;
use core::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{DedicatedWorkerGlobalScope, MessageChannel, MessageEvent, MessagePort};
use zswap_lab::{Run, RunError, Scenario};

/// How long a part of the work may take, in ms, before the worker listens again.
const PART_MS: f64 = 6.0;
/// Reads are sent this often, in ms: each message is a new picture for the page.
const READS_MS: f64 = 40.0;
/// Virtual length of a step of the pass.
const STEP_NS: u64 = 2_000_000;
/// Progress is told every so often, in virtual ns; the percentiles in it take
/// some work.
const TELL_NS: u64 = 300_000_000;

/// The run that the page looks at.
struct Job {
    run: u32,
    pass: Pass,
    replays: Replays,
    /// Most urgent last.
    wanted: Vec<u64>,
}

/// The pass over the whole run.
struct Pass {
    run: Run,
    reads_sent: usize,
    reads_sent_ms: f64,
    told_ns: u64,
    done: bool,
}

/// The worker's state, and the way to come back to it.
struct Worker {
    scope: DedicatedWorkerGlobalScope,
    job: RefCell<Option<Job>>,
    codecs: RefCell<Codecs>,
    /// What was told while codecs are on their way, from the start that needs
    /// them on.
    waiting: RefCell<Option<Vec<ToWorker>>>,
    /// A message through this channel is the next turn: unlike a timer it comes
    /// at once, but after the page's messages that are there already.
    next_turn: MessagePort,
    is_turn_due: RefCell<bool>,
}

/// Starts to listen.
pub fn start(scope: &DedicatedWorkerGlobalScope) {
    dom::report_panics();
    let Ok(channel) = MessageChannel::new() else {
        return;
    };
    let worker = Rc::new(Worker {
        scope: scope.clone(),
        job: RefCell::new(None),
        codecs: RefCell::default(),
        waiting: RefCell::new(None),
        next_turn: channel.port2(),
        is_turn_due: RefCell::new(false),
    });
    let turned = Rc::clone(&worker);
    let on_turn = Closure::<dyn FnMut()>::new(move || turned.turn());
    channel
        .port1()
        .set_onmessage(Some(on_turn.as_ref().unchecked_ref()));
    on_turn.forget();
    let told = Rc::clone(&worker);
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        if let Some(message) = dom::received(&event) {
            told.receive(message);
        }
    });
    scope.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    on_message.forget();
    worker.tell(&ToPage::Ready);
}

impl Worker {
    fn tell(&self, message: &ToPage) {
        dom::send(message, |data, transfer| {
            self.scope.post_message_with_transfer(data, transfer)
        });
    }

    /// Takes a message in, now or once the codec that it needs is here.
    fn receive(self: &Rc<Self>, message: ToWorker) {
        if let Some(waiting) = self.waiting.borrow_mut().as_mut() {
            return waiting.push(message);
        }
        match &message {
            ToWorker::Start { run, settings, .. } if !self.codecs.borrow().suffice(settings) => {
                let run = *run;
                // The run before is left in any case.
                *self.job.borrow_mut() = None;
                *self.waiting.borrow_mut() = Some(vec![message]);
                let worker = Rc::clone(self);
                codecs::load(move |codecs| worker.go_on(run, codecs));
            }
            _ => self.take_in(message),
        }
    }

    /// Takes in what waited for codecs, or says that they cannot be had.
    fn go_on(self: &Rc<Self>, run: u32, loaded: Result<Codecs, String>) {
        let waiting = self.waiting.borrow_mut().take().unwrap_or_default();
        match loaded {
            Ok(codecs) => {
                *self.codecs.borrow_mut() = codecs;
                waiting
                    .into_iter()
                    .for_each(|message| self.receive(message));
            }
            Err(words) => {
                self.tell(&ToPage::Failed { run, words });
                // Another run may have been asked for meanwhile.
                let others = waiting.into_iter().skip(1);
                others.for_each(|message| self.receive(message));
            }
        }
    }

    fn take_in(&self, message: ToWorker) {
        match message {
            ToWorker::Start {
                run,
                settings,
                seed,
            } => {
                let job = Job::start(run, &settings, seed, self.codecs.borrow().clone());
                if let Err(words) = &job {
                    let words = words.clone();
                    self.tell(&ToPage::Failed { run, words });
                }
                *self.job.borrow_mut() = job.ok();
            }
            ToWorker::Windows { run, mut wanted } => {
                if let Some(job) = self.job.borrow_mut().as_mut().filter(|job| job.run == run) {
                    wanted.reverse();
                    job.wanted = wanted;
                }
            }
        }
        self.ask_for_turn();
    }

    fn ask_for_turn(&self) {
        if !self.is_turn_due.replace(true) {
            // A port that is never closed takes every message.
            let _ = self.next_turn.post_message(&wasm_bindgen::JsValue::NULL);
        }
    }

    /// Does a part of the work.
    fn turn(&self) {
        self.is_turn_due.replace(false);
        let mut job = self.job.borrow_mut();
        let Some(current) = job.as_mut() else {
            return;
        };
        let run = current.run;
        match current.work(|message| self.tell(&message)) {
            Ok(true) => self.ask_for_turn(),
            Ok(false) => {}
            Err(error) => {
                let words = error.to_string();
                *job = None;
                self.tell(&ToPage::Failed { run, words });
            }
        }
    }
}

impl Job {
    fn start(
        run: u32,
        settings: &[(String, String)],
        seed: u64,
        codecs: Codecs,
    ) -> Result<Job, String> {
        let settings = settings.iter().map(|(key, value)| (&**key, &**value));
        let scenario =
            Scenario::from_settings("page", settings).map_err(|error| error.to_string())?;
        let pass = Pass {
            run: codecs
                .start(&scenario, seed)
                .map_err(|error| error.to_string())?,
            reads_sent: 0,
            reads_sent_ms: 0.0,
            told_ns: 0,
            done: false,
        };
        Ok(Job {
            run,
            pass,
            replays: Replays::new(scenario, seed, codecs),
            wanted: Vec::new(),
        })
    }

    /// Does a part of the work and says whether there is more.
    fn work(&mut self, tell: impl Fn(ToPage)) -> Result<bool, RunError> {
        let until = dom::now_ms() + PART_MS;
        if self.wanted.is_empty() {
            if self.pass.done {
                return self.replays.fill_posts();
            }
            self.pass.work(self.run, until, tell)?;
            return Ok(true);
        }
        while let Some(&number) = self.wanted.last() {
            if let Some(recording) = self.replays.work_on(number)? {
                self.wanted.pop();
                let recording = Box::new(recording);
                tell(ToPage::Window {
                    run: self.run,
                    number,
                    recording,
                });
            }
            if dom::now_ms() >= until {
                break;
            }
        }
        Ok(true)
    }
}

impl Pass {
    fn work(&mut self, number: u32, until: f64, tell: impl Fn(ToPage)) -> Result<(), RunError> {
        let end_ns = self.run.end_ns();
        while self.run.now_ns() < end_ns && dom::now_ms() < until {
            let to_ns = end_ns.min(self.run.now_ns() + STEP_NS);
            self.run.measure(to_ns)?;
        }
        let at_ns = self.run.now_ns();
        self.done = at_ns >= end_ns;
        if self.done || dom::now_ms() - self.reads_sent_ms >= READS_MS {
            self.reads_sent_ms = dom::now_ms();
            let reads = self.fresh_reads();
            tell(ToPage::Reads { run: number, reads });
        }
        if self.done || at_ns - self.told_ns >= TELL_NS {
            self.told_ns = at_ns;
            let progress = self.progress();
            tell(ToPage::Progress {
                run: number,
                progress,
            });
        }
        Ok(())
    }

    /// The reads that the page does not know yet.
    fn fresh_reads(&mut self) -> Vec<SlimRead> {
        let reads = self.run.metrics().reads();
        let slim = |read: &zswap_lab::Read| SlimRead {
            begin_ns: read.begin_ns,
            latency_ns: read.latency_ns,
        };
        let fresh = reads[self.reads_sent..].iter().map(slim).collect();
        self.reads_sent = reads.len();
        fresh
    }

    fn progress(&self) -> Progress {
        let hash = self.run.trace_hash();
        Progress {
            at_ns: self.run.now_ns(),
            end_ns: self.run.end_ns(),
            events: self.run.event_count(),
            percentiles_ns: self.run.metrics().percentiles_ns([500, 990, 999]),
            trace_hash: self.done.then_some(hash),
        }
    }
}
