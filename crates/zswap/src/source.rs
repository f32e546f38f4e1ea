//! The source of the paths, for the page to show: the code you see is the code
//! that runs.

/// The source of one of the path files, by the path that records carry.
///
/// ```
/// let store = zswap_paths::source_of("crates/zswap/src/store.rs");
/// assert!(store.is_some_and(|source| source.contains("pub async fn zswap_store")));
/// ```
#[must_use]
pub fn source_of(file: &str) -> Option<&'static str> {
    let name = file.strip_prefix("crates/zswap/src/")?;
    match name {
        "acomp_ctx.rs" => Some(include_str!("acomp_ctx.rs")),
        "compress.rs" => Some(include_str!("compress.rs")),
        "hotplug.rs" => Some(include_str!("hotplug.rs")),
        "invalidate.rs" => Some(include_str!("invalidate.rs")),
        "load.rs" => Some(include_str!("load.rs")),
        "lru.rs" => Some(include_str!("lru.rs")),
        "pool.rs" => Some(include_str!("pool.rs")),
        "reclaim.rs" => Some(include_str!("reclaim.rs")),
        "shrink.rs" => Some(include_str!("shrink.rs")),
        "store.rs" => Some(include_str!("store.rs")),
        "swap.rs" => Some(include_str!("swap.rs")),
        "swap_cache.rs" => Some(include_str!("swap_cache.rs")),
        "swapfile.rs" => Some(include_str!("swapfile.rs")),
        "tree.rs" => Some(include_str!("tree.rs")),
        "writeback.rs" => Some(include_str!("writeback.rs")),
        "zpool.rs" => Some(include_str!("zpool.rs")),
        _ => crate::zram::source_of(name),
    }
}
