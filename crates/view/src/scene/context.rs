//! The compression context of a CPU: its mutexes with owner and queue, and the
//! compressor's stream lock.

use super::stage::{Layout, Look, Stage};
use super::units::path;
use super::{Anchor, Area, measure};
use crate::{LockFrame, Waiter, WaiterStatus, in_words_ns};
use zswap_lab::{Context, LockKind, Roster};

const MUTEX_H: f32 = 116.0;
const ABSENT_H: f32 = 44.0;
const STREAM_H: f32 = 34.0;
/// A row is a little lower where there are two.
const ONE_OF_TWO_H: f32 = 106.0;

/// How high it is in the roster's design.
pub(crate) fn height(roster: &Roster) -> f32 {
    STREAM_H
        + match roster.context {
            Context::Shared => MUTEX_H,
            Context::Split => 2.0 * ONE_OF_TWO_H,
            Context::Onstack => ONE_OF_TWO_H + ABSENT_H,
        }
}

/// Draws it.
pub(crate) fn draw(stage: &mut Stage<'_>, area: Area) {
    let note = match stage.roster.context {
        Context::Shared => "one mutex for stores and loads",
        Context::Split => "a mutex for each direction",
        Context::Onstack => "loads take no mutex",
    };
    stage.scene.heading(area, "Compression context", note);
    stage.scene.rect("box", area, 10.0);
    let frame = stage.frame;
    let mutexes = frame
        .locks
        .iter()
        .filter(|lock| lock.kind == LockKind::Mutex);
    let two = stage.roster.context != Context::Shared;
    let mut y = area.y;
    for (index, lock) in mutexes.take(1 + usize::from(two)).enumerate() {
        let is_second = index == 1;
        if is_second && stage.loads_take_no_mutex() {
            draw_absent(
                stage,
                Area {
                    y,
                    h: ABSENT_H,
                    ..area
                },
            );
            y += ABSENT_H;
            continue;
        }
        let title = match (two, is_second) {
            (false, _) => "mutex",
            (true, false) => "compressing",
            (true, true) => "decompressing",
        };
        let h = if two { ONE_OF_TWO_H } else { MUTEX_H };
        if is_second {
            draw_rule(stage, Area { y, h, ..area });
        }
        draw_mutex(stage, lock, title, Area { y, h, ..area });
        y += h;
    }
    if let Some(stream) = frame.locks.iter().find(|lock| lock.kind != LockKind::Mutex) {
        draw_stream(
            stage,
            stream,
            Area {
                y: area.bottom() - STREAM_H,
                h: STREAM_H,
                ..area
            },
        );
    }
}

fn draw_absent(stage: &mut Stage<'_>, row: Area) {
    draw_rule(stage, row);
    let words = "decompressing: no mutex, the request is on the stack";
    let at = (row.x + 18.0, row.y + row.h / 2.0 + 4.0);
    let words = measure::fit(words, 12.5, row.w - 30.0);
    stage.scene.text("note", at, Anchor::Start, words);
}

fn draw_rule(stage: &mut Stage<'_>, row: Area) {
    let (x, y, w) = (row.x, row.y, row.w);
    stage.scene.path("rule", path("M# # h#", &[x, y, w]));
}

fn draw_mutex(stage: &mut Stage<'_>, lock: &LockFrame, title: &str, row: Area) {
    let slot_w = if stage.layout == Layout::Wide {
        104.0
    } else {
        88.0
    };
    let slot = Area {
        x: row.x + 16.0,
        y: row.y + 26.0,
        w: slot_w,
        h: row.h - 38.0,
    };
    let left = slot.x;
    stage.scene.text(
        "note",
        (left, row.y + 18.0),
        Anchor::Start,
        title.to_owned(),
    );
    draw_owner(stage, lock, slot);
    draw_waiters(
        stage,
        lock,
        Area {
            x: slot.right() + 10.0,
            y: row.y,
            w: row.right() - slot.right() - 16.0,
            h: row.h,
        },
    );
}

