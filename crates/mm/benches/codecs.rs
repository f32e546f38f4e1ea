//! Compression and decompression of a page by each codec, and the memo.
//!
//! One iteration is one page; pages of one kind follow each other.

mod cpu;

use cpu::CpuTime;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use zswap_mm::{Algorithm, CodecMemo, CodecMemoOptions, PAGE_SIZE, Page, PageContent};

const CONTENTS: [PageContent; 4] = [
    PageContent::Text,
    PageContent::Pointers,
    PageContent::Code,
    PageContent::HalfRandom,
];

fn pages(content: PageContent, count: u64) -> Vec<Page> {
    (0..count)
        .map(|seed| {
            let mut page = Page::zeroed();
            content.fill(seed, &mut page);
            page
        })
        .collect()
}

fn compressed(algorithm: Algorithm, pages: &[Page]) -> Vec<Vec<u8>> {
    let mut codec = algorithm.new_compressor();
    let mut buffer = [0; 2 * PAGE_SIZE];
    pages
        .iter()
        .map(|page| {
            let length = codec.compress(page, &mut buffer).expect("there is room");
            buffer[..length].to_vec()
        })
        .collect()
}

fn codecs(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("codecs");
    for algorithm in [
        Algorithm::Deflate,
        Algorithm::Lz4,
        Algorithm::Lzo,
        Algorithm::Zstd,
    ] {
        for content in CONTENTS {
            let pages = pages(content, 64);
            let stored = compressed(algorithm, &pages);
            let mut codec = algorithm.new_compressor();
            let mut buffer = [0; 2 * PAGE_SIZE];
            let mut at = 0;
            group.bench_function(format!("{algorithm}/{content}/compress"), |bencher| {
                bencher.iter(|| {
                    at = (at + 1) % pages.len();
                    black_box(codec.compress(&pages[at], &mut buffer))
                });
            });
            let mut page = Page::zeroed();
            group.bench_function(format!("{algorithm}/{content}/decompress"), |bencher| {
                bencher.iter(|| {
                    at = (at + 1) % stored.len();
                    black_box(codec.decompress(&stored[at], &mut page))
                });
            });
        }
    }
    group.finish();
}

/// The hot path of a long run: 1536 pages of the published benchmark's kind
/// over and over, all remembered.
fn memo(criterion: &mut Criterion<CpuTime>) {
    let pages = pages(PageContent::HalfRandom, 1536);
    let mut memo = CodecMemo::new(
        Algorithm::Zstd.new_compressor(),
        CodecMemoOptions::default(),
    );
    let stored: Vec<Vec<u8>> = pages
        .iter()
        .map(|page| memo.compressed(page).expect("there is room").to_vec())
        .collect();
    for bytes in &stored {
        memo.decompressed(bytes)
            .expect("the memo's own bytes decode");
    }
    let mut group = criterion.benchmark_group("memo");
    let (mut at, mut page, mut bytes) = (0, Page::zeroed(), Vec::new());
    group.bench_function("compress", |bencher| {
        bencher.iter(|| {
            at = (at + 1) % pages.len();
            black_box(memo.compress(&pages[at], &mut bytes))
        });
    });
    group.bench_function("decompress", |bencher| {
        bencher.iter(|| {
            at = (at + 1) % stored.len();
            black_box(memo.decompress(&stored[at], &mut page))
        });
    });
    group.bench_function("compressed", |bencher| {
        bencher.iter(|| {
            at = (at + 1) % pages.len();
            black_box(memo.compressed(&pages[at]).map(<[u8]>::len))
        });
    });
    group.bench_function("decompressed", |bencher| {
        bencher.iter(|| {
            at = (at + 1) % stored.len();
            black_box(memo.decompressed(&stored[at]).map(|page| page.bytes()[0]))
        });
    });
    group.finish();
    assert_eq!(
        memo.misses(),
        2 * pages.len() as u64,
        "all else came from memory"
    );
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .with_measurement(CpuTime)
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = memo, codecs
}
criterion_main!(benches);
