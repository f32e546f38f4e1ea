//! What the page knows and where in time it is: everything but the drawing.
//!
//! Invariants:
//! 1. The time shown is never beyond a window that is here; while one is
//!    missing the place stays as it was and the clock waits.
//! 2. Nothing moves by itself once somebody has moved: the opening moment is
//!    only gone to by a page that nobody has touched.

use crate::clock::Speed;
use crate::field::Field;
use crate::film::{Film, window_of};
use crate::protocol::{Progress, SlimRead, ToPage, ToWorker, WINDOW_NS};
use std::rc::Rc;
use zswap_lab::{Player, Scenario, TaskId};
use zswap_view::timeline::Timeline;
use zswap_view::{Frame, WhyLink, frame, sort_few, why};

/// The stretch of time that the timeline shows, in ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct View {
    /// Its start.
    pub from_ns: f64,
    /// Its end.
    pub to_ns: f64,
}

/// The longest stretch that is shown record by record.
const LONGEST_NS: f64 = 60e6;
/// The shortest.
const SHORTEST_NS: f64 = 1e3;

impl View {
    /// Its length.
    pub fn length(self) -> f64 {
        self.to_ns - self.from_ns
    }

    /// Of the same length or the nearest possible, inside the run.
    fn within(self, end_ns: u64) -> View {
        let longest = LONGEST_NS.min(end_ns as f64);
        let length = self.length().max(SHORTEST_NS).min(longest);
        let last = end_ns as f64 - length;
        // Not `clamp`: between ends that are not constants it would bring the
        // printer of floats for its panic.
        let from_ns = self.from_ns.min(last).max(0.0);
        View {
            from_ns,
            to_ns: from_ns + length,
        }
    }

    /// Around a read, with a margin.
    fn around(read: SlimRead) -> View {
        let length = (read.latency_ns as f64 * 1.12).max(40e3);
        let middle = read.begin_ns as f64 + read.latency_ns as f64 / 2.0;
        View {
            from_ns: middle - length / 2.0,
            to_ns: middle + length / 2.0,
        }
    }

    /// Zoomed by a factor around the point at this share of its length.
    fn zoomed(self, factor: f64, around: f64) -> View {
        let length = (self.length() * factor).clamp(SHORTEST_NS, LONGEST_NS);
        let fixed = self.from_ns + self.length() * around;
        let from_ns = fixed - length * around;
        View {
            from_ns,
            to_ns: from_ns + length,
        }
    }
}

/// A read that is to be opened at its most telling moment once it is here.
#[derive(Clone, Copy)]
struct Opening {
    read: SlimRead,
}

/// What the page knows.
pub struct Session {
    /// The scenario with the chosen design.
    pub scenario: Scenario,
    /// The seed.
    pub seed: u64,
    /// The number of the run.
    pub run: u32,
    /// Every read so far.
    pub field: Field,
    /// How far the pass over the run is.
    pub progress: Progress,
    /// Whether time goes by.
    pub playing: bool,
    /// How fast.
    pub speed: Speed,
    /// What the timeline shows.
    pub view: View,
    /// The task whose waiting is explained, if it was chosen.
    pub selected: Option<TaskId>,
    /// Why the run or the worker has ended.
    pub failure: Option<String>,
    film: Film,
    /// The time shown.
    at_ns: u64,
    /// The time to show; ahead of `at_ns` by parts of a ns, or by what is
    /// missing.
    sought_ns: f64,
    opening: Option<Opening>,
    touched: bool,
    asked: Vec<u64>,
}

impl Session {
    /// A session at the start of a run.
    pub fn new(scenario: Scenario, seed: u64, run: u32) -> Session {
        let end_ns = scenario.duration_s * 1_000_000_000;
        Session {
            scenario,
            seed,
            run,
            field: Field::default(),
            progress: Progress {
                end_ns,
                ..Progress::default()
            },
            playing: false,
            speed: Speed::FIRST,
            view: View {
                from_ns: 0.0,
                to_ns: 2.0 * WINDOW_NS as f64,
            },
            selected: None,
            failure: None,
            film: Film::default(),
            at_ns: 0,
            sought_ns: 0.0,
            opening: None,
            touched: false,
            asked: Vec::new(),
        }
    }

    /// What starts the run in the worker.
    pub fn start_message(&self) -> ToWorker {
        ToWorker::Start {
            run: self.run,
            settings: self.scenario.settings(),
            seed: self.seed,
        }
    }

    /// The end of the run, in ns.
    pub fn end_ns(&self) -> u64 {
        self.progress.end_ns
    }

    /// The time shown, in ns.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// Where in the records the page is, if it has any.
    pub fn player(&self) -> Option<&Player> {
        self.film.player()
    }

    /// The window shown.
    pub fn window(&self) -> Option<u64> {
        self.film.current()
    }

    /// Whether what is to be shown is not here yet.
    pub fn is_waiting(&self) -> bool {
        let is_missing = !self.film.has(window_of(self.goal_ns()));
        self.failure.is_none() && (self.opening.is_some() || is_missing)
    }

