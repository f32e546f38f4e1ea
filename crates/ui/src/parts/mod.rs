//! The parts of the page, each a component of its own.

pub mod axis;
pub mod code;
pub mod controls;
pub mod header;
pub mod reads;
pub mod stage;
pub mod story;
pub mod timeline;
pub mod why;

use yew::prelude::*;
use zswap_lab::Role;

/// The sign of a role: its shape in its colour.
pub fn sign(role: Role, label: &str) -> Html {
    let shape = zswap_view::scene::role_class(role);
    html! { <span class={classes!("sign", shape)} aria-hidden="true">{label}</span> }
}
