//! The parts of the page: functions from what is to be seen to elements. None
//! has a state of its own; the application keeps what outlives a rendering.

pub mod axis;
pub mod code;
pub mod controls;
pub mod header;
pub mod reads;
pub mod stage;
pub mod story;
pub mod timeline;
pub mod why;

use crate::tag::{Tag, tag};
use zswap_lab::Role;

/// The sign of a role: its shape in its colour.
pub fn sign(role: Role, label: &str) -> Tag {
    let shape = zswap_view::scene::role_class(role);
    let sign = tag("span").class(&["sign", shape]);
    sign.set("aria-hidden", "true").text(label.to_owned())
}
