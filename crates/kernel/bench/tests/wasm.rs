//! The same program in a browser. Prints one line of JSON for each measurement.
#![cfg(target_arch = "wasm32")]

use kernel_bench::{Count, TASKS_PER_CPU, Workers, rates};
use std::time::Duration;
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

fn clock() -> Duration {
    Duration::from_secs_f64(js_sys::Date::now() / 1e3)
}

#[wasm_bindgen_test]
fn kernel_rates() {
    let machine = |cpus: u8| {
        let tasks = u16::from(cpus) * TASKS_PER_CPU;
        Workers::new(cpus, tasks).expect("a machine that can be")
    };
    let (mut one, mut eight) = (machine(1), machine(8));
    let mut one = || -> Count { one.step() };
    let mut eight = || -> Count { eight.step() };
    let rates = rates(clock, &mut [&mut one, &mut eight]);
    for (name, rate) in ["kernel.wasm.1cpu", "kernel.wasm.8cpu"].iter().zip(rates) {
        console_log!(
            "{{\"name\":\"{name}\",\"value\":{:.3},\"unit\":\"events/s\"}}",
            rate.0
        );
    }
}
