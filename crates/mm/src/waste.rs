//! What many pools waste.
//!
//! Every pool has its own partly filled zspages: at worst one for each size
//! class, and after some frees more than that. Thirty-two pools have
//! thirty-two times as many, while the objects in them are no more. This
//! measures it: the same objects once in one pool and once in thirty-two,
//! spread by the addresses of their entries.
//!
//! 1. Both runs see the same sizes in the same order.
//! 2. A page is wasted as far as it is part of free objects.
//!
//! ```
//! use zswap_mm::waste::{WasteLoad, compare};
//! use zswap_mm::Algorithm;
//!
//! let load = WasteLoad { pages: 2000, freed_percent: 0, algorithm: Algorithm::Lz4, seed: 1 };
//! let row = compare(load)?;
//! assert!(row.many.pages > row.one.pages);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::compressor::{Algorithm, CompressError};
use crate::content::PageContent;
use crate::page::{PAGE_SIZE, Page};
use crate::random::Stream;
use crate::zpool::{
    EntryPointer, PoolNames, SetHandle, ZSWAP_NR_ZPOOLS, Zpool, ZpoolKind, ZpoolSet,
    ZpoolSetOptions,
};
use std::fmt::Write as _;

/// A load to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WasteLoad {
    /// Pages stored.
    pub pages: u64,
    /// How many of them are freed again, picked at random, in per cent.
    pub freed_percent: u64,
    /// What they are compressed with.
    pub algorithm: Algorithm,
    /// Seed of contents and choices.
    pub seed: u64,
}

/// How a set of pools ended up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WasteResult {
    /// Pages held.
    pub pages: u64,
    /// Zspages that are neither full nor empty.
    pub partly_filled_zspages: u64,
    /// Bytes of the free objects in them.
    pub free_object_bytes: u64,
}

impl WasteResult {
    /// Whole pages that the free objects amount to.
    pub fn wasted_pages(&self) -> u64 {
        self.free_object_bytes / PAGE_SIZE as u64
    }
}

/// One pool against thirty-two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WasteRow {
    /// What was stored.
    pub load: WasteLoad,
    /// Objects left at the end.
    pub objects: u64,
    /// In one pool.
    pub one: WasteResult,
    /// In thirty-two.
    pub many: WasteResult,
}

/// The mixture of contents, one of each kind in turn as often as listed here:
/// mostly memory of programs, and what cannot be compressed is left out.
const MIXTURE: [PageContent; 6] = [
    PageContent::Pointers,
    PageContent::Text,
    PageContent::Pointers,
    PageContent::Code,
    PageContent::Pointers,
    PageContent::HalfRandom,
];

/// Contents compressed of each kind; sizes of more pages are drawn from them.
const SAMPLES: u64 = 64;

fn compressed_sizes(algorithm: Algorithm, seed: u64) -> Result<Vec<usize>, CompressError> {
    let mut codec = algorithm.new_compressor();
    let (mut page, mut buffer) = (Page::zeroed(), [0; 2 * PAGE_SIZE]);
    let mut sizes = Vec::new();
    for sample in 0..SAMPLES {
        for content in MIXTURE {
            content.fill(
                seed + sample * MIXTURE.len() as u64 + sizes.len() as u64,
                &mut page,
            );
            sizes.push(codec.compress(&page, &mut buffer)?.min(PAGE_SIZE));
        }
    }
    Ok(sizes)
}

fn run(load: WasteLoad, sizes: &[usize], pools: usize) -> Result<WasteResult, WasteError> {
    let options = ZpoolSetOptions {
        pools,
        ..ZpoolSetOptions::new(ZpoolKind::Zsmalloc)
    };
    let mut set = ZpoolSet::new(options, &mut PoolNames::default())?;
    let mut stream = Stream::new(load.seed);
    let mut handles: Vec<SetHandle> = Vec::new();
    for number in 0..load.pages {
        let size = sizes[stream.index(sizes.len())];
        handles.push(set.malloc(EntryPointer::in_slab(number, 80), 0, size)?);
    }
    for _ in 0..load.pages * load.freed_percent / 100 {
        let picked = stream.index(handles.len());
        set.free(handles.swap_remove(picked));
    }
    Ok(result(&set))
}

