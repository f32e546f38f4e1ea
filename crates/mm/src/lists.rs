//! Doubly linked lists of numbered records.
//!
//! zbud and z3fold keep their pages in lists by free space and take whatever
//! was put in last. A record is in one list at most and can be taken out of
//! the middle.

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
    list: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Lists {
    heads: Vec<u32>,
    links: Vec<Link>,
}

impl Lists {
    pub(crate) fn new(lists: usize) -> Self {
        Lists {
            heads: vec![NONE; lists],
            links: Vec::new(),
        }
    }

    /// The record put into a list last.
    pub(crate) fn first(&self, list: usize) -> Option<u32> {
        let head = self.heads[list];
        (head != NONE).then_some(head)
    }

    /// Puts a record that is in no list at the head of one.
    pub(crate) fn push(&mut self, list: usize, record: u32) {
        let none = Link {
            prev: NONE,
            next: NONE,
            list: NONE,
        };
        if self.links.len() <= record as usize {
            self.links.resize(record as usize + 1, none);
        }
        let second = std::mem::replace(&mut self.heads[list], record);
        self.links[record as usize] = Link {
            prev: NONE,
            next: second,
            list: list as u32,
        };
        if second != NONE {
            self.links[second as usize].prev = record;
        }
    }

    /// Takes a record out of its list, if it is in one.
    pub(crate) fn remove(&mut self, record: u32) {
        let Some(link) = self.links.get_mut(record as usize) else {
            return;
        };
        let Link { prev, next, list } = *link;
        if list == NONE {
            return;
        }
        link.list = NONE;
        if prev == NONE {
            self.heads[list as usize] = next;
        } else {
            self.links[prev as usize].next = next;
        }
        if next != NONE {
            self.links[next as usize].prev = prev;
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.heads.capacity() * size_of::<u32>() + self.links.capacity() * size_of::<Link>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_in_is_the_first_one_and_any_can_leave() {
        let mut lists = Lists::new(2);
        for record in 0..4 {
            lists.push(1, record);
        }
        assert_eq!((lists.first(0), lists.first(1)), (None, Some(3)));
        lists.remove(2);
        lists.remove(2);
        lists.remove(3);
        assert_eq!(lists.first(1), Some(1));
        lists.remove(0);
        lists.remove(1);
        assert_eq!(lists.first(1), None);
        lists.push(0, 2);
        assert_eq!(lists.first(0), Some(2));
    }
}
