//! How large the kernel's structures are, and how many of them there are.
//!
//! Sizes follow from the fields, for x86-64 without lock debugging: each
//! field at the next multiple of its alignment, the whole rounded up to the
//! largest. The published figures come out of that: separating store and load
//! costs 72 bytes in each per-CPU context (a pointer to a second request, a
//! `crypto_wait` of 40 and a mutex of 24), and a request on the stack takes
//! 176.
//!
//! 1. A layout's size is computed from its fields, never stated.
//! 2. The number of requests depends on the design and on whether the
//!    compressor can do with one on the stack.
//!
//! ```
//! use zswap_mm::layout::ContextEra;
//!
//! let growth = ContextEra::Split.layout().size() - ContextEra::Shared24.layout().size();
//! assert_eq!(growth, 72);
//! ```

use crate::compressor::Algorithm;
use crate::page::PAGE_SIZE;
use serde::{Deserialize, Serialize};

/// A field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its bytes.
    pub size: usize,
    /// Its alignment, in bytes.
    pub align: usize,
}

/// A structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its name.
    pub name: &'static str,
    /// Its fields, in order.
    pub fields: Vec<Field>,
}

const fn field(name: &'static str, size: usize, align: usize) -> Field {
    Field { name, size, align }
}

const fn pointer(name: &'static str) -> Field {
    field(name, 8, 8)
}

/// `struct mutex` until 2026, in bytes: owner, spinlock, spinner queue, list.
pub const MUTEX_BYTES_32: usize = 32;
/// `struct mutex` since its list of waiters became one pointer (2026).
pub const MUTEX_BYTES_24: usize = 24;

impl Layout {
    /// Where each field begins, in bytes.
    pub fn offsets(&self) -> Vec<usize> {
        let mut end = 0_usize;
        self.fields
            .iter()
            .map(|field| {
                let begin = end.next_multiple_of(field.align);
                end = begin + field.size;
                begin
            })
            .collect()
    }

    /// Bytes of the whole structure.
    pub fn size(&self) -> usize {
        let last = self
            .offsets()
            .last()
            .zip(self.fields.last())
            .map(|(at, last)| at + last.size);
        last.unwrap_or(0).next_multiple_of(self.align())
    }

    /// Its alignment, in bytes.
    pub fn align(&self) -> usize {
        self.fields
            .iter()
            .map(|field| field.align)
            .max()
            .unwrap_or(1)
    }
}

/// The layouts of `struct crypto_acomp_ctx` over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextEra {
    /// 6.7: buffer and mutex are per CPU but shared by all pools.
    Global,
    /// 6.9 to 6.18: both are in the context.
    Embedded,
    /// 2026: no flag for sleeping; the mutex still has 32 bytes.
    Shared32,
    /// 2026, with a mutex of 24 bytes: what the split starts from.
    Shared24,
    /// After the first patch of the series: a request, a wait and a mutex for
    /// each direction.
    Split,
}

impl ContextEra {
    /// Every era, oldest first.
    pub const ALL: [ContextEra; 5] = [
        ContextEra::Global,
        ContextEra::Embedded,
        ContextEra::Shared32,
        ContextEra::Shared24,
        ContextEra::Split,
    ];

    /// When it was.
    pub const fn label(self) -> &'static str {
        match self {
            ContextEra::Global => "6.7",
            ContextEra::Embedded => "6.9 to 6.18",
            ContextEra::Shared32 => "2026, 32-byte mutex",
            ContextEra::Shared24 => "2026, 24-byte mutex",
            ContextEra::Split => "split store and load",
        }
    }

    /// Pages of the compression buffer of each CPU.
    pub const fn buffer_pages(self) -> usize {
        match self {
            ContextEra::Global | ContextEra::Embedded => 2,
            _ => 1,
        }
    }

    /// The structure's fields.
    pub fn layout(self) -> Layout {
        let wait = field("wait", crypto_wait().size(), 8);
        let mutex = field("mutex", MUTEX_BYTES_24, 8);
        let mutex32 = field("mutex", MUTEX_BYTES_32, 8);
        let (acomp, req, buffer) = (pointer("acomp"), pointer("req"), pointer("buffer"));
        let fields = match self {
            ContextEra::Global => vec![acomp, req, wait, pointer("dstmem"), pointer("mutex")],
            ContextEra::Embedded => {
                vec![
                    acomp,
                    req,
                    wait,
                    buffer,
                    mutex32,
                    field("is_sleepable", 1, 1),
                ]
            }
            ContextEra::Shared32 => vec![acomp, req, wait, buffer, mutex32],
            ContextEra::Shared24 => vec![acomp, req, wait, buffer, mutex],
            ContextEra::Split => vec![
                acomp,
                buffer,
                pointer("compress req"),
                field("compress wait", wait.size, 8),
                field("compress mutex", MUTEX_BYTES_24, 8),
                pointer("decompress req"),
                field("decompress wait", wait.size, 8),
                field("decompress mutex", MUTEX_BYTES_24, 8),
            ],
        };
        Layout {
            name: "crypto_acomp_ctx",
            fields,
        }
    }
}

/// `struct crypto_wait`: a completion and an error.
pub fn crypto_wait() -> Layout {
    Layout {
        name: "crypto_wait",
        fields: vec![field("completion", 32, 8), field("err", 4, 4)],
    }
}

