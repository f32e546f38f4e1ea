//! The application: the session, the worker's link, the clock of frames, and
//! how the parts of the page are put together.

use crate::clock::Speed;
use crate::dom::{self, Listener};
use crate::exports;
use crate::link::{Link, Said};
use crate::parts::code::code;
use crate::parts::controls::{self, controls};
use crate::parts::header::{self, ThemeChoice, header};
use crate::parts::reads::{self, Dots, reads_view};
use crate::parts::stage::{place_tokens, stage_view};
use crate::parts::story::{self, story};
use crate::parts::timeline::{self, Gesture, timeline_view};
use crate::parts::why::{self, why};
use crate::protocol::SlimRead;
use crate::session::Session;
use crate::tag::{Tag, list, tag, with_class};
use std::rc::Rc;
use web_sys::{Event, KeyboardEvent};
use yew::{Component, Context, Html, NodeRef};
use zswap_lab::{Context as Design, Scenario, TaskId};
use zswap_view::Frame;
use zswap_view::scene::{self, Layout};

/// The scenario that the page opens with.
const SCENARIO: &str = "b1-1cpu";

/// Starts the page.
pub fn start() {
    dom::report_panics();
    let document = dom::window().and_then(|window| window.document());
    let root = document.and_then(|document| document.get_element_by_id("app"));
    if let Some(root) = root {
        yew::Renderer::<App>::with_root(root).render();
    }
}

/// What happens to the application.
pub enum Msg {
    /// The worker said something.
    Said(Said),
    /// A frame of the browser is due, at this real time in ms.
    Frame(f64),
    /// Play or pause.
    Toggle,
    /// One record on, or back.
    Step(bool),
    /// Go to a moment.
    Seek(u64),
    /// Go to a read.
    Open(SlimRead),
    /// Another speed.
    Speed(u32),
    /// Another seed: a new run.
    Seed(u64),
    /// Another design: a new run.
    Design(Design),
    /// Explain this task.
    Select(TaskId),
    /// Zoom or move the timeline.
    Gesture(Gesture),
    /// Other colours.
    Theme(ThemeChoice),
    /// The window has another size, or the system other colours.
    Resized,
}

/// The application.
pub struct App {
    session: Session,
    /// The session's reads, as the painter takes them.
    dots: Dots,
    link: Option<Link>,
    theme: ThemeChoice,
    is_narrow: bool,
    last_frame_ms: Option<f64>,
    is_frame_due: bool,
    stage: NodeRef,
    timeline: timeline::Surface,
    reads: reads::Surface,
    listeners: Vec<Listener>,
}

impl Component for App {
    type Message = Msg;
    type Properties = ();

    fn create(ctx: &Context<Self>) -> Self {
        let mut scenario = Scenario::named(SCENARIO).unwrap_or_default();
        let seed = scenario.seed;
        scenario.context = Design::Shared;
        let theme = ThemeChoice::remembered();
        theme.apply();
        let session = Session::new(scenario, seed, 0);
        let mut app = App {
            dots: Dots::of(&session.field, session.end_ns()),
            session,
            link: None,
            theme,
            is_narrow: is_narrow(),
            last_frame_ms: None,
            is_frame_due: false,
            stage: NodeRef::default(),
            timeline: timeline::Surface::default(),
            reads: reads::Surface::default(),
            listeners: listeners(ctx),
        };
        app.start_run(ctx);
        app
    }

    fn update(&mut self, ctx: &Context<Self>, message: Msg) -> bool {
        let is_changed = self.react(ctx, message);
        if let (Some(message), Some(link)) = (self.session.ask(), &self.link) {
            link.tell(message);
        }
        if self.session.playing && !self.is_frame_due {
            self.is_frame_due = true;
            let link = ctx.link().clone();
            dom::next_frame(move |at_ms| link.send_message(Msg::Frame(at_ms)));
        }
        is_changed
    }

    fn view(&self, ctx: &Context<Self>) -> Html {
        let session = &self.session;
        let frame = session.frame().map(Rc::new);
        let link = ctx.link();
        list([
            header(&header::Props {
                design: session.scenario.context,
                seed: session.seed,
                theme: self.theme,
                on_design: link.callback(Msg::Design),
                on_seed: link.callback(Msg::Seed),
                on_theme: link.callback(Msg::Theme),
            })
            .into(),
            self.view_main(ctx, frame).into(),
            controls(&controls::Props {
                playing: session.playing,
                waiting: session.is_waiting(),
                at_ns: session.at_ns(),
                end_ns: session.end_ns(),
                speed: session.speed,
                marks: session.field.slowest_few(8),
                reached_ns: session.progress.at_ns,
                on_toggle: link.callback(|()| Msg::Toggle),
                on_step: link.callback(Msg::Step),
                on_seek: link.callback(Msg::Seek),
                on_speed: link.callback(Msg::Speed),
            })
            .into(),
        ])
    }

