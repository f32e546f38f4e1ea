//! `zs_malloc` and `zs_free` with a million objects of 64 bytes to 3 KiB.
//!
//! One iteration is one operation, measured in processor time. The pool holds
//! a million objects, 1.6 GB, throughout.
//!
//! * `recent` replaces objects among those of the last 4096 operations: what
//!   was swapped out last is swapped in first.
//! * `grow_and_shrink` allocates 4096 objects more and frees them again, and
//!   their zspages with them.
//! * `in_order` replaces all objects in the order of their age, as writeback
//!   from the old end does.
//! * `random` replaces objects anywhere: each free meets memory that nothing
//!   has touched for long, so it is the memory's latency that is measured.

mod cpu;

use cpu::CpuTime;
use cpu_time::ThreadTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::hint::black_box;
use std::time::Duration;
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

/// Which objects are replaced, and by which sizes, decided before the clock
/// runs.
type Plan = Vec<(usize, usize)>;

/// Replaces objects as `pick` says.
fn replace(
    group: &mut BenchmarkGroup<'_, CpuTime>,
    name: &str,
    (pool, handles): (&mut ZsPool, &mut [ZsHandle]),
    stream: &mut Xoshiro256PlusPlus,
    mut pick: impl FnMut(&mut Xoshiro256PlusPlus) -> usize,
) {
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|operations| {
            let mut spent = Duration::ZERO;
            for _ in 0..operations.div_ceil(2 * BATCH as u64) {
                let plan: Plan = (0..BATCH).map(|_| (pick(stream), size(stream))).collect();
                let begin = ThreadTime::now();
                for (at, size) in &plan {
                    pool.zs_free(handles[*at]);
                    handles[*at] = pool.zs_malloc(*size).expect("nothing fails here");
                }
                spent += begin.elapsed();
            }
            scaled(spent, operations)
        });
    });
}

fn zsmalloc(criterion: &mut Criterion<CpuTime>) {
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut pool, mut handles) = full_pool(&mut stream);
    let mut group = criterion.benchmark_group("zsmalloc");

    let recent = |stream: &mut Xoshiro256PlusPlus| below(stream, BATCH);
    replace(
        &mut group,
        "recent",
        (&mut pool, &mut handles),
        &mut stream,
        recent,
    );
    let mut next = 0;
    let in_order = |_: &mut Xoshiro256PlusPlus| {
        next = (next + 1) % OBJECTS;
        next
    };
    replace(
        &mut group,
        "in_order",
        (&mut pool, &mut handles),
        &mut stream,
        in_order,
    );
    let random = |stream: &mut Xoshiro256PlusPlus| below(stream, OBJECTS);
    replace(
        &mut group,
        "random",
        (&mut pool, &mut handles),
        &mut stream,
        random,
    );

    group.bench_function("grow_and_shrink", |bencher| {
        let mut taken = Vec::with_capacity(BATCH);
        bencher.iter_custom(|operations| {
            let mut spent = Duration::ZERO;
            for _ in 0..operations.div_ceil(2 * BATCH as u64) {
                let sizes: Vec<usize> = (0..BATCH).map(|_| size(&mut stream)).collect();
                let begin = ThreadTime::now();
                for size in &sizes {
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
    config = Criterion::default()
        .with_measurement(CpuTime).sample_size(20).measurement_time(Duration::from_secs(4));
    targets = zsmalloc
}
criterion_main!(benches);
