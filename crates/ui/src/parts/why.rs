//! Why a task does not run: the chain, link by link.

use yew::prelude::*;
use zswap_lab::TaskId;
use zswap_view::scene::role_class;
use zswap_view::{Frame, WhyLink};

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
        return html! {};
    };
    let is_running = props.links.len() == 1 && subject.status == zswap_view::Status::Running;
    let title = match is_running {
        true => format!("{} is running", subject.name),
        false => format!("Why is {} not running?", subject.name),
    };
    html! {
        <section class="why" aria-label="Why">
            <h2>{title}</h2>
            <fieldset class="tasks">
                <legend>{"Explain another task"}</legend>
                { for props.frame.tasks.iter().map(|task| {
                    let id = task.id;
                    html! {
                        <label title={task.name.clone()}>
                            <input type="radio" name="subject" value={id.to_string()}
                                aria-label={task.name.clone()} checked={id == props.subject}
                                onchange={props.on_select.reform(move |_: Event| id)} />
                            <span class={classes!("sign", role_class(task.role))}>{task.label.clone()}</span>
                        </label>
                    }
                }) }
            </fieldset>
            <ol class="chain" aria-live="off">
                { for props.links.iter().map(|link| {
                    let role = props.frame.tasks.get(link.task.index()).map(|task| role_class(task.role));
                    let alarm = link.alarm.then_some("alarm");
                    html! {
                        <li class={classes!(role, alarm)}>
                            <span>{link.title.clone()}</span>
                            <small>{link.detail.clone()}</small>
                        </li>
                    }
                }) }
            </ol>
        </section>
    }
}
