//! Fuzz targets: plain functions over bytes that panic if anything is wrong.
//!
//! `tests/fuzz.rs` runs each over the kept corpus and seeded mutations of it;
//! the `fuzz` crate hands the same functions to a coverage-guided fuzzer.

// Not every test uses every target.
#![allow(dead_code)]

use std::collections::BTreeMap;
use zswap_mm::z3fold::{Z3foldHandle, Z3foldPool};
use zswap_mm::zbud::{ZbudHandle, ZbudPool};
use zswap_mm::zsmalloc::ClassIndex;
use zswap_mm::{
    Algorithm, AllocError, ChainRule, Failslab, IndexKind, PAGE_SIZE, Page, SwapSlot, ZsHandle,
    ZsPool, ZsPoolOptions, ZspageId,
};

/// A target: its name and what runs it.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 8] = [
    ("deflate", |bytes| decoder(Algorithm::Deflate, bytes)),
    ("lz4", |bytes| decoder(Algorithm::Lz4, bytes)),
    ("lzo", |bytes| decoder(Algorithm::Lzo, bytes)),
    ("zstd", |bytes| decoder(Algorithm::Zstd, bytes)),
    ("zsmalloc", zsmalloc),
    ("zbud", zbud),
    ("z3fold", z3fold),
    ("index", index),
];

/// Runs a target by its name.
pub fn run(name: &str, bytes: &[u8]) {
    let found = TARGETS.into_iter().find(|(target, _)| *target == name);
    let (_, target) = found.unwrap_or_else(|| panic!("no target `{name}`"));
    target(bytes);
}

/// A decoder gets whatever bytes. It must answer with a full page or an
/// error, answer the same again, and still work afterwards.
pub fn decoder(algorithm: Algorithm, bytes: &[u8]) {
    let mut codec = algorithm.new_compressor();
    let mut first = Page::zeroed();
    let mut second = Page::zeroed();
    second.fill_word(!0);
    let answer = codec.decompress(bytes, &mut first);
    assert_eq!(
        answer,
        codec.decompress(bytes, &mut second),
        "the same bytes again"
    );
    if answer.is_ok() {
        assert_eq!(first, second, "the same bytes again");
    }
    // A page made of the input goes there and back.
    let mut page = Page::zeroed();
    let length = bytes.len().min(PAGE_SIZE);
    page.bytes_mut()[..length].copy_from_slice(&bytes[..length]);
    let mut buffer = [0; 2 * PAGE_SIZE];
    let length = codec
        .compress(&page, &mut buffer)
        .expect("two pages are room enough");
    let decoded = codec.decompress(&buffer[..length], &mut first);
    assert_eq!(decoded, Ok(()));
    assert_eq!(first, page);
}

/// Takes commands off a byte string.
struct Commands<'a>(&'a [u8]);

impl Commands<'_> {
    fn next(&mut self) -> Option<[u8; 3]> {
        let (command, rest) = self.0.split_at_checked(3)?;
        self.0 = rest;
        Some([command[0], command[1], command[2]])
    }
}

/// The contents of an object: its own serial number over and over, so that
/// bytes of another object never look right.
fn contents(serial: u32, size: usize) -> Vec<u8> {
    let word = serial.wrapping_mul(0x9e37_79b1).to_le_bytes();
    word.iter().copied().cycle().take(size).collect()
}

fn size_of_command(a: u8, b: u8) -> usize {
    (usize::from(a) << 8 | usize::from(b)) % 4200
}

