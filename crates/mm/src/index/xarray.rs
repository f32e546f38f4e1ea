//! The xarray zswap uses since 6.10: a radix tree of 64-slot chunks.
//!
//! 1. A chunk exists only if something is stored below it.
//! 2. The tree is as high as the largest index it had to reach; it loses
//!    levels again when only the first slot of the topmost chunk is used. A
//!    lone entry at index 0 needs no chunk at all.
//! 3. An entry's index is its offset on the swap device, also where each
//!    64 MB have a tree of their own: a tree further back is higher, with
//!    chunks at the top that have a single child.
//! 4. All chunks a store needs are allocated before anything is changed.

use super::trees::Root;
use super::{IndexNode, IndexShape, NodeKind, SwapSlot};
use crate::fault::{AllocError, AllocSite, Failslab};
use crate::slab::Slab;

/// Base-two logarithm of the slots of a chunk.
const XA_CHUNK_SHIFT: u8 = 6;
/// Slots of a chunk.
const XA_CHUNK_SIZE: usize = 1 << XA_CHUNK_SHIFT;
/// Bytes of a `struct xa_node` on a 64-bit machine: 64 pointers and 64 bytes
/// of header and marks.
const XA_NODE_BYTES: usize = 576;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Empty,
    Chunk(u32),
    Entry(u32),
}

#[derive(Clone, Debug)]
struct Chunk {
    slots: [Item; XA_CHUNK_SIZE],
    shift: u8,
    count: u8,
}

impl Chunk {
    fn new(shift: u8) -> Self {
        Chunk {
            slots: [Item::Empty; XA_CHUNK_SIZE],
            shift,
            count: 0,
        }
    }

    fn offset(&self, index: u64) -> usize {
        (index >> self.shift) as usize & (XA_CHUNK_SIZE - 1)
    }
}

/// One xarray.
#[derive(Clone, Debug)]
pub struct Xarray<T> {
    head: Item,
    chunks: Slab<Chunk>,
    entries: Slab<Option<T>>,
    height_changes: u64,
}

impl<T> Xarray<T> {
    /// Bits of index the tree reaches at present.
    fn bits(&self) -> u8 {
        match self.head {
            Item::Chunk(chunk) => self.chunks[chunk].shift + XA_CHUNK_SHIFT,
            _ => 0,
        }
    }

    fn find(&self, index: u64) -> Option<u32> {
        if index >> self.bits() != 0 {
            return None;
        }
        let mut at = self.head;
        loop {
            match at {
                Item::Empty => return None,
                Item::Entry(entry) => return Some(entry),
                Item::Chunk(chunk) => {
                    let chunk = &self.chunks[chunk];
                    at = chunk.slots[chunk.offset(index)];
                }
            }
        }
    }

    /// Puts something into an empty slot.
    fn put(&mut self, chunk: u32, offset: usize, item: Item) {
        let chunk = &mut self.chunks[chunk];
        chunk.slots[offset] = item;
        chunk.count += 1;
    }

    /// Levels the tree must have for an index, in bits.
    fn bits_for(index: u64) -> u8 {
        let bits = (u64::BITS - index.leading_zeros()) as u8;
        bits.div_ceil(XA_CHUNK_SHIFT) * XA_CHUNK_SHIFT
    }

    /// Chunks that storing at an index would add.
    fn chunks_needed(&self, index: u64) -> u32 {
        let (have, want) = (self.bits(), Self::bits_for(index));
        match self.head {
            Item::Empty => u32::from(want / XA_CHUNK_SHIFT),
            // The levels on top, and a way down beside what is there.
            _ if want > have => {
                let on_top = (want - have) / XA_CHUNK_SHIFT;
                u32::from(on_top) + u32::from(want / XA_CHUNK_SHIFT - 1)
            }
            head => {
                let mut at = head;
                while let Item::Chunk(chunk) = at {
                    let chunk = &self.chunks[chunk];
                    let below = chunk.slots[chunk.offset(index)];
                    if below == Item::Empty {
                        return u32::from(chunk.shift / XA_CHUNK_SHIFT);
                    }
                    at = below;
                }
                0
            }
        }
    }

