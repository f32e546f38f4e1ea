//! Whether all memory of a device is accounted for.

use super::Zram;
use super::slot::{Entry, Slot};

impl Zram {
    /// Compares what is allocated and counted with what the slots refer to. No
    /// path may be under way.
    ///
    /// # Errors
    /// What does not add up.
    pub fn check(&self) -> Result<(), String> {
        let stats = self.stats();
        let pool = self.mem_pool.pool.borrow();
        let slots_with = |what: fn(Entry) -> bool| {
            let entries = self.table.iter().map(|slot| slot.entry.get());
            entries.filter(|entry| what(*entry)).count() as u64
        };
        let objects = slots_with(|entry| entry.handle().is_some());
        let bytes: u64 = self.table.iter().map(|slot| slot.entry.get().size()).sum();
        let in_use = self.table.iter().filter(|slot| Slot::is_in_use(slot));
        let zspages = || pool.zspages().filter_map(|zspage| pool.zspage(zspage));
        let empty = zspages().filter(|zspage| zspage.inuse == 0);
        let books = [
            ("objects of the pool", pool.objects() as u64, objects),
            (
                "page frames of the pool",
                pool.frames_held() as u64,
                pool.pages_allocated(),
            ),
            ("zspages without objects", empty.count() as u64, 0),
            (
                "pages_stored",
                stats.pages_stored,
                slots_with(|entry| entry != Entry::Empty),
            ),
            (
                "same_pages",
                stats.same_pages,
                slots_with(|entry| matches!(entry, Entry::Same(_))),
            ),
            (
                "huge_pages",
                stats.huge_pages,
                slots_with(|entry| matches!(entry, Entry::Huge(_))),
            ),
            ("compr_data_size", stats.compr_data_size, bytes),
            ("locked slots", in_use.count() as u64, 0),
        ];
        for (what, found, expected) in books {
            if found != expected {
                return Err(format!("{what}: {found}, and {expected} are accounted for"));
            }
        }
        Ok(())
    }
}
