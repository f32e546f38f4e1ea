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
    ("b1-1cpu", "shared", 0xf804_12ef_a6fb_f6c1),
    ("b1-1cpu", "split", 0xcbec_983d_8d7d_4b01),
    ("b1-1cpu", "onstack", 0x5387_f026_5bf4_2cec),
    ("b1-8cpu", "shared", 0xcc5f_811c_3b09_c265),
    ("b1-8cpu", "split", 0x9f17_c789_b60c_abbb),
    ("b1-8cpu", "onstack", 0x656c_482c_10f7_a1bb),
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