fn draw_owner(stage: &mut Stage<'_>, lock: &LockFrame, slot: Area) {
    let middle = slot.x + slot.w / 2.0;
    let Some(owner) = lock.owner else {
        stage.scene.rect("slot free", slot, 8.0);
        let at = (middle, slot.y + slot.h / 2.0 + 4.0);
        stage
            .scene
            .text("note", at, Anchor::Middle, "free".to_owned());
        return;
    };
    let (class, words) = match lock.alarm {
        true => ("slot alarm", "note alarm"),
        false => ("slot", "note"),
    };
    stage.scene.rect(class, slot, 8.0);
    let y = slot.y + slot.h / 2.0 - 8.0;
    stage.token(
        owner,
        Look::Ghost,
        &format!("owner {}", lock.id),
        (middle, y),
        17.0,
    );
    let since = in_words_ns(stage.frame.at_ns.saturating_sub(lock.owner_since_ns));
    let since = match lock.handed_over {
        true => "handed over".to_owned(),
        false => format!("for {since}"),
    };
    stage
        .scene
        .text(words, (middle, slot.bottom() - 8.0), Anchor::Middle, since);
}

fn draw_waiters(stage: &mut Stage<'_>, lock: &LockFrame, area: Area) {
    let words = match (lock.queue.is_empty(), lock.handoff_wanted) {
        (true, _) => "nobody waits",
        (false, false) => "waiting, first come first served",
        (false, true) => "waiting; the first has asked to be handed the lock",
    };
    let at = (area.x + 4.0, area.y + 18.0);
    let words = measure::fit(words, 12.5, area.w - 6.0);
    stage.scene.text("note", at, Anchor::Start, words);
    let count = lock.queue.len();
    if count == 0 {
        return;
    }
    let widest = if stage.layout == Layout::Wide {
        84.0
    } else {
        62.0
    };
    let room = (area.w / 58.0) as usize;
    let step = (area.w / count.min(room) as f32).min(widest);
    let y = area.y + area.h / 2.0 - 2.0;
    for (index, waiter) in lock.queue.iter().take(room).enumerate() {
        let x = area.x + step * (index as f32 + 0.5);
        if index + 1 == room && count > room {
            let more = format!("{} more", count - index);
            stage.scene.text("note", (x, y + 4.0), Anchor::Middle, more);
            break;
        }
        draw_waiter(stage, lock, waiter, (x, y), step);
        if index > 0 {
            let gap = step - 46.0;
            stage.scene.path(
                "link",
                path("M# # h#", &[x - step / 2.0 - gap / 2.0, y, gap]),
            );
        }
    }
}

fn draw_waiter(
    stage: &mut Stage<'_>,
    lock: &LockFrame,
    waiter: &Waiter,
    at: (f32, f32),
    step: f32,
) {
    let (look, words) = match waiter.status {
        WaiterStatus::Asleep => (Look::Body, "asleep"),
        WaiterStatus::Woken => (Look::Ghost, "woken"),
        WaiterStatus::WokenInVain => (Look::Ghost, "woken, lost"),
    };
    let (x, y) = at;
    stage.token(waiter.task, look, &format!("waiter {}", lock.id), at, 17.0);
    let since = stage.frame.at_ns.saturating_sub(waiter.since_ns);
    stage
        .scene
        .text("note", (x, y + 34.0), Anchor::Middle, in_words_ns(since));
    let words = measure::fit(words, 12.5, step);
    stage
        .scene
        .text("note", (x, y + 48.0), Anchor::Middle, words);
    stage.waiters.push((waiter.task, x, y));
}

/// The stream lock is held with preemption off, so nobody ever queues on it on
/// one CPU: one line is enough.
fn draw_stream(stage: &mut Stage<'_>, lock: &LockFrame, strip: Area) {
    draw_rule(stage, strip);
    let middle = strip.y + strip.h / 2.0;
    let head = "compressor";
    stage.scene.text(
        "note",
        (strip.x + 16.0, middle + 4.0),
        Anchor::Start,
        head.to_owned(),
    );
    let left = strip.x + 104.0;
    match lock.owner {
        Some(owner) => {
            stage.token(owner, Look::Ghost, "stream", (left, middle), 9.5);
            let words = format!("{} works, preemption off", stage.name(owner));
            let words = measure::fit(&words, 12.5, strip.right() - left - 26.0);
            stage
                .scene
                .text("note", (left + 20.0, middle + 4.0), Anchor::Start, words);
        }
        None => {
            let words = "idle: preemption is possible";
            let words = measure::fit(words, 12.5, strip.right() - left);
            stage
                .scene
                .text("note", (left - 8.0, middle + 4.0), Anchor::Start, words);
        }
    }
}
