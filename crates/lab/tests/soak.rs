//! Data integrity in random mixes. `zswap-sim soak` runs as many as you like.

use zswap_lab::{Soak, soak};

#[test]
fn random_mixes_of_all_paths_lose_nothing_and_take_locks_in_one_order() {
    let report = soak(Soak {
        ops: 100_000,
        seed: 1,
    })
    .expect("nothing is found");
    let counters = report.counters;
    assert!(report.reads > 40_000 && report.switches > 10, "{report:?}");
    assert!(counters.written_back_pages > 1_000, "{counters:?}");
    assert!(counters.pool_limit_hit > 100, "{counters:?}");
    assert!(counters.reject_reclaim_fail > 0, "{counters:?}");
    assert!(counters.reject_alloc_fail > 10, "{counters:?}");
    assert!(counters.reject_compress_poor > 100, "{counters:?}");
}

#[test]
#[ignore = "takes many minutes: cargo test --release -- --ignored"]
fn ten_million_operations() {
    let ops = 10_000_000;
    soak(Soak { ops, seed: 2 }).expect("nothing is found");
}

#[test]
fn the_same_soak_gives_the_same_report() {
    let once = || {
        soak(Soak {
            ops: 10_000,
            seed: 3,
        })
        .expect("nothing is found")
    };
    assert_eq!(once(), once());
}
