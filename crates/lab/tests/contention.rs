//! What 32 pools, locks per size class and split trees were for, and what 32
//! pools cost.

use zswap_lab::{Contention, Preset, contention};
use zswap_paths::Design;

fn run(design: Design) -> Contention {
    contention(design, 8, 1).expect("no rule is broken")
}

fn waited_ns(run: &Contention, lock: &str) -> u64 {
    run.locks.get(lock).map_or(0, |count| count.waited_ns)
}

#[test]
fn one_pool_lock_is_contended_and_32_pools_or_class_locks_mend_that() {
    let one = run(Preset::V6_10OnePool.design());
    let many = run(Preset::V6_10.design());
    let classes = run(Preset::V6_11.design());
    assert!(waited_ns(&one, "pool->lock") > 10 * waited_ns(&many, "pool->lock"));
    let of_classes = waited_ns(&classes, "pool->lock") + waited_ns(&classes, "class->lock");
    assert!(
        waited_ns(&one, "pool->lock") > 2 * of_classes,
        "{one:?} {classes:?}"
    );
    assert!(
        many.pool_pages > one.pool_pages,
        "and 32 pools take more memory"
    );
}

#[test]
fn split_trees_are_less_contended_than_one() {
    let one = run(Preset::V6_7.design());
    let split = run(Preset::V6_8SplitTree.design());
    let waited = waited_ns(&one, "tree->lock");
    assert!(
        waited > 10 * waited_ns(&split, "tree->lock"),
        "{one:?} {split:?}"
    );
}