    /// Whether the opening moment has not been found yet.
    pub fn is_searching(&self) -> bool {
        !self.touched && self.failure.is_none()
    }

    fn goal_ns(&self) -> u64 {
        self.sought_ns.max(0.0) as u64
    }

    /// The frame shown.
    pub fn frame(&self) -> Option<Frame> {
        let player = self.film.player()?;
        Some(frame(
            &player.recording().roster,
            player.state(),
            self.at_ns,
        ))
    }

    /// The task whose waiting is explained: the chosen one, else the one that
    /// an alarm is about, else the first timed reader.
    pub fn subject(&self, frame: &Frame) -> Option<TaskId> {
        let waiter = frame.alarm.as_ref().map(|alarm| alarm.waiter);
        let reader = || {
            frame
                .tasks
                .iter()
                .find(|task| task.role == zswap_lab::Role::Reader)
        };
        let first = || reader().or(frame.tasks.first()).map(|task| task.id);
        self.selected.or(waiter).or_else(first)
    }

    /// Why a task does not run.
    pub fn why(&self, task: TaskId) -> Vec<WhyLink> {
        let Some(player) = self.film.player() else {
            return Vec::new();
        };
        why(&player.recording().roster, player.state(), self.at_ns, task)
    }

    /// The timelines of what the timeline shows.
    pub fn timelines(&self) -> Vec<Rc<Timeline>> {
        let View { from_ns, to_ns } = self.view;
        self.film
            .timelines(from_ns.max(0.0) as u64, to_ns.max(0.0) as u64)
    }

    /// The read to put a bracket over: the one under way at the time shown.
    pub fn read_shown(&self) -> Option<SlimRead> {
        self.field.at(self.at_ns)
    }

    /// Takes in what the worker says; says whether there is something to draw.
    pub fn take_in(&mut self, message: ToPage) -> bool {
        match message {
            ToPage::Ready => return false,
            ToPage::Reads { run, reads } if run == self.run => {
                self.field.extend(&reads, self.progress.end_ns);
                self.look_for_opening();
            }
            ToPage::Progress { run, progress } if run == self.run => {
                self.progress = progress;
                self.look_for_opening();
            }
            ToPage::Window {
                run,
                number,
                recording,
            } if run == self.run => {
                let centre = window_of(self.goal_ns());
                self.film.insert(number, *recording, centre);
                self.asked.retain(|&asked| asked != number);
                self.arrive();
            }
            ToPage::Failed { run, words } if run == self.run => self.fail(words),
            _ => return false,
        }
        true
    }

    /// Nothing more will come.
    pub fn fail(&mut self, words: String) {
        self.playing = false;
        self.opening = None;
        self.failure = Some(words);
    }

    /// Opens at the first slow read, or without one at the slowest.
    fn look_for_opening(&mut self) {
        if self.touched || self.opening.is_some() {
            return;
        }
        let is_done = self.progress.trace_hash.is_some();
        let slowest = self.field.slowest().filter(|_| is_done);
        if let Some(read) = self.field.first_slow().or(slowest) {
            self.open(read);
        }
    }

    /// Goes to a read, and in it to its most telling moment.
    pub fn open(&mut self, read: SlimRead) {
        self.playing = false;
        self.view = View::around(read).within(self.end_ns());
        self.seek(read.begin_ns + read.latency_ns / 2);
        self.opening = Some(Opening { read });
        self.arrive();
    }

    /// Once a read is here as a whole: the middle of the longest time in it
    /// during which the owner of a wanted lock did not run.
    fn arrive(&mut self) {
        if let Some(Opening { read }) = self.opening {
            let (from_ns, to_ns) = (read.begin_ns, read.end_ns());
            let mut windows = window_of(from_ns)..=window_of(to_ns);
            if !windows.all(|number| self.film.has(number)) {
                return;
            }
            let timelines = self.film.timelines(from_ns, to_ns);
            let alarm = longest_alarm(&timelines, from_ns, to_ns);
            // A short one is not what the read is about.
            let telling = alarm.filter(|(from, to)| (to - from) * 5 > read.latency_ns);
            let (from_ns, to_ns) = telling.unwrap_or((from_ns, to_ns));
            self.opening = None;
            self.sought_ns = (from_ns + (to_ns - from_ns) / 2) as f64;
        }
        let goal_ns = self.goal_ns();
        if goal_ns != self.at_ns || self.film.player().is_none() {
            self.show(goal_ns);
        }
    }

    /// Shows a moment if its window is here.
    fn show(&mut self, at_ns: u64) -> bool {
        let is_here = self.film.seek_ns(at_ns);
        if is_here {
            self.at_ns = at_ns;
        }
        is_here
    }

    /// Goes to a moment, as soon as its window is here.
    pub fn seek(&mut self, at_ns: u64) {
        self.touched = true;
        self.opening = None;
        let at_ns = at_ns.min(self.end_ns());
        self.sought_ns = at_ns as f64;
        self.show(at_ns);
        self.follow();
    }

