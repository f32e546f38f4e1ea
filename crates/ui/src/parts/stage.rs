//! The stage: the scene of `zswap_view` as SVG in the page.
//!
//! A token that keeps its key moves to its new place, so that it can be seen
//! who was picked and to whom a lock went. The style is set through the object
//! model: the content security policy forbids it as an attribute.

use crate::tag::{Tag, class_if, tag, with_class};
use wasm_bindgen::JsCast;
use web_sys::SvgElement;
use yew::NodeRef;
use zswap_view::scene::units::fixed;
use zswap_view::scene::{Node, Path, Rect, Scene, Text, Token};

/// The stage with a scene on it. Where moves come too fast, it `is_still`: they
/// are not drawn out.
pub fn stage_view(root: &NodeRef, scene: &Scene, is_still: bool) -> Tag {
    let (width, height) = (number(scene.width), number(scene.height));
    let tokens = |is_token: bool| {
        let nodes = scene.nodes.iter();
        nodes.filter(move |node| matches!(node, Node::Token(_)) == is_token)
    };
    tag("svg")
        .at(root)
        .class(&["scene", "stage", class_if(is_still, "still")])
        .set("role", "img")
        .set("aria-label", scene.label.clone())
        .set("viewBox", format!("0 0 {width} {height}"))
        .children(tokens(false).map(draw))
        // Keys are looked at only where all children of a list have one.
        .child(with_class("g", "tokens").keyed(tokens(true).map(draw)))
}

fn draw(node: &Node) -> Tag {
    match node {
        Node::Rect(rect) => draw_rect(rect),
        Node::Text(text) => draw_text(text),
        Node::Path(Path { class, d }) => tag("path").class(&[class]).set("d", d.clone()),
        Node::Token(token) => draw_token(token),
    }
}

/// A number as an attribute.
fn number(value: f32) -> String {
    fixed(value.into(), 1)
}

fn draw_rect(rect: &Rect) -> Tag {
    tag("rect")
        .class(&[&rect.class])
        .set("x", number(rect.x))
        .set("y", number(rect.y))
        .set("width", number(rect.w))
        .set("height", number(rect.h))
        .set("rx", number(rect.r))
}

fn draw_text(text: &Text) -> Tag {
    tag("text")
        .class(&[&text.class])
        .set("x", number(text.x))
        .set("y", number(text.y))
        .set("text-anchor", text.anchor.name())
        .text(text.text.clone())
}

fn draw_token(token: &Token) -> Tag {
    let shape = with_class("path", "shape").set("d", token.outline());
    let label = tag("text").set("y", "4.5").set("text-anchor", "middle");
    tag("g")
        .key(&token.key)
        .class(&[&token.class])
        .set("data-key", token.key.clone())
        .set("data-x", number(token.x))
        .set("data-y", number(token.y))
        .child(shape)
        .child(label.text(token.label.clone()))
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
