//! The bar at the foot: step, play, where in the run, how fast.

use crate::clock::{STEPS, Speed};
use crate::parts::axis::percent;
use crate::protocol::SlimRead;
use crate::tag::{Tag, button, tag, with_class};
use web_sys::HtmlInputElement;
use yew::{Callback, InputEvent, TargetCast};
use zswap_view::scene::units::moment;

/// What the bar shows and tells.
pub struct Props {
    /// Time goes by.
    pub playing: bool,
    /// What is to be shown is not here yet.
    pub waiting: bool,
    /// The time shown, in ns.
    pub at_ns: u64,
    /// The end of the run, in ns.
    pub end_ns: u64,
    /// How fast.
    pub speed: Speed,
    /// The slowest reads.
    pub marks: Vec<SlimRead>,
    /// How far the pass over the run is, in ns.
    pub reached_ns: u64,
    /// Play or pause.
    pub on_toggle: Callback<()>,
    /// One record on or back.
    pub on_step: Callback<bool>,
    /// Go to a moment.
    pub on_seek: Callback<u64>,
    /// Another speed.
    pub on_speed: Callback<u32>,
}

/// The slider counts in this many ns.
const GRAIN_NS: u64 = 100_000;

/// The bar at the foot of the page.
pub fn controls(props: &Props) -> Tag {
    let (symbol, words) = match props.playing {
        true => ("❚❚", "Pause"),
        false => ("▶", "Play"),
    };
    let status = match (props.playing, props.waiting) {
        (_, true) => "replaying",
        (true, _) => "playing",
        (false, _) => "paused",
    };
    let step = |label, title, is_forward| {
        let on_click = props.on_step.reform(move |_| is_forward);
        button(label, on_click)
            .set("class", "step")
            .set("title", title)
    };
    let back = step("Step back", "Step back: , or ←", false)
        .text("◂")
        .child(tag("span").text(" step"));
    let play = button(words, props.on_toggle.reform(|_| ()))
        .set("class", "play")
        .set("title", "Space")
        .child(tag("span").set("aria-hidden", "true").text(symbol));
    let forward = step("Step forward", "Step forward: . or →", true)
        .child(tag("span").text("step "))
        .text("▸");
    let steps = with_class("div", "steps");
    let now = with_class("output", "now")
        .set("role", "status")
        .set("aria-label", "Time shown")
        .child(with_class("span", "moment").text(moment(props.at_ns)))
        .child(with_class("span", "state").text(status));
    with_class("footer", "controls")
        .set("aria-label", "Time")
        .child(steps.child(back).child(play).child(forward))
        .child(now)
        .child(scrubber(props))
        .child(speed(props))
}

fn scrubber(props: &Props) -> Tag {
    let share = |ns: u64| percent(ns as f64, 0.0, props.end_ns as f64);
    let mark = |read: &SlimRead| {
        let x = share(read.begin_ns);
        with_class("line", "mark")
            .set("x1", x.clone())
            .set("x2", x)
            .set("y1", "2")
            .set("y2", "22")
    };
    let bar = |class, width: String| {
        with_class("rect", class)
            .set("x", "0")
            .set("y", "10")
            .set("width", width)
            .set("height", "4")
            .set("rx", "2")
    };
    let picture = tag("svg")
        .set("aria-hidden", "true")
        .child(bar("track", "100%".to_owned()))
        .child(bar("reached", share(props.reached_ns)))
        .children(props.marks.iter().map(mark));
    let on_seek = props.on_seek.reform(|value| value * GRAIN_NS);
    let steps = (props.at_ns / GRAIN_NS, props.end_ns / GRAIN_NS);
    let words = moment(props.at_ns);
    with_class("div", "scrub").child(picture).child(slider(
        "Moment of the run",
        steps,
        words,
        on_seek,
    ))
}

fn speed(props: &Props) -> Tag {
    let on_speed = props.on_speed.reform(|value| value as u32);
    let steps = (props.speed.step().into(), STEPS.into());
    let words = props.speed.words();
    with_class("label", "speed")
        .child(with_class("span", "words").text(words.clone()))
        .child(slider("Speed", steps, words, on_speed))
}

/// A slider at one of so many steps from 0.
fn slider(label: &'static str, steps: (u64, u64), words: String, on_input: Callback<u64>) -> Tag {
    let (at, last) = steps;
    let value = |event: InputEvent| {
        let input: HtmlInputElement = event.target_unchecked_into();
        input.value_as_number() as u64
    };
    tag("input")
        .set("type", "range")
        .set("aria-label", label)
        .set("min", "0")
        .set("max", last.to_string())
        .set("step", "1")
        .value(at.to_string())
        .set("aria-valuetext", words)
        .on_input(on_input.reform(value))
}
