//! What scripts can ask of the page's program beside the page: tests and
//! benchmarks do.
//!
//! Answers are JSON, written out here: names of tasks and of locks, the only
//! texts in them, are words and numbers, and errors are plain sentences, so that
//! `{:?}` quotes them as JSON does.

use crate::codecs::Codecs;
use crate::dom;
use serde::Serialize;
use wasm_bindgen::prelude::wasm_bindgen;
use zswap_lab::{LockKind, RunReport, Scenario};
use zswap_view::Frame;

/// Runs a built-in scenario to its end; gives, of what the command line reports
/// of a run, `seed`, `reads`, `events`, `wall_ns` and `trace_hash`, or
/// `{"error": …}`.
#[wasm_bindgen]
#[must_use]
pub fn bench_run(scenario: &str, seed: u64) -> String {
    bench(scenario, seed).map_or_else(failure, |report| {
        format!(
            r#"{{"seed":{},"reads":{},"events":{},"wall_ns":{},"trace_hash":{:?}}}"#,
            report.seed, report.reads, report.events, report.wall_ns, report.trace_hash
        )
    })
}

/// Runs a built-in scenario with another context design up to a moment; gives
/// the `hash` of the frame there and what tests look for in it, or
/// `{"error": …}`. It goes the straight way, without recordings.
#[wasm_bindgen]
#[must_use]
pub fn model_frame(scenario: &str, context: &str, seed: u64, at_ns: u64) -> String {
    frame_at(scenario, context, seed, at_ns).map_or_else(failure, |frame| frame_json(&frame))
}

fn failure(error: String) -> String {
    format!(r#"{{"error":{error:?}}}"#)
}

fn named(name: &str) -> Result<Scenario, String> {
    Scenario::named(name).ok_or_else(|| format!("there is no scenario {name}"))
}

fn bench(name: &str, seed: u64) -> Result<RunReport, String> {
    let scenario = named(name)?;
    let start_ms = dom::now_ms();
    let mut run = Codecs::default()
        .start(&scenario, seed)
        .map_err(|error| error.to_string())?;
    run.finish().map_err(|error| error.to_string())?;
    let wall_ns = (dom::now_ms() - start_ms) * 1e6;
    Ok(RunReport::new(&run, seed, wall_ns as u64))
}

fn frame_at(name: &str, context: &str, seed: u64, at_ns: u64) -> Result<Frame, String> {
    let mut scenario = named(name)?;
    let set = scenario.set("context", context);
    set.map_err(|error| error.to_string())?;
    let mut run = Codecs::default()
        .start(&scenario, seed)
        .map_err(|error| error.to_string())?;
    run.advance(at_ns).map_err(|error| error.to_string())?;
    // A recording without length is the state and the roster of now.
    let here = run.record(at_ns).map_err(|error| error.to_string())?;
    Ok(zswap_view::frame(&here.roster, &here.start, at_ns))
}

/// The frame's hash, and of its parts those that tests compare with the page.
fn frame_json(frame: &Frame) -> String {
    let tasks = frame.tasks.iter().map(|task| {
        let (id, name, label) = (task.id, &task.name, &task.label);
        format!(r#"{{"id":{id},"name":{name:?},"label":{label:?}}}"#)
    });
    let running = frame.cpus.iter().map(|cpu| match cpu.running {
        Some(task) => format!(r#"{{"running":{task}}}"#),
        None => r#"{"running":null}"#.to_owned(),
    });
    let locks = frame.locks.iter().map(|lock| {
        let is_mutex = lock.kind == LockKind::Mutex;
        format!(r#"{{"name":{:?},"is_mutex":{is_mutex}}}"#, lock.name)
    });
    let alarm = match &frame.alarm {
        Some(alarm) => format!(r#"{{"owner":{},"waiter":{}}}"#, alarm.owner, alarm.waiter),
        None => "null".to_owned(),
    };
    let hash = hash_of(frame).unwrap_or_default();
    let [tasks, cpus, locks] = [list(tasks), list(running), list(locks)];
    format!(r#"{{"hash":{hash:?},"tasks":{tasks},"cpus":{cpus},"locks":{locks},"alarm":{alarm}}}"#)
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A hash of all there is in a value, hexadecimal.
pub fn hash_of<T: Serialize>(value: &T) -> Option<String> {
    let bytes = postcard::to_allocvec(value).ok()?;
    Some(format!("{:016x}", fnv(&bytes)))
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
