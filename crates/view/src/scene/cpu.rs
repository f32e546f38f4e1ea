//! A CPU with the task that it runs, and its run queue.

use super::stage::{Look, Stage};
use super::units::fixed;
use super::{Anchor, Area, measure, role_class};
use crate::{CpuFrame, Resched, Status, TaskFrame, in_words_signed_ns, nice_in_words};

/// The CPU: who runs, in which mode, and how much of the slice is used.
pub(crate) fn draw_cpu(stage: &mut Stage<'_>, cpu: &CpuFrame, area: Area) {
    let note = match cpu.resched {
        Some(Resched::Lazy) => "switch due by the next tick",
        Some(Resched::Full) => "switch due at once",
        None => "",
    };
    let head = format!("CPU {} runs", cpu.cpu);
    stage.scene.heading(area, &head, note);
    stage.scene.rect("box", area, 10.0);
    let middle = area.y + area.h / 2.0;
    let left = area.x + 92.0;
    let Some(id) = cpu.running else {
        let at = (area.x + 24.0, middle + 4.0);
        let words = "nothing: the CPU is idle".to_owned();
        stage.scene.text("note", at, Anchor::Start, words);
        return;
    };
    stage.token(id, Look::Body, "", (area.x + 48.0, middle), 21.0);
    let top = middle - 24.0;
    let right = area.right() - 20.0;
    let name = stage.name(id);
    stage.scene.text("name", (left, top), Anchor::Start, name);
    if let Some(task) = stage.task(id) {
        let nice = format!("nice {}", nice_in_words(task.nice));
        stage.scene.text("note", (right, top), Anchor::End, nice);
    }
    // That preemption is off is said where the compressor is drawn.
    let doing = cpu.mode.words().split(',').next().unwrap_or_default();
    stage
        .scene
        .text("note", (left, top + 19.0), Anchor::Start, doing.to_owned());
    draw_slice(
        stage,
        cpu,
        Area {
            x: left,
            y: top + 31.0,
            w: area.right() - left - 20.0,
            h: 5.0,
        },
    );
}

/// The bar of the slice, with the numbers below it.
fn draw_slice(stage: &mut Stage<'_>, cpu: &CpuFrame, bar: Area) {
    stage.scene.rect("back", bar, 2.5);
    let used = cpu.slice_used_ns as f32 / cpu.slice_ns.max(1) as f32;
    let w = (bar.w * used.clamp(0.0, 1.0)).max(1.5);
    let role = cpu.running.map_or("", |id| role_class(stage.role(id)));
    stage
        .scene
        .rect(&format!("bar {role}"), Area { w, ..bar }, 2.5);
    let ms = |ns: u64| fixed(ns as f64 / 1e6, 2);
    let (used_ms, slice_ms) = (ms(cpu.slice_used_ns), ms(cpu.slice_ns));
    let words = match cpu.slice_used_ns <= cpu.slice_ns {
        true => format!("{used_ms} of {slice_ms} ms slice"),
        // It was picked again at the end of each: nobody else was eligible.
        false => format!("{used_ms} ms; slice {slice_ms} ms"),
    };
    stage
        .scene
        .text("note", (bar.x, bar.y + 21.0), Anchor::Start, words);
}

/// The tasks in the run queue, the next by virtual deadline first.
pub(crate) fn draw_queue(stage: &mut Stage<'_>, cpu: &CpuFrame, area: Area) {
    stage
        .scene
        .heading(area, "Run queue", "by virtual deadline");
    stage.scene.rect("box", area, 10.0);
    if cpu.run_queue.is_empty() {
        let at = (area.x + 24.0, area.y + 30.0);
        let words = "nobody else wants to run".to_owned();
        stage.scene.text("note", at, Anchor::Start, words);
        return;
    }
    let count = cpu.run_queue.len();
    let row_h = ((area.h - 12.0) / count as f32).clamp(20.0, 44.0);
    let rows = (((area.h - 12.0) / row_h) as usize).min(count);
    for (index, &id) in cpu.run_queue.iter().take(rows).enumerate() {
        let row = Area {
            x: area.x + 6.0,
            y: area.y + 6.0 + index as f32 * row_h,
            w: area.w - 12.0,
            h: row_h,
        };
        if index + 1 == rows && rows < count {
            let words = format!("and {} more", count - index);
            let at = (row.x + 18.0, row.y + row_h / 2.0 + 4.0);
            stage.scene.text("note", at, Anchor::Start, words);
        } else if let Some(task) = stage.task(id).cloned() {
            draw_row(stage, &task, row);
        }
    }
}

fn draw_row(stage: &mut Stage<'_>, task: &TaskFrame, row: Area) {
    if task.alarm {
        stage.scene.rect("row alarm", row, 7.0);
    }
    // A delayed sleeper's body is in the queue of the lock it sleeps on.
    let look = match task.status {
        Status::Delayed if task.waits_for.is_some() => Look::Ghost,
        _ => Look::Body,
    };
    let tall = row.h >= 36.0;
    let half = if tall { 14.0 } else { 9.0 };
    let middle = row.y + row.h / 2.0;
    stage.token(task.id, look, "queued", (row.x + 22.0, middle), half);
    let (left, right) = (row.x + 46.0, row.right() - 8.0);
    let (name, words) = (class("name", task.alarm), class("note", task.alarm));
    let lag = format!("lag {}", in_words_signed_ns(task.lag_ns));
    let first = if tall { middle - 4.0 } else { middle + 4.0 };
    stage
        .scene
        .text(name, (left, first), Anchor::Start, task.name.clone());
    stage.scene.text("note", (right, first), Anchor::End, lag);
    if tall {
        let eligible = if task.eligible {
            "may run"
        } else {
            "not eligible"
        };
        let room = right - left - measure::width(eligible, 12.5) - 8.0;
        let status = measure::fit(row_words(task), 12.5, room);
        stage
            .scene
            .text(words, (left, middle + 12.0), Anchor::Start, status);
        stage.scene.text(
            "note",
            (right, middle + 12.0),
            Anchor::End,
            eligible.to_owned(),
        );
    }
}

/// The class, marked if it is part of an alarm.
fn class(class: &'static str, alarm: bool) -> &'static str {
    match (class, alarm) {
        ("name", true) => "name alarm",
        ("note", true) => "note alarm",
        _ => class,
    }
}

fn row_words(task: &TaskFrame) -> &'static str {
    match task.status {
        _ if task.alarm => "owns the lock",
        Status::Preempted if !task.holds.is_empty() => "owns a lock",
        Status::Preempted => "interrupted",
        Status::Runnable => "ready",
        Status::Delayed => "asleep, in debt",
        _ => "",
    }
}
