//! The bar at the foot: step, play, where in the run, how fast.

use crate::clock::{STEPS, Speed};
use crate::parts::axis::percent;
use crate::protocol::SlimRead;
use web_sys::HtmlInputElement;
use yew::prelude::*;
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
pub fn controls(props: &Props) -> Html {
    let (symbol, words) = match props.playing {
        true => ("❚❚", "Pause"),
        false => ("▶", "Play"),
    };
    let status = match (props.playing, props.waiting) {
        (_, true) => "replaying",
        (true, _) => "playing",
        (false, _) => "paused",
    };
    html! {
        <footer class="controls" aria-label="Time">
            <div class="steps">
                <button type="button" class="step" aria-label="Step back" title="Step back: , or ←"
                    onclick={props.on_step.reform(|_: MouseEvent| false)}>{"◂"}<span>{" step"}</span></button>
                <button type="button" class="play" aria-label={words} title="Space"
                    onclick={props.on_toggle.reform(|_: MouseEvent| ())}>
                    <span aria-hidden="true">{symbol}</span>
                </button>
                <button type="button" class="step" aria-label="Step forward" title="Step forward: . or →"
                    onclick={props.on_step.reform(|_: MouseEvent| true)}><span>{"step "}</span>{"▸"}</button>
            </div>
            <output class="now" role="status" aria-label="Time shown">
                <span class="moment">{moment(props.at_ns)}</span>
                <span class="state">{status}</span>
            </output>
            { scrubber(props) }
            { speed(props) }
        </footer>
    }
}

fn scrubber(props: &Props) -> Html {
    let on_seek = props.on_seek.clone();
    let input = Callback::from(move |event: InputEvent| {
        let input: HtmlInputElement = event.target_unchecked_into();
        on_seek.emit((input.value_as_number() * GRAIN_NS as f64) as u64);
    });
    let share = |ns: u64| percent(ns as f64, 0.0, props.end_ns as f64);
    let mark = |read: &SlimRead| {
        let x = share(read.begin_ns);
        html! { <line class="mark" x1={x.clone()} x2={x} y1="2" y2="22" /> }
    };
    html! {
        <div class="scrub">
            <svg aria-hidden="true">
                <rect class="track" x="0" y="10" width="100%" height="4" rx="2" />
                <rect class="reached" x="0" y="10" width={share(props.reached_ns)} height="4" rx="2" />
                { for props.marks.iter().map(mark) }
            </svg>
            <input type="range" aria-label="Moment of the run" min="0"
                max={(props.end_ns / GRAIN_NS).to_string()} step="1"
                value={(props.at_ns / GRAIN_NS).to_string()}
                aria-valuetext={moment(props.at_ns)} oninput={input} />
        </div>
    }
}

fn speed(props: &Props) -> Html {
    let on_speed = props.on_speed.clone();
    let input = Callback::from(move |event: InputEvent| {
        let input: HtmlInputElement = event.target_unchecked_into();
        on_speed.emit(input.value_as_number() as u32);
    });
    html! {
        <label class="speed">
            <span class="words">{props.speed.words()}</span>
            <input type="range" aria-label="Speed" min="0" max={STEPS.to_string()} step="1"
                value={props.speed.step().to_string()} aria-valuetext={props.speed.words()}
                oninput={input} />
        </label>
    }
}