/// Random calls against a plain map. The first byte sets the pool up.
pub fn zsmalloc(bytes: &[u8]) {
    let Some((setup, rest)) = bytes.split_first() else {
        return;
    };
    let options = ZsPoolOptions {
        chain_size: 4 + setup % 13,
        rule: if setup & 0x80 == 0 {
            ChainRule::Current
        } else {
            ChainRule::Legacy
        },
        ..ZsPoolOptions::default()
    };
    let mut pool = ZsPool::new("fuzz", options).expect("chain sizes 4 to 16 exist");
    let mut model: BTreeMap<ZsHandle, Vec<u8>> = BTreeMap::new();
    let mut pinned: Vec<ZspageId> = Vec::new();
    let mut commands = Commands(rest);
    let mut serial = 0;
    while let Some([what, a, b]) = commands.next() {
        let picked = model
            .keys()
            .nth(usize::from(a) % model.len().max(1))
            .copied();
        match (what % 16, picked) {
            (0..=5, _) => {
                serial += 1;
                zs_alloc(&mut pool, &mut model, serial, size_of_command(a, b));
            }
            (6..=8, Some(handle)) => {
                model.remove(&handle);
                pool.zs_free(handle);
                assert!(!pool.is_allocated(handle));
            }
            (9, Some(handle)) => {
                serial += 1;
                let length = model[&handle].len();
                pool.zs_obj_write(handle, &contents(serial, length));
                model.insert(handle, contents(serial, length));
            }
            (10, _) => zs_compact(&mut pool, !pinned.is_empty()),
            (11, Some(handle)) => {
                let zspage = pool.location(handle).zspage;
                let before = pool.object_span(handle, 1);
                let _ = pool.zs_page_migrate(zspage, usize::from(b) % 4);
                let after = pool.object_span(handle, 1);
                assert_eq!(
                    before.offset, after.offset,
                    "an object keeps its place on the page"
                );
            }
            (12, Some(handle)) => {
                let zspage = pool.location(handle).zspage;
                pool.pin_zspage(zspage);
                pinned.push(zspage);
            }
            (13, _) => {
                if let Some(zspage) = pinned.pop() {
                    pool.unpin_zspage(zspage);
                    pool.async_free_zspage();
                }
            }
            (14, _) => pool.set_faults(Failslab::per_million(200_000, u64::from(a))),
            (15, _) => pool.set_faults(Failslab::never()),
            _ => {}
        }
        check_counts(&pool);
    }
    check_zsmalloc(&pool, &model);
    for zspage in pinned {
        pool.unpin_zspage(zspage);
    }
    for handle in model.into_keys() {
        pool.zs_free(handle);
    }
    pool.async_free_zspage();
    assert_eq!(
        (pool.pages_allocated(), pool.frames_held(), pool.objects()),
        (0, 0, 0)
    );
}

fn zs_alloc(pool: &mut ZsPool, model: &mut BTreeMap<ZsHandle, Vec<u8>>, serial: u32, size: usize) {
    let before = (pool.pages_allocated(), pool.objects(), pool.stats());
    match pool.zs_malloc(size) {
        Ok(handle) => {
            assert!((1..=4096).contains(&size));
            pool.zs_obj_write(handle, &contents(serial, size));
            assert_eq!(
                model.insert(handle, contents(serial, size)),
                None,
                "a handle twice"
            );
        }
        Err(_) => {
            let after = (pool.pages_allocated(), pool.objects(), pool.stats());
            assert_eq!(before, after, "a failed allocation changes nothing");
        }
    }
}

fn zs_compact(pool: &mut ZsPool, pinned: bool) {
    let classes: Vec<ClassIndex> = pool
        .classes()
        .classes()
        .iter()
        .map(|class| class.index)
        .collect();
    for class in classes {
        let predicted = pool.zs_can_compact(class);
        let before = pool.pages_allocated();
        let done = pool.zs_compact_class(class);
        assert_eq!(before - pool.pages_allocated(), done.pages_freed);
        assert!(done.pages_freed <= predicted);
        assert!(pinned || done.pages_freed == predicted, "class {class}");
    }
}

fn check_counts(pool: &ZsPool) {
    assert_eq!(pool.pages_allocated(), pool.frames_held() as u64);
    assert_eq!(pool.pages_allocated(), pool.stats().pages_used);
    assert_eq!(pool.objects() as u64, pool.stats().obj_used);
}

fn check_zsmalloc(pool: &ZsPool, model: &BTreeMap<ZsHandle, Vec<u8>>) {
    let mut used: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    let mut read = Vec::new();
    for (handle, expected) in model {
        pool.zs_obj_read(*handle, &mut read);
        assert_eq!(&read[..expected.len()], expected);
        let span = pool.object_span(*handle, expected.len());
        used.entry(span.frame.0)
            .or_default()
            .push((span.offset, span.offset + span.length));
        if let Some((frame, length)) = span.rest {
            used.entry(frame.0).or_default().push((0, length));
        }
    }
    for ranges in used.values_mut() {
        ranges.sort_unstable();
        assert!(
            ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0),
            "objects overlap"
        );
        assert!(ranges.iter().all(|range| range.1 <= PAGE_SIZE));
    }
    check_lists(pool, model);
}

