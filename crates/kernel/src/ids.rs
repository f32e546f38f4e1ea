//! Index newtypes. Each is an index into one of the machine's tables; none is
//! ever reused within a run.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($repr:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub struct $name(pub $repr);

        impl $name {
            /// The position in the machine's table.
            #[must_use]
            pub fn index(self) -> usize {
                usize::from(self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A CPU, counted from 0.
    CpuId(u8)
}
id! {
    /// A task, in order of its creation.
    TaskId(u16)
}
id! {
    /// A lock of any kind, in order of its creation.
    LockId(u16)
}
id! {
    /// A place in the source from which a task last asked the kernel for
    /// something; see [`crate::trace::Sites`].
    SiteId(u16)
}

impl TaskId {
    /// Stands where an event has no task: an interrupt on an idle CPU.
    pub const NONE: TaskId = TaskId(u16::MAX);
}
