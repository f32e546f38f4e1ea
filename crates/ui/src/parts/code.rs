//! The code that runs: the path source around the lines that tasks are at.

use crate::tag::{Tag, class_if, list, tag, with_class};
use yew::Html;
use yew::virtual_dom::VText;
use zswap_lab::{TaskId, source_of};
use zswap_view::scene::role_class;
use zswap_view::{Frame, TaskFrame, sort_few};

/// Lines shown before and after one that a task is at.
const AROUND: u32 = 3;
/// So many places at most.
const PLACES: usize = 2;

/// A stretch of a file.
#[derive(PartialEq)]
struct Place {
    file: String,
    from: u32,
    to: u32,
}

/// The code pane: the line of the task `subject` comes first.
pub fn code(frame: &Frame, subject: TaskId) -> Tag {
    let places = places(frame, subject);
    let nowhere = || tag("p").text("None of these tasks is in zswap's code now.");
    with_class("section", "code")
        .set("aria-label", "The code that runs")
        .child(tag("h2").text("The code that runs"))
        .maybe(places.is_empty().then(nowhere))
        .children(places.iter().map(|place| draw_place(frame, place, subject)))
}

/// The places to show: that of the subject, then that of an alarm's owner, then
/// that of the running task.
fn places(frame: &Frame, subject: TaskId) -> Vec<Place> {
    let owner = frame.alarm.as_ref().map(|alarm| alarm.owner);
    let running = frame.cpus.iter().find_map(|cpu| cpu.running);
    let mut places: Vec<Place> = Vec::new();
    for id in [Some(subject), owner, running].into_iter().flatten() {
        let line = frame
            .tasks
            .get(id.index())
            .and_then(|task| task.line.as_ref());
        let Some(line) = line.filter(|line| source_of(&line.file).is_some()) else {
            continue;
        };
        let (from, to) = (line.line.saturating_sub(AROUND).max(1), line.line + AROUND);
        let touching = places
            .iter_mut()
            .find(|place| place.file == line.file && from <= place.to + 2 && to + 2 >= place.from);
        match touching {
            Some(place) => {
                place.from = place.from.min(from);
                place.to = place.to.max(to);
            }
            None => places.push(Place {
                file: line.file.clone(),
                from,
                to,
            }),
        }
    }
    places.truncate(PLACES);
    places
}

fn draw_place(frame: &Frame, place: &Place, subject: TaskId) -> Tag {
    let source = source_of(&place.file).unwrap_or_default();
    let name = place.file.rsplit('/').next().unwrap_or_default();
    let skipped = place.from as usize - 1;
    let count = (place.to - place.from) as usize + 1;
    let lines: Vec<&str> = source.lines().skip(skipped).take(count).collect();
    let indent = lines.iter().filter(|line| !line.trim().is_empty());
    let indent = indent
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let lines = (place.from..).zip(lines).map(|(number, line)| {
        let line = line.get(indent..).unwrap_or_default();
        draw_line(frame, place, subject, number, line)
    });
    let listing = with_class("div", "listing")
        .set("tabindex", "0")
        .set("role", "region")
        .set("aria-label", format!("Source of {name}"))
        .children(lines);
    let name = name.to_owned();
    tag("figure")
        .child(tag("figcaption").text(name))
        .child(listing)
}

/// The tasks at a line, the subject first, then those of an alarm; of many the
/// rest as a number.
fn markers(mut here: Vec<&TaskFrame>, subject: TaskId) -> Tag {
    sort_few(&mut here, |task| (task.id != subject, !task.alarm));
    let shown = if here.len() > 2 { 1 } else { 2 };
    let rest = here.len().saturating_sub(shown);
    let names: Vec<&str> = here.iter().map(|task| task.name.as_str()).collect();
    let marker = |task: &&TaskFrame| {
        let alarm = class_if(task.alarm, "alarm");
        let marker = tag("span").class(&["marker", role_class(task.role), alarm]);
        marker.text(task.label.clone())
    };
    let more = || with_class("span", "more").text(format!("+{rest}"));
    tag("span")
        .set("title", names.join(", "))
        .children(here.iter().take(shown).map(marker))
        .maybe((rest > 0).then(more))
}

fn draw_line(frame: &Frame, place: &Place, subject: TaskId, number: u32, line: &str) -> Tag {
    let is_here = |task: &&TaskFrame| {
        task.line
            .as_ref()
            .is_some_and(|at| at.line == number && at.file == place.file)
    };
    let here: Vec<&TaskFrame> = frame.tasks.iter().filter(is_here).collect();
    let marked = class_if(!here.is_empty(), "marked");
    let words = words(line).map(|(class, word)| {
        let word = word.to_owned();
        match class {
            Some(class) => with_class("span", class).text(word).into(),
            None => Html::from(VText::new(word)),
        }
    });
    tag("div")
        .class(&["line", marked])
        .child(with_class("span", "markers").child(markers(here, subject)))
        .child(with_class("span", "number").text(number.to_string()))
        .child(tag("code").child(list(words)))
}

const KEYWORDS: [&str; 18] = [
    "pub", "async", "fn", "let", "await", "match", "if", "else", "return", "mut", "for", "in",
    "const", "struct", "enum", "use", "impl", "as",
];

/// A line in parts, each with its class. A comment runs to the end; words are
/// told apart by a list.
fn words(line: &str) -> impl Iterator<Item = (Option<&'static str>, &str)> {
    let comment = line.as_bytes().windows(2).position(|two| two == b"//");
    let (code, comment) = match comment {
        Some(at) => line.split_at(at),
        None => (line, ""),
    };
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut parts = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let kind = is_word(first);
        let end = rest.find(|c| is_word(c) != kind).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        let calls = kind && after.starts_with('(');
        let class = match part {
            _ if KEYWORDS.contains(&part) => Some("keyword"),
            _ if calls => Some("call"),
            _ => None,
        };
        parts.push((class, part));
        rest = after;
    }
    if !comment.is_empty() {
        parts.push((Some("comment"), comment));
    }
    parts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_sum_of_its_parts() {
        for line in [
            "    task.mutex_lock(ctx.mutex).await; // waits",
            "",
            "/// `a`",
            "let é = 1;",
        ] {
            let whole: String = words(line).map(|(_, word)| word).collect();
            assert_eq!(whole, line);
        }
        let classes: Vec<_> = words("let x = lock(y);")
            .filter_map(|(class, _)| class)
            .collect();
        assert_eq!(classes, ["keyword", "call"]);
    }
}
