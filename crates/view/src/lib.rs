//! What a viewer sees, as plain data: the API boundary between the model and
//! whatever draws it.
//!
//! Invariants:
//! 1. Everything here can be serialised, and nothing knows of a browser.
//! 2. A frame, a scene and a timeline are functions of a recording and a time:
//!    the page and the command line draw the same.
//!
//! ```
//! use zswap_lab::{Player, Run, Scenario};
//! let scenario = Scenario::named("b1-1cpu").expect("it is built in");
//! let recording = Run::start(&scenario, 1)?.record(1_000_000)?;
//! let mut player = Player::new(recording);
//! player.seek_ns(500_000);
//! let frame = zswap_view::frame(&player.recording().roster, player.state(), 500_000);
//! assert!(frame.cpus[0].running.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod few;
mod frame;
pub mod scene;
mod story;
pub mod timeline;
mod why;
mod words;

pub use few::sort_few;
pub use frame::{
    Alarm, CpuFrame, Frame, LockFrame, Mode, PoolFrame, Resched, SourceLine, Status, TaskFrame,
    Waiter, WaiterStatus, ZspageFrame, frame,
};
pub use story::{Moment, story};
pub use why::{WhyLink, why};
pub use words::{in_words_ns, in_words_signed_ns, nice_in_words};
