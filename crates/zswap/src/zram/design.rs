//! The designs of zram's streams, as data.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// What the (de)compressions on a CPU share, and whether they can be preempted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZramDesign {
    /// A stream per CPU, used with preemption off; slots are locked spinning
    /// (5.8 to 6.14).
    LocalLock,
    /// A stream and a mutex per CPU, for both directions; preemption stays on,
    /// and slots are locked sleeping (since 6.15; the series "zsmalloc/zram:
    /// there be preemption" of February 2025).
    Shared,
    /// A stream and a mutex for compression and one of each for decompression
    /// (ten patches of 5 October 2026, linux-mm pull request 5148; not in
    /// mainline then).
    Split,
}

impl ZramDesign {
    /// All of them, from the oldest.
    pub const ALL: [ZramDesign; 3] = [ZramDesign::LocalLock, ZramDesign::Shared, ZramDesign::Split];

    /// The name that scenarios and links use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ZramDesign::LocalLock => "local-lock",
            ZramDesign::Shared => "shared",
            ZramDesign::Split => "split",
        }
    }
}

impl fmt::Display for ZramDesign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no design of zram of this name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownZramDesign;

impl fmt::Display for UnknownZramDesign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a design of zram is called local-lock, shared or split")
    }
}

impl core::error::Error for UnknownZramDesign {}

impl FromStr for ZramDesign {
    type Err = UnknownZramDesign;

    fn from_str(name: &str) -> Result<ZramDesign, UnknownZramDesign> {
        let named = |design: &ZramDesign| design.name() == name;
        ZramDesign::ALL
            .into_iter()
            .find(named)
            .ok_or(UnknownZramDesign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for design in ZramDesign::ALL {
            assert_eq!(design.to_string().parse(), Ok(design));
        }
        assert_eq!("both".parse::<ZramDesign>(), Err(UnknownZramDesign));
    }
}
