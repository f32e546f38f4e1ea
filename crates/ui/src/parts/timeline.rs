//! The timeline of the stretch around the time shown: a painted canvas with
//! axis, cursor, bracket and names over it.

use crate::dom::Listener;
use crate::paint;
use crate::parts::axis::{axis_words, percent, percent_of, round_places, share};
use crate::parts::sign;
use crate::protocol::SlimRead;
use crate::session::View;
use crate::tag::{Tag, button, class_if, tag, with_class};
use core::cell::RefCell;
use std::rc::Rc;
use web_sys::{HtmlCanvasElement, HtmlElement, PointerEvent, WheelEvent};
use yew::{Callback, NodeRef};
use zswap_lab::TaskId;
use zswap_view::scene::Theme;
use zswap_view::scene::units::fixed;
use zswap_view::timeline::Timeline;
use zswap_view::{Frame, in_words_ns, nice_in_words};

/// What somebody does to the timeline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Gesture {
    /// Make what is shown longer by this factor, around this share of it.
    Zoom {
        /// Above 1 more is shown.
        factor: f64,
        /// What stays where it is.
        around: f64,
    },
    /// Show what comes later, by this share of the length shown.
    Pan {
        /// The share.
        share: f64,
    },
    /// Go to the moment at this share of what is shown.
    Go {
        /// The share.
        share: f64,
    },
}

/// The elements that are painted, and that listen.
#[derive(Default)]
pub struct Surface {
    canvas: NodeRef,
    frame: NodeRef,
}

impl Surface {
    /// Paints the lanes; to be called when the page has been rendered.
    pub fn paint(&self, timelines: &[Rc<Timeline>], view: View, theme: Theme) {
        if let Some(canvas) = self.canvas.cast::<HtmlCanvasElement>() {
            paint::timeline::paint(&canvas, timelines, view, theme);
        }
    }

    /// Listens to wheel and pointers, once the page has been rendered.
    pub fn listen(&self, on_gesture: &Callback<Gesture>) -> Vec<Listener> {
        let frame = self.frame.cast::<HtmlElement>();
        frame.map_or_else(Vec::new, |frame| listen(&frame, on_gesture))
    }
}

/// What the timeline shows and tells.
pub struct Props<'a> {
    /// Where.
    pub surface: &'a Surface,
    /// The windows.
    pub timelines: &'a [Rc<Timeline>],
    /// The stretch shown.
    pub view: View,
    /// The time shown, in ns.
    pub at_ns: u64,
    /// The read under way.
    pub read: Option<SlimRead>,
    /// The frame, for the names.
    pub frame: Option<&'a Frame>,
    /// Zoom or move.
    pub on_gesture: Callback<Gesture>,
}

/// Height of a lane in CSS px; the style sheet gives the names the same.
pub const LANE_H: f64 = 22.0;
/// Height of the axis above the lanes.
const AXIS_H: f64 = 20.0;
/// Height below the lanes, for the bracket.
const BRACKET_H: f64 = 34.0;

/// The timeline.
pub fn timeline_view(props: &Props<'_>) -> Tag {
    let Surface { canvas, frame } = props.surface;
    let order: Vec<TaskId> = props.timelines.first().map_or_else(Vec::new, |timeline| {
        timeline.lanes.iter().map(|lane| lane.task).collect()
    });
    let key = |class: &'static str, words: &'static str| {
        let sample = with_class("i", class);
        tag("span").child(sample).text(words)
    };
    let keys = with_class("small", "key")
        .child(key("solid", "running"))
        .child(key("hatched", "asleep on a mutex"))
        .child(key("owns", "owns the mutex"))
        .child(key("owns alarm", "owns it, wanted, not running"));
    let names = order.iter().map(|&task| lane_name(props, task));
    let height = px(order.len() as f64 * LANE_H);
    let surface = with_class("div", "surface")
        .at(frame)
        .set("role", "img")
        .set("aria-label", label(props))
        .child(tag("canvas").at(canvas).set("height", height))
        .child(overlay(props, order.len()));
    let lanes = with_class("div", "lanes");
    with_class("section", "timeline")
        .set("aria-label", "Timeline")
        .child(tag("h2").text(title(props)).child(keys))
        .child(lanes.child(tag("ul").children(names)).child(surface))
        .child(buttons(props))
}