    /// Adds levels on top until an index can be reached.
    fn expand(&mut self, index: u64) {
        let want = Self::bits_for(index);
        if self.head == Item::Empty {
            if want > 0 {
                let top = self.chunks.insert(Chunk::new(want - XA_CHUNK_SHIFT));
                self.head = Item::Chunk(top);
                self.height_changes += 1;
            }
            return;
        }
        while self.bits() < want {
            let top = self.chunks.insert(Chunk::new(self.bits()));
            let below = self.head;
            self.put(top, 0, below);
            self.head = Item::Chunk(top);
            self.height_changes += 1;
        }
    }

    /// Empties the slot of an index, and every chunk that becomes empty.
    fn clear(&mut self, index: u64) {
        let Item::Chunk(top) = self.head else {
            self.head = Item::Empty;
            return;
        };
        // From the topmost chunk to the lowest.
        let mut way = vec![top];
        while let Some(at) = way.last() {
            let chunk = &self.chunks[*at];
            match chunk.slots[chunk.offset(index)] {
                Item::Chunk(below) => way.push(below),
                _ => break,
            }
        }
        for at in way.into_iter().rev() {
            let chunk = &mut self.chunks[at];
            let offset = chunk.offset(index);
            chunk.slots[offset] = Item::Empty;
            chunk.count -= 1;
            if chunk.count > 0 {
                return;
            }
            self.chunks.release(at);
        }
        self.head = Item::Empty;
    }

    /// Takes levels away from the top that only lead to the first slot.
    fn shrink(&mut self) {
        while let Item::Chunk(top) = self.head {
            let chunk = &self.chunks[top];
            let only = chunk.slots[0];
            let leads_on = match only {
                Item::Empty => false,
                Item::Chunk(_) => true,
                Item::Entry(_) => chunk.shift == 0,
            };
            if chunk.count != 1 || !leads_on {
                return;
            }
            self.head = only;
            self.chunks.release(top);
            self.height_changes += 1;
        }
    }
}

impl<T> Root<T> for Xarray<T> {
    fn new() -> Self {
        Xarray {
            head: Item::Empty,
            chunks: Slab::default(),
            entries: Slab::default(),
            height_changes: 0,
        }
    }

    fn load(&self, index: u64) -> Option<&T> {
        self.find(index)
            .and_then(|entry| self.entries[entry].as_ref())
    }

    fn load_mut(&mut self, index: u64) -> Option<&mut T> {
        self.find(index)
            .and_then(|entry| self.entries[entry].as_mut())
    }

    fn store(
        &mut self,
        index: u64,
        entry: T,
        faults: &mut Failslab,
    ) -> Result<Option<T>, AllocError> {
        if let Some(found) = self.find(index) {
            return Ok(self.entries[found].replace(entry));
        }
        for _ in 0..self.chunks_needed(index) {
            faults.check(AllocSite::IndexNode)?;
        }
        self.expand(index);
        let new = Item::Entry(self.entries.insert(Some(entry)));
        let Item::Chunk(mut at) = self.head else {
            self.head = new;
            return Ok(None);
        };
        loop {
            let chunk = &self.chunks[at];
            let (offset, shift) = (chunk.offset(index), chunk.shift);
            match chunk.slots[offset] {
                Item::Chunk(below) => at = below,
                _ if shift == 0 => {
                    self.put(at, offset, new);
                    return Ok(None);
                }
                _ => {
                    let below = self.chunks.insert(Chunk::new(shift - XA_CHUNK_SHIFT));
                    self.put(at, offset, Item::Chunk(below));
                    at = below;
                }
            }
        }
    }

