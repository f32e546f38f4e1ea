//! The red-black tree zswap used until 6.9.
//!
//! 1. The root is black; a red node has black children; every way down has
//!    the same number of black nodes. So no way is more than twice as long as
//!    another.
//! 2. Rotations are counted: they are what writes to nodes of other entries.
//!
//! Nodes are numbered in a vector instead of pointing at each other; number 0
//! is the leaf that ends every way, which saves the code most of its special
//! cases.

use super::trees::Root;
use super::{IndexNode, IndexShape, NodeKind, SwapSlot};
use crate::fault::{AllocError, Failslab};

/// The leaf at the end of every way.
const NIL: u32 = 0;

/// Bytes of a `struct rb_node`: three pointers, the colour in one of them.
const RB_NODE_BYTES: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

#[derive(Clone, Debug)]
struct Node<T> {
    slot: u64,
    parent: u32,
    child: [u32; 2],
    red: bool,
    entry: Option<T>,
}

/// One red-black tree.
#[derive(Clone, Debug)]
pub struct RbRoot<T> {
    nodes: Vec<Node<T>>,
    free: Vec<u32>,
    root: u32,
    len: usize,
    rotations: u64,
}

impl<T> RbRoot<T> {
    fn node(&self, node: u32) -> &Node<T> {
        &self.nodes[node as usize]
    }

    fn node_mut(&mut self, node: u32) -> &mut Node<T> {
        &mut self.nodes[node as usize]
    }

    fn child(&self, node: u32, side: Side) -> u32 {
        self.nodes[node as usize].child[side as usize]
    }

    fn is_red(&self, node: u32) -> bool {
        self.nodes[node as usize].red
    }

    fn find(&self, slot: u64) -> u32 {
        let mut at = self.root;
        while at != NIL {
            let node = self.node(at);
            at = match slot.cmp(&node.slot) {
                std::cmp::Ordering::Less => node.child[0],
                std::cmp::Ordering::Greater => node.child[1],
                std::cmp::Ordering::Equal => return at,
            };
        }
        NIL
    }

    fn new_node(&mut self, slot: u64, entry: T) -> u32 {
        if self.nodes.is_empty() {
            let nil = Node {
                slot: 0,
                parent: NIL,
                child: [NIL; 2],
                red: false,
                entry: None,
            };
            self.nodes.push(nil);
        }
        let node = Node {
            slot,
            parent: NIL,
            child: [NIL; 2],
            red: true,
            entry: Some(entry),
        };
        if let Some(number) = self.free.pop() {
            self.nodes[number as usize] = node;
            return number;
        }
        self.nodes.push(node);
        u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 entries in a tree")
    }

    /// Inserts a slot that is not in the tree.
    fn insert(&mut self, slot: u64, entry: T) {
        let new = self.new_node(slot, entry);
        let (mut parent, mut side, mut at) = (NIL, Side::Left, self.root);
        while at != NIL {
            parent = at;
            side = if slot < self.node(at).slot {
                Side::Left
            } else {
                Side::Right
            };
            at = self.child(at, side);
        }
        self.node_mut(new).parent = parent;
        match parent {
            NIL => self.root = new,
            parent => self.node_mut(parent).child[side as usize] = new,
        }
        self.len += 1;
        self.insert_fixup(new);
    }

    /// Repairs a red node under a red parent, upwards.
    fn insert_fixup(&mut self, mut at: u32) {
        while self.is_red(self.node(at).parent) {
            let parent = self.node(at).parent;
            let grandparent = self.node(parent).parent;
            let side = self.side_of(parent);
            let uncle = self.child(grandparent, side.other());
            if self.is_red(uncle) {
                self.node_mut(parent).red = false;
                self.node_mut(uncle).red = false;
                self.node_mut(grandparent).red = true;
                at = grandparent;
                continue;
            }
            if at == self.child(parent, side.other()) {
                at = parent;
                self.rotate(at, side);
            }
            let parent = self.node(at).parent;
            let grandparent = self.node(parent).parent;
            self.node_mut(parent).red = false;
            self.node_mut(grandparent).red = true;
            self.rotate(grandparent, side.other());
        }
        let root = self.root;
        self.node_mut(root).red = false;
    }

