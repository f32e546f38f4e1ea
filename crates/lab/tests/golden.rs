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
    ("b1-1cpu", "shared", 0xe49a_b5f0_aff0_3667),
    ("b1-1cpu", "split", 0xcc28_7521_4dbe_8d3b),
    ("b1-1cpu", "onstack", 0xb773_b784_acd3_b83e),
    ("b1-8cpu", "shared", 0xadf8_3a71_4ced_3064),
    ("b1-8cpu", "split", 0xa6dc_f41a_a375_7902),
    ("b1-8cpu", "onstack", 0xb3ee_a5a5_c58d_4a54),
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
    ("deflate", 0x165e_a991_24ed_e548),
    ("lz4", 0xe714_e376_0cbf_92de),
    ("lzo", 0x4b76_5c47_1b3f_b78e),
    ("deflate-iaa", 0xc5d4_91f9_8371_bccc),
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
