//! From swap slot to entry.
//!
//! zswap has had three structures for this, one after the other: an rb-tree
//! per swap device, an rb-tree per 64 MB of swap (6.9), an xarray per 64 MB
//! (6.10). What matters for locking is how many there are: each has a lock of
//! its own. What matters for drawing is their shape, so all three are built
//! here as the kernel builds them and can be looked into.
//!
//! 1. All three behave like a sorted map: same calls, same answers.
//! 2. A failed store leaves the index as it was.
//! 3. Storing over an entry returns the old one; the rb-trees take it out and
//!    put the new one in, since the kernel's nodes live inside the entries.
//!
//! Left out: RCU (a reader that runs while a node is replaced) and the marks
//! of the xarray, which zswap does not use.
//!
//! ```
//! use zswap_mm::{IndexKind, SwapSlot};
//!
//! let mut index = IndexKind::XarrayPer64M.new_index::<&str>(1 << 20);
//! assert_eq!(index.trees(), 64);
//! index.store(SwapSlot(70_000), "page")?;
//! assert_eq!(index.tree_of(SwapSlot(70_000)), 4);
//! assert_eq!(index.load(SwapSlot(70_000)), Some(&"page"));
//! assert_eq!(index.erase(SwapSlot(70_000)), Some("page"));
//! # Ok::<(), zswap_mm::AllocError>(())
//! ```

mod rbtree;
mod trees;
mod xarray;

pub use trees::{RbTree, RbTreePer64M, Trees, XarrayPer64M};

use crate::fault::{AllocError, Failslab};
use serde::{Deserialize, Serialize};

/// A page-sized slot of a swap device, by its offset.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct SwapSlot(pub u64);

/// Slots that share a tree since 6.9: 2^14 pages, 64 MiB of swap.
pub const SWAP_ADDRESS_SPACE_PAGES: u64 = 1 << SWAP_ADDRESS_SPACE_SHIFT;
/// Base-two logarithm of [`SWAP_ADDRESS_SPACE_PAGES`].
pub const SWAP_ADDRESS_SPACE_SHIFT: u32 = 14;

/// Which structure maps swap slots to entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IndexKind {
    /// One rb-tree per swap device (until 6.8).
    RbTree,
    /// One rb-tree per 64 MB of swap (6.9).
    #[serde(rename = "rb-tree-per-64m")]
    RbTreePer64M,
    /// One xarray per 64 MB of swap (since 6.10).
    #[serde(rename = "xarray-per-64m")]
    XarrayPer64M,
}

/// A name that is no index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown index `{0}`: use rb-tree, rb-tree-per-64m or xarray-per-64m")]
pub struct UnknownIndex(pub String);

impl IndexKind {
    /// Every kind, oldest first.
    pub const ALL: [IndexKind; 3] = [
        IndexKind::RbTree,
        IndexKind::RbTreePer64M,
        IndexKind::XarrayPer64M,
    ];

    /// The name used in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            IndexKind::RbTree => "rb-tree",
            IndexKind::RbTreePer64M => "rb-tree-per-64m",
            IndexKind::XarrayPer64M => "xarray-per-64m",
        }
    }

    /// An empty index for a swap device of so many slots.
    pub fn new_index<T: 'static>(self, slots: u64) -> Box<dyn SwapIndex<T>> {
        match self {
            IndexKind::RbTree => Box::new(RbTree::new(slots)),
            IndexKind::RbTreePer64M => Box::new(RbTreePer64M::new(slots)),
            IndexKind::XarrayPer64M => Box::new(XarrayPer64M::new(slots)),
        }
    }
}

impl std::fmt::Display for IndexKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for IndexKind {
    type Err = UnknownIndex;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        IndexKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownIndex(name.to_owned()))
    }
}

/// The shape of one tree in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IndexShape {
    /// Entries stored.
    pub entries: usize,
    /// Nodes: of an rb-tree one per entry, of an xarray the chunks of 64.
    pub nodes: usize,
    /// Nodes on the longest way from the root to an entry.
    pub depth: u32,
    /// Rotations made so far; an xarray makes none.
    pub rotations: u64,
    /// Levels added and taken away so far; an rb-tree has none to add.
    pub height_changes: u64,
    /// Bytes of the nodes; the rb-trees' are part of the entries.
    pub node_bytes: usize,
}

/// What a node of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A red node of an rb-tree.
    Red,
    /// A black node of an rb-tree.
    Black,
    /// A chunk of an xarray: 64 slots of 2^`shift` indexes each.
    Chunk {
        /// Bits of the index below this level.
        shift: u8,
        /// A bit for each slot that is not empty.
        present: u64,
    },
}

/// A node, for drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IndexNode {
    /// Position of the parent in the outline; none for the root.
    pub parent: Option<u32>,
    /// Nodes above it.
    pub depth: u32,
    /// The slot of an rb-tree node; the first slot below a chunk.
    pub slot: SwapSlot,
    /// What it is.
    pub kind: NodeKind,
}

/// A map from swap slots to entries, made of one tree or of many.
pub trait SwapIndex<T> {
    /// Which structure this is.
    fn kind(&self) -> IndexKind;

    /// Stores an entry and returns the one that was there.
    ///
    /// # Errors
    ///
    /// [`AllocError::NoMemory`] if a node could not be allocated; the index
    /// is unchanged and the entry is dropped.
    ///
    /// # Panics
    ///
    /// If the slot is beyond the end of the swap device.
    fn store(&mut self, slot: SwapSlot, entry: T) -> Result<Option<T>, AllocError>;

    /// The entry of a slot.
    fn load(&self, slot: SwapSlot) -> Option<&T>;

    /// The entry of a slot, to change it.
    fn load_mut(&mut self, slot: SwapSlot) -> Option<&mut T>;

    /// Takes the entry of a slot out.
    fn erase(&mut self, slot: SwapSlot) -> Option<T>;

    /// All entries, by ascending slot.
    fn iter(&self) -> Box<dyn Iterator<Item = (SwapSlot, &T)> + '_>;

    /// Entries stored.
    fn len(&self) -> usize;

    /// Whether nothing is stored.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many trees there are, each with a lock of its own.
    fn trees(&self) -> usize;

    /// The tree a slot belongs to.
    fn tree_of(&self, slot: SwapSlot) -> usize;

    /// The shape of a tree in numbers.
    fn shape(&self, tree: usize) -> IndexShape;

    /// The nodes of a tree, each after its parent.
    fn outline(&self, tree: usize) -> Vec<IndexNode>;

    /// Lets node allocations fail; the rb-trees make none.
    fn set_faults(&mut self, faults: Failslab);
}

/// Says that a slot is beyond the end of the device.
fn check_slot(slot: SwapSlot, slots: u64) {
    assert!(
        slot.0 < slots,
        "swap slot {}: the device has {slots}",
        slot.0
    );
}
