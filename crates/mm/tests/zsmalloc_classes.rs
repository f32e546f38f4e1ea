//! The size-class tables against reference tables and the kernel's document.

use zswap_mm::zsmalloc::{ChainSizeError, ClassIndex, FullnessRule, SizeClasses};
use zswap_mm::{ChainRule, ZsHandle, ZsPool, ZsPoolOptions};

fn table(chain_size: u8, rule: ChainRule) -> SizeClasses {
    SizeClasses::new(chain_size, rule).expect("chain sizes 4 to 16 exist")
}

/// The reference file, without what a checkout may have done to line ends.
fn reference(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[test]
fn the_tables_equal_the_reference_files() {
    let files = [
        (
            4,
            ChainRule::Current,
            include_str!("data/zsmalloc-classes-chain4.csv"),
        ),
        (
            8,
            ChainRule::Current,
            include_str!("data/zsmalloc-classes-chain8.csv"),
        ),
        (
            4,
            ChainRule::Legacy,
            include_str!("data/zsmalloc-classes-chain4-legacy-usedpc.csv"),
        ),
        (
            8,
            ChainRule::Legacy,
            include_str!("data/zsmalloc-classes-chain8-legacy-usedpc.csv"),
        ),
    ];
    for (chain_size, rule, file) in files {
        assert_eq!(
            table(chain_size, rule).to_csv(),
            reference(file),
            "{chain_size}, {rule:?}"
        );
    }
}

/// Chain size, documented watermark in bytes, documented number of classes,
/// and the number the code since 6.3 makes (Documentation/mm/zsmalloc.rst;
/// the last column computed).
const DOCUMENTED: [(u8, usize, usize, usize); 13] = [
    (4, 3264, 69, 69),
    (5, 3408, 86, 86),
    (6, 3504, 93, 94),
    (7, 3584, 112, 110),
    (8, 3632, 123, 119),
    (9, 3680, 140, 136),
    (10, 3712, 143, 141),
    (11, 3744, 159, 153),
    (12, 3776, 164, 159),
    (13, 3792, 180, 173),
    (14, 3808, 183, 179),
    (15, 3840, 188, 186),
    (16, 3840, 191, 192),
];

#[test]
fn watermarks_and_numbers_of_classes_are_the_documented_ones() {
    for (chain_size, watermark, legacy_classes, classes) in DOCUMENTED {
        let (legacy, current) = (
            table(chain_size, ChainRule::Legacy),
            table(chain_size, ChainRule::Current),
        );
        assert_eq!(
            legacy.huge_watermark(),
            watermark,
            "chain size {chain_size}"
        );
        assert_eq!(
            current.huge_watermark(),
            watermark,
            "chain size {chain_size}"
        );
        assert_eq!(
            legacy.classes().len(),
            legacy_classes,
            "chain size {chain_size}"
        );
        assert_eq!(current.classes().len(), classes, "chain size {chain_size}");
    }
    assert_eq!(table(8, ChainRule::Current).huge_class_size(), 3625);
    assert_eq!(table(4, ChainRule::Current).huge_class_size(), 3257);
}

#[test]
fn the_documented_tail_of_chain_size_16_comes_out() {
    let tail: Vec<(u8, u16, u8)> = table(16, ChainRule::Legacy)
        .classes()
        .iter()
        .filter(|class| class.size >= 3264)
        .map(|class| (class.index.0, class.size, class.pages_per_zspage))
        .collect();
    let documented = [
        (202, 3264, 4),
        (206, 3328, 13),
        (207, 3344, 9),
        (208, 3360, 14),
        (211, 3408, 5),
        (212, 3424, 16),
        (214, 3456, 11),
        (217, 3504, 6),
        (219, 3536, 13),
        (222, 3584, 7),
        (223, 3600, 15),
        (225, 3632, 8),
        (228, 3680, 9),
        (230, 3712, 10),
        (232, 3744, 11),
        (234, 3776, 12),
        (235, 3792, 13),
        (236, 3808, 14),
        (238, 3840, 15),
        (254, 4096, 1),
    ];
    assert_eq!(tail, documented);
}

#[test]
fn every_request_has_one_class_that_holds_it() {
    for chain_size in 4..=16 {
        for rule in [ChainRule::Current, ChainRule::Legacy] {
            let table = table(chain_size, rule);
            let mut last = 0;
            for size in 1..=4096 {
                let class = table.class_for(size).expect("1 to 4096 bytes are possible");
                assert!(class.payload_bytes() >= size);
                assert!(
                    (class.smallest_request_bytes()..=class.largest_request_bytes())
                        .contains(&size)
                );
                assert!(class.size >= last, "a larger request got a smaller class");
                last = class.size;
            }
            assert!(table.class_for(0).is_err());
            assert!(table.class_for(4097).is_err());
        }
    }
}

#[test]
fn impossible_chain_sizes_are_refused() {
    for chain_size in [0, 3, 17, 255] {
        let error = SizeClasses::new(chain_size, ChainRule::Current).map(|_| ());
        assert_eq!(error, Err(ChainSizeError(chain_size)));
    }
}

/// Fills a class with so many objects, then frees some of them.
fn fill_class(pool: &mut ZsPool, size: usize, allocated: usize, used: usize) -> Vec<ZsHandle> {
    let mut handles: Vec<ZsHandle> = (0..allocated)
        .map(|_| pool.zs_malloc(size).expect("nothing fails here"))
        .collect();
    // Every seventh, then every fifth …, so that every zspage keeps some.
    let mut step = 7;
    while handles.len() > used {
        let surplus = handles.len() - used;
        let mut number = 0;
        let mut freed = 0;
        handles.retain(|handle| {
            number += 1;
            let free = freed < surplus && number % step == 0;
            if free {
                pool.zs_free(*handle);
                freed += 1;
            }
            !free
        });
        step = (step - 2).max(1);
    }
    handles
}

/// The sample statistics of Documentation/mm/zsmalloc.rst: class, size,
/// objects allocated, objects used, pages used, pages per zspage, freeable.
const SAMPLE: [(u8, u16, u64, u64, u64, u8, u64); 3] = [
    (30, 512, 3464, 3346, 433, 1, 14),
    (31, 528, 4154, 3793, 536, 4, 44),
    (32, 544, 4170, 3965, 556, 2, 26),
];

#[test]
fn the_documented_sample_statistics_come_out_and_compaction_frees_what_they_say() {
    let mut pool = ZsPool::new("zram0", ZsPoolOptions::default()).expect("the defaults are fine");
    for (class, size, allocated, used, pages, pages_per_zspage, freeable) in SAMPLE {
        let payload = usize::from(size) - 8;
        fill_class(&mut pool, payload, allocated as usize, used as usize);
        let stats = pool
            .class_stats(ClassIndex(class))
            .expect("the class exists");
        assert_eq!((stats.class.0, stats.size), (class, size));
        assert_eq!((stats.obj_allocated, stats.obj_used), (allocated, used));
        assert_eq!(
            (stats.pages_used, stats.pages_per_zspage),
            (pages, pages_per_zspage)
        );
        assert_eq!(stats.freeable, freeable, "class {class}");
        let freed = pool.zs_compact_class(ClassIndex(class)).pages_freed;
        assert_eq!(freed, freeable, "class {class}");
        let after = pool
            .class_stats(ClassIndex(class))
            .expect("the class exists");
        assert_eq!((after.obj_used, after.pages_used), (used, pages - freeable));
        assert_eq!(after.freeable, 0);
    }
}

#[test]
fn thirteen_objects_of_the_documented_example_take_five_pages() {
    // With the chain limited to four pages the size is merged into 1632:
    // six pages, as the document has it.
    for (chain_size, pages) in [(8, 5), (4, 6)] {
        let options = ZsPoolOptions {
            chain_size,
            ..ZsPoolOptions::default()
        };
        let mut pool = ZsPool::new("zram0", options).expect("chain sizes 4 and 8 exist");
        fill_class(&mut pool, 1560, 13, 13);
        assert_eq!(pool.pages_allocated(), pages, "chain size {chain_size}");
    }
}

#[test]
fn the_statistics_have_the_kernels_columns() {
    let mut pool = ZsPool::new("zram0", ZsPoolOptions::default()).expect("the defaults are fine");
    fill_class(&mut pool, 504, 20, 12);
    let table = pool.stats_table();
    let words: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(words[0][..3], ["class", "size", "10%"]);
    assert_eq!(
        words[0][12..],
        [
            "100%",
            "obj_allocated",
            "obj_used",
            "pages_used",
            "pages_per_zspage",
            "freeable"
        ]
    );
    assert_eq!(words[1][..2], ["30", "512"]);
    assert_eq!(words[1][13..], ["24", "12", "3", "1", "1"]);

    let options = ZsPoolOptions {
        fullness: FullnessRule::Four,
        ..ZsPoolOptions::default()
    };
    let old = ZsPool::new("zram0", options).expect("both rules exist");
    let header = old.stats_table();
    assert!(header.contains("almost_empty almost_full"), "{header}");
}
