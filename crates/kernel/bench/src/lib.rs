//! The program that the virtual kernel is measured with, native and in wasm.
//!
//! Tasks on some CPUs compute, take one of a few mutexes, a spinlock inside it,
//! and now and then sleep; somebody takes the records out as a recorder does.
//! The shape is the same for every number of CPUs: so many tasks and locks per
//! CPU. What grows with the machine is then the machine's own cost.
//!
//! Left out: what a layer above makes of the records.

mod measure;
mod pingpong;
mod workers;

pub use measure::{Clock, Count, Rate, rates};
pub use pingpong::PingPong;
pub use workers::{TASKS_PER_CPU, Workers};
