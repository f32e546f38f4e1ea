//! Size classes, for those who draw zspages.

use std::sync::OnceLock;
use zswap_mm::zsmalloc::SizeClasses;
use zswap_mm::{ChainRule, ClassIndex};

/// What a zspage of a size class is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeClassInfo {
    /// Bytes of an object.
    pub bytes: u32,
    /// Pages of a zspage.
    pub pages: u32,
    /// Objects of a zspage.
    pub objects: u16,
}

/// The size class with this number; for a merged one, that which it is merged
/// into.
#[must_use]
pub fn size_class(class: u8) -> SizeClassInfo {
    static CLASSES: OnceLock<Option<SizeClasses>> = OnceLock::new();
    let classes = CLASSES
        .get_or_init(|| SizeClasses::new(SizeClasses::DEFAULT_CHAIN_SIZE, ChainRule::Current).ok());
    let class = classes
        .as_ref()
        .and_then(|classes| classes.class_of_slot(ClassIndex(class)));
    class.map_or(
        SizeClassInfo {
            bytes: 0,
            pages: 0,
            objects: 0,
        },
        |class| SizeClassInfo {
            bytes: u32::from(class.size),
            pages: u32::from(class.pages_per_zspage),
            objects: class.objs_per_zspage,
        },
    )
}
