//! Runs every fuzz target over its corpus and seeded mutations of it.
//!
//! Bounded: a fixed number of runs, not of seconds, so that the same inputs
//! are tried everywhere. `ZSWAP_FUZZ_RUNS` sets another number.
#![cfg(not(target_arch = "wasm32"))]

mod targets;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use zswap_mm::{Algorithm, PAGE_SIZE, Page, PageContent};

/// Runs of a target if nothing else is asked for.
const RUNS: u64 = 1500;

fn below(stream: &mut Xoshiro256PlusPlus, bound: usize) -> usize {
    ((u128::from(stream.next_u64()) * bound as u128) >> 64) as usize
}

/// The kept corpus of a target, by file name.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|file| file.expect("the corpus can be listed").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus for {target}");
    files
        .iter()
        .map(|file| std::fs::read(file).expect("the corpus can be read"))
        .collect()
}

/// Seeds beside the corpus: real compressed pages for the decoders, random
/// commands for the rest.
fn generated(target: &str, seed: u64) -> Vec<u8> {
    match target.parse::<Algorithm>() {
        Ok(algorithm) => {
            let (mut page, mut buffer) = (Page::zeroed(), vec![0; 2 * PAGE_SIZE]);
            PageContent::ALL[seed as usize % PageContent::ALL.len()].fill(seed, &mut page);
            let length = algorithm.new_compressor().compress(&page, &mut buffer);
            buffer.truncate(length.expect("two pages are room enough"));
            buffer
        }
        Err(_) => {
            let mut stream = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut bytes = vec![0; 3 * (1 + below(&mut stream, 400))];
            stream.fill_bytes(&mut bytes);
            bytes
        }
    }
}

/// Changes a few bytes, cuts, repeats, or joins with another input.
fn mutate(stream: &mut Xoshiro256PlusPlus, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..1 + below(stream, 4) {
        let at = below(stream, bytes.len() + 1);
        match below(stream, 7) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, stream.next_u64() as u8),
            2 => {
                let tail = &other[below(stream, other.len() + 1)..];
                bytes.truncate(at);
                bytes.extend_from_slice(tail);
            }
            3 => {
                let part = bytes[at..].to_vec();
                bytes.extend_from_slice(&part[..part.len().min(64)]);
            }
            4 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = [0, 0xff, 0x7f, 0x80, 1][below(stream, 5)];
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << below(stream, 8);
                }
            }
        }
    }
}

fn run(name: &str) {
    let mut inputs = corpus(name);
    inputs.extend((0..24).map(|seed| generated(name, seed)));
    for input in &inputs {
        targets::run(name, input);
    }
    let runs = std::env::var("ZSWAP_FUZZ_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok());
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(2024);
    for _ in 0..runs.unwrap_or(RUNS) {
        let mut input = inputs[below(&mut stream, inputs.len())].clone();
        let other = below(&mut stream, inputs.len());
        mutate(&mut stream, &mut input, &inputs[other]);
        if std::panic::catch_unwind(|| targets::run(name, &input)).is_err() {
            panic!("{name} fails on {input:02x?}: keep it under tests/corpus/{name}");
        }
    }
}

#[test]
fn deflate() {
    run("deflate");
}
#[test]
fn lz4() {
    run("lz4");
}
#[test]
fn lzo() {
    run("lzo");
}
#[test]
fn zstd() {
    run("zstd");
}
#[test]
fn zsmalloc() {
    run("zsmalloc");
}
#[test]
fn zbud() {
    run("zbud");
}
#[test]
fn z3fold() {
    run("z3fold");
}
#[test]
fn index() {
    run("index");
}
