//! The stage: the scene of `zswap_view` as SVG in the page.
//!
//! A token that keeps its key moves to its new place, so that it can be seen
//! who was picked and to whom a lock went. The style is set through the object
//! model: the content security policy forbids it as an attribute.

use std::rc::Rc;
use wasm_bindgen::JsCast;
use web_sys::SvgElement;
use yew::prelude::*;
use zswap_view::scene::{Node, Path, Rect, Scene, Text, Token};

/// What the stage shows.
#[derive(PartialEq, Properties)]
pub struct Props {
    /// The scene.
    pub scene: Rc<Scene>,
    /// Moves are not drawn out: they come too fast.
    pub is_still: bool,
}

/// The stage.
#[component]
pub fn StageView(props: &Props) -> Html {
    let root = use_node_ref();
    {
        let root = root.clone();
        use_effect_with(Rc::clone(&props.scene), move |_| place_tokens(&root));
    }
    let scene = &props.scene;
    let still = props.is_still.then_some("still");
    html! {
        <svg ref={root} class={classes!("scene", "stage", still)} role="img"
            aria-label={scene.label.clone()}
            viewBox={format!("0 0 {} {}", scene.width, scene.height)}>
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

fn draw_rect(rect: &Rect) -> Html {
    let number = |value: f32| format!("{value:.1}");
    html! {
        <rect class={rect.class.clone()} x={number(rect.x)} y={number(rect.y)}
            width={number(rect.w)} height={number(rect.h)} rx={number(rect.r)} />
    }
}

fn draw_text(text: &Text) -> Html {
    html! {
        <text class={text.class.clone()} x={format!("{:.1}", text.x)} y={format!("{:.1}", text.y)}
            text-anchor={text.anchor.name()}>{text.text.clone()}</text>
    }
}

fn draw_token(token: &Token) -> Html {
    html! {
        <g key={token.key.clone()} class={token.class.clone()} data-key={token.key.clone()}
            data-x={format!("{:.1}", token.x)} data-y={format!("{:.1}", token.y)}>
            <path class="shape" d={token.outline()} />
            <text y="4.5" text-anchor="middle">{token.label.clone()}</text>
        </g>
    }
}

/// Puts every token where the scene has it; the style sheet draws the way out.
fn place_tokens(root: &NodeRef) {
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
