//! Which algorithms there are and how the crypto layer sees them.

use super::{Compressor, deflate::Deflate, lz4::Lz4, lzo::Lzo, new_zstd};
use serde::{Deserialize, Serialize};

/// A compression algorithm, by its kernel name.
///
/// Two properties decide whether a load may put its request on the stack:
/// the transform must finish within the call, and its request must have no
/// context behind it ([`Algorithm::on_stack_request`]).
///
/// ```
/// use zswap_mm::Algorithm;
///
/// assert!("zstd".parse::<Algorithm>()?.on_stack_request());
/// assert!(!Algorithm::DeflateIaa.on_stack_request());
/// # Ok::<(), zswap_mm::compressor::UnknownAlgorithm>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Algorithm {
    /// Raw deflate, level 6.
    Deflate,
    /// LZ4 block format.
    Lz4,
    /// LZO1X.
    Lzo,
    /// Zstandard, level 3.
    Zstd,
    /// Deflate on an In-Memory Analytics Accelerator.
    DeflateIaa,
}

/// A name that is no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown compressor `{0}`: use deflate, lz4, lzo, zstd or deflate-iaa")]
pub struct UnknownAlgorithm(pub String);

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 5] = [
        Algorithm::Deflate,
        Algorithm::Lz4,
        Algorithm::Lzo,
        Algorithm::Zstd,
        Algorithm::DeflateIaa,
    ];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Deflate => "deflate",
            Algorithm::Lz4 => "lz4",
            Algorithm::Lzo => "lzo",
            Algorithm::Zstd => "zstd",
            Algorithm::DeflateIaa => "deflate-iaa",
        }
    }

    /// Whether a call returns before the work is done (`CRYPTO_ALG_ASYNC`).
    /// All software algorithms of the kernel finish within the call.
    pub const fn is_async(self) -> bool {
        matches!(self, Algorithm::DeflateIaa)
    }

    /// Bytes of context behind each request (`cra_reqsize`).
    ///
    /// Zero for the software algorithms since their contexts moved to per-CPU
    /// streams; the accelerator's driver keeps one 32-bit word.
    pub const fn request_size(self) -> usize {
        match self {
            Algorithm::DeflateIaa => 4,
            _ => 0,
        }
    }

    /// Whether a request may live on the caller's stack: nothing may use it
    /// after the call, and the stack has room for the bare request only
    /// (`MAX_SYNC_COMP_REQSIZE` is 0).
    pub const fn on_stack_request(self) -> bool {
        !self.is_async() && self.request_size() == 0
    }

    /// A new transform.
    pub fn new_compressor(self) -> Box<dyn Compressor> {
        match self {
            Algorithm::Deflate | Algorithm::DeflateIaa => Box::new(Deflate::new(self)),
            Algorithm::Lz4 => Box::new(Lz4::new()),
            Algorithm::Lzo => Box::new(Lzo::new()),
            Algorithm::Zstd => new_zstd(),
        }
    }
}

impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Algorithm {
    type Err = UnknownAlgorithm;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_through_text() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
            assert_eq!(algorithm.new_compressor().algorithm(), algorithm);
        }
        let error = "zstdx"
            .parse::<Algorithm>()
            .map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err(
                "unknown compressor `zstdx`: use deflate, lz4, lzo, zstd or deflate-iaa".to_owned()
            )
        );
    }

    #[test]
    fn only_synchronous_algorithms_without_context_go_on_the_stack() {
        let on_stack: Vec<&str> = Algorithm::ALL
            .into_iter()
            .filter(|algorithm| algorithm.on_stack_request())
            .map(Algorithm::name)
            .collect();
        assert_eq!(on_stack, ["deflate", "lz4", "lzo", "zstd"]);
    }
}