    /// On which side of its parent a node is.
    fn side_of(&self, node: u32) -> Side {
        let parent = self.node(node).parent;
        if self.child(parent, Side::Left) == node {
            Side::Left
        } else {
            Side::Right
        }
    }

    /// Turns a node down to `side`; its child of the other side takes its
    /// place.
    fn rotate(&mut self, down: u32, side: Side) {
        let up = self.child(down, side.other());
        let middle = self.child(up, side);
        self.node_mut(down).child[side.other() as usize] = middle;
        if middle != NIL {
            self.node_mut(middle).parent = down;
        }
        self.replace(down, up);
        self.node_mut(up).child[side as usize] = down;
        self.node_mut(down).parent = up;
        self.rotations += 1;
    }

    /// Lets `new` take the place of `old` below its parent.
    fn replace(&mut self, old: u32, new: u32) {
        let parent = self.node(old).parent;
        match parent {
            NIL => self.root = new,
            parent => {
                let side = self.side_of(old);
                self.node_mut(parent).child[side as usize] = new;
            }
        }
        // The leaf's parent is set as well: the repair after an erasure
        // starts from there.
        self.node_mut(new).parent = parent;
    }

    fn take(&mut self, slot: u64) -> Option<T> {
        let gone = self.find(slot);
        if gone == NIL {
            return None;
        }
        let [left, right] = self.node(gone).child;
        let (removed_red, hole);
        if left == NIL || right == NIL {
            removed_red = self.is_red(gone);
            hole = if left == NIL { right } else { left };
            self.replace(gone, hole);
        } else {
            let successor = self.leftmost(right);
            removed_red = self.is_red(successor);
            hole = self.child(successor, Side::Right);
            if self.node(successor).parent == gone {
                self.node_mut(hole).parent = successor;
            } else {
                self.replace(successor, hole);
                self.node_mut(successor).child[1] = right;
                self.node_mut(right).parent = successor;
            }
            self.replace(gone, successor);
            self.node_mut(successor).child[0] = left;
            self.node_mut(left).parent = successor;
            self.node_mut(successor).red = self.is_red(gone);
        }
        if !removed_red {
            self.erase_fixup(hole);
        }
        self.len -= 1;
        self.free.push(gone);
        self.node_mut(gone).entry.take()
    }

    /// Repairs a way that is one black node short, upwards.
    fn erase_fixup(&mut self, mut at: u32) {
        while at != self.root && !self.is_red(at) {
            let parent = self.node(at).parent;
            let side = self.side_of(at);
            let mut sibling = self.child(parent, side.other());
            if self.is_red(sibling) {
                self.node_mut(sibling).red = false;
                self.node_mut(parent).red = true;
                self.rotate(parent, side);
                sibling = self.child(parent, side.other());
            }
            let near = self.child(sibling, side);
            let far = self.child(sibling, side.other());
            if !self.is_red(near) && !self.is_red(far) {
                self.node_mut(sibling).red = true;
                at = parent;
                continue;
            }
            if !self.is_red(far) {
                self.node_mut(near).red = false;
                self.node_mut(sibling).red = true;
                self.rotate(sibling, side.other());
                sibling = self.child(parent, side.other());
            }
            self.node_mut(sibling).red = self.is_red(parent);
            self.node_mut(parent).red = false;
            let far = self.child(sibling, side.other());
            self.node_mut(far).red = false;
            self.rotate(parent, side);
            break;
        }
        self.node_mut(at).red = false;
    }

    fn leftmost(&self, mut at: u32) -> u32 {
        while self.child(at, Side::Left) != NIL {
            at = self.child(at, Side::Left);
        }
        at
    }

    fn first(&self) -> u32 {
        if self.root == NIL {
            NIL
        } else {
            self.leftmost(self.root)
        }
    }

    /// The node with the next larger slot.
    fn next(&self, mut at: u32) -> u32 {
        let right = self.child(at, Side::Right);
        if right != NIL {
            return self.leftmost(right);
        }
        loop {
            let parent = self.node(at).parent;
            if parent == NIL || self.child(parent, Side::Left) == at {
                return parent;
            }
            at = parent;
        }
    }
}

impl<T> Root<T> for RbRoot<T> {
    fn new() -> Self {
        RbRoot {
            nodes: Vec::new(),
            free: Vec::new(),
            root: NIL,
            len: 0,
            rotations: 0,
        }
    }