/// `struct acomp_req`: what an on-stack request takes.
pub fn acomp_req() -> Layout {
    Layout {
        name: "acomp_req",
        fields: vec![
            field("base (crypto_async_request)", 48, 8),
            pointer("src"),
            pointer("dst"),
            field("slen", 4, 4),
            field("dlen", 4, 4),
            field("chain (acomp_req_chain)", 104, 8),
        ],
    }
}

/// The layouts of `struct zswap_entry` over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryEra {
    /// 6.7: with its rb-tree node and a reference count.
    RbTree,
    /// 6.10 to 2026: the xarray needs nothing in the entry.
    Xarray,
    /// 2026: the pool is an 8-bit number.
    PoolIndex,
}

impl EntryEra {
    /// Every era, oldest first.
    pub const ALL: [EntryEra; 3] = [EntryEra::RbTree, EntryEra::Xarray, EntryEra::PoolIndex];

    /// When it was.
    pub const fn label(self) -> &'static str {
        match self {
            EntryEra::RbTree => "6.7",
            EntryEra::Xarray => "6.10 to 2026",
            EntryEra::PoolIndex => "2026",
        }
    }

    /// The structure's fields.
    pub fn layout(self) -> Layout {
        let (swpentry, length) = (pointer("swpentry"), field("length", 4, 4));
        let (handle, objcg, lru) = (pointer("handle"), pointer("objcg"), field("lru", 16, 8));
        let referenced = field("referenced", 1, 1);
        let fields = match self {
            EntryEra::RbTree => vec![
                field("rbnode", 24, 8),
                swpentry,
                field("refcount", 4, 4),
                length,
                pointer("pool"),
                pointer("handle or value"),
                objcg,
                lru,
            ],
            EntryEra::Xarray => {
                vec![
                    swpentry,
                    length,
                    referenced,
                    pointer("pool"),
                    handle,
                    objcg,
                    lru,
                ]
            }
            EntryEra::PoolIndex => {
                vec![
                    swpentry,
                    length,
                    referenced,
                    field("pool_idx", 1, 1),
                    handle,
                    objcg,
                    lru,
                ]
            }
        };
        Layout {
            name: "zswap_entry",
            fields,
        }
    }
}

/// How store and load share a CPU's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextDesign {
    /// One request and one mutex for both.
    Shared,
    /// One of each for either.
    Split,
    /// As split, but a load uses a request on its stack where it can.
    OnStack,
}

impl ContextDesign {
    /// Every design, in the order of the patches.
    pub const ALL: [ContextDesign; 3] = [
        ContextDesign::Shared,
        ContextDesign::Split,
        ContextDesign::OnStack,
    ];

    /// The name used in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            ContextDesign::Shared => "shared",
            ContextDesign::Split => "split",
            ContextDesign::OnStack => "on-stack",
        }
    }

    /// The context's layout, from 2026 on.
    pub const fn era(self) -> ContextEra {
        match self {
            ContextDesign::Shared => ContextEra::Shared24,
            _ => ContextEra::Split,
        }
    }

    /// Requests allocated for each CPU and pool.
    pub const fn requests(self, algorithm: Algorithm) -> usize {
        match self {
            ContextDesign::Shared => 1,
            ContextDesign::OnStack if algorithm.on_stack_request() => 1,
            _ => 2,
        }
    }

    /// Whether a load takes a zswap mutex.
    pub const fn load_takes_mutex(self, algorithm: Algorithm) -> bool {
        !matches!(self, ContextDesign::OnStack) || !algorithm.on_stack_request()
    }

    /// Bytes each CPU needs for a pool: context, requests with what the
    /// algorithm keeps behind each, buffer.
    pub fn bytes_per_cpu(self, algorithm: Algorithm) -> usize {
        let request = acomp_req().size() + algorithm.request_size();
        self.era().layout().size()
            + self.requests(algorithm) * request
            + self.era().buffer_pages() * PAGE_SIZE
    }

    /// Bytes by which a load's stack is deeper because of the request.
    pub fn stack_bytes(self, algorithm: Algorithm) -> usize {
        if self.load_takes_mutex(algorithm) {
            0
        } else {
            acomp_req().size()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_computed_sizes_are_the_measured_ones() {
        let contexts = ContextEra::ALL.map(|era| era.layout().size());
        assert_eq!(contexts, [72, 104, 96, 88, 160]);
        let entries = EntryEra::ALL.map(|era| era.layout().size());
        assert_eq!(entries, [80, 56, 48]);
        assert_eq!((crypto_wait().size(), acomp_req().size()), (40, 176));
    }

    #[test]
    fn software_needs_no_more_requests_than_before() {
        let requests = |design: ContextDesign| {
            [Algorithm::Zstd, Algorithm::DeflateIaa].map(|algorithm| design.requests(algorithm))
        };
        assert_eq!(requests(ContextDesign::Shared), [1, 1]);
        assert_eq!(requests(ContextDesign::Split), [2, 2]);
        assert_eq!(requests(ContextDesign::OnStack), [1, 2]);
        assert!(!ContextDesign::OnStack.load_takes_mutex(Algorithm::Lz4));
        assert!(ContextDesign::OnStack.load_takes_mutex(Algorithm::DeflateIaa));
        assert_eq!(ContextDesign::OnStack.stack_bytes(Algorithm::Lz4), 176);
        assert_eq!(
            ContextDesign::Shared.bytes_per_cpu(Algorithm::Zstd),
            88 + 176 + 4096
        );
    }

    #[test]
    fn fields_are_aligned() {
        let entry = EntryEra::PoolIndex.layout();
        assert_eq!(entry.offsets(), [0, 8, 12, 13, 16, 24, 32]);
    }
}
