//! One tree for a swap device, or one for each 64 MB of it.
//!
//! Slots are handed out in clusters, so slots that are used at the same time
//! tend to share a tree: splitting spreads the locking, it does not remove it.

use super::rbtree::RbRoot;
use super::xarray::Xarray;
use super::{
    IndexKind, IndexNode, IndexShape, SWAP_ADDRESS_SPACE_SHIFT, SwapIndex, SwapSlot, check_slot,
};
use crate::fault::{AllocError, Failslab};

/// A single tree. Slots are those of the device, also in one of many trees.
pub trait Root<T> {
    /// An empty tree.
    fn new() -> Self;
    /// The entry of a slot.
    fn load(&self, slot: u64) -> Option<&T>;
    /// The entry of a slot, to change it.
    fn load_mut(&mut self, slot: u64) -> Option<&mut T>;
    /// Stores an entry; nothing changes if a node cannot be allocated.
    fn store(
        &mut self,
        slot: u64,
        entry: T,
        faults: &mut Failslab,
    ) -> Result<Option<T>, AllocError>;
    /// Takes an entry out.
    fn erase(&mut self, slot: u64) -> Option<T>;
    /// All entries, by ascending slot.
    fn iter<'a>(&'a self) -> impl Iterator<Item = (SwapSlot, &'a T)>
    where
        T: 'a;
    /// Entries stored.
    fn len(&self) -> usize;
    /// The shape in numbers.
    fn shape(&self) -> IndexShape;
    /// The nodes, each after its parent.
    fn outline(&self) -> Vec<IndexNode>;
}

/// Which trees an index is made of.
pub trait Design {
    /// Which index it is.
    const KIND: IndexKind;
    /// Base-two logarithm of the slots that share a tree.
    const SHIFT: u32;
    /// The tree.
    type Tree<T>: Root<T>;
}

/// [`RbTree`].
pub struct OneRbTree;
/// [`RbTreePer64M`].
pub struct SplitRbTree;
/// [`XarrayPer64M`].
pub struct SplitXarray;

impl Design for OneRbTree {
    const KIND: IndexKind = IndexKind::RbTree;
    const SHIFT: u32 = u64::BITS - 1;
    type Tree<T> = RbRoot<T>;
}

impl Design for SplitRbTree {
    const KIND: IndexKind = IndexKind::RbTreePer64M;
    const SHIFT: u32 = SWAP_ADDRESS_SPACE_SHIFT;
    type Tree<T> = RbRoot<T>;
}

impl Design for SplitXarray {
    const KIND: IndexKind = IndexKind::XarrayPer64M;
    const SHIFT: u32 = SWAP_ADDRESS_SPACE_SHIFT;
    type Tree<T> = Xarray<T>;
}

/// One rb-tree for a whole swap device (until 6.8).
pub type RbTree<T> = Trees<T, OneRbTree>;
/// One rb-tree per 64 MB of swap (6.9).
pub type RbTreePer64M<T> = Trees<T, SplitRbTree>;
/// One xarray per 64 MB of swap (since 6.10).
pub type XarrayPer64M<T> = Trees<T, SplitXarray>;

/// An index of one or many trees.
pub struct Trees<T, D: Design> {
    trees: Vec<D::Tree<T>>,
    slots: u64,
    len: usize,
    faults: Failslab,
}

impl<T, D: Design> Trees<T, D> {
    /// An empty index for a device of so many slots.
    pub fn new(slots: u64) -> Self {
        let trees = slots.div_ceil(1 << D::SHIFT);
        Trees {
            trees: (0..trees).map(|_| Root::new()).collect(),
            slots,
            len: 0,
            faults: Failslab::never(),
        }
    }

    fn tree(&self, slot: SwapSlot) -> Option<&D::Tree<T>> {
        self.trees.get((slot.0 >> D::SHIFT) as usize)
    }

    fn tree_mut(&mut self, slot: SwapSlot) -> Option<&mut D::Tree<T>> {
        self.trees.get_mut((slot.0 >> D::SHIFT) as usize)
    }
}

impl<T, D: Design> std::fmt::Debug for Trees<T, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of {} trees with {} entries",
            D::KIND,
            self.trees.len(),
            self.len
        )
    }
}

impl<T, D: Design> SwapIndex<T> for Trees<T, D> {
    fn kind(&self) -> IndexKind {
        D::KIND
    }
    fn store(&mut self, slot: SwapSlot, entry: T) -> Result<Option<T>, AllocError> {
        check_slot(slot, self.slots);
        let tree = &mut self.trees[(slot.0 >> D::SHIFT) as usize];
        let old = tree.store(slot.0, entry, &mut self.faults)?;
        self.len += usize::from(old.is_none());
        Ok(old)
    }
    fn load(&self, slot: SwapSlot) -> Option<&T> {
        self.tree(slot)?.load(slot.0)
    }
    fn load_mut(&mut self, slot: SwapSlot) -> Option<&mut T> {
        self.tree_mut(slot)?.load_mut(slot.0)
    }
    fn erase(&mut self, slot: SwapSlot) -> Option<T> {
        let taken = self.tree_mut(slot)?.erase(slot.0)?;
        self.len -= 1;
        Some(taken)
    }
    fn iter(&self) -> Box<dyn Iterator<Item = (SwapSlot, &T)> + '_> {
        Box::new(self.trees.iter().flat_map(Root::iter))
    }
    fn len(&self) -> usize {
        self.len
    }
    fn trees(&self) -> usize {
        self.trees.len()
    }
    fn tree_of(&self, slot: SwapSlot) -> usize {
        (slot.0 >> D::SHIFT) as usize
    }
    fn shape(&self, tree: usize) -> IndexShape {
        self.trees
            .get(tree)
            .map_or_else(IndexShape::default, Root::shape)
    }
    fn outline(&self, tree: usize) -> Vec<IndexNode> {
        self.trees.get(tree).map_or_else(Vec::new, Root::outline)
    }
    fn set_faults(&mut self, faults: Failslab) {
        self.faults = faults;
    }
}