fn result(set: &ZpoolSet) -> WasteResult {
    let mut result = WasteResult {
        pages: set.total_pages(),
        ..WasteResult::default()
    };
    for zpool in set.zpools() {
        let Zpool::Zsmalloc(pool) = zpool else {
            continue;
        };
        for line in pool.all_class_stats() {
            let partly = &line.zspages[1..line.zspages.len() - 1];
            result.partly_filled_zspages +=
                partly.iter().map(|count| u64::from(*count)).sum::<u64>();
            result.free_object_bytes += (line.obj_allocated - line.obj_used) * u64::from(line.size);
        }
    }
    result
}

/// Why a load could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum WasteError {
    /// A page could not be compressed.
    #[error(transparent)]
    Compress(#[from] CompressError),
    /// A pool could not be made.
    #[error(transparent)]
    Pools(#[from] crate::zpool::ZpoolSetError),
    /// An object could not be allocated.
    #[error(transparent)]
    Alloc(#[from] crate::fault::AllocError),
}

/// Measures a load.
///
/// # Errors
///
/// [`WasteError`]; with the allocators as they are, none happens.
pub fn compare(load: WasteLoad) -> Result<WasteRow, WasteError> {
    let sizes = compressed_sizes(load.algorithm, load.seed)?;
    let one = run(load, &sizes, 1)?;
    let many = run(load, &sizes, ZSWAP_NR_ZPOOLS)?;
    let objects = load.pages - load.pages * load.freed_percent / 100;
    Ok(WasteRow {
        load,
        objects,
        one,
        many,
    })
}

/// The loads of the table: small to large, as stored and after frees.
pub fn standard_loads(algorithm: Algorithm, seed: u64) -> Vec<WasteLoad> {
    [1000, 10_000, 100_000]
        .into_iter()
        .flat_map(|pages| {
            [0, 50, 90].map(|freed_percent| WasteLoad {
                pages,
                freed_percent,
                algorithm,
                seed,
            })
        })
        .collect()
}

/// Rows as a table.
pub fn table(rows: &[WasteRow]) -> String {
    let mut text = String::from(
        "stored  freed  objects |  one pool: pages  partly filled  wasted | \
         32 pools: pages  partly filled  wasted | pages more\n",
    );
    for row in rows {
        let more_permille =
            (row.many.pages - row.one.pages.min(row.many.pages)) * 1000 / row.one.pages.max(1);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>6} {:>4} % {:>8} | {:>16} {:>14} {:>7} | {:>15} {:>14} {:>7} | {:>6}.{} %",
            row.load.pages,
            row.load.freed_percent,
            row.objects,
            row.one.pages,
            row.one.partly_filled_zspages,
            row.one.wasted_pages(),
            row.many.pages,
            row.many.partly_filled_zspages,
            row.many.wasted_pages(),
            more_permille / 10,
            more_permille % 10,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_pools_waste_more_and_the_less_the_more_is_stored() -> Result<(), WasteError> {
        let mut last_more = u64::MAX;
        for pages in [1000, 10_000, 50_000] {
            let load = WasteLoad {
                pages,
                freed_percent: 0,
                algorithm: Algorithm::Zstd,
                seed: 1,
            };
            let row = compare(load)?;
            assert!(row.many.pages > row.one.pages, "{row:?}");
            assert!(row.many.wasted_pages() > row.one.wasted_pages(), "{row:?}");
            // As stored, a pool has one partly filled zspage per class at most.
            assert!(row.one.partly_filled_zspages <= 119);
            assert!(row.many.partly_filled_zspages <= 119 * 32);
            let more_permille = (row.many.pages - row.one.pages) * 1000 / row.one.pages;
            assert!(more_permille < last_more, "{row:?}");
            last_more = more_permille;
        }
        Ok(())
    }

    #[test]
    fn frees_leave_more_waste_than_stores() -> Result<(), WasteError> {
        let load = |freed_percent| WasteLoad {
            pages: 10_000,
            freed_percent,
            algorithm: Algorithm::Lz4,
            seed: 1,
        };
        let (stored, freed) = (compare(load(0))?, compare(load(50))?);
        assert_eq!(freed.objects, 5000);
        assert!(
            freed.one.wasted_pages() > 10 * stored.one.wasted_pages(),
            "{stored:?} {freed:?}"
        );
        assert!(table(&[stored, freed]).lines().count() == 3);
        Ok(())
    }
}