/// Every zspage is in the list of its fullness, with its objects where the
/// handles say.
fn check_lists(pool: &ZsPool, model: &BTreeMap<ZsHandle, Vec<u8>>) {
    let mut objects = 0;
    let mut listed = 0;
    for id in pool.zspages() {
        let view = pool.zspage(id).expect("it was just listed");
        let class = pool
            .classes()
            .class_of_slot(view.class)
            .expect("the class exists");
        assert_eq!(view.frames.len(), usize::from(class.pages_per_zspage));
        assert_eq!(view.objects.len(), usize::from(class.objs_per_zspage));
        let group = pool
            .fullness_rule()
            .group(view.inuse, class.objs_per_zspage);
        assert_eq!(view.fullness, group);
        assert_eq!(
            pool.fullness_list(view.class, group)
                .iter()
                .filter(|at| **at == id)
                .count(),
            1
        );
        let held: Vec<ZsHandle> = view.objects.iter().flatten().copied().collect();
        assert_eq!(held.len(), usize::from(view.inuse));
        for handle in held {
            assert!(model.contains_key(&handle));
            assert_eq!(pool.location(handle).zspage, id);
        }
        objects += usize::from(view.inuse);
        listed += 1;
    }
    assert_eq!(objects, model.len());
    let zspages: u32 = pool
        .all_class_stats()
        .iter()
        .flat_map(|line| &line.zspages)
        .sum();
    assert_eq!(zspages, listed);
}

/// zbud and z3fold: a few objects in a page.
trait Buddies {
    type Handle: Copy + Ord + std::fmt::Debug;
    const MOST_IN_A_PAGE: usize;
    fn alloc_on(&mut self, cpu: u32, size: usize) -> Result<Self::Handle, AllocError>;
    fn free_it(&mut self, handle: Self::Handle);
    fn write_to(&mut self, handle: Self::Handle, bytes: &[u8]);
    /// The first bytes of an object, its page, and where on it they begin.
    fn look(&self, handle: Self::Handle, length: usize) -> (&[u8], u32, usize);
    /// Compacts and says how many pages that freed.
    fn compact_all(&mut self) -> u64;
    /// Pages, objects, bytes wasted.
    fn counts(&self) -> (u64, usize, u64);
    fn fail(&mut self, faults: Failslab);
}

impl Buddies for ZbudPool {
    type Handle = ZbudHandle;
    const MOST_IN_A_PAGE: usize = 2;
    fn alloc_on(&mut self, _cpu: u32, size: usize) -> Result<ZbudHandle, AllocError> {
        self.alloc(size)
    }
    fn free_it(&mut self, handle: ZbudHandle) {
        self.free(handle);
    }
    fn write_to(&mut self, handle: ZbudHandle, bytes: &[u8]) {
        self.write(handle, bytes);
    }
    fn look(&self, handle: ZbudHandle, length: usize) -> (&[u8], u32, usize) {
        (
            self.bytes(handle, length),
            handle.page,
            self.range(handle, length).start,
        )
    }
    fn compact_all(&mut self) -> u64 {
        0
    }
    fn counts(&self) -> (u64, usize, u64) {
        (self.pages(), self.objects(), self.bytes_wasted())
    }
    fn fail(&mut self, faults: Failslab) {
        self.set_faults(faults);
    }
}

impl Buddies for Z3foldPool {
    type Handle = Z3foldHandle;
    const MOST_IN_A_PAGE: usize = 3;
    fn alloc_on(&mut self, cpu: u32, size: usize) -> Result<Z3foldHandle, AllocError> {
        self.alloc(cpu, size)
    }
    fn free_it(&mut self, handle: Z3foldHandle) {
        self.free(handle);
    }
    fn write_to(&mut self, handle: Z3foldHandle, bytes: &[u8]) {
        self.write(handle, bytes);
    }
    fn look(&self, handle: Z3foldHandle, length: usize) -> (&[u8], u32, usize) {
        let begin = self.range(handle, length).start;
        (
            self.bytes(handle, length),
            self.location(handle).page,
            begin,
        )
    }
    fn compact_all(&mut self) -> u64 {
        self.compact().merged
    }
    fn counts(&self) -> (u64, usize, u64) {
        (self.pages(), self.objects(), self.bytes_wasted())
    }
    fn fail(&mut self, faults: Failslab) {
        self.set_faults(faults);
    }
}

/// Random calls against a plain map.
pub fn zbud(bytes: &[u8]) {
    buddies(ZbudPool::new("fuzz"), bytes);
}

/// Random calls against a plain map.
pub fn z3fold(bytes: &[u8]) {
    buddies(Z3foldPool::new("fuzz", 3), bytes);
}