    fn rendered(&mut self, ctx: &Context<Self>, is_first: bool) {
        let session = &self.session;
        let theme = self.theme.effective();
        place_tokens(&self.stage);
        self.timeline
            .paint(&session.timelines(), session.view, theme);
        self.reads.paint(&self.dots, theme, session.run);
        if is_first {
            let on_gesture = ctx.link().callback(Msg::Gesture);
            self.listeners.extend(self.timeline.listen(&on_gesture));
        }
    }
}

impl App {
    /// The stage, the timeline and the dots.
    fn view_figure(&self, ctx: &Context<Self>, frame: Option<&Frame>) -> Tag {
        let session = &self.session;
        let link = ctx.link();
        let timeline = timeline_view(&timeline::Props {
            surface: &self.timeline,
            timelines: &session.timelines(),
            view: session.view,
            at_ns: session.at_ns(),
            read: session.read_shown(),
            frame,
            on_gesture: link.callback(Msg::Gesture),
        });
        let reads = reads_view(&reads::Props {
            surface: &self.reads,
            cells: &self.dots,
            count: session.field.count(),
            slow: session.field.slow(),
            slowest: session.field.slowest_few(5),
            progress: &session.progress,
            at_ns: session.at_ns(),
            on_open: link.callback(Msg::Open),
            on_seek: link.callback(Msg::Seek),
        });
        with_class("div", "figure")
            .maybe(self.view_stage(frame))
            .child(timeline)
            .child(reads)
    }

    /// Starts the session's run in a worker that is not busy with another.
    fn start_run(&mut self, ctx: &Context<Self>) {
        let callback = ctx.link().callback(Msg::Said);
        if self.link.is_none() {
            match Link::start(move |said| callback.emit(said)) {
                Ok(link) => self.link = Some(link),
                Err(words) => return self.session.fail(words),
            }
        }
        if let Some(link) = &self.link {
            link.tell(self.session.start_message());
            if let Some(message) = self.session.ask() {
                link.tell(message);
            }
        }
    }

    fn restart(&mut self, ctx: &Context<Self>, scenario: Scenario, seed: u64) {
        let speed = self.session.speed;
        let run = self.session.run + 1;
        self.session = Session::new(scenario, seed, run);
        self.session.speed = speed;
        self.dots = Dots::of(&self.session.field, self.session.end_ns());
        self.start_run(ctx);
    }

    /// Takes a message in; says whether there is something to draw.
    fn react(&mut self, ctx: &Context<Self>, message: Msg) -> bool {
        let session = &mut self.session;
        match message {
            Msg::Said(Said::Message(message)) => {
                let before = session.field.count();
                let is_changed = session.take_in(message);
                if session.field.count() != before {
                    self.dots = Dots::of(&session.field, session.end_ns());
                }
                return is_changed;
            }
            Msg::Said(Said::Dead(words)) => {
                self.link = None;
                session.fail(words);
            }
            Msg::Frame(at_ms) => {
                self.is_frame_due = false;
                let seconds = self.last_frame_ms.map_or(0.0, |last| (at_ms - last) / 1e3);
                self.last_frame_ms = session.playing.then_some(at_ms);
                session.tick(seconds);
            }
            Msg::Toggle => {
                session.toggle();
                self.last_frame_ms = None;
            }
            Msg::Step(is_forward) => session.step(is_forward),
            Msg::Seek(at_ns) => session.seek(at_ns),
            Msg::Open(read) => {
                // The button that was pressed would take the next Space.
                dom::release_focus();
                session.open(read);
            }
            Msg::Speed(step) => session.speed = Speed::at_step(step),
            Msg::Seed(seed) => {
                let scenario = session.scenario.clone();
                self.restart(ctx, scenario, seed);
            }
            Msg::Design(design) => {
                let (mut scenario, seed) = (session.scenario.clone(), session.seed);
                scenario.context = design;
                self.restart(ctx, scenario, seed);
            }
            Msg::Select(task) => {
                let is_chosen = session.selected == Some(task);
                session.selected = (!is_chosen).then_some(task);
            }
            Msg::Gesture(Gesture::Zoom { factor, around }) => session.zoom(factor, around),
            Msg::Gesture(Gesture::Pan { share }) => session.pan(share),
            Msg::Gesture(Gesture::Go { share }) => {
                let at_ns = session.view.from_ns + session.view.length() * share;
                session.seek(at_ns.max(0.0) as u64);
            }
            Msg::Theme(theme) => {
                self.theme = theme;
                theme.apply();
            }
            Msg::Resized => self.is_narrow = is_narrow(),
        }
        true
    }

