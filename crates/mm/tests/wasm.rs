//! The codecs, allocators and indexes in a browser.
//!
//! Run through `cargo test --target wasm32-unknown-unknown -p zswap-mm` with
//! a wasm-bindgen test runner.
#![cfg(target_arch = "wasm32")]

mod sums;
mod targets;

use targets::TARGETS;
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};
use zswap_mm::{Algorithm, PAGE_SIZE, Page, PageContent};

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
fn every_compressor_round_trips_every_kind_of_page() {
    let (mut page, mut decoded, mut buffer) = (Page::zeroed(), Page::zeroed(), [0; 2 * PAGE_SIZE]);
    for algorithm in Algorithm::ALL {
        let mut codec = algorithm.new_compressor();
        for content in PageContent::ALL {
            for seed in 0..8 {
                content.fill(seed, &mut page);
                let length = codec.compress(&page, &mut buffer).expect("there is room");
                assert_eq!(codec.decompress(&buffer[..length], &mut decoded), Ok(()));
                assert_eq!(decoded, page, "{algorithm}, {content}");
            }
        }
    }
}

#[wasm_bindgen_test]
fn bytes_and_sizes_are_those_of_the_native_build() {
    for (algorithm, content, sum) in sums::SUMS {
        assert_eq!(sums::sum(algorithm, content), sum, "{algorithm}, {content}");
    }
}

#[wasm_bindgen_test]
fn the_fuzz_targets_hold() {
    for (name, target) in TARGETS {
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20 {
            let bytes: Vec<u8> = (0..900)
                .map(|_| {
                    word ^= word << 13;
                    word ^= word >> 7;
                    word ^= word << 17;
                    (word >> 32) as u8
                })
                .collect();
            target(&bytes);
        }
        console_log!("{name} holds");
    }
}

/// Prints one line of JSON per codec, content and direction.
#[wasm_bindgen_test]
fn codec_times() {
    let contents = [
        PageContent::Text,
        PageContent::Pointers,
        PageContent::Code,
        PageContent::HalfRandom,
    ];
    for algorithm in [
        Algorithm::Deflate,
        Algorithm::Lz4,
        Algorithm::Lzo,
        Algorithm::Zstd,
    ] {
        for content in contents {
            let (mut page, mut buffer) = (Page::zeroed(), [0; 2 * PAGE_SIZE]);
            content.fill(1, &mut page);
            let mut codec = algorithm.new_compressor();
            let mut length = 0;
            let compress = nanoseconds_per_call(|| {
                length = codec.compress(&page, &mut buffer).expect("there is room");
            });
            let mut decoded = Page::zeroed();
            let decompress = nanoseconds_per_call(|| {
                codec
                    .decompress(&buffer[..length], &mut decoded)
                    .expect("these bytes decode");
            });
            for (direction, nanoseconds) in [("compress", compress), ("decompress", decompress)] {
                console_log!(
                    "{{\"bench\":\"wasm/codecs/{algorithm}/{content}/{direction}\",\
                     \"ns_per_iter\":{nanoseconds}}}"
                );
            }
        }
    }
}

/// Mean of so many calls as fill a tenth of a second.
fn nanoseconds_per_call(mut call: impl FnMut()) -> u64 {
    call();
    let begin = js_sys::Date::now();
    let mut calls = 0;
    while js_sys::Date::now() - begin < 100.0 {
        for _ in 0..20 {
            call();
        }
        calls += 20;
    }
    ((js_sys::Date::now() - begin) * 1e6) as u64 / calls
}
