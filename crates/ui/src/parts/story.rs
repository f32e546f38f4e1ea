//! What is to be seen, in words: the headline, the parts played, the design.

use crate::parts::sign;
use crate::protocol::SlimRead;
use crate::tag::{Tag, tag, with_class};
use std::rc::Rc;
use yew::Callback;
use zswap_lab::{Context as Design, Role};
use zswap_view::{Alarm, Frame, in_words_ns, nice_in_words};

/// What it is about.
pub struct Props {
    /// The chosen design.
    pub design: Design,
    /// The frame shown.
    pub frame: Option<Rc<Frame>>,
    /// The page has not opened at a read yet.
    pub searching: bool,
    /// The slowest read so far.
    pub slowest: Option<SlimRead>,
    /// Go to a read.
    pub on_open: Callback<SlimRead>,
}

/// The words beside the figure.
pub fn story(props: &Props) -> Tag {
    let section = with_class("section", "story");
    let Some(frame) = &props.frame else {
        return section.child(tag("h1").text("The model starts."));
    };
    let on_open = props.on_open.clone();
    let to_slowest = props.slowest.map(|read| {
        let words = format!("Go to the slowest read: {}", in_words_ns(read.latency_ns));
        with_class("button", "jump")
            .set("type", "button")
            .on_click(on_open.reform(move |_| read))
            .text(words)
    });
    let alarm = frame.alarm.as_ref();
    section
        .child(tag("h1").text(headline(frame, props.searching)))
        .maybe(alarm.map(|alarm| with_class("p", "lead").text(alarm_words(frame, alarm))))
        .child(tag("p").text(design_words(props.design)))
        .maybe(to_slowest)
        .child(cast(frame))
}

fn headline(frame: &Frame, searching: bool) -> String {
    let Some(alarm) = &frame.alarm else {
        return match searching {
            true => "Looking for a slow read.".to_owned(),
            false => "Nobody waits for a task that is not running.".to_owned(),
        };
    };
    let weights = || frame.tasks.iter().map(|task| task.weight);
    let weight = |task: zswap_lab::TaskId| Some(frame.tasks[task.index()].weight);
    let is_extreme =
        weight(alarm.waiter) == weights().max() && weight(alarm.owner) == weights().min();
    match is_extreme {
        true => "The most important task is waiting for the least important one.".to_owned(),
        false => {
            let name = |task: zswap_lab::TaskId| frame.tasks[task.index()].name.as_str();
            format!(
                "{} is waiting for {}, which does not run.",
                capital(name(alarm.waiter)),
                name(alarm.owner)
            )
        }
    }
}

fn capital(name: &str) -> String {
    let mut name = name.to_owned();
    // Names of tasks are ASCII.
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}

fn alarm_words(frame: &Frame, alarm: &Alarm) -> String {
    let owner = &frame.tasks[alarm.owner.index()];
    let lock = &frame.locks[alarm.lock.index()];
    let off = in_words_ns(frame.at_ns.saturating_sub(owner.since_ns));
    let waited = in_words_ns(frame.at_ns.saturating_sub(alarm.since_ns));
    let waiter = &frame.tasks[alarm.waiter.index()].name;
    let name = capital(&owner.name);
    let how = match lock.handed_over {
        true => format!("{name} was handed the mutex, and has not had the CPU for {off}."),
        false => format!("{name} lost the CPU {off} ago, with the mutex in its hand."),
    };
    format!(
        "{how} {} has waited for {waited} and cannot go on before {} runs again.",
        capital(waiter),
        owner.name,
    )
}

fn design_words(design: Design) -> &'static str {
    match design {
        Design::Shared => {
            "Linux zswap keeps cold memory in RAM, compressed. Here, on each CPU one lock, a mutex, \
             stands before all compressing and decompressing. Its owner can lose the CPU; the others \
             wait for it in a queue."
        }
        Design::Split => {
            "With patch 1, compressing and decompressing have a lock each, so a task that needs a page \
             back no longer waits for one that puts a page away. It can still wait for another that \
             needs a page back."
        }
        Design::Onstack => {
            "With patch 2, a task that needs a page back brings along what decompressing takes, on its \
             own stack, and needs no lock. It waits for nobody but the CPU."
        }
    }
}

/// Who takes part: one line per role.
fn cast(frame: &Frame) -> Tag {
    let nice = tag("small").text("Nice is priority: −19 counts most, +19 least.");
    with_class("ul", "cast")
        .set("aria-label", "Who takes part")
        .maybe(part(
            frame,
            Role::Reader,
            "reads its pages back, and matters most",
        ))
        .maybe(part(
            frame,
            Role::Worker,
            "put pages away and take them back, at low priority",
        ))
        .maybe(part(frame, Role::Spinner, "only computes"))
        .maybe(part(
            frame,
            Role::Kthread,
            "the kernel's own, run for some µs now and then",
        ))
        .child(with_class("li", "hint").child(nice))
}

fn part(frame: &Frame, role: Role, what: &'static str) -> Option<Tag> {
    let of_role = || frame.tasks.iter().filter(|task| task.role == role);
    let first = of_role().next()?;
    let letter = first.label.get(..1).unwrap_or_default();
    let name = first.name.split(' ').next().unwrap_or_default();
    let who = match of_role().count() {
        1 => name.to_owned(),
        count => format!("{count} {name}s"),
    };
    let words = tag("span")
        .child(tag("b").text(who))
        .text(format!(", nice {}", nice_in_words(first.nice)))
        .child(tag("small").text(what));
    Some(tag("li").child(sign(role, letter)).child(words))
}
