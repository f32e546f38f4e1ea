//! One tree per 64 MB of swap.
//!
//! Slots are handed out in clusters, so slots that are used at the same time
//! tend to share a tree: splitting spreads the locking, it does not remove it.

use super::rbtree::RbRoot;
use super::xarray::Xarray;
use super::{
    IndexKind, IndexNode, IndexShape, SWAP_ADDRESS_SPACE_PAGES, SWAP_ADDRESS_SPACE_SHIFT,
    SwapIndex, SwapSlot, check_slot,
};
use crate::fault::{AllocError, Failslab};

/// Trees for a device of so many slots.
fn trees_for(slots: u64) -> usize {
    slots.div_ceil(SWAP_ADDRESS_SPACE_PAGES) as usize
}

fn tree_of(slot: SwapSlot) -> usize {
    (slot.0 >> SWAP_ADDRESS_SPACE_SHIFT) as usize
}

/// One rb-tree per 64 MB of swap (6.9).
#[derive(Clone, Debug)]
pub struct RbTreePer64M<T> {
    trees: Vec<RbRoot<T>>,
    slots: u64,
    len: usize,
}

impl<T> RbTreePer64M<T> {
    /// An empty index for a device of so many slots.
    pub fn new(slots: u64) -> Self {
        let trees = (0..trees_for(slots)).map(|_| RbRoot::new()).collect();
        RbTreePer64M {
            trees,
            slots,
            len: 0,
        }
    }
}

impl<T> SwapIndex<T> for RbTreePer64M<T> {
    fn kind(&self) -> IndexKind {
        IndexKind::RbTreePer64M
    }
    fn store(&mut self, slot: SwapSlot, entry: T) -> Result<Option<T>, AllocError> {
        check_slot(slot, self.slots);
        let old = self.trees[tree_of(slot)].store(slot.0, entry);
        self.len += usize::from(old.is_none());
        Ok(old)
    }
    fn load(&self, slot: SwapSlot) -> Option<&T> {
        self.trees.get(tree_of(slot))?.load(slot.0)
    }
    fn load_mut(&mut self, slot: SwapSlot) -> Option<&mut T> {
        self.trees.get_mut(tree_of(slot))?.load_mut(slot.0)
    }
    fn erase(&mut self, slot: SwapSlot) -> Option<T> {
        let taken = self.trees.get_mut(tree_of(slot))?.erase(slot.0)?;
        self.len -= 1;
        Some(taken)
    }
    fn iter(&self) -> Box<dyn Iterator<Item = (SwapSlot, &T)> + '_> {
        Box::new(self.trees.iter().flat_map(RbRoot::iter))
    }
    fn len(&self) -> usize {
        self.len
    }
    fn trees(&self) -> usize {
        self.trees.len()
    }
    fn tree_of(&self, slot: SwapSlot) -> usize {
        tree_of(slot)
    }
    fn shape(&self, tree: usize) -> IndexShape {
        self.trees
            .get(tree)
            .map_or_else(IndexShape::default, RbRoot::shape)
    }
    fn outline(&self, tree: usize) -> Vec<IndexNode> {
        self.trees.get(tree).map_or_else(Vec::new, RbRoot::outline)
    }
    /// An rb-tree allocates nothing: its nodes are in the entries.
    fn set_faults(&mut self, _faults: Failslab) {}
}

/// One xarray per 64 MB of swap (since 6.10).
#[derive(Clone, Debug)]
pub struct XarrayPer64M<T> {
    trees: Vec<Xarray<T>>,
    slots: u64,
    len: usize,
    faults: Failslab,
}

impl<T> XarrayPer64M<T> {
    /// An empty index for a device of so many slots.
    pub fn new(slots: u64) -> Self {
        let trees = (0..trees_for(slots)).map(|_| Xarray::new()).collect();
        XarrayPer64M {
            trees,
            slots,
            len: 0,
            faults: Failslab::never(),
        }
    }
}

impl<T> SwapIndex<T> for XarrayPer64M<T> {
    fn kind(&self) -> IndexKind {
        IndexKind::XarrayPer64M
    }
    fn store(&mut self, slot: SwapSlot, entry: T) -> Result<Option<T>, AllocError> {
        check_slot(slot, self.slots);
        let old = self.trees[tree_of(slot)].store(slot.0, entry, &mut self.faults)?;
        self.len += usize::from(old.is_none());
        Ok(old)
    }
    fn load(&self, slot: SwapSlot) -> Option<&T> {
        self.trees.get(tree_of(slot))?.load(slot.0)
    }
    fn load_mut(&mut self, slot: SwapSlot) -> Option<&mut T> {
        self.trees.get_mut(tree_of(slot))?.load_mut(slot.0)
    }
    fn erase(&mut self, slot: SwapSlot) -> Option<T> {
        let taken = self.trees.get_mut(tree_of(slot))?.erase(slot.0)?;
        self.len -= 1;
        Some(taken)
    }
    fn iter(&self) -> Box<dyn Iterator<Item = (SwapSlot, &T)> + '_> {
        Box::new(self.trees.iter().flat_map(Xarray::iter))
    }
    fn len(&self) -> usize {
        self.len
    }
    fn trees(&self) -> usize {
        self.trees.len()
    }
    fn tree_of(&self, slot: SwapSlot) -> usize {
        tree_of(slot)
    }
    fn shape(&self, tree: usize) -> IndexShape {
        self.trees
            .get(tree)
            .map_or_else(IndexShape::default, Xarray::shape)
    }
    fn outline(&self, tree: usize) -> Vec<IndexNode> {
        self.trees.get(tree).map_or_else(Vec::new, Xarray::outline)
    }
    fn set_faults(&mut self, faults: Failslab) {
        self.faults = faults;
    }
}
