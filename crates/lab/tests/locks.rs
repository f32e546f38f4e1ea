//! The locks of each path, against the order that the memory reference gives
//! (sections 2 and 3.7).

use zswap_lab::{Preset, lock_table};

/// The locks of a path: each with what it is taken in.
fn locks(preset: Preset, path: &str) -> Vec<String> {
    let table = lock_table(preset.design()).expect("no rule is broken");
    let row = table.into_iter().find(|row| row.path == path);
    let row = row.expect("every path is in the table");
    let line = |lock: &zswap_lab::LockUse| {
        let mut line: Vec<&str> = lock.inside.iter().map(String::as_str).collect();
        line.push(&lock.lock);
        line.join(" > ")
    };
    row.locks.iter().map(line).collect()
}

#[test]
fn in_6_7_one_pool_lock_does_everything_and_trees_are_outermost() {
    assert_eq!(
        locks(Preset::V6_7, "store"),
        [
            "acomp_ctx.mutex",
            "acomp_ctx.mutex > stream lock",
            "acomp_ctx.mutex > pool->lock",
            "acomp_ctx.mutex > pool->lock",
            "tree->lock",
            "tree->lock > pool->lru_lock",
        ]
    );
    assert_eq!(
        locks(Preset::V6_7, "load"),
        [
            "tree->lock",
            // zsmalloc cannot be slept with while mapped: the data are copied
            // before the mutex is taken.
            "pool->lock",
            "acomp_ctx.mutex",
            "acomp_ctx.mutex > stream lock",
            "tree->lock",
            "tree->lock > pool->lru_lock",
            "tree->lock > pool->lock",
        ]
    );
    assert_eq!(
        locks(Preset::V6_7, "writeback"),
        [
            "pool->lru_lock",
            "tree->lock",
            "pool->lock",
            "acomp_ctx.mutex",
            "acomp_ctx.mutex > stream lock",
            "tree->lock",
            // It is in the list no longer, which only a look under the lock tells.
            "pool->lru_lock",
            "pool->lock",
        ]
    );
}

#[test]
fn in_6_11_classes_have_locks_inside_the_pools() {
    assert_eq!(
        locks(Preset::V6_11, "store"),
        [
            "acomp_ctx.mutex",
            "acomp_ctx.mutex > stream lock",
            "acomp_ctx.mutex > class->lock",
            "acomp_ctx.mutex > pool->lock",
            "acomp_ctx.mutex > pool->lock > zspage lock",
            "xa_lock",
            "list_lru lock",
        ]
    );
    assert_eq!(
        locks(Preset::V6_11, "load"),
        [
            "xa_lock",
            "acomp_ctx.mutex",
            "acomp_ctx.mutex > pool->lock",
            "acomp_ctx.mutex > pool->lock > zspage lock",
            "acomp_ctx.mutex > stream lock",
            "list_lru lock",
            "pool->lock",
            "pool->lock > class->lock",
        ]
    );
}

#[test]
fn since_6_15_a_zspage_is_held_over_the_decompression() {
    let load = |mutex: &[&str]| {
        let prefix = mutex
            .first()
            .map_or(String::new(), |mutex| format!("{mutex} > "));
        let mut lines: Vec<String> = mutex.iter().map(|mutex| (*mutex).to_owned()).collect();
        lines.push(format!("{prefix}pool->lock"));
        lines.push(format!("{prefix}pool->lock > zspage lock"));
        lines.push(format!("{prefix}zspage lock > stream lock"));
        for line in [
            "xa_lock",
            "list_lru lock",
            "pool->lock",
            "pool->lock > class->lock",
        ] {
            lines.push(line.to_owned());
        }
        lines
    };
    let shared = ["acomp_ctx.mutex"];
    assert_eq!(locks(Preset::V6_18, "load"), load(&shared));
    assert_eq!(locks(Preset::BeforeTheSplit, "load"), load(&shared));
    assert_eq!(
        locks(Preset::Patch1, "load"),
        load(&["acomp_ctx.decompress_mutex"])
    );
    assert_eq!(locks(Preset::Patch2, "load"), load(&[]));
}

#[test]
fn writeback_decompresses_under_the_same_lock_as_a_load() {
    for (preset, mutex) in [
        (Preset::BeforeTheSplit, Some("acomp_ctx.mutex")),
        (Preset::Patch1, Some("acomp_ctx.decompress_mutex")),
        (Preset::Patch2, None),
    ] {
        let writeback = locks(preset, "writeback");
        assert_eq!(writeback[0], "list_lru lock", "{preset}");
        let found = writeback.iter().find(|lock| lock.starts_with("acomp_ctx"));
        assert_eq!(found.map(String::as_str), mutex, "{preset}");
    }
}

#[test]
fn a_store_takes_the_compression_mutex_in_every_design() {
    for preset in Preset::ALL {
        assert_eq!(locks(preset, "store")[0], "acomp_ctx.mutex", "{preset}");
    }
}
