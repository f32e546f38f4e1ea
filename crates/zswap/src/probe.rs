//! The records that the paths leave beside those of the kernel.

use zswap_mm::ObjLocation;

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
}

impl Probe {
    const ALL: [Probe; 14] = [
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
    /// Number of the zspage in the pool.
    pub zspage: u32,
    /// Number of the object in the zspage.
    pub object: u16,
}

impl ObjectPlace {
    pub(crate) fn of(location: ObjLocation) -> ObjectPlace {
        ObjectPlace {
            class: location.class.0,
            zspage: location.zspage.0,
            object: location.object,
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
