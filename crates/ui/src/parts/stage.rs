//! The stage: the scene of `zswap_view` as SVG in the page.
//!
//! A token that keeps its key moves to its new place, so that it can be seen
//! who was picked and to whom a lock went. The style is set through the object
//! model: the content security policy forbids it as an attribute.

use wasm_bindgen::JsCast;
use web_sys::SvgElement;
use yew::prelude::*;
use zswap_view::scene::units::fixed;
use zswap_view::scene::{Node, Path, Rect, Scene, Text, Token};

/// The stage with a scene on it. Where moves come too fast, it `is_still`: they
/// are not drawn out.
pub fn stage_view(root: &NodeRef, scene: &Scene, is_still: bool) -> Html {
    let still = is_still.then_some("still");
    html! {
        <svg ref={root.clone()} class={classes!("scene", "stage", still)} role="img"
            aria-label={scene.label.clone()}
            viewBox={format!("0 0 {} {}", number(scene.width), number(scene.height))}>
            { for scene.nodes.iter().filter(|node| !matches!(node, Node::Token(_))).map(draw) }
            <g class="tokens">
                { for scene.nodes.iter().filter(|node| matches!(node, Node::Token(_))).map(draw) }
            </g>
        </svg>
    }
}

fn draw(node: &Node) -> Html {
    match node {
        Node::Rect(rect) => draw_rect(rect),
        Node::Text(text) => draw_text(text),
        Node::Path(Path { class, d }) => html! { <path class={class.clone()} d={d.clone()} /> },
        Node::Token(token) => draw_token(token),
    }
}

/// A number as an attribute.
fn number(value: f32) -> String {
    fixed(value.into(), 1)
}

fn draw_rect(rect: &Rect) -> Html {
    html! {
        <rect class={rect.class.clone()} x={number(rect.x)} y={number(rect.y)}
            width={number(rect.w)} height={number(rect.h)} rx={number(rect.r)} />
    }
}

fn draw_text(text: &Text) -> Html {
    html! {
        <text class={text.class.clone()} x={number(text.x)} y={number(text.y)}
            text-anchor={text.anchor.name()}>{text.text.clone()}</text>
    }
}

fn draw_token(token: &Token) -> Html {
    html! {
        <g key={token.key.clone()} class={token.class.clone()} data-key={token.key.clone()}
            data-x={number(token.x)} data-y={number(token.y)}>
            <path class="shape" d={token.outline()} />
            <text y="4.5" text-anchor="middle">{token.label.clone()}</text>
        </g>
    }
}

/// Puts every token where the scene has it; the style sheet draws the way out.
/// To be called when the scene has been rendered.
pub fn place_tokens(root: &NodeRef) {
    let tokens = root
        .cast::<SvgElement>()
        .map(|root| root.query_selector_all(".token"));
    let Some(Ok(tokens)) = tokens else {
        return;
    };
    for index in 0..tokens.length() {
        let Some(Ok(token)) = tokens.item(index).map(JsCast::dyn_into::<SvgElement>) else {
            continue;
        };
        let style = token.style();
        let is_new = style
            .get_property_value("transform")
            .unwrap_or_default()
            .is_empty();
        let place = |name| token.get_attribute(name).unwrap_or_default();
        let transform = format!("translate({}px, {}px)", place("data-x"), place("data-y"));
        // Setting fails for properties that can only be read.
        if is_new {
            let _ = style.set_property("transition", "none");
        }
        let _ = style.set_property("transform", &transform);
        if is_new {
            // Asking for the place makes the browser take it up without a move.
            let _ = token.get_bounding_client_rect();
            let _ = style.remove_property("transition");
        }
    }
}
