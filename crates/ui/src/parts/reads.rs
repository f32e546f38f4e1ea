//! Every timed read of the run as a dot, and what they come to in words.

use crate::field::{Field, HIGHEST_NS, SLOW_NS, height};
use crate::paint;
use crate::parts::axis::{percent, percent_of};
use crate::protocol::{Progress, SlimRead};
use crate::tag::{Tag, tag, with_class};
use std::rc::Rc;
use web_sys::{HtmlCanvasElement, HtmlElement};
use yew::{Callback, MouseEvent, NodeRef};
use zswap_view::in_words_ns;
use zswap_view::scene::Theme;
use zswap_view::scene::units::{count, fixed};

/// The dots, as the painter takes them.
#[derive(Clone, Debug)]
pub struct Dots {
    /// Column, row, how many reads.
    pub cells: Rc<Vec<(usize, usize, u32)>>,
    /// The reads that are drawn one by one.
    pub rare: Rc<Vec<SlimRead>>,
    /// The end of the run, in ns.
    pub end_ns: u64,
    /// How many reads they are: dots are only ever added within a run.
    reads: u64,
}

impl PartialEq for Dots {
    fn eq(&self, other: &Dots) -> bool {
        self.reads == other.reads && self.end_ns == other.end_ns
    }
}

impl Dots {
    /// The dots of a field.
    pub fn of(field: &Field, end_ns: u64) -> Dots {
        Dots {
            cells: Rc::new(field.cells().collect()),
            rare: Rc::new(field.rare().collect()),
            end_ns,
            reads: field.count(),
        }
    }

    /// The rare read closest to a point, with both coordinates from 0 to 1.
    fn nearest(&self, x: f64, y: f64, aspect: f64) -> Option<SlimRead> {
        let distance = |read: &SlimRead| {
            let dx = (read.begin_ns as f64 / self.end_ns.max(1) as f64 - x) * aspect;
            let dy = height(read.latency_ns as f64) - y;
            (dx * dx + dy * dy).sqrt()
        };
        let near = self.rare.iter().map(|read| (distance(read), *read));
        let near = near.min_by(|a, b| a.0.total_cmp(&b.0));
        near.filter(|(distance, _)| *distance < 0.12)
            .map(|(_, read)| read)
    }
}

/// The elements that are painted and measured, and what they were painted of.
#[derive(Default)]
pub struct Surface {
    canvas: NodeRef,
    frame: NodeRef,
    painted: Option<(Dots, Theme, u32, i32)>,
}

impl Surface {
    /// Paints the dots of a run, unless they are there already; to be called
    /// when the page has been rendered.
    pub fn paint(&mut self, dots: &Dots, theme: Theme, run: u32) {
        let wanted = Some((dots.clone(), theme, run, width()));
        if let Some(canvas) = self.canvas.cast::<HtmlCanvasElement>()
            && self.painted != wanted
        {
            paint::dots::paint(&canvas, dots, theme);
            self.painted = wanted;
        }
    }
}

/// What is shown and told.
pub struct Props<'a> {
    /// Where.
    pub surface: &'a Surface,
    /// The dots.
    pub cells: &'a Dots,
    /// Reads so far.
    pub count: u64,
    /// Reads over 10 ms so far.
    pub slow: u64,
    /// The slowest reads, slowest first.
    pub slowest: Vec<SlimRead>,
    /// How far the pass is.
    pub progress: &'a Progress,
    /// The time shown, in ns.
    pub at_ns: u64,
    /// Go to a read.
    pub on_open: Callback<SlimRead>,
    /// Go to a moment.
    pub on_seek: Callback<u64>,
}

/// The dots with their axis, and the words.
pub fn reads_view(props: &Props<'_>) -> Tag {
    let Surface { canvas, frame, .. } = props.surface;
    let scale = LINES.iter().rev().map(|&(_, words)| tag("li").text(words));
    let surface = with_class("div", "surface")
        .at(frame)
        .on_click(clicked(props))
        .child(tag("canvas").at(canvas))
        .child(overlay(props));
    let jump = |&read: &SlimRead| {
        let at_s = fixed(read.begin_ns as f64 / 1e9, 2);
        tag("button")
            .set("type", "button")
            .set("data-begin-ns", read.begin_ns.to_string())
            .set("data-latency-ns", read.latency_ns.to_string())
            .on_click(props.on_open.reform(move |_| read))
            .child(tag("b").text(in_words_ns(read.latency_ns)))
            .text(format!(" at {at_s} s"))
    };
    let hint = "each dot is a read; higher took longer, ten times per line";
    let title = tag("h2").text("Every read of the run");
    let dots = with_class("div", "dots")
        .child(tag("ul").set("aria-hidden", "true").children(scale))
        .child(surface);
    let jumps = with_class("div", "jumps")
        .set("role", "group")
        .set("aria-label", "The slowest reads")
        .children(props.slowest.iter().map(jump));
    with_class("section", "reads")
        .set("aria-label", "All reads")
        .child(title.child(tag("small").text(hint)))
        .child(dots)
        .child(with_class("p", "sum").text(sum(props)))
        .child(jumps)
}

