//! Measures natively; prints one line of JSON for each measurement. Only ratios
//! of one run mean much: everything is measured in turn, on one thread.

#[cfg(not(target_arch = "wasm32"))]
mod peers;

#[cfg(not(target_arch = "wasm32"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    native::main()
}

/// In wasm a test is what measures.
#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use crate::peers;
    use cpu_time::ThreadTime;
    use kernel_bench::{Count, PingPong, Rate, TASKS_PER_CPU, Workers, rates};
    use std::error::Error;
    use std::time::Duration;

    /// CPUs of the machine whose tasks vary in number.
    const TASKS_CPUS: u8 = 8;

    type Work = Box<dyn FnMut() -> Count>;
    type Named = (&'static str, Unit, Work);

    enum Unit {
        Events,
        Turns,
        NsPerEvent,
    }

    /// Time of this thread alone: other programs take none of it.
    fn clock() -> Duration {
        ThreadTime::now().as_duration()
    }

    fn workers(cpus: u8, tasks: u16) -> Result<Work, Box<dyn Error>> {
        let mut workers = Workers::new(cpus, tasks)?;
        Ok(Box::new(move || workers.step()))
    }

    fn per_cpu(cpus: u8) -> Result<Work, Box<dyn Error>> {
        workers(cpus, u16::from(cpus) * TASKS_PER_CPU)
    }

    fn works() -> Result<Vec<Named>, Box<dyn Error>> {
        let mut pingpong = PingPong::new()?;
        let mut nexosim = peers::nexosim::PingPong::new()?;
        let mut heap = peers::binary_heap::Loop::new();
        Ok(vec![
            ("kernel.native.1cpu", Unit::Events, per_cpu(1)?),
            ("kernel.native.8cpu", Unit::Events, per_cpu(8)?),
            ("kernel.native.64cpu", Unit::Events, per_cpu(64)?),
            (
                "kernel.tasks.10",
                Unit::NsPerEvent,
                workers(TASKS_CPUS, 10)?,
            ),
            (
                "kernel.tasks.1000",
                Unit::NsPerEvent,
                workers(TASKS_CPUS, 1000)?,
            ),
            (
                "kernel.pingpong",
                Unit::Turns,
                Box::new(move || pingpong.step()),
            ),
            (
                "peer.nexosim",
                Unit::Turns,
                Box::new(move || nexosim.step()),
            ),
            (
                "peer.binary_heap",
                Unit::Events,
                Box::new(move || heap.step()),
            ),
        ])
    }

    fn print(name: &str, unit: &Unit, rate: Rate) {
        let (value, unit) = match unit {
            Unit::Events => (rate.0, "events/s"),
            Unit::Turns => (rate.0, "turns/s"),
            Unit::NsPerEvent => (rate.ns_each(), "ns/event"),
        };
        println!("{{\"name\":\"{name}\",\"value\":{value:.3},\"unit\":\"{unit}\"}}");
    }

    /// Measures what is called as the first argument says, or begins so.
    pub fn main() -> Result<(), Box<dyn Error>> {
        let only = std::env::args().nth(1).unwrap_or_default();
        let mut works = works()?;
        works.retain(|(name, ..)| name.starts_with(&only));
        let mut parts: Vec<&mut dyn FnMut() -> Count> = Vec::new();
        for (_, _, work) in &mut works {
            parts.push(work);
        }
        let rates = rates(clock, &mut parts);
        for ((name, unit, _), rate) in works.iter().zip(rates) {
            print(name, unit, rate);
        }
        Ok(())
    }
}
