//! The designs: which request and which lock a store and a load use.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use zswap_mm::Algorithm;

/// What the (de)compressions on a CPU share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Context {
    /// One request and one mutex per CPU, for stores and loads alike (up to the
    /// two patches of 2026).
    Shared,
    /// A request and a mutex each for compression and for decompression
    /// (patch 1).
    Split,
    /// As `Split`; a load whose compressor needs no request of its own keeps
    /// the request on its stack and takes no lock of zswap (patch 2).
    Onstack,
}

impl Context {
    /// All of them, from the oldest.
    pub const ALL: [Context; 3] = [Context::Shared, Context::Split, Context::Onstack];

    /// The name that scenarios and links use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Context::Shared => "shared",
            Context::Split => "split",
            Context::Onstack => "onstack",
        }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no context design of this name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownContext;

impl FromStr for Context {
    type Err = UnknownContext;

    fn from_str(name: &str) -> Result<Context, UnknownContext> {
        let named = |context: &Context| context.name() == name;
        Context::ALL.into_iter().find(named).ok_or(UnknownContext)
    }
}

/// A design of zswap, as data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Design {
    /// What the (de)compressions on a CPU share.
    pub context: Context,
    /// The compressor.
    pub algorithm: Algorithm,
}

impl Design {
    /// Whether a load decompresses with a request on its own stack. That needs
    /// a compressor which is done when it returns, since the stack frame goes
    /// away, and which keeps nothing in the request, since the stack request
    /// has no room for it.
    #[must_use]
    pub fn loads_on_stack(&self) -> bool {
        self.context == Context::Onstack
            && !self.algorithm.is_async()
            && self.algorithm.request_size() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_synchronous_compressors_get_by_without_a_request() {
        let on_stack = |context, algorithm| Design { context, algorithm }.loads_on_stack();
        assert!(on_stack(Context::Onstack, Algorithm::Zstd));
        assert!(!on_stack(Context::Onstack, Algorithm::DeflateIaa));
        assert!(!on_stack(Context::Split, Algorithm::Zstd));
    }

    #[test]
    fn names_round_trip() {
        for context in Context::ALL {
            assert_eq!(context.to_string().parse(), Ok(context));
        }
        assert_eq!("both".parse::<Context>(), Err(UnknownContext));
    }
}