/// The lines of the scale, from the bottom.
const LINES: [(f64, &str); 4] = [
    (1e4, "10 µs"),
    (1e5, "100 µs"),
    (1e6, "1 ms"),
    (1e7, "10 ms"),
];

fn width() -> i32 {
    let width = crate::dom::window().and_then(|window| window.inner_width().ok()?.as_f64());
    width.unwrap_or(0.0) as i32
}

/// Goes to the read closest to the click, or else to the moment.
fn clicked(props: &Props<'_>) -> Callback<MouseEvent> {
    let surface = props.surface.frame.clone();
    let (dots, on_open, on_seek) = (
        props.cells.clone(),
        props.on_open.clone(),
        props.on_seek.clone(),
    );
    Callback::from(move |event: MouseEvent| {
        let Some(surface) = surface.cast::<HtmlElement>() else {
            return;
        };
        let rect = surface.get_bounding_client_rect();
        let x = (f64::from(event.client_x()) - rect.left()) / rect.width().max(1.0);
        let y = 1.0 - (f64::from(event.client_y()) - rect.top()) / rect.height().max(1.0);
        match dots.nearest(x, y, rect.width() / rect.height().max(1.0)) {
            Some(read) => on_open.emit(read),
            None => on_seek.emit((x.clamp(0.0, 1.0) * dots.end_ns as f64) as u64),
        }
    })
}

/// Lines, cursor, and a ring around the slowest read.
fn overlay(props: &Props<'_>) -> Tag {
    let end = props.cells.end_ns as f64;
    let y = |ns: f64| percent_of(1.0 - height(ns));
    let cursor = percent(props.at_ns as f64, 0.0, end);
    let line = |class, x: (String, String), y: (String, String)| {
        with_class("line", class)
            .set("x1", x.0)
            .set("x2", x.1)
            .set("y1", y.0)
            .set("y2", y.1)
    };
    let across = || ("0".to_owned(), "100%".to_owned());
    let grid = LINES.map(|(ns, _)| line("grid", across(), (y(ns), y(ns))));
    let slowest = props.slowest.first().map(|read| {
        let share = read.begin_ns as f64 / end.max(1.0);
        let x = percent(read.begin_ns as f64, 0.0, end);
        let (anchor, shift) = if share > 0.6 {
            ("end", "-11")
        } else {
            ("start", "11")
        };
        let at = y((read.latency_ns as f64).min(HIGHEST_NS));
        let ring = with_class("circle", "ring")
            .set("cx", x.clone())
            .set("cy", at.clone())
            .set("r", "6.5");
        let label = with_class("text", "label")
            .set("x", x)
            .set("y", at)
            .set("dx", shift)
            .set("dy", "4")
            .set("text-anchor", anchor)
            .text(format!("slowest: {}", in_words_ns(read.latency_ns)));
        tag("g").child(ring).child(label)
    });
    with_class("svg", "overlay")
        .set("aria-hidden", "true")
        .children(grid)
        .child(line("cursor", (cursor.clone(), cursor), across()))
        .maybe(slowest)
}

/// What the reads come to, in a few words.
fn sum(props: &Props<'_>) -> String {
    let [p50, p99, p999] = props.progress.percentiles_ns.map(in_words_ns);
    let at_s = fixed(props.progress.at_ns as f64 / 1e9, 1);
    let reads = count(props.count);
    let (Some(slowest), true) = (props.slowest.first(), props.progress.at_ns > 0) else {
        return format!("{reads} reads so far.");
    };
    let slow_ms = SLOW_NS / 1_000_000;
    let slow = match props.slow {
        0 => "None".to_owned(),
        slow => count(slow),
    };
    format!(
        "{reads} reads in {at_s} s. Half took at most {p50}, 99 of 100 at most {p99}, 999 of 1000 \
         at most {p999}. The slowest took {}. {slow} took more than {slow_ms} ms.",
        in_words_ns(slowest.latency_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_click_finds_the_dot_it_meant() {
        let slow = SlimRead {
            begin_ns: 30_000_000,
            latency_ns: 20_000_000,
        };
        let mut field = Field::default();
        field.extend(
            &[
                SlimRead {
                    begin_ns: 0,
                    latency_ns: 9_000,
                },
                slow,
            ],
            100_000_000,
        );
        let dots = Dots::of(&field, 100_000_000);
        assert_eq!(dots.nearest(0.31, height(19e6), 4.0), Some(slow));
        assert_eq!(dots.nearest(0.0, height(9e3), 4.0), None);
    }
}
