//! The page's end of the worker.

use crate::dom::{self, Listener};
use crate::protocol::{ToPage, ToWorker};
use core::cell::RefCell;
use std::rc::Rc;
use web_sys::{Event, MessageEvent, Worker, WorkerOptions, WorkerType};

/// What the worker has said, or that it can say no more.
pub enum Said {
    /// A message.
    Message(ToPage),
    /// It has died or never came to life: why, as far as the browser tells.
    Dead(String),
}

/// A worker and what listens to it.
pub struct Link {
    worker: Worker,
    /// What was told before the worker listened.
    early: Rc<RefCell<Option<Vec<ToWorker>>>>,
    _listeners: [Listener; 3],
}

impl Link {
    /// Starts a worker.
    pub fn start(react: impl Fn(Said) + Clone + 'static) -> Result<Link, String> {
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        let worker = Worker::new_with_options("./worker.js", &options)
            .map_err(|error| format!("{error:?}"))?;
        let early = Rc::new(RefCell::new(Some(Vec::new())));
        let message = {
            let (react, early, worker) = (react.clone(), Rc::clone(&early), worker.clone());
            move |event: MessageEvent| match dom::received(&event) {
                Some(ToPage::Ready) => {
                    for message in early.borrow_mut().take().unwrap_or_default() {
                        post(&worker, &message);
                    }
                }
                Some(message) => react(Said::Message(message)),
                None => {}
            }
        };
        let died = {
            let react = react.clone();
            move |event: Event| react(Said::Dead(message_of(&event)))
        };
        let garbled = move |_: Event| react(Said::Dead("a message was lost".to_owned()));
        Ok(Link {
            _listeners: [
                Listener::new(&worker, "message", message),
                Listener::new(&worker, "error", died),
                Listener::new(&worker, "messageerror", garbled),
            ],
            worker,
            early,
        })
    }

    /// Tells the worker something.
    pub fn tell(&self, message: ToWorker) {
        match self.early.borrow_mut().as_mut() {
            Some(early) => early.push(message),
            None => post(&self.worker, &message),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.worker.terminate();
    }
}

/// What an error says of itself. One of loading the worker's file says nothing.
fn message_of(event: &Event) -> String {
    let message = js_sys::Reflect::get(event, &"message".into());
    let message = message.ok().and_then(|message| message.as_string());
    let message = message.filter(|message| !message.is_empty());
    message.unwrap_or_else(|| "Its worker could not be loaded".to_owned())
}

fn post(worker: &Worker, message: &ToWorker) {
    dom::send(message, |data, transfer| {
        worker.post_message_with_transfer(data, transfer)
    });
}