    /// Starts or stops the clock.
    pub fn toggle(&mut self) {
        self.touched = true;
        self.opening = None;
        self.playing = !self.playing && self.failure.is_none();
        self.sought_ns = self.at_ns as f64;
    }

    /// Stops, and goes one record on or back.
    pub fn step(&mut self, is_forward: bool) {
        self.touched = true;
        self.opening = None;
        self.playing = false;
        match self.film.step(is_forward) {
            Some(at_ns) => {
                self.at_ns = at_ns;
                self.sought_ns = at_ns as f64;
            }
            // The window is asked for; meanwhile the edge of this one is shown.
            None => self.sought_ns = self.at_ns as f64,
        }
        self.follow();
    }

    /// Lets so much real time go by.
    pub fn tick(&mut self, seconds: f64) {
        if !self.playing {
            return;
        }
        let step_ns = self.speed.ns_per_s() * seconds.min(0.1);
        let goal_ns = (self.sought_ns + step_ns).min(self.end_ns() as f64);
        // Over several windows at once: as far as they are here.
        let is_here = |number: u64| self.film.has(number);
        let first = window_of(self.at_ns);
        let reach = (first..=window_of(goal_ns as u64))
            .take_while(|&number| is_here(number))
            .last();
        let Some(reach) = reach else {
            return;
        };
        self.sought_ns = goal_ns.min(((reach + 1) * WINDOW_NS) as f64);
        self.show(self.goal_ns());
        if self.sought_ns >= self.end_ns() as f64 {
            self.playing = false;
        }
        self.follow();
    }

    /// Keeps the time shown in view.
    fn follow(&mut self) {
        let at = self.sought_ns;
        let View { from_ns, .. } = self.view;
        let length = self.view.length();
        let (left, right) = (from_ns + 0.02 * length, from_ns + 0.8 * length);
        let shift = if self.playing && at > right {
            at - right
        } else if at > from_ns + length || at < from_ns {
            at - (from_ns + 0.5 * length)
        } else if self.playing && at < left {
            at - left
        } else {
            return;
        };
        let moved = View {
            from_ns: from_ns + shift,
            to_ns: from_ns + shift + length,
        };
        self.view = moved.within(self.end_ns());
    }

    /// Zooms the timeline around a point of it.
    pub fn zoom(&mut self, factor: f64, around: f64) {
        self.view = self.view.zoomed(factor, around).within(self.end_ns());
    }

    /// Moves the timeline by a share of its length.
    pub fn pan(&mut self, share: f64) {
        let by = self.view.length() * share;
        let moved = View {
            from_ns: self.view.from_ns + by,
            to_ns: self.view.to_ns + by,
        };
        self.view = moved.within(self.end_ns());
    }

    /// What is to be asked of the worker now, if it differs from what was.
    pub fn ask(&mut self) -> Option<ToWorker> {
        let wanted = self.wanted();
        if wanted == self.asked {
            return None;
        }
        self.asked.clone_from(&wanted);
        Some(ToWorker::Windows {
            run: self.run,
            wanted,
        })
    }

    /// The windows that are missing, the most urgent first: the one to show,
    /// those that the timeline shows, and those that the clock will reach.
    fn wanted(&self) -> Vec<u64> {
        let last = window_of(self.end_ns());
        let here = window_of(self.goal_ns());
        let view = window_of(self.view.from_ns.max(0.0) as u64)
            ..=window_of(self.view.to_ns.max(0.0) as u64);
        let ahead = if self.playing {
            (self.speed.ns_per_s() * 0.3) as u64 / WINDOW_NS + 2
        } else {
            1
        };
        let before = here.saturating_sub(1);
        let mut wanted = vec![here];
        wanted.extend(view);
        wanted.extend(here + 1..=here + ahead.min(40));
        wanted.push(before);
        let mut seen = Vec::new();
        for number in wanted {
            if number <= last && !self.film.has(number) && !seen.contains(&number) {
                seen.push(number);
            }
        }
        seen
    }
}

/// The longest alarm of windows that follow each other; one that goes over
/// their seams counts as one.
fn longest_alarm(timelines: &[Rc<Timeline>], from_ns: u64, to_ns: u64) -> Option<(u64, u64)> {
    let mut alarms: Vec<(u64, u64)> = Vec::new();
    for timeline in timelines {
        let holds = timeline.lanes.iter().flat_map(|lane| &lane.holds);
        alarms.extend(
            holds
                .filter(|hold| hold.alarm)
                .map(|hold| (hold.from_ns, hold.to_ns)),
        );
    }
    sort_few(&mut alarms, |&alarm| alarm);
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (from, to) in alarms {
        match joined.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => joined.push((from, to)),
        }
    }
    let inside = joined
        .into_iter()
        .map(|(from, to)| (from.max(from_ns), to.min(to_ns)));
    inside
        .filter(|(from, to)| from < to)
        .max_by_key(|(from, to)| to - from)
}
