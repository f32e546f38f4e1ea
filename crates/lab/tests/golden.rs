//! Trace hashes that must be the same natively and in wasm.
//!
//! The same file is compiled for both, so both compare with the same numbers.
//! A change of the model's rules changes them; then run
//! `zswap-sim run SCENARIO --set duration_s=1 --seed 1 --json` for each scenario and
//! context, and say in the change why.

use zswap_lab::{Run, Scenario};

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

const GOLDEN: [(&str, &str, u64); 6] = [
    ("b1-1cpu", "shared", 0x67b3_d588_4c12_dfb9),
    ("b1-1cpu", "split", 0x39ed_7f34_f322_8581),
    ("b1-1cpu", "onstack", 0x7103_324b_83bd_0a54),
    ("b1-8cpu", "shared", 0xa75d_8617_d656_339e),
    ("b1-8cpu", "split", 0x9541_bc38_fdda_0104),
    ("b1-8cpu", "onstack", 0x5474_7569_571c_726c),
];

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn the_trace_of_each_design_is_the_known_one() {
    let found = GOLDEN.map(|(name, context, _)| {
        let mut scenario = Scenario::named(name).expect("built in");
        scenario.set("context", context).expect("a context");
        scenario.set("duration_s", "1").expect("in range");
        let mut run = Run::start(&scenario, 1).expect("a good scenario");
        run.finish().expect("no rule is broken");
        (name, context, run.trace_hash())
    });
    assert_eq!(found, GOLDEN, "found {found:x?}");
}

/// One second of `b1-1cpu` with each compressor but its own. The page, which
/// loads these codecs apart, is held to them by `tests/e2e/specs/codecs.test.mjs`.
const CODECS: [(&str, u64); 4] = [
    ("deflate", 0x8ecd_de3d_2dda_3194),
    ("lz4", 0x0499_bba6_aed7_6e8d),
    ("lzo", 0xe0b6_9bc1_7419_119f),
    ("deflate-iaa", 0x8ecd_de3d_2dda_3194),
];

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn the_trace_with_each_compressor_is_the_known_one() {
    let found = CODECS.map(|(name, _)| {
        let mut scenario = Scenario::named("b1-1cpu").expect("built in");
        scenario.set("compressor", name).expect("a compressor");
        scenario.set("duration_s", "1").expect("in range");
        let mut run = Run::start(&scenario, 1).expect("a good scenario");
        run.finish().expect("no rule is broken");
        (name, run.trace_hash())
    });
    assert_eq!(found, CODECS, "found {found:x?}");
}
