//! Store, load and erase with a million entries, in each index.
//!
//! One iteration is one operation. Slots come in runs of 32, as the swap code
//! hands them out in clusters; loads and erasures are random.

mod cpu;

use cpu::CpuTime;
use cpu_time::ThreadTime;
use criterion::{Criterion, criterion_group, criterion_main};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::hint::black_box;
use std::time::Duration;
use zswap_mm::{IndexKind, SwapIndex, SwapSlot};

const SLOTS: usize = 1_000_000;
const CLUSTER: usize = 32;

/// All slots, cluster after cluster, the clusters in random order.
fn in_clusters(stream: &mut Xoshiro256PlusPlus) -> Vec<SwapSlot> {
    let clusters = shuffled(stream, SLOTS / CLUSTER);
    let slots = clusters
        .into_iter()
        .flat_map(|cluster| cluster * CLUSTER..(cluster + 1) * CLUSTER);
    slots.map(|slot| SwapSlot(slot as u64)).collect()
}

fn shuffled(stream: &mut Xoshiro256PlusPlus, len: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    for at in (1..len).rev() {
        let other = ((u128::from(stream.next_u64()) * (at as u128 + 1)) >> 64) as usize;
        order.swap(at, other);
    }
    order
}

/// Time of `operations` calls, made in whole passes over all slots.
fn passes(operations: u64, mut pass: impl FnMut() -> Duration) -> Duration {
    let passes = operations.div_ceil(SLOTS as u64);
    let spent: Duration = (0..passes).map(|_| pass()).sum();
    let measured = u128::from(passes) * SLOTS as u128;
    Duration::from_nanos((spent.as_nanos() * u128::from(operations) / measured) as u64)
}

fn timed(mut work: impl FnMut()) -> Duration {
    let begin = ThreadTime::now();
    work();
    begin.elapsed()
}

fn store_all(index: &mut dyn SwapIndex<u32>, slots: &[SwapSlot]) {
    for slot in slots {
        black_box(index.store(*slot, 1)).expect("nothing fails here");
    }
}

fn index(criterion: &mut Criterion<CpuTime>) {
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(1);
    let slots = in_clusters(&mut stream);
    let random: Vec<SwapSlot> = shuffled(&mut stream, SLOTS)
        .into_iter()
        .map(|slot| SwapSlot(slot as u64))
        .collect();
    let mut group = criterion.benchmark_group("index");
    for kind in IndexKind::ALL {
        let new = || kind.new_index::<u32>(SLOTS as u64);
        group.bench_function(format!("{kind}/store"), |bencher| {
            bencher.iter_custom(|operations| {
                passes(operations, || {
                    let mut index = new();
                    timed(|| store_all(index.as_mut(), &slots))
                })
            });
        });
        let mut full = new();
        store_all(full.as_mut(), &slots);
        group.bench_function(format!("{kind}/load"), |bencher| {
            bencher.iter_custom(|operations| {
                passes(operations, || {
                    timed(|| {
                        for slot in &random {
                            black_box(full.load(*slot));
                        }
                    })
                })
            });
        });
        group.bench_function(format!("{kind}/erase"), |bencher| {
            bencher.iter_custom(|operations| {
                passes(operations, || {
                    let spent = timed(|| {
                        for slot in &random {
                            black_box(full.erase(*slot));
                        }
                    });
                    store_all(full.as_mut(), &slots);
                    spent
                })
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .with_measurement(CpuTime)
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    targets = index
}
criterion_main!(benches);
