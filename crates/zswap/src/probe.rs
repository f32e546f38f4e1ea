//! The records that the paths leave beside those of the kernel.

use zswap_mm::zpool::{Zpool, ZpoolHandle};

/// What a [`kernel_sim::EventKind::Probe`] record with this code means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Probe {
    /// A store begins. `arg`: the swap slot.
    StoreBegin = 1,
    /// The store has ended. `arg`: the swap slot.
    StoreEnd = 2,
    /// The store has failed. `arg`: the swap slot.
    StoreRejected = 3,
    /// A load begins. `arg`: the swap slot.
    LoadBegin = 4,
    /// The load has ended. `arg`: the swap slot.
    LoadEnd = 5,
    /// The compressor works from here on. `arg`: the swap slot.
    CompressBegin = 6,
    /// It is done. `arg`: the compressed length in bytes.
    CompressEnd = 7,
    /// The decompressor works from here on. `arg`: the swap slot.
    DecompressBegin = 8,
    /// It is done. `arg`: the compressed length in bytes.
    DecompressEnd = 9,
    /// An object was allocated. `arg`: an [`ObjectPlace`].
    ObjectAlloc = 10,
    /// An object was freed. `arg`: an [`ObjectPlace`].
    ObjectFree = 11,
    /// The index has an entry for the slot `arg`.
    IndexStore = 12,
    /// The index has no entry for the slot `arg` any more.
    IndexErase = 13,
    /// A page full of zeroes was noted in the zeromap. `arg`: the swap slot.
    ZeromapSet = 14,
    /// The zspage of the object `arg`, an [`ObjectPlace`], is held for reading.
    ZspageHold = 15,
    /// It is no longer held.
    ZspageLetGo = 16,
    /// Writing the page of a slot back begins. `arg`: the swap slot.
    WritebackBegin = 17,
    /// The page is on its way to the device. `arg`: the swap slot.
    WritebackEnd = 18,
    /// The page was not written back. `arg`: the swap slot.
    WritebackFailed = 19,
    /// A page was read from the swap device. `arg`: the swap slot.
    DeviceRead = 20,
    /// A page that zswap refused was written to the device. `arg`: the slot.
    DeviceWrite = 21,
}

impl Probe {
    const ALL: [Probe; 21] = [
        Probe::StoreBegin,
        Probe::StoreEnd,
        Probe::StoreRejected,
        Probe::LoadBegin,
        Probe::LoadEnd,
        Probe::CompressBegin,
        Probe::CompressEnd,
        Probe::DecompressBegin,
        Probe::DecompressEnd,
        Probe::ObjectAlloc,
        Probe::ObjectFree,
        Probe::IndexStore,
        Probe::IndexErase,
        Probe::ZeromapSet,
        Probe::ZspageHold,
        Probe::ZspageLetGo,
        Probe::WritebackBegin,
        Probe::WritebackEnd,
        Probe::WritebackFailed,
        Probe::DeviceRead,
        Probe::DeviceWrite,
    ];

    /// The probe with this code, if it is one of the paths'.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Probe> {
        let index = usize::from(code).checked_sub(1)?;
        Probe::ALL.get(index).copied()
    }
}

/// Where an object lies in the pool, packed into the `arg` of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObjectPlace {
    /// Size class.
    pub class: u8,
    /// Number of the zspage (or page of zbud or z3fold) in its allocator pool,
    /// and in the topmost eight bits the number of that pool.
    pub zspage: u32,
    /// Number of the object in the zspage.
    pub object: u16,
}

impl ObjectPlace {
    pub(crate) fn of(number: usize, zpool: &Zpool, handle: ZpoolHandle) -> ObjectPlace {
        let (class, zspage, object) = match (zpool, handle) {
            (Zpool::Zsmalloc(pool), ZpoolHandle::Zsmalloc(handle)) => {
                let location = pool.location(handle);
                (location.class.0, location.zspage.0, location.object)
            }
            (_, ZpoolHandle::Zbud(handle)) => (0, handle.page, handle.buddy as u16),
            (Zpool::Z3fold(pool), ZpoolHandle::Z3fold(handle)) => {
                let location = pool.location(handle);
                (0, location.page, location.buddy as u16)
            }
            _ => (0, 0, 0),
        };
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        ObjectPlace {
            class,
            zspage: number << 24 | zspage,
            object,
        }
    }

    /// As the `arg` of a record.
    #[must_use]
    pub fn to_arg(self) -> u64 {
        u64::from(self.class) << 48 | u64::from(self.zspage) << 16 | u64::from(self.object)
    }

    /// From the `arg` of a record.
    #[must_use]
    pub fn from_arg(arg: u64) -> ObjectPlace {
        let [_, class, z3, z2, z1, z0, o1, o0] = arg.to_be_bytes();
        ObjectPlace {
            class,
            zspage: u32::from_be_bytes([z3, z2, z1, z0]),
            object: u16::from_be_bytes([o1, o0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_places_round_trip() {
        for probe in Probe::ALL {
            assert_eq!(Probe::from_code(probe as u16), Some(probe));
        }
        assert_eq!(Probe::from_code(0), None);
        assert_eq!(Probe::from_code(99), None);
        let place = ObjectPlace {
            class: 254,
            zspage: 0x0102_0304,
            object: 0x0506,
        };
        assert_eq!(ObjectPlace::from_arg(place.to_arg()), place);
    }
}