fn title(props: &Props<'_>) -> &'static str {
    match props.read {
        Some(read) if read.latency_ns > 1_000_000 => "One slow read",
        _ => "Who runs when",
    }
}

fn label(props: &Props<'_>) -> String {
    let length = in_words_ns(props.view.length().max(0.0) as u64);
    match props.read {
        Some(read) => format!(
            "{length} of the run, with a read that takes {}. Zoom with the buttons below.",
            in_words_ns(read.latency_ns)
        ),
        None => format!("{length} of the run. Zoom with the buttons below."),
    }
}

fn lane_name(props: &Props<'_>, task: TaskId) -> Tag {
    let task = props.frame.and_then(|frame| frame.tasks.get(task.index()));
    let Some(task) = task else {
        return tag("li");
    };
    tag("li")
        .class(&[class_if(task.alarm, "alarm")])
        .child(sign(task.role, &task.label))
        .child(tag("span").text(task.name.clone()))
        .child(tag("small").text(nice_in_words(task.nice)))
}

fn buttons(props: &Props<'_>) -> Tag {
    // Around the moment shown, so that it stays in view.
    let View { from_ns, to_ns } = props.view;
    let moment = share(props.at_ns as f64, from_ns, to_ns);
    let around = if (0.0..=1.0).contains(&moment) {
        moment
    } else {
        0.5
    };
    let zoom = |factor| Gesture::Zoom { factor, around };
    let button = |label, sign: &'static str, gesture: Gesture| {
        button(label, props.on_gesture.reform(move |_| gesture)).text(sign)
    };
    with_class("div", "zoom")
        .set("role", "group")
        .set("aria-label", "Timeline view")
        .child(button("Earlier", "←", Gesture::Pan { share: -0.3 }))
        .child(button("Zoom out", "−", zoom(1.8)))
        .child(button("Zoom in", "+", zoom(1.0 / 1.8)))
        .child(button("Later", "→", Gesture::Pan { share: 0.3 }))
}

/// A line between two points.
fn line(x1: String, x2: String, y1: String, y2: String) -> Tag {
    tag("line")
        .set("x1", x1)
        .set("x2", x2)
        .set("y1", y1)
        .set("y2", y2)
}

/// A whole number of CSS px as an attribute.
fn px(length: f64) -> String {
    fixed(length, 0)
}

/// Axis, cursor and bracket.
fn overlay(props: &Props<'_>, lanes: usize) -> Tag {
    let View { from_ns, to_ns } = props.view;
    let foot = AXIS_H + lanes as f64 * LANE_H;
    let read = props
        .read
        .filter(|read| read.latency_ns as f64 > props.view.length() * 0.04);
    let origin = read.map_or(from_ns, |read| read.begin_ns as f64);
    let at = |ns: f64| percent(ns, from_ns, to_ns);
    let places = round_places(from_ns - origin, to_ns - origin, 7);
    let cursor = at(props.at_ns as f64);
    let grid = places.into_iter().map(|place| {
        let x = at(origin + place);
        let inside = share(origin + place, from_ns, to_ns);
        let words = || {
            tag("text")
                .set("class", "tick")
                .set("x", x.clone())
                .set("y", "12")
                .set("text-anchor", "middle")
                .text(axis_words(place, to_ns - from_ns))
        };
        let words = (0.03..0.97).contains(&inside).then(words);
        tag("g")
            .child(line(x.clone(), x.clone(), px(AXIS_H), px(foot)).set("class", "grid"))
            .maybe(words)
    });
    let circle = with_class("circle", "cursor")
        .set("cx", cursor.clone())
        .set("cy", "14")
        .set("r", "4");
    with_class("svg", "overlay")
        .set("aria-hidden", "true")
        .set("height", px(foot + BRACKET_H))
        .children(grid)
        .maybe(read.map(|read| bracket(read, props.view, foot)))
        .child(line(cursor.clone(), cursor, px(14.0), px(foot)).set("class", "cursor"))
        .child(circle)
}

fn bracket(read: SlimRead, view: View, foot: f64) -> Tag {
    let View { from_ns, to_ns } = view;
    let (begin, end) = (read.begin_ns as f64, read.end_ns() as f64);
    let (x1, x2) = (percent(begin, from_ns, to_ns), percent(end, from_ns, to_ns));
    let middle = (begin.max(from_ns) + end.min(to_ns)) / 2.0;
    let middle = share(middle, from_ns, to_ns).clamp(0.25, 0.75);
    let y = foot + 8.0;
    let words = format!("this read takes {}", in_words_ns(read.latency_ns));
    let words = tag("text")
        .set("x", percent_of(middle))
        .set("y", px(y + 16.0))
        .set("text-anchor", "middle")
        .text(words);
    with_class("g", "bracket")
        .child(line(x1.clone(), x1.clone(), px(y - 5.0), px(y)))
        .child(line(x1, x2.clone(), px(y), px(y)))
        .child(line(x2.clone(), x2, px(y - 5.0), px(y)))
        .child(words)
}

