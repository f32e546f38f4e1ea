//! The scene: what is drawn of a frame, as a list of shapes and texts.
//!
//! Invariants:
//! 1. A scene is plain data and holds no colour: shapes have classes, and
//!    `scene.css` says how these look. The page draws the same scene as
//!    [`to_svg`] writes.
//! 2. Everything in it comes from a [`Frame`](crate::Frame); the layout adds
//!    places and words, no facts.
//! 3. `alarm` in a class means: somebody waits for this, and it is not running.
//! 4. Every task has one body in a scene. Where it is named elsewhere, as the
//!    owner of a lock or as a waiter that no longer sleeps, it is a ghost.
//!
//! Left out: machines of more than one CPU; the first CPU is drawn.

mod context;
mod cpu;
pub mod measure;
mod palette;
mod pool;
mod stage;
mod svg;
#[cfg(test)]
mod tests;
pub mod units;
mod why_arrow;

pub use palette::{Palette, Theme};
pub use stage::{Layout, stage};
pub use svg::{STYLE, to_svg};

use serde::{Deserialize, Serialize};
use units::path;
use zswap_lab::Role;

/// What is drawn.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Scene {
    /// Width, in units.
    pub width: f32,
    /// Height, in units.
    pub height: f32,
    /// What it shows, in a sentence, for those who cannot see it.
    pub label: String,
    /// What is drawn, from back to front.
    pub nodes: Vec<Node>,
}

/// One shape or text of a scene.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Node {
    /// A rectangle.
    Rect(Rect),
    /// A line of text.
    Text(Text),
    /// A line or an area.
    Path(Path),
    /// A task.
    Token(Token),
}

/// A rectangle.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Rect {
    /// Class names, for the style sheet.
    pub class: String,
    /// Left edge.
    pub x: f32,
    /// Upper edge.
    pub y: f32,
    /// Width.
    pub w: f32,
    /// Height.
    pub h: f32,
    /// Radius of the corners.
    pub r: f32,
}

/// A line of text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Text {
    /// Class names, for the style sheet.
    pub class: String,
    /// Where it is anchored.
    pub x: f32,
    /// Its base line.
    pub y: f32,
    /// Which part of it is at `x`.
    pub anchor: Anchor,
    /// The text.
    pub text: String,
}

/// Which part of a text is at its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

impl Anchor {
    /// The value of the SVG attribute `text-anchor`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// A line or an area.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Path {
    /// Class names, for the style sheet.
    pub class: String,
    /// The value of the SVG attribute `d`.
    pub d: String,
}

/// A task: a circle for a reader, a square for a worker, a diamond for a
/// spinner, a hexagon for a kernel thread, with its short name in it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Token {
    /// What it is, unique in the scene. A token that keeps its key from one
    /// scene to the next has moved.
    pub key: String,
    /// Class names, for the style sheet.
    pub class: String,
    /// What the task is for; decides the shape.
    pub role: Role,
    /// Its short name.
    pub label: String,
    /// Centre.
    pub x: f32,
    /// Centre.
    pub y: f32,
    /// Half of the width of a worker's square; the others look as large.
    pub half: f32,
}

impl Token {
    /// The outline around the centre, as the SVG attribute `d`.
    #[must_use]
    pub fn outline(&self) -> String {
        let h = self.half;
        match self.role {
            Role::Reader => {
                let r = h * 1.1;
                path(
                    "M# 0 A# # 0 1 1 # 0 A# # 0 1 1 # 0 Z",
                    &[-r, r, r, r, r, r, -r],
                )
            }
            Role::Worker => {
                let (c, s) = (h * 0.32, h - h * 0.32);
                let (d, e, m) = (2.0 * s, -2.0 * s, -c);
                path(
                    "M# # h# q# 0 # # v# q0 # # # h# q# 0 # # v# q0 # # # Z",
                    &[-s, -h, d, c, c, c, d, c, m, c, e, m, m, m, e, m, c, m],
                )
            }
            Role::Spinner => {
                let r = h * 1.16;
                path("M0 # L# 0 L0 # L# 0 Z", &[-r, r, r, -r])
            }
            Role::Kthread => {
                let (r, s) = (h * 1.12, h * 0.56);
                path(
                    "M# 0 L# # L# # L# 0 L# # L# # Z",
                    &[-r, -s, -h, s, -h, r, s, h, -s, h],
                )
            }
        }
    }
}

/// The class that stands for a role.
#[must_use]
pub fn role_class(role: Role) -> &'static str {
    match role {
        Role::Reader => "reader",
        Role::Worker => "worker",
        Role::Spinner => "spinner",
        Role::Kthread => "kthread",
    }
}

/// An area of a scene that a part of it may use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Area {
    pub x: f32,
    pub y: f32,
    pub w: f32,
    pub h: f32,
}

impl Area {
    pub fn right(self) -> f32 {
        self.x + self.w
    }

    pub fn bottom(self) -> f32 {
        self.y + self.h
    }
}

impl Scene {
    pub(crate) fn rect(&mut self, class: &str, area: Area, r: f32) {
        self.nodes.push(Node::Rect(Rect {
            class: class.to_owned(),
            x: area.x,
            y: area.y,
            w: area.w,
            h: area.h,
            r,
        }));
    }

    pub(crate) fn text(&mut self, class: &str, at: (f32, f32), anchor: Anchor, text: String) {
        self.nodes.push(Node::Text(Text {
            class: class.to_owned(),
            x: at.0,
            y: at.1,
            anchor,
            text,
        }));
    }

    pub(crate) fn path(&mut self, class: &str, d: String) {
        self.nodes.push(Node::Path(Path {
            class: class.to_owned(),
            d,
        }));
    }

    /// The heading of an area: a bold text, and a quiet one at the right.
    pub(crate) fn heading(&mut self, area: Area, head: &str, note: &str) {
        let y = area.y - 9.0;
        self.text("head", (area.x, y), Anchor::Start, head.to_owned());
        let room = area.w - measure::bold_width(head, 14.0) - 12.0;
        let note = measure::fit(note, 12.5, room);
        self.text("note", (area.right(), y), Anchor::End, note);
    }
}
