//! Measures the processor time of the thread instead of the time on the wall.
//!
//! Other work on the machine then lengthens a run but hardly its result.

use cpu_time::ThreadTime;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use std::time::Duration;

/// Processor time of the thread.
pub struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = ThreadTime;
    type Value = Duration;

    fn start(&self) -> ThreadTime {
        ThreadTime::now()
    }
    fn end(&self, begin: ThreadTime) -> Duration {
        begin.elapsed()
    }
    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }
    fn zero(&self) -> Duration {
        Duration::ZERO
    }
    fn to_f64(&self, value: &Duration) -> f64 {
        WallTime.to_f64(value)
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
