//! A scene as an SVG file that needs nothing beside it.

use super::{Node, Palette, Path, Rect, Scene, Text, Theme, Token};
use core::fmt::Write;

/// The style sheet of scenes; its colours are variables of `palette.css`.
pub const STYLE: &str = include_str!("scene.css");

/// Writes a scene as an SVG file with its styles inside.
#[must_use]
pub fn to_svg(scene: &Scene, theme: Theme) -> String {
    let palette = Palette::of(theme);
    let (w, h) = (scene.width, scene.height);
    let label = escaped(&scene.label);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"scene\" viewBox=\"0 0 {w} {h}\" \
         width=\"{w}\" height=\"{h}\" role=\"img\" aria-label=\"{label}\">\n\
         <title>{label}</title>\n<style>\n{}</style>\n\
         <rect width=\"{w}\" height=\"{h}\" fill=\"{}\"/>\n",
        palette.resolve(STYLE),
        palette.get("bg"),
    );
    for node in &scene.nodes {
        match node {
            Node::Rect(rect) => push_rect(&mut svg, rect),
            Node::Text(text) => push_text(&mut svg, text),
            Node::Path(path) => push_path(&mut svg, path),
            Node::Token(token) => push_token(&mut svg, token),
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn push_rect(svg: &mut String, rect: &Rect) {
    let Rect {
        class,
        x,
        y,
        w,
        h,
        r,
    } = rect;
    push(
        svg,
        format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" \
             height=\"{h:.1}\" rx=\"{r:.1}\"/>\n"
        ),
    );
}

fn push_text(svg: &mut String, text: &Text) {
    let Text {
        class,
        x,
        y,
        anchor,
        text,
    } = text;
    let (anchor, text) = (anchor.name(), escaped(text));
    push(
        svg,
        format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" \
             text-anchor=\"{anchor}\">{text}</text>\n"
        ),
    );
}

fn push_path(svg: &mut String, path: &Path) {
    let Path { class, d } = path;
    push(svg, format_args!("<path class=\"{class}\" d=\"{d}\"/>\n"));
}

fn push_token(svg: &mut String, token: &Token) {
    let Token {
        class, label, x, y, ..
    } = token;
    let (outline, label) = (token.outline(), escaped(label));
    push(
        svg,
        format_args!(
            "<g class=\"{class}\" transform=\"translate({x:.1} {y:.1})\">\
             <path class=\"shape\" d=\"{outline}\"/>\
             <text y=\"4.5\" text-anchor=\"middle\">{label}</text></g>\n"
        ),
    );
}

fn push(svg: &mut String, text: core::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = svg.write_fmt(text);
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Anchor, Area};

    #[test]
    fn a_file_has_its_texts_escaped_and_its_colours_resolved() {
        let mut scene = Scene {
            width: 100.0,
            height: 50.0,
            label: "a \"b\" & c".to_owned(),
            nodes: Vec::new(),
        };
        let area = Area {
            x: 1.0,
            y: 2.0,
            w: 3.0,
            h: 4.0,
        };
        scene.rect("box", area, 2.0);
        scene.text("note", (1.0, 2.0), Anchor::End, "<b>".to_owned());
        let svg = to_svg(&scene, Theme::Dark);
        assert!(svg.contains("aria-label=\"a &quot;b&quot; &amp; c\""));
        assert!(svg.contains(">&lt;b&gt;</text>"));
        assert!(!svg.contains("var(") && svg.contains("#191f24"));
    }
}