    fn load(&self, slot: u64) -> Option<&T> {
        match self.find(slot) {
            NIL => None,
            found => self.node(found).entry.as_ref(),
        }
    }

    fn load_mut(&mut self, slot: u64) -> Option<&mut T> {
        match self.find(slot) {
            NIL => None,
            found => self.node_mut(found).entry.as_mut(),
        }
    }

    /// Allocates nothing: the kernel's nodes are in the entries.
    fn store(
        &mut self,
        slot: u64,
        entry: T,
        _faults: &mut Failslab,
    ) -> Result<Option<T>, AllocError> {
        let old = self.take(slot);
        self.insert(slot, entry);
        Ok(old)
    }

    fn erase(&mut self, slot: u64) -> Option<T> {
        self.take(slot)
    }

    fn iter<'a>(&'a self) -> impl Iterator<Item = (SwapSlot, &'a T)>
    where
        T: 'a,
    {
        let mut at = self.first();
        std::iter::from_fn(move || {
            if at == NIL {
                return None;
            }
            let node = self.node(at);
            at = self.next(at);
            node.entry
                .as_ref()
                .map(|entry| (SwapSlot(node.slot), entry))
        })
    }

    fn len(&self) -> usize {
        self.len
    }

    fn shape(&self) -> IndexShape {
        let depth = self
            .outline()
            .iter()
            .map(|node| node.depth + 1)
            .max()
            .unwrap_or(0);
        IndexShape {
            entries: self.len,
            nodes: self.len,
            depth,
            rotations: self.rotations,
            height_changes: 0,
            node_bytes: self.len * RB_NODE_BYTES,
        }
    }

    fn outline(&self) -> Vec<IndexNode> {
        let mut outline = Vec::with_capacity(self.len);
        let mut ways = vec![(self.root, None, 0)];
        while let Some((at, parent, depth)) = ways.pop() {
            if at == NIL {
                continue;
            }
            let node = self.node(at);
            let kind = if node.red {
                NodeKind::Red
            } else {
                NodeKind::Black
            };
            let here = outline.len() as u32;
            outline.push(IndexNode {
                parent,
                depth,
                slot: SwapSlot(node.slot),
                kind,
            });
            ways.push((node.child[1], Some(here), depth + 1));
            ways.push((node.child[0], Some(here), depth + 1));
        }
        outline
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// Checks invariant 1 and the order; returns the black height.
    fn check<T>(tree: &RbRoot<T>, at: u32, range: std::ops::Range<u64>) -> u32 {
        if at == NIL {
            return 1;
        }
        let node = tree.node(at);
        assert!(range.contains(&node.slot));
        for child in node.child.into_iter().filter(|child| *child != NIL) {
            assert_eq!(tree.node(child).parent, at);
            assert!(!(node.red && tree.is_red(child)), "red under red");
        }
        let left = check(tree, node.child[0], range.start..node.slot);
        let right = check(tree, node.child[1], node.slot + 1..range.end);
        assert_eq!(left, right, "black heights differ below {}", node.slot);
        left + u32::from(!node.red)
    }

    #[test]
    fn the_tree_stays_red_black_and_ordered() {
        let mut tree: RbRoot<_> = Root::new();
        let mut stream = Stream::new(1);
        for step in 0..4000 {
            let slot = stream.below(600);
            if stream.below(100) < if step % 1000 < 500 { 70 } else { 30 } {
                assert!(tree.store(slot, slot, &mut Failslab::never()).is_ok());
            } else {
                assert!(tree.erase(slot).is_none_or(|entry| entry == slot));
            }
            if !tree.nodes.is_empty() {
                assert!(!tree.is_red(tree.root));
                assert!(!tree.is_red(NIL));
                check(&tree, tree.root, 0..600);
            }
        }
        assert!(tree.rotations > 500);
        assert!(tree.nodes.len() <= 601, "node numbers are used again");
    }

    #[test]
    fn ascending_slots_make_a_tree_no_deeper_than_twice_the_logarithm() {
        let mut tree: RbRoot<_> = Root::new();
        for slot in 0..16_384 {
            assert!(tree.store(slot, (), &mut Failslab::never()).is_ok());
        }
        let shape = tree.shape();
        assert_eq!((shape.entries, shape.nodes), (16_384, 16_384));
        assert!((15..=28).contains(&shape.depth), "depth {}", shape.depth);
    }
}