/// Pointers that are down: number, last place, and how far it has gone.
#[derive(Default)]
struct Pointers {
    down: Vec<(i32, f64)>,
    moved: f64,
    /// Distance of two fingers.
    spread: f64,
}

fn listen(surface: &HtmlElement, on_gesture: &Callback<Gesture>) -> Vec<Listener> {
    let pointers = Rc::new(RefCell::new(Pointers::default()));
    let wheel = {
        let (surface, on_gesture) = (surface.clone(), on_gesture.clone());
        move |event: WheelEvent| {
            event.prevent_default();
            let around = place(&surface, event.client_x());
            let (x, y) = (event.delta_x(), event.delta_y());
            let gesture = if x.abs() > y.abs() || event.shift_key() {
                Gesture::Pan {
                    share: (if x == 0.0 { y } else { x }) / 1000.0,
                }
            } else {
                Gesture::Zoom {
                    factor: (0.002 * y.clamp(-400.0, 400.0)).exp(),
                    around,
                }
            };
            on_gesture.emit(gesture);
        }
    };
    let down = {
        let (surface, pointers) = (surface.clone(), Rc::clone(&pointers));
        move |event: PointerEvent| {
            // A pointer that is gone already cannot be captured.
            let _ = surface.set_pointer_capture(event.pointer_id());
            let mut pointers = pointers.borrow_mut();
            if pointers.down.is_empty() {
                pointers.moved = 0.0;
            }
            pointers
                .down
                .push((event.pointer_id(), f64::from(event.client_x())));
            pointers.spread = pointers.distance();
        }
    };
    let moved = {
        let (surface, on_gesture, pointers) =
            (surface.clone(), on_gesture.clone(), Rc::clone(&pointers));
        move |event: PointerEvent| {
            let width = surface.client_width().max(1);
            let gesture = pointers
                .borrow_mut()
                .move_to(&event, &surface, f64::from(width));
            if let Some(gesture) = gesture {
                on_gesture.emit(gesture);
            }
        }
    };
    let up = {
        let (surface, on_gesture) = (surface.clone(), on_gesture.clone());
        move |event: PointerEvent| {
            let mut pointers = pointers.borrow_mut();
            pointers
                .down
                .retain(|pointer| pointer.0 != event.pointer_id());
            let is_click = pointers.moved < 4.0 && pointers.down.is_empty();
            if is_click && event.type_() == "pointerup" {
                let share = place(&surface, event.client_x());
                on_gesture.emit(Gesture::Go { share });
            }
        }
    };
    vec![
        Listener::new(surface, "wheel", wheel),
        Listener::new(surface, "pointerdown", down),
        Listener::new(surface, "pointermove", moved),
        Listener::new(surface, "pointerup", up.clone()),
        Listener::new(surface, "pointercancel", up),
    ]
}

impl Pointers {
    fn distance(&self) -> f64 {
        match self.down.as_slice() {
            [a, b, ..] => (a.1 - b.1).abs().max(8.0),
            _ => 0.0,
        }
    }

    fn move_to(
        &mut self,
        event: &PointerEvent,
        surface: &HtmlElement,
        width: f64,
    ) -> Option<Gesture> {
        let x = f64::from(event.client_x());
        let pointer = self
            .down
            .iter_mut()
            .find(|pointer| pointer.0 == event.pointer_id())?;
        let by = x - pointer.1;
        pointer.1 = x;
        self.moved += by.abs();
        if let [a, b, ..] = self.down.as_slice() {
            let middle = (a.1 + b.1) / 2.0;
            let spread = self.distance();
            let factor = self.spread / spread;
            self.spread = spread;
            let around = place(surface, middle as i32);
            return Some(Gesture::Zoom { factor, around });
        }
        (self.moved >= 4.0).then_some(Gesture::Pan { share: -by / width })
    }
}

/// A place of the window as a share of the surface's width.
fn place(surface: &HtmlElement, client_x: i32) -> f64 {
    let rect = surface.get_bounding_client_rect();
    ((f64::from(client_x) - rect.left()) / rect.width().max(1.0)).clamp(0.0, 1.0)
}
