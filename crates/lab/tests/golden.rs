//! Trace hashes that must be the same natively and in wasm.
//!
//! The same file is compiled for both, so both compare with the same numbers.
//! A change of the model's rules changes them; then run
//! `zswap-sim run b1-1cpu --set duration_s=1 --seed 1 --json` for each context
//! and say in the change why.

use zswap_lab::{Run, Scenario};

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

const GOLDEN: [(&str, u64); 3] = [
    ("shared", 0xfde4_9344_b691_d273),
    ("split", 0x7281_ff16_6e2c_f0d6),
    ("onstack", 0x60fa_5e43_3910_1df0),
];

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn the_trace_of_each_design_is_the_known_one() {
    let found = GOLDEN.map(|(context, _)| {
        let mut scenario = Scenario::named("b1-1cpu").expect("built in");
        scenario.set("context", context).expect("a context");
        scenario.set("duration_s", "1").expect("in range");
        let mut run = Run::start(&scenario, 1).expect("a good scenario");
        run.finish().expect("no rule is broken");
        (context, run.trace_hash())
    });
    assert_eq!(found, GOLDEN, "found {found:x?}");
}
