//! `zs_malloc` and `zs_free` with a million objects of 64 bytes to 3 KiB.
//!
//! One iteration is one operation. `churn` frees a random object and
//! allocates one of a random size in its place: the pool stays at a million
//! and its memory is touched all over, 1.6 GB of it. `last_in_first_out`
//! frees what was allocated last, so that everything is in the cache.

use criterion::{Criterion, criterion_group, criterion_main};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::hint::black_box;
use std::time::{Duration, Instant};
use zswap_mm::{ZsHandle, ZsPool, ZsPoolOptions};

const OBJECTS: usize = 1_000_000;
/// Operations between two looks at the clock.
const BATCH: usize = 4096;

fn below(stream: &mut Xoshiro256PlusPlus, bound: usize) -> usize {
    ((u128::from(stream.next_u64()) * bound as u128) >> 64) as usize
}

fn size(stream: &mut Xoshiro256PlusPlus) -> usize {
    64 + below(stream, 3072 - 64 + 1)
}

fn full_pool(stream: &mut Xoshiro256PlusPlus) -> (ZsPool, Vec<ZsHandle>) {
    let mut pool = ZsPool::new("bench", ZsPoolOptions::default()).expect("the defaults are fine");
    let handles = (0..OBJECTS)
        .map(|_| pool.zs_malloc(size(stream)).expect("nothing fails here"))
        .collect();
    (pool, handles)
}

/// Which objects are freed and which sizes allocated next, decided before the
/// clock runs.
fn plan(stream: &mut Xoshiro256PlusPlus) -> Vec<(usize, usize)> {
    (0..BATCH)
        .map(|_| (below(stream, OBJECTS), size(stream)))
        .collect()
}

fn zsmalloc(criterion: &mut Criterion) {
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut pool, mut handles) = full_pool(&mut stream);
    let mut group = criterion.benchmark_group("zsmalloc");

    group.bench_function("churn", |bencher| {
        bencher.iter_custom(|operations| {
            let mut spent = Duration::ZERO;
            for _ in 0..operations.div_ceil(2 * BATCH as u64) {
                let plan = plan(&mut stream);
                let begin = Instant::now();
                for (at, size) in &plan {
                    pool.zs_free(handles[*at]);
                    handles[*at] = pool.zs_malloc(*size).expect("nothing fails here");
                }
                spent += begin.elapsed();
            }
            scaled(spent, operations)
        });
    });

    group.bench_function("last_in_first_out", |bencher| {
        let mut taken = Vec::with_capacity(BATCH);
        bencher.iter_custom(|operations| {
            let mut spent = Duration::ZERO;
            for _ in 0..operations.div_ceil(2 * BATCH as u64) {
                let plan = plan(&mut stream);
                let begin = Instant::now();
                for (_, size) in &plan {
                    taken.push(pool.zs_malloc(*size).expect("nothing fails here"));
                }
                for handle in taken.drain(..).rev() {
                    pool.zs_free(handle);
                }
                spent += begin.elapsed();
            }
            scaled(spent, operations)
        });
    });

    group.bench_function("location", |bencher| {
        let mut at = 0;
        bencher.iter(|| {
            at = (at + 7919) % OBJECTS;
            black_box(pool.location(handles[at]))
        });
    });
    group.finish();
}

/// What `operations` took, after whole batches were measured.
fn scaled(spent: Duration, operations: u64) -> Duration {
    let measured = operations.div_ceil(2 * BATCH as u64) * 2 * BATCH as u64;
    Duration::from_nanos((spent.as_nanos() * u128::from(operations) / u128::from(measured)) as u64)
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(4));
    targets = zsmalloc
}
criterion_main!(benches);
