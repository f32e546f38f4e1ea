//! What the steps of zram cost, in virtual time.

/// Mean costs in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZramCosts {
    /// Compressing a page.
    pub compress_ns: u64,
    /// Decompressing a page.
    pub decompress_ns: u64,
    /// A request's way through the block layer, and the look whether a page is
    /// of one word.
    pub bio_ns: u64,
    /// Changing or looking at a slot, under its lock.
    pub slot_ns: u64,
    /// Allocating an object, under the lock of its class.
    pub malloc_ns: u64,
    /// Finding an object, under the lock of the pool.
    pub find_ns: u64,
    /// Copying or filling up to a page.
    pub copy_ns: u64,
    /// Freeing an object, under the lock of its class.
    pub free_ns: u64,
}

impl ZramCosts {
    /// zstd at level 3 on a desktop processor at 4.5 GHz.
    ///
    /// Sources: the codec takes 9.4 to 12.7 µs and 2.9 to 3.8 µs, here their
    /// middles; a whole write 13.6 to 14.5 µs and a whole read 5.35 to 5.60 µs
    /// (memory reference, 8.1). The pool's lock is held for 0.22 µs and the
    /// class's for 0.35 µs when freeing (8.2: 0.17 + 0.18). That allocating
    /// takes as long as freeing, a copy 0.5 µs, a slot 0.1 µs and a request
    /// 1.5 µs is assumed; writes and reads then come to 13.7 (14.3 over a
    /// stored page) and 5.2 µs.
    pub const ZSTD_3: ZramCosts = ZramCosts {
        compress_ns: 11_050,
        decompress_ns: 3_350,
        bio_ns: 1_500,
        slot_ns: 100,
        malloc_ns: 350,
        find_ns: 220,
        copy_ns: 500,
        free_ns: 350,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_those_of_the_documentation() {
        let costs = ZramCosts::ZSTD_3;
        let object_ns = costs.malloc_ns + costs.find_ns + costs.copy_ns;
        let write_ns = costs.bio_ns + costs.compress_ns + object_ns + costs.slot_ns;
        assert_eq!(write_ns, 13_720);
        assert_eq!(write_ns + costs.find_ns + costs.free_ns, 14_290);
        let read_ns = costs.bio_ns + costs.slot_ns + costs.find_ns + costs.decompress_ns;
        assert_eq!(read_ns, 5_170);
    }
}
