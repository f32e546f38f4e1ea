//! Properties, with inputs that shrink to the smallest that fails.
//!
//! The models and their checks are the fuzz targets'; here `proptest` picks
//! the calls.
#![cfg(not(target_arch = "wasm32"))]

mod targets;

use proptest::collection::vec;
use proptest::prelude::*;
use zswap_mm::{
    Algorithm, AllocSite, CodecMemo, CodecMemoOptions, Failslab, PAGE_SIZE, Page, PageContent,
    ZsPool, ZsPoolOptions,
};

fn round_trip(algorithm: Algorithm, page: &Page) -> Result<(), TestCaseError> {
    let mut codec = algorithm.new_compressor();
    let mut buffer = [0; 2 * PAGE_SIZE];
    let length = codec
        .compress(page, &mut buffer)
        .expect("two pages are room enough");
    let mut decoded = Page::zeroed();
    prop_assert_eq!(codec.decompress(&buffer[..length], &mut decoded), Ok(()));
    prop_assert_eq!(&decoded, page);
    // One byte short is no room, and says so.
    let short = codec.compress(page, &mut buffer[..length - 1]);
    prop_assert!(
        short.is_err(),
        "{} wrote {:?} of {}",
        algorithm,
        short,
        length
    );
    // Cut off or with something behind it, it is not the page.
    let mut cut = Page::zeroed();
    prop_assert!(codec.decompress(&buffer[..length - 1], &mut cut).is_err());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn zsmalloc_behaves_like_a_map(bytes in vec(any::<u8>(), 0..4000)) {
        targets::zsmalloc(&bytes);
    }

    #[test]
    fn zbud_behaves_like_a_map(bytes in vec(any::<u8>(), 0..3000)) {
        targets::zbud(&bytes);
    }

    #[test]
    fn z3fold_behaves_like_a_map(bytes in vec(any::<u8>(), 0..3000)) {
        targets::z3fold(&bytes);
    }

    #[test]
    fn all_indexes_behave_like_a_sorted_map(bytes in vec(any::<u8>(), 0..6000)) {
        targets::index(&bytes);
    }

    #[test]
    fn every_compressor_round_trips_every_kind_of_page(seed in any::<u64>(), kind in 0..6_usize) {
        let mut page = Page::zeroed();
        PageContent::ALL[kind].fill(seed, &mut page);
        for algorithm in Algorithm::ALL {
            round_trip(algorithm, &page)?;
        }
    }

    #[test]
    fn every_compressor_round_trips_pieces_of_anything(
        pieces in vec((vec(any::<u8>(), 1..40), 1..60_usize), 1..60),
    ) {
        let bytes: Vec<u8> =
            pieces.iter().flat_map(|(piece, times)| piece.repeat(*times)).take(PAGE_SIZE).collect();
        let mut page = Page::zeroed();
        page.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        for algorithm in Algorithm::ALL {
            round_trip(algorithm, &page)?;
        }
    }

    #[test]
    fn a_memo_never_changes_a_result(
        calls in vec((0..6_usize, 0..5_u64, any::<bool>()), 1..80),
        entries in 1..12_usize,
    ) {
        let options = CodecMemoOptions { entries, ..CodecMemoOptions::default() };
        let mut memo = CodecMemo::new(Algorithm::Lz4.new_compressor(), options);
        let mut plain = Algorithm::Lz4.new_compressor();
        let (mut page, mut buffer) = (Page::zeroed(), [0; 2 * PAGE_SIZE]);
        for (kind, seed, decompress) in calls {
            PageContent::ALL[kind].fill(seed, &mut page);
            let length = plain.compress(&page, &mut buffer).expect("two pages are room enough");
            if decompress {
                prop_assert_eq!(memo.decompressed(&buffer[..length]), Ok(&page));
            } else {
                prop_assert_eq!(memo.compressed(&page), Ok(&buffer[..length]));
            }
        }
    }

    /// Whichever allocation fails, the call gives up with the pool as it was
    /// and succeeds when tried again.
    #[test]
    fn each_allocation_of_zs_malloc_can_fail(size in 1..=4096_usize, chain_size in 4..=16_u8) {
        let options = ZsPoolOptions { chain_size, ..ZsPoolOptions::default() };
        let mut pool = ZsPool::new("faults", options).expect("chain sizes 4 to 16 exist");
        let pages = pool.classes().class_for(size).expect("the size is possible").pages_per_zspage;
        // A handle, a descriptor and the pages.
        let allocations = 2 + u64::from(pages);
        for nth in 1..=allocations {
            pool.set_faults(Failslab::nth(nth));
            prop_assert!(pool.zs_malloc(size).is_err());
            prop_assert_eq!((pool.frames_held(), pool.objects()), (0, 0));
        }
        pool.set_faults(Failslab::nth(allocations + 1));
        let handle = pool.zs_malloc(size).expect("the failure comes one later");
        prop_assert_eq!(pool.faults().attempts(), allocations);
        // A second object needs a handle only, as long as the zspage has room.
        pool.set_faults(Failslab::per_million(1_000_000, 1).only_at(AllocSite::PageFrame));
        if pool.classes().class_for(size).expect("the size is possible").objs_per_zspage > 1 {
            prop_assert!(pool.zs_malloc(size).is_ok());
        }
        pool.zs_free(handle);
    }
}
