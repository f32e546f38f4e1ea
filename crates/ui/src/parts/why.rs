//! Why a task does not run: the chain, link by link.

use crate::tag::{Tag, class_if, tag, with_class};
use yew::{Callback, Event, Html};
use zswap_lab::TaskId;
use zswap_view::scene::role_class;
use zswap_view::{Frame, TaskFrame, WhyLink};

/// What is explained.
pub struct Props<'a> {
    /// The chain.
    pub links: Vec<WhyLink>,
    /// The task that it begins with.
    pub subject: TaskId,
    /// The frame shown.
    pub frame: &'a Frame,
    /// Explain another task.
    pub on_select: Callback<TaskId>,
}

/// The chain, and the choice of the task.
pub fn why(props: &Props<'_>) -> Html {
    let Some(subject) = props.frame.tasks.get(props.subject.index()) else {
        return Html::default();
    };
    let is_running = props.links.len() == 1 && subject.status == zswap_view::Status::Running;
    let title = match is_running {
        true => format!("{} is running", subject.name),
        false => format!("Why is {} not running?", subject.name),
    };
    let choices = tag("fieldset")
        .set("class", "tasks")
        .child(tag("legend").text("Explain another task"))
        .children(props.frame.tasks.iter().map(|task| choice(props, task)));
    let chain = with_class("ol", "chain").set("aria-live", "off");
    with_class("section", "why")
        .set("aria-label", "Why")
        .child(tag("h2").text(title))
        .child(choices)
        .child(chain.children(props.links.iter().map(|link| draw_link(props, link))))
        .into()
}

fn choice(props: &Props<'_>, task: &TaskFrame) -> Tag {
    let id = task.id;
    let input = tag("input")
        .set("type", "radio")
        .set("name", "subject")
        .value(id.to_string())
        .set("aria-label", task.name.clone())
        .checked(id == props.subject)
        .on_change(props.on_select.reform(move |_: Event| id));
    let sign = tag("span").class(&["sign", role_class(task.role)]);
    tag("label")
        .set("title", task.name.clone())
        .child(input)
        .child(sign.text(task.label.clone()))
}

fn draw_link(props: &Props<'_>, link: &WhyLink) -> Tag {
    let task = props.frame.tasks.get(link.task.index());
    let role = task.map_or("", |task| role_class(task.role));
    tag("li")
        .class(&[role, class_if(link.alarm, "alarm")])
        .child(tag("span").text(link.title.clone()))
        .child(tag("small").text(link.detail.clone()))
}
