//! What a pool takes beside its pages, by the global allocator's own count.
#![cfg(not(target_arch = "wasm32"))]

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use zswap_mm::{Algorithm, PAGE_SIZE, Page, PageContent, ZsHandle, ZsPool, ZsPoolOptions};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes beside the pages, in thousandths of the pages' bytes, counted and
/// as the pool says.
fn overhead_permille(objects: usize, size: impl Fn(usize) -> usize) -> (usize, usize) {
    let region = Region::new(GLOBAL);
    let mut pool =
        ZsPool::new("overhead", ZsPoolOptions::default()).expect("the defaults are fine");
    for object in 0..objects {
        pool.zs_malloc(size(object)).expect("nothing fails here");
    }
    let counted = region.change();
    let held = counted.bytes_allocated - counted.bytes_deallocated;
    let pages = pool.pages_allocated() as usize * PAGE_SIZE;
    (
        (held - pages) * 1000 / pages,
        pool.overhead_bytes() * 1000 / pages,
    )
}

/// One test: the count is of the whole process.
#[test]
fn a_pool_takes_less_than_three_per_cent_beside_its_pages() {
    // Compressed pages as zswap stores them.
    for algorithm in [Algorithm::Lz4, Algorithm::Zstd] {
        let mut codec = algorithm.new_compressor();
        let (mut page, mut buffer) = (Page::zeroed(), [0; 2 * PAGE_SIZE]);
        let mut sizes = Vec::new();
        for seed in 0..60 {
            for content in [PageContent::Text, PageContent::Pointers, PageContent::Code] {
                content.fill(seed, &mut page);
                sizes.push(codec.compress(&page, &mut buffer).expect("there is room"));
            }
        }
        let (counted, said) = overhead_permille(100_000, |object| sizes[object * 7 % sizes.len()]);
        eprintln!("{algorithm}: {counted} ‰ counted, {said} ‰ said");
        assert!(counted < 30, "{algorithm}: {counted} ‰");
        assert!(
            said.abs_diff(counted) <= 1,
            "{algorithm}: {said} ‰ said, {counted} ‰ counted"
        );
    }
    // The sizes of the benchmark: 64 bytes to 3 KiB.
    let (counted, _) = overhead_permille(100_000, |object| 64 + object * 977 % (3072 - 64));
    eprintln!("64 to 3072 bytes: {counted} ‰ counted");
    assert!(counted < 30, "64 to 3072 bytes: {counted} ‰");
    // By size: eight bytes of handle weigh on small objects, as in the kernel.
    for (size, limit) in [(3000, 30), (1000, 30), (500, 30), (300, 35), (64, 130)] {
        let (counted, said) = overhead_permille(100_000, |_| size);
        eprintln!("{size} bytes: {counted} ‰ counted, {said} ‰ said");
        assert!(counted < limit, "{size} bytes: {counted} ‰");
    }
    // Freed memory is given back.
    let region = Region::new(GLOBAL);
    let mut pool =
        ZsPool::new("overhead", ZsPoolOptions::default()).expect("the defaults are fine");
    let handles: Vec<ZsHandle> = (0..20_000)
        .map(|_| pool.zs_malloc(1000).expect("nothing fails here"))
        .collect();
    for handle in handles {
        pool.zs_free(handle);
    }
    let left = region.change();
    let left = left.bytes_allocated - left.bytes_deallocated;
    assert!(
        left < 64 * PAGE_SIZE * 20,
        "{left} bytes are left of 20,000 objects"
    );
    drop(pool);
}