fn buddies<P: Buddies>(mut pool: P, bytes: &[u8]) {
    let mut model: BTreeMap<P::Handle, Vec<u8>> = BTreeMap::new();
    let mut commands = Commands(bytes);
    let mut serial = 0;
    while let Some([what, a, b]) = commands.next() {
        let picked = model
            .keys()
            .nth(usize::from(a) % model.len().max(1))
            .copied();
        let before = pool.counts();
        match (what % 8, picked) {
            (0..=3, _) => {
                serial += 1;
                let size = size_of_command(a, b);
                match pool.alloc_on(u32::from(what) / 8 % 3, size) {
                    Ok(handle) => {
                        pool.write_to(handle, &contents(serial, size));
                        assert_eq!(model.insert(handle, contents(serial, size)), None);
                    }
                    Err(_) => assert_eq!(before, pool.counts(), "a failure changes nothing"),
                }
            }
            (4 | 5, Some(handle)) => {
                model.remove(&handle);
                pool.free_it(handle);
            }
            (6, _) => {
                let freed = pool.compact_all();
                assert_eq!(before.0 - pool.counts().0, freed);
                pool.fail(Failslab::never());
            }
            (7, _) => pool.fail(Failslab::per_million(200_000, u64::from(a))),
            _ => {}
        }
        let (pages, objects, _) = pool.counts();
        assert_eq!(objects, model.len());
        assert!(pages as usize <= objects && objects <= P::MOST_IN_A_PAGE * pages as usize);
    }
    check_buddies(&pool, &model);
    for handle in model.into_keys() {
        pool.free_it(handle);
    }
    assert_eq!(pool.counts(), (0, 0, 0));
}

fn check_buddies<P: Buddies>(pool: &P, model: &BTreeMap<P::Handle, Vec<u8>>) {
    let mut used: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    for (handle, expected) in model {
        let (bytes, page, begin) = pool.look(*handle, expected.len());
        assert_eq!(bytes, expected);
        used.entry(page)
            .or_default()
            .push((begin, begin + expected.len()));
    }
    check_pages(used, pool.counts().0);
}

fn check_pages(used: BTreeMap<u32, Vec<(usize, usize)>>, pages: u64) {
    assert_eq!(used.len() as u64, pages, "every page has an object");
    for mut ranges in used.into_values() {
        ranges.sort_unstable();
        assert!(
            ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0),
            "objects overlap"
        );
        let headless = ranges.len() == 1 && ranges[0].0 == 0;
        assert!(headless || ranges[0].0 >= 64, "an object in the header");
        assert!(ranges.iter().all(|range| range.1 <= PAGE_SIZE));
    }
}

/// The same calls to all three indexes and to a `BTreeMap`.
pub fn index(bytes: &[u8]) {
    const SLOTS: u64 = 1 << 17;
    let mut indexes = IndexKind::ALL.map(|kind| kind.new_index::<u32>(SLOTS));
    let mut models: [BTreeMap<SwapSlot, u32>; 3] = Default::default();
    let mut commands = Commands(bytes);
    let mut serial = 0;
    while let Some([what, a, b]) = commands.next() {
        serial += 1;
        // Close together, or anywhere: `what` says how far apart.
        let slot = (u64::from(a) << 8 | u64::from(b)) << (what >> 4 & 1);
        let slot = SwapSlot(if what & 0x80 == 0 { slot & 0xff } else { slot });
        for (index, model) in indexes.iter_mut().zip(&mut models) {
            match what % 8 {
                0..=3 => match index.store(slot, serial) {
                    Ok(old) => assert_eq!(old, model.insert(slot, serial)),
                    Err(_) => assert!(!model.contains_key(&slot), "replacing allocates nothing"),
                },
                4 | 5 => assert_eq!(index.erase(slot), model.remove(&slot)),
                6 => index.set_faults(Failslab::per_million(300_000, u64::from(a))),
                _ => index.set_faults(Failslab::never()),
            }
            assert_eq!(index.load(slot), model.get(&slot));
            assert_eq!(index.len(), model.len());
        }
    }
    for (index, model) in indexes.iter_mut().zip(models) {
        assert!(
            index
                .iter()
                .map(|(slot, entry)| (slot, *entry))
                .eq(model.clone())
        );
        check_shape(index.as_ref(), &model);
        for (slot, entry) in model {
            assert_eq!(index.erase(slot), Some(entry));
        }
        let nodes: usize = (0..index.trees()).map(|tree| index.shape(tree).nodes).sum();
        assert_eq!((index.len(), nodes), (0, 0), "{}", index.kind());
    }
}

fn check_shape(index: &dyn zswap_mm::SwapIndex<u32>, model: &BTreeMap<SwapSlot, u32>) {
    for tree in 0..index.trees() {
        let shape = index.shape(tree);
        let outline = index.outline(tree);
        assert_eq!(outline.len(), shape.nodes);
        assert_eq!(
            shape.entries,
            model
                .keys()
                .filter(|slot| index.tree_of(**slot) == tree)
                .count()
        );
        for (at, node) in outline.iter().enumerate() {
            match node.parent {
                None => assert_eq!((at, node.depth), (0, 0)),
                Some(parent) => {
                    assert!((parent as usize) < at);
                    assert_eq!(node.depth, outline[parent as usize].depth + 1);
                }
            }
        }
    }
}
