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
        "store.rs" => Some(include_str!("store.rs")),
        "load.rs" => Some(include_str!("load.rs")),
        "compress.rs" => Some(include_str!("compress.rs")),
        "invalidate.rs" => Some(include_str!("invalidate.rs")),
        "swap.rs" => Some(include_str!("swap.rs")),
        _ => None,
    }
}
