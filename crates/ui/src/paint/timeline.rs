//! Paints the lanes of the timeline, colour by colour.

use super::fresh;
use crate::parts::timeline::LANE_H;
use crate::protocol::WINDOW_NS;
use crate::session::View;
use std::rc::Rc;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};
use zswap_lab::TaskId;
use zswap_view::scene::{Palette, Theme, role_class};
use zswap_view::timeline::{Doing, Lane, Timeline};

/// Upper edge of a bar in its lane, and its height.
const BAR: (f64, f64) = (3.0, 12.0);
/// The same of the line that says who owns the mutex.
const HOLD: (f64, f64) = (16.5, 3.0);

struct Painter<'a> {
    context: &'a CanvasRenderingContext2d,
    palette: Palette,
    view: View,
    width: f64,
}

/// Paints what of the windows lies in view.
pub fn paint(canvas: &HtmlCanvasElement, timelines: &[Rc<Timeline>], view: View, theme: Theme) {
    let Some((context, width, height)) = fresh(canvas) else {
        return;
    };
    let painter = Painter {
        context: &context,
        palette: Palette::of(theme),
        view,
        width,
    };
    for timeline in timelines {
        painter.ticks(timeline, height);
        for (index, lane) in timeline.lanes.iter().enumerate() {
            painter.lane(lane, index as f64 * LANE_H);
        }
        painter.handoffs(timeline);
    }
    painter.missing(timelines, height);
}

impl Painter<'_> {
    fn x(&self, at_ns: f64) -> f64 {
        (at_ns - self.view.from_ns) / self.view.length() * self.width
    }

    /// Left edge and width of a part, or nothing if it is out of view. What is
    /// too short to be seen is drawn a little longer.
    fn span(&self, from_ns: u64, to_ns: u64, least: f64) -> Option<(f64, f64)> {
        let left = self.x(from_ns as f64).max(-1.0);
        let right = self.x(to_ns as f64).min(self.width + 1.0);
        // Windows follow each other without a seam.
        let overlap = if to_ns.is_multiple_of(WINDOW_NS) {
            0.7
        } else {
            0.0
        };
        let width = (right - left).max(least) + overlap;
        (right >= 0.0 && left <= self.width && right > left).then_some((left, width))
    }

    fn ticks(&self, timeline: &Timeline, height: f64) {
        if self.view.length() > 12e6 {
            return;
        }
        self.context.set_fill_style_str(self.palette.get("line"));
        for &at_ns in &timeline.ticks_ns {
            self.context
                .fill_rect(self.x(at_ns as f64), 0.0, 1.0, height);
        }
    }

    fn lane(&self, lane: &Lane, top: f64) {
        let context = self.context;
        let (role, fill) = match role_class(lane.role) {
            "reader" => ("reader", "reader-fill"),
            "worker" => ("worker", "worker-fill"),
            _ => ("spinner", "spinner-fill"),
        };
        self.hatch(lane, top);
        for (colour, wanted) in [(role, false), (role, true)] {
            context.set_fill_style_str(self.palette.get(colour));
            for part in &lane.segments {
                let Doing::Running { compressing } = part.doing else {
                    continue;
                };
                if compressing != wanted {
                    continue;
                }
                if let Some((left, width)) = self.span(part.from_ns, part.to_ns, 0.7) {
                    context.fill_rect(left, top + BAR.0, width, BAR.1);
                }
            }
        }
        self.compressing(lane, top, fill);
        self.holds(lane, top, role);
    }

    /// Where the (de)compressor works there is a lighter core, once there is
    /// room to see it.
    fn compressing(&self, lane: &Lane, top: f64, fill: &str) {
        self.context.set_fill_style_str(self.palette.get(fill));
        for part in &lane.segments {
            if part.doing != (Doing::Running { compressing: true }) {
                continue;
            }
            if let Some((left, width)) = self.span(part.from_ns, part.to_ns, 0.0)
                && width > 4.0
            {
                self.context
                    .fill_rect(left + 1.5, top + BAR.0 + 3.0, width - 3.0, BAR.1 - 6.0);
            }
        }
    }

    /// Slanted lines where the task sleeps on a lock.
    fn hatch(&self, lane: &Lane, top: f64) {
        let context = self.context;
        context.set_stroke_style_str(self.palette.get("hatch"));
        context.set_line_width(1.0);
        for part in &lane.segments {
            if part.doing != Doing::WaitsForLock {
                continue;
            }
            let Some((left, width)) = self.span(part.from_ns, part.to_ns, 0.7) else {
                continue;
            };
            context.save();
            context.begin_path();
            context.rect(left, top + BAR.0, width, BAR.1);
            context.clip();
            context.begin_path();
            // Lines of one grid over the whole lane, whatever part they are in.
            let mut x = (left / 5.0).floor() * 5.0 - BAR.1;
            while x < left + width {
                context.move_to(x, top + BAR.0 + BAR.1);
                context.line_to(x + BAR.1, top + BAR.0);
                x += 5.0;
            }
            context.stroke();
            context.restore();
        }
    }

    fn holds(&self, lane: &Lane, top: f64, role: &str) {
        for (colour, alarm) in [(role, false), ("alarm", true)] {
            self.context.set_fill_style_str(self.palette.get(colour));
            for hold in lane.holds.iter().filter(|hold| hold.alarm == alarm) {
                if let Some((left, width)) = self.span(hold.from_ns, hold.to_ns, 0.7) {
                    self.context.fill_rect(left, top + HOLD.0, width, HOLD.1);
                }
            }
        }
    }

    /// A dotted line from the one who gives a mutex to the one who gets it.
    fn handoffs(&self, timeline: &Timeline) {
        let context = self.context;
        let place = |task: TaskId| timeline.lanes.iter().position(|lane| lane.task == task);
        context.set_fill_style_str(self.palette.get("mut"));
        for handoff in &timeline.handoffs {
            let x = self.x(handoff.at_ns as f64);
            let (Some(from), Some(to)) = (place(handoff.from), place(handoff.to)) else {
                continue;
            };
            if !(0.0..=self.width).contains(&x) {
                continue;
            }
            let (first, last) = (from.min(to) as f64, from.max(to) as f64);
            let mut y = first * LANE_H + HOLD.0;
            while y < last * LANE_H + HOLD.0 {
                context.fill_rect(x - 0.6, y, 1.2, 2.0);
                y += 4.0;
            }
        }
    }

    /// A veil over what is not here yet.
    fn missing(&self, timelines: &[Rc<Timeline>], height: f64) {
        self.context.set_fill_style_str(self.palette.get("code"));
        let mut from = 0.0;
        for timeline in timelines {
            let left = self.x(timeline.from_ns as f64);
            if left > from + 0.5 {
                self.context.fill_rect(from, 0.0, left - from, height);
            }
            from = self.x(timeline.to_ns as f64).max(from);
        }
        if from < self.width - 0.5 {
            self.context.fill_rect(from, 0.0, self.width - from, height);
        }
    }
}
