//! The same work done by other projects' code, and by the barest loop there is.

pub mod binary_heap;
pub mod nexosim;
