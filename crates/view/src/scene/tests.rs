//! Scenes of real frames: that everything has its place, and alarms their cause.

use super::*;
use crate::frame;
use zswap_lab::{Player, Run, Scenario};

const LAYOUTS: [Layout; 2] = [Layout::Wide, Layout::Narrow];

/// Shows frames of all designs, in both layouts, to `check`.
fn each_scene(check: impl Fn(&crate::Frame, &Scene, &str)) {
    for context in ["shared", "split", "onstack"] {
        let mut scenario = Scenario::named("b1-1cpu").expect("built in");
        scenario.set("context", context).expect("a context");
        let mut run = Run::start(&scenario, 1).expect("a good scenario");
        // The first slow read of the shared design lies in it.
        run.advance(583_000_000).expect("no rule is broken");
        let recording = run.record(608_000_000).expect("no rule is broken");
        let count = recording.events.len();
        let mut player = Player::new(recording);
        for position in (0..count).step_by(count / 150) {
            player.seek(position);
            let (roster, state) = (&player.recording().roster, player.state());
            let frame = frame(roster, state, state.at_ns);
            for layout in LAYOUTS {
                let scene = stage(roster, &frame, layout);
                check(
                    &frame,
                    &scene,
                    &format!("{context} {layout:?} at {} ns", frame.at_ns),
                );
            }
        }
    }
}

fn texts(scene: &Scene) -> impl Iterator<Item = &Text> {
    scene.nodes.iter().filter_map(|node| match node {
        Node::Text(text) => Some(text),
        _ => None,
    })
}

fn tokens(scene: &Scene) -> impl Iterator<Item = &Token> {
    scene.nodes.iter().filter_map(|node| match node {
        Node::Token(token) => Some(token),
        _ => None,
    })
}

/// Left and right end of a text.
fn ends(text: &Text) -> (f32, f32) {
    let width = match text.class.split(' ').next() {
        Some("head" | "name") => measure::bold_width(&text.text, 14.0),
        Some("on-pill") => measure::bold_width(&text.text, 13.0),
        _ => measure::width(&text.text, 12.5),
    };
    match text.anchor {
        Anchor::Start => (text.x, text.x + width),
        Anchor::Middle => (text.x - width / 2.0, text.x + width / 2.0),
        Anchor::End => (text.x - width, text.x),
    }
}

#[test]
fn texts_stay_inside_and_off_each_other() {
    each_scene(|_, scene, place| {
        let texts: Vec<&Text> = texts(scene).collect();
        for (index, text) in texts.iter().enumerate() {
            let (left, right) = ends(text);
            assert!(left >= 0.0 && right <= scene.width, "{place}: {text:?}");
            assert!(text.y > 0.0 && text.y <= scene.height, "{place}: {text:?}");
            for other in &texts[..index] {
                let (other_left, other_right) = ends(other);
                let is_apart = (text.y - other.y).abs() > 10.0;
                assert!(
                    is_apart || right <= other_left || left >= other_right,
                    "{place}: {text:?} over {other:?}"
                );
            }
        }
    });
}

#[test]
fn tokens_have_one_body_each_and_keys_of_their_own() {
    each_scene(|frame, scene, place| {
        let mut keys: Vec<&str> = tokens(scene).map(|token| token.key.as_str()).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count, "{place}: {keys:?}");
        let bodies = tokens(scene).filter(|token| !token.class.contains("ghost"));
        assert!(bodies.count() <= frame.tasks.len(), "{place}");
        let running = frame.cpus[0].running.map(|id| format!("body {id}"));
        assert!(
            running.is_none_or(|key| keys.contains(&key.as_str())),
            "{place}: the running task is not drawn"
        );
    });
}

#[test]
fn alarm_is_drawn_when_there_is_one_and_only_then() {
    let is_alarm = |node: &Node| match node {
        Node::Rect(rect) => rect.class.contains("alarm") || rect.class == "pill",
        Node::Text(text) => text.class.contains("alarm") || text.class == "on-pill",
        Node::Path(path) => matches!(path.class.as_str(), "why" | "tip"),
        Node::Token(token) => token.class.contains("alarm"),
    };
    each_scene(|frame, scene, place| {
        let drawn = scene.nodes.iter().filter(|node| is_alarm(node)).count();
        assert_eq!(drawn > 0, frame.alarm.is_some(), "{place}");
        if let Some(alarm) = &frame.alarm {
            assert!(drawn >= 5, "{place}: an alarm with {drawn} marks");
            assert!(scene.label.contains(&alarm.words), "{place}");
        }
    });
}
