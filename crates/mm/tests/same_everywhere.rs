//! The bytes that codecs and page contents produce, pinned: the same sums are
//! checked in a browser by `tests/wasm.rs`.
#![cfg(not(target_arch = "wasm32"))]

mod sums;

use zswap_mm::{Algorithm, PageContent};

#[test]
fn bytes_and_sizes_are_the_pinned_ones() {
    let mut now = String::new();
    for algorithm in [
        Algorithm::Deflate,
        Algorithm::Lz4,
        Algorithm::Lzo,
        Algorithm::Zstd,
    ] {
        for content in PageContent::ALL {
            let sum = sums::sum(algorithm, content);
            now.push_str(&format!(
                "    (A::{algorithm:?}, C::{content:?}, {sum:#018x}),\n"
            ));
        }
    }
    let pinned: String = sums::SUMS
        .iter()
        .map(|(algorithm, content, sum)| {
            format!("    (A::{algorithm:?}, C::{content:?}, {sum:#018x}),\n")
        })
        .collect();
    assert_eq!(now, pinned, "\nnow:\n{now}");
}
