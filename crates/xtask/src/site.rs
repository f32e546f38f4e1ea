//! The names of the files that make up the site.
//!
//! The same in both ways to build it, this tool and Trunk (`filehash = false`):
//! the worker and the loader import the application by these names.

/// The application: the binary's name, and from it those of its two files.
pub const APPLICATION: &str = "zswap-explainer";

/// The profile of the workspace that the application is built with.
pub const PROFILE: &str = "page";

/// The JavaScript side of the application.
pub const APPLICATION_JS: &str = "zswap-explainer.js";

/// The application itself.
pub const APPLICATION_WASM: &str = "zswap-explainer_bg.wasm";

/// The program with the codecs that few runs need. The worker loads its files
/// when a run needs one.
pub const CODECS: &str = "zswap-codecs";

/// The module that the application's worker starts from.
pub const WORKER_JS: &str = "worker.js";

/// The page.
pub const INDEX: &str = "index.html";

/// What the page must be able to live with: no inline script, no inline style,
/// no `eval` but for WebAssembly, nothing from elsewhere.
pub const CONTENT_SECURITY_POLICY: &str =
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'";
