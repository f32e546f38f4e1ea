//! The published benchmark: what comes out, and what must not
//! depend on how it is run.
//!
//! The bounds are the published ranges with the stated tolerance; the costs
//! that lead here are fitted to none of them.

use zswap_lab::{Run, Scenario};

fn scenario(sets: &[(&str, &str)]) -> Scenario {
    let mut scenario = Scenario::named("b1-1cpu").expect("built in");
    for (key, value) in sets {
        scenario.set(key, value).expect("a good value");
    }
    scenario
}

fn finished(scenario: &Scenario, seed: u64) -> Run {
    let mut run = Run::start(scenario, seed).expect("a good scenario");
    run.finish().expect("no rule is broken");
    run
}

fn slowest_ns(run: &Run) -> u64 {
    run.metrics().slowest().expect("there are reads").latency_ns
}

#[test]
fn before_the_patches_reads_take_many_milliseconds() {
    let mut slowest = [1, 2, 3].map(|seed| {
        let run = finished(&scenario(&[]), seed);
        let over_10ms = run.metrics().reads_over(10_000_000);
        assert!((20..=45).contains(&over_10ms), "seed {seed}: {over_10ms}");
        assert!(run.metrics().reads().len() > 300_000);
        slowest_ns(&run)
    });
    slowest.sort_unstable();
    let median_ns = slowest[1];
    assert!(
        (20_000_000..=24_000_000).contains(&median_ns),
        "{slowest:?}"
    );
}

#[test]
fn with_the_request_on_the_stack_they_stay_below_two() {
    for seed in [1, 2] {
        let run = finished(&scenario(&[("context", "onstack")]), seed);
        let ns = slowest_ns(&run);
        assert!((700_000..=1_400_000).contains(&ns), "seed {seed}: {ns}");
    }
}

#[test]
fn on_eight_cpus_there_is_a_long_tail_before_and_none_after() {
    let slowest = |context| {
        let mut scenario = Scenario::named("b1-8cpu").expect("built in");
        scenario.set("context", context).expect("a context");
        scenario.set("duration_s", "4").expect("in range");
        slowest_ns(&finished(&scenario, 1))
    };
    // Published, over 12 s: 97 to 2542 ms before, 5 to 98 ms after. In a third
    // of that time the tail is shorter.
    let (before_ns, after_ns) = (slowest("shared"), slowest("onstack"));
    assert!(before_ns > 50_000_000, "{before_ns}");
    assert!(after_ns < 50_000_000, "{after_ns}");
}

#[test]
fn every_page_content_and_compressor_is_read_back_equal() {
    // A read that differs from what was stored stops the run.
    for content in ["text", "pointers", "code", "zeroes", "random"] {
        for compressor in ["deflate", "lz4", "lzo", "zstd", "deflate-iaa"] {
            let scenario = scenario(&[("page_content", content), ("compressor", compressor)]);
            let mut run = Run::start(&scenario, 1).expect("a good scenario");
            run.measure(100_000_000).expect("no rule is broken");
            let counters = run.counters();
            assert_eq!(counters.zswpin == 0, content == "zeroes", "{content}");
            let raw = counters.stored_incompressible_pages > 0;
            assert_eq!(raw, content == "random", "{content} {compressor}");
        }
    }
}

#[test]
fn a_seed_decides_the_trace_and_the_length_of_a_run_does_not_change_its_beginning() {
    let one = finished(&scenario(&[("duration_s", "1")]), 5);
    let again = finished(&scenario(&[("duration_s", "1")]), 5);
    assert_eq!(one.trace_hash(), again.trace_hash());
    assert_eq!(one.metrics().reads(), again.metrics().reads());
    let other = finished(&scenario(&[("duration_s", "1")]), 6);
    assert_ne!(one.trace_hash(), other.trace_hash());
    let mut longer = Run::start(&scenario(&[("duration_s", "2")]), 5).expect("a good scenario");
    longer.measure(1_000_000_000).expect("no rule is broken");
    assert_eq!(one.trace_hash(), longer.trace_hash());
}

#[test]
fn tasks_may_be_missing() {
    for (key, reads) in [
        ("workers.count", true),
        ("spinners.count", true),
        ("readers.count", false),
    ] {
        let run = finished(&scenario(&[(key, "0"), ("duration_s", "1")]), 1);
        assert_eq!(!run.metrics().reads().is_empty(), reads, "{key}");
    }
    let sets = [
        ("workers.count", "0"),
        ("spinners.count", "0"),
        ("readers.count", "0"),
    ];
    let mut idle = Run::start(&scenario(&sets), 1).expect("a good scenario");
    idle.finish().expect("no rule is broken");
    assert_eq!(idle.now_ns(), idle.end_ns());
}