    fn view_main(&self, ctx: &Context<Self>, frame: Option<Rc<Frame>>) -> Tag {
        let session = &self.session;
        let story = (frame.is_some() || session.failure.is_none()).then(|| {
            story(&story::Props {
                design: session.scenario.context,
                frame: frame.clone(),
                searching: session.is_searching(),
                slowest: session.field.slowest(),
                on_open: ctx.link().callback(Msg::Open),
            })
        });
        let window = session.window().map(|window| window.to_string());
        let position = session.player().map(|player| player.position().to_string());
        let hash = session.progress.trace_hash;
        // What is shown, in numbers, for tests.
        tag("main")
            .set("data-at-ns", session.at_ns().to_string())
            .set("data-run", session.run.to_string())
            .set("data-seed", session.seed.to_string())
            .set("data-context", session.scenario.context.name())
            .set("data-playing", session.playing.to_string())
            .set("data-waiting", session.is_waiting().to_string())
            .set("data-searching", session.is_searching().to_string())
            .set_some("data-window", window)
            .set_some("data-position", position)
            .set("data-reads", session.field.count().to_string())
            .set_some("data-trace-hash", hash.map(|hash| format!("{hash:016x}")))
            .set_some("data-state-hash", self.state_hash())
            .set_some("data-frame-hash", self.frame_hash(frame.as_deref()))
            .maybe(session.failure.as_deref().map(failure))
            .maybe(story)
            .child(self.view_figure(ctx, frame.as_deref()))
            .child(with_class("aside", "reasons").child(self.view_reasons(ctx, frame)))
    }

    fn view_stage(&self, frame: Option<&Frame>) -> Option<Tag> {
        let roster = self
            .session
            .player()
            .map(|player| &player.recording().roster);
        let (Some(frame), Some(roster)) = (frame, roster) else {
            let is_coming = self.session.failure.is_none();
            let starts = || with_class("p", "stage pending").text("The model starts.");
            return is_coming.then(starts);
        };
        let layout = if self.is_narrow {
            Layout::Narrow
        } else {
            Layout::Wide
        };
        let scene = scene::stage(roster, frame, layout);
        let is_still = self.session.playing && self.session.speed.is_fast();
        Some(stage_view(&self.stage, &scene, is_still))
    }

    fn view_reasons(&self, ctx: &Context<Self>, frame: Option<Rc<Frame>>) -> Html {
        let subject = frame.as_ref().and_then(|frame| self.session.subject(frame));
        let (Some(frame), Some(subject)) = (frame, subject) else {
            return Html::default();
        };
        let why = why(&why::Props {
            links: self.session.why(subject),
            subject,
            frame: &frame,
            on_select: ctx.link().callback(Msg::Select),
        });
        list([why, code(&frame, subject).into()])
    }

    /// A hash of the machine's state, for tests; only while nothing moves.
    fn state_hash(&self) -> Option<String> {
        let player = self.session.player().filter(|_| !self.session.playing)?;
        exports::hash_of(player.state())
    }

    /// A hash of the frame, for tests; only while nothing moves.
    fn frame_hash(&self, frame: Option<&Frame>) -> Option<String> {
        exports::hash_of(frame.filter(|_| !self.session.playing)?)
    }
}

fn is_narrow() -> bool {
    let width = dom::window().and_then(|window| window.inner_width().ok()?.as_f64());
    width.is_some_and(|width| width < 720.0)
}

/// That the model has stopped, and why.
fn failure(words: &str) -> Tag {
    with_class("div", "failure")
        .set("role", "alert")
        .child(tag("strong").text("The model has stopped."))
        .text(format!(
            " {words}. Load the page again; if that does not help, try another browser."
        ))
}

fn listeners(ctx: &Context<App>) -> Vec<Listener> {
    let Some(window) = dom::window() else {
        return Vec::new();
    };
    let link = ctx.link().clone();
    let resized = move |_: Event| link.send_message(Msg::Resized);
    let link = ctx.link().clone();
    let key = move |event: KeyboardEvent| {
        if let Some(message) = key_message(&event) {
            event.prevent_default();
            link.send_message(message);
        }
    };
    let mut listeners = vec![
        Listener::new(&window, "resize", resized.clone()),
        Listener::new(&window, "keydown", key),
    ];
    if let Ok(Some(dark)) = window.match_media("(prefers-color-scheme: dark)") {
        listeners.push(Listener::new(&dark, "change", resized));
    }
    listeners
}

/// What a key means, unless the element that has the keyboard takes it.
fn key_message(event: &KeyboardEvent) -> Option<Msg> {
    if event.ctrl_key() || event.alt_key() || event.meta_key() {
        return None;
    }
    let (tag, kind) = dom::focused().map_or_else(Default::default, |element| {
        (
            element.tag_name(),
            element.get_attribute("type").unwrap_or_default(),
        )
    });
    let types = matches!(tag.as_str(), "TEXTAREA" | "SELECT") || kind == "text";
    let takes_space = types || matches!(tag.as_str(), "BUTTON" | "SUMMARY" | "A");
    let takes_arrows = types || tag == "INPUT";
    match event.code().as_str() {
        "Space" if !takes_space => Some(Msg::Toggle),
        "Comma" if !types => Some(Msg::Step(false)),
        "Period" if !types => Some(Msg::Step(true)),
        "ArrowLeft" if !takes_arrows => Some(Msg::Step(false)),
        "ArrowRight" if !takes_arrows => Some(Msg::Step(true)),
        _ => None,
    }
}
