//! The stage: CPU, run queue, compression context and pool, laid out.

use super::why_arrow::draw_why;
use super::{Area, Scene, Token, role_class, units};
use super::{context, cpu, pool};
use crate::{Frame, TaskFrame};
use zswap_lab::{Context, Role, Roster, TaskId};

/// How much room there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Two columns, 812 units wide.
    Wide,
    /// One column, 358 units wide, for a phone.
    Narrow,
}

/// Where the parts of the stage go.
struct Plan {
    width: f32,
    height: f32,
    cpu: Area,
    queue: Area,
    context: Area,
    /// Left end and base line of the sentence that says who waits for whom.
    why: (f32, f32),
    pool: Area,
}

impl Plan {
    fn of(layout: Layout, context_height: f32) -> Plan {
        match layout {
            Layout::Wide => Plan::wide(context_height),
            Layout::Narrow => Plan::narrow(context_height),
        }
    }

    fn wide(context_height: f32) -> Plan {
        let context = Area {
            x: 338.0,
            y: 26.0,
            w: 470.0,
            h: context_height,
        };
        let pool_y = context.bottom() + 74.0;
        let height = pool_y + 74.0;
        let cpu = Area {
            x: 16.0,
            y: 26.0,
            w: 262.0,
            h: 108.0,
        };
        let queue_y = cpu.bottom() + 42.0;
        Plan {
            width: 812.0,
            height,
            cpu,
            queue: Area {
                x: 16.0,
                y: queue_y,
                w: 262.0,
                h: (height - 4.0 - queue_y).min(186.0),
            },
            context,
            why: (338.0, context.bottom() + 25.0),
            pool: Area {
                x: 338.0,
                y: pool_y,
                w: 470.0,
                h: 70.0,
            },
        }
    }

    fn narrow(context_height: f32) -> Plan {
        let cpu = Area {
            x: 14.0,
            y: 24.0,
            w: 342.0,
            h: 92.0,
        };
        let queue = Area {
            x: 14.0,
            y: cpu.bottom() + 34.0,
            w: 342.0,
            h: 128.0,
        };
        let why = (10.0, queue.bottom() + 31.0);
        let context = Area {
            x: 2.0,
            y: queue.bottom() + 88.0,
            w: 354.0,
            h: context_height,
        };
        let pool = Area {
            x: 2.0,
            y: context.bottom() + 34.0,
            w: 354.0,
            h: 74.0,
        };
        Plan {
            width: 358.0,
            height: pool.bottom() + 4.0,
            cpu,
            queue,
            context,
            why,
            pool,
        }
    }
}

/// A scene on its way, and where the tasks are in it.
pub(crate) struct Stage<'a> {
    pub roster: &'a Roster,
    pub frame: &'a Frame,
    pub layout: Layout,
    pub scene: Scene,
    /// Where each task's body is drawn.
    bodies: Vec<(TaskId, f32, f32)>,
    /// Where each waiter is drawn in the queue of its lock: middle and foot.
    pub waiters: Vec<(TaskId, f32, f32)>,
}

/// Lays out a frame.
#[must_use]
pub fn stage(roster: &Roster, frame: &Frame, layout: Layout) -> Scene {
    let plan = Plan::of(layout, context::height(roster));
    let mut stage = Stage {
        roster,
        frame,
        layout,
        scene: Scene {
            width: plan.width,
            height: plan.height,
            label: label(frame),
            nodes: Vec::new(),
        },
        bodies: Vec::new(),
        waiters: Vec::new(),
    };
    if let Some(cpu) = frame.cpus.first() {
        cpu::draw_cpu(&mut stage, cpu, plan.cpu);
        cpu::draw_queue(&mut stage, cpu, plan.queue);
    }
    context::draw(&mut stage, plan.context);
    pool::draw(&mut stage, plan.pool);
    draw_why(&mut stage, plan.queue, plan.cpu, plan.why);
    stage.scene
}

/// What the stage shows, in a sentence.
fn label(frame: &Frame) -> String {
    let running = frame.cpus.first().map_or("", |cpu| cpu.words.as_str());
    let at = units::moment(frame.at_ns);
    match &frame.alarm {
        Some(alarm) => format!("At {at}: {}. CPU 0: {running}.", alarm.words),
        None => format!("At {at}: nobody waits for a task that is not running. CPU 0: {running}."),
    }
}

/// How a token looks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// The task itself.
    Body,
    /// The task named where it is not.
    Ghost,
}

impl Stage<'_> {
    pub fn task(&self, id: TaskId) -> Option<&TaskFrame> {
        self.frame.tasks.iter().find(|task| task.id == id)
    }

    pub fn name(&self, id: TaskId) -> String {
        self.task(id)
            .map_or(String::new(), |task| task.name.clone())
    }

    pub fn role(&self, id: TaskId) -> Role {
        self.task(id).map_or(Role::Worker, |task| task.role)
    }

    pub fn loads_take_no_mutex(&self) -> bool {
        self.roster.context == Context::Onstack
    }

    /// Where a task's body is drawn, if it is.
    pub fn body(&self, id: TaskId) -> Option<(f32, f32)> {
        let body = self.bodies.iter().find(|body| body.0 == id)?;
        Some((body.1, body.2))
    }

    /// Draws a task. `place` tells apart the places where it is a ghost.
    pub fn token(&mut self, id: TaskId, look: Look, place: &str, at: (f32, f32), half: f32) {
        let Some(task) = self.frame.tasks.iter().find(|task| task.id == id) else {
            return;
        };
        let mut class = format!("token {}", role_class(task.role));
        let key = match look {
            Look::Body => {
                self.bodies.push((id, at.0, at.1));
                format!("body {id}")
            }
            Look::Ghost => {
                class.push_str(" ghost");
                format!("{place} {id}")
            }
        };
        if task.alarm {
            class.push_str(" alarm");
        }
        if half < 11.0 {
            class.push_str(" small");
        }
        self.scene.nodes.push(super::Node::Token(Token {
            key,
            class,
            role: task.role,
            label: task.label.clone(),
            x: at.0,
            y: at.1,
            half,
        }));
    }
}
