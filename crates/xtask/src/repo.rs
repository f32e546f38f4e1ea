//! Where things are in the repository.

use std::path::{Path, PathBuf};

/// The root of the repository.
///
/// Cargo says at run time where this package is, which stays right when the
/// folder has been moved since the tool was compiled.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package
        .ancestors()
        .nth(2)
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The manifest of this tool, which is not part of the workspace.
pub fn xtask_manifest() -> PathBuf {
    root().join("crates/xtask/Cargo.toml")
}

/// The folder of the end-to-end tests.
pub fn e2e() -> PathBuf {
    root().join("tests/e2e")
}

/// `path` as seen from the root, with forward slashes, for messages.
pub fn shown(path: &Path) -> String {
    let root = root();
    let path = path.strip_prefix(&root).unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}