    fn erase(&mut self, index: u64) -> Option<T> {
        let entry = self.find(index)?;
        self.clear(index);
        let taken = self.entries[entry].take();
        self.entries.release(entry);
        self.shrink();
        taken
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn iter<'a>(&'a self) -> impl Iterator<Item = (SwapSlot, &'a T)>
    where
        T: 'a,
    {
        let mut ways = vec![(self.head, 0_u64)];
        std::iter::from_fn(move || {
            loop {
                match ways.pop()? {
                    (Item::Empty, _) => {}
                    (Item::Entry(entry), index) => {
                        return self.entries[entry]
                            .as_ref()
                            .map(|entry| (SwapSlot(index), entry));
                    }
                    (Item::Chunk(chunk), base) => {
                        let chunk = &self.chunks[chunk];
                        let below = chunk.slots.iter().enumerate().rev();
                        ways.extend(below.filter(|(_, item)| **item != Item::Empty).map(
                            |(offset, item)| (*item, base + ((offset as u64) << chunk.shift)),
                        ));
                    }
                }
            }
        })
    }

    fn shape(&self) -> IndexShape {
        IndexShape {
            entries: self.len(),
            nodes: self.chunks.len(),
            depth: u32::from(self.bits() / XA_CHUNK_SHIFT),
            rotations: 0,
            height_changes: self.height_changes,
            node_bytes: self.chunks.len() * XA_NODE_BYTES,
        }
    }

    fn outline(&self) -> Vec<IndexNode> {
        let mut outline = Vec::with_capacity(self.chunks.len());
        let mut ways = vec![(self.head, 0_u64, None, 0)];
        while let Some((item, base, parent, depth)) = ways.pop() {
            let Item::Chunk(chunk) = item else { continue };
            let chunk = &self.chunks[chunk];
            let here = outline.len() as u32;
            let mut present = 0_u64;
            for (offset, below) in chunk.slots.iter().enumerate().rev() {
                if *below != Item::Empty {
                    present |= 1 << offset;
                    let base = base + ((offset as u64) << chunk.shift);
                    ways.push((*below, base, Some(here), depth + 1));
                }
            }
            let kind = NodeKind::Chunk {
                shift: chunk.shift,
                present,
            };
            outline.push(IndexNode {
                parent,
                depth,
                slot: SwapSlot(base),
                kind,
            });
        }
        outline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(indexes: &[u64]) -> (usize, u32) {
        let mut xarray: Xarray<_> = Root::new();
        for index in indexes {
            let stored = xarray.store(*index, (), &mut Failslab::never());
            assert_eq!(stored, Ok(None));
        }
        let shape = xarray.shape();
        (shape.nodes, shape.depth)
    }

    #[test]
    fn the_tree_is_as_high_as_its_largest_index_needs() {
        assert_eq!(shape_of(&[0]), (0, 0));
        assert_eq!(shape_of(&[1]), (1, 1));
        assert_eq!(shape_of(&[63]), (1, 1));
        assert_eq!(shape_of(&[64]), (2, 2));
        assert_eq!(shape_of(&[0, 64]), (3, 2));
        assert_eq!(shape_of(&[16_383]), (3, 3));
        // The second 64 MB: same height, the third level's slots 4 to 7.
        assert_eq!(shape_of(&[16_384]), (3, 3));
        assert_eq!(shape_of(&[1 << 18]), (4, 4));
    }

    #[test]
    fn levels_come_and_go() {
        let mut xarray: Xarray<_> = Root::new();
        let mut never = Failslab::never();
        assert_eq!(xarray.store(0, "zero", &mut never), Ok(None));
        assert_eq!(xarray.store(5000, "far", &mut never), Ok(None));
        assert_eq!(xarray.shape().depth, 3);
        assert_eq!(xarray.erase(5000), Some("far"));
        assert_eq!((xarray.shape().depth, xarray.shape().nodes), (0, 0));
        assert_eq!(xarray.load(0), Some(&"zero"));
        assert_eq!(xarray.erase(0), Some("zero"));
        assert_eq!(xarray.len(), 0);
    }

    #[test]
    fn as_many_chunks_are_asked_for_as_are_added() {
        let indexes = [
            0,
            3,
            70,
            5000,
            4999,
            1 << 18,
            (1 << 18) + 64,
            16_383,
            1,
            1 << 24,
        ];
        let mut xarray: Xarray<_> = Root::new();
        for index in indexes {
            let before = xarray.shape().nodes;
            let needed = xarray.chunks_needed(index);
            let mut counting = Failslab::per_million(0, 1);
            assert_eq!(xarray.store(index, index, &mut counting), Ok(None));
            assert_eq!(u64::from(needed), counting.attempts());
            assert_eq!(
                xarray.shape().nodes - before,
                needed as usize,
                "index {index}"
            );
        }
    }

    #[test]
    fn a_failed_store_changes_nothing() {
        let mut xarray: Xarray<_> = Root::new();
        assert_eq!(xarray.store(7, 7, &mut Failslab::never()), Ok(None));
        let before = (xarray.shape(), xarray.outline());
        for nth in 1..=4 {
            let failed = xarray.store(1 << 15, 1, &mut Failslab::nth(nth));
            assert_eq!(
                failed,
                Err(AllocError::NoMemory {
                    site: AllocSite::IndexNode
                })
            );
            assert_eq!((xarray.shape(), xarray.outline()), before);
        }
    }
}
