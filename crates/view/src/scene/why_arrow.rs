//! The arrow of an alarm: from the waiter to the owner of its lock, and from
//! there to the task that runs instead.

use super::stage::{Layout, Stage};
use super::units::path;
use super::{Anchor, Area, Scene, measure};

const PILL_H: f32 = 26.0;
/// Size of the sentence.
const SIZE: f32 = 13.0;
/// From one line of it to the next.
const LINE_H: f32 = 16.0;

/// Draws it, if there is an alarm. `pill` is the left end and the middle of the
/// sentence.
pub(crate) fn draw_why(stage: &mut Stage<'_>, queue: Area, cpu: Area, pill: (f32, f32)) {
    let Some(alarm) = stage.frame.alarm.clone() else {
        return;
    };
    let room = stage.scene.width - pill.0 - 6.0;
    let lines = lines(&alarm.words, room - 26.0);
    let widths = lines.iter().map(|line| measure::bold_width(line, SIZE));
    let h = PILL_H + LINE_H * (lines.len() - 1) as f32;
    let pill = Area {
        x: pill.0,
        y: pill.1 - h / 2.0,
        w: (widths.fold(0.0, f32::max) + 26.0).min(room),
        h,
    };
    draw_to_pill(stage, alarm.waiter, pill);
    if let Some(owner) = stage.body(alarm.owner) {
        match stage.layout {
            Layout::Wide => to_owner_wide(&mut stage.scene, pill, queue, owner),
            Layout::Narrow => to_owner_narrow(&mut stage.scene, pill, queue, owner),
        }
        let running = stage.frame.cpus.first().and_then(|cpu| cpu.running);
        if let Some(running) = running.and_then(|id| stage.body(id)) {
            to_running(&mut stage.scene, owner, running, cpu);
        }
    }
    stage.scene.rect("pill", pill, PILL_H / 2.0);
    for (index, line) in lines.into_iter().enumerate() {
        let y = pill.y + PILL_H / 2.0 + 4.4 + LINE_H * index as f32;
        let at = (pill.x + pill.w / 2.0, y);
        stage.scene.text("on-pill", at, Anchor::Middle, line);
    }
}

/// The sentence in one line, or in two where there is too little room for one.
fn lines(words: &str, room: f32) -> Vec<String> {
    let parts = match words.split_once(',') {
        Some((first, second)) if measure::bold_width(words, SIZE) > room => {
            vec![format!("{first},"), second.trim_start().to_owned()]
        }
        _ => vec![words.to_owned()],
    };
    let fitted = parts.iter();
    fitted
        .map(|part| measure::fit(part, SIZE * 1.16, room))
        .collect()
}

/// From the waiter's place in the queue to the sentence.
fn draw_to_pill(stage: &mut Stage<'_>, waiter: zswap_lab::TaskId, pill: Area) {
    let place = stage.waiters.iter().find(|place| place.0 == waiter);
    let Some(&(_, x, y)) = place else {
        return;
    };
    let to = x.min(pill.right() - 16.0).max(pill.x + 16.0);
    let d = match stage.layout {
        Layout::Wide => {
            let (from, end) = (y + 53.0, pill.y);
            let bend = (end - from) * 0.6;
            path(
                "M# # C# # # # # #",
                &[x, from, x, from + bend, to, end - bend, to, end],
            )
        }
        Layout::Narrow => {
            let (from, end) = (y - 21.0, pill.bottom());
            let bend = (from - end) * 0.6;
            path(
                "M# # C# # # # # #",
                &[x, from, x, from - bend, to, end + bend, to, end],
            )
        }
    };
    stage.scene.path("why", d);
}

fn to_owner_wide(scene: &mut Scene, pill: Area, queue: Area, owner: (f32, f32)) {
    let (x, y) = (pill.x, pill.y + PILL_H / 2.0);
    let end = (queue.right() + 2.0, owner.1);
    let middle = (x + end.0) / 2.0;
    scene.path(
        "why",
        path(
            "M# # C# # # # # #",
            &[x, y, middle, y, middle, end.1, end.0 + 7.0, end.1],
        ),
    );
    tip(scene, end, (-1.0, 0.0));
}

fn to_owner_narrow(scene: &mut Scene, pill: Area, queue: Area, owner: (f32, f32)) {
    let x = owner.0;
    let end = queue.bottom().min(owner.1 + 20.0) + 2.0;
    let start = pill.y;
    scene.path("why", path("M# # V#", &[x, start, end + 7.0]));
    tip(scene, (x, end), (0.0, -1.0));
}

/// From the owner to the task that has the CPU instead of it, around the left
/// of whoever is queued between them.
fn to_running(scene: &mut Scene, owner: (f32, f32), running: (f32, f32), cpu: Area) {
    let from = (owner.0 - 17.0, owner.1);
    let end = (running.0 - 26.0, running.1);
    let bend = cpu.x - 20.0;
    scene.path(
        "why",
        path(
            "M# # C# # # # # #",
            &[
                from.0,
                from.1,
                bend,
                from.1,
                bend,
                end.1,
                end.0 - 7.0,
                end.1,
            ],
        ),
    );
    tip(scene, end, (1.0, 0.0));
}

/// The head of an arrow that points in a direction along an axis.
fn tip(scene: &mut Scene, at: (f32, f32), direction: (f32, f32)) {
    let ((x, y), (dx, dy)) = (at, direction);
    let base = (x - 9.0 * dx, y - 9.0 * dy);
    let side = (5.0 * dy, 5.0 * dx);
    scene.path(
        "tip",
        path(
            "M# # L# # L# # Z",
            &[
                x,
                y,
                base.0 + side.0,
                base.1 + side.1,
                base.0 - side.0,
                base.1 - side.1,
            ],
        ),
    );
}
