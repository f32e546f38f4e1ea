//! What every codec makes of every kind of page, as a sum, for the tests of
//! both targets. Changes only together with a codec or a kind of page.

use zswap_mm::{Algorithm as A, PAGE_SIZE as SIZE, Page as P, PageContent as C};

/// Adds up lengths and bytes (FNV-1a) of eight pages.
pub fn sum(algorithm: A, content: C) -> u64 {
    let mut codec = algorithm.new_compressor();
    let (mut page, mut buffer) = (P::zeroed(), [0; 2 * SIZE]);
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for seed in 0..8 {
        content.fill(seed, &mut page);
        let length = codec.compress(&page, &mut buffer).expect("there is room");
        for byte in buffer[..length].iter().chain(page.bytes()) {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    sum
}

/// The sums.
pub const SUMS: [(A, C, u64); 24] = [
    (A::Deflate, C::Text, 0xead277c390c70ae8),
    (A::Deflate, C::Pointers, 0xcde0dd6131e33eb6),
    (A::Deflate, C::Code, 0xe0d3a3a3d3e8b59d),
    (A::Deflate, C::Zeroes, 0xb18b3db0c1cee0d5),
    (A::Deflate, C::Random, 0xb84c8f468bbc374d),
    (A::Deflate, C::HalfRandom, 0x3867ee9b86c0572e),
    (A::Lz4, C::Text, 0xa61395956ec39c41),
    (A::Lz4, C::Pointers, 0x368f579bfd3a6514),
    (A::Lz4, C::Code, 0x1ee4eb9a2daedc0c),
    (A::Lz4, C::Zeroes, 0x9a066255c172cb65),
    (A::Lz4, C::Random, 0x35dffb22eeb3e6f5),
    (A::Lz4, C::HalfRandom, 0x8781e6d9be74e229),
    (A::Lzo, C::Text, 0xae772176b79cc36c),
    (A::Lzo, C::Pointers, 0xf9d1a0205b233b58),
    (A::Lzo, C::Code, 0x6ea0370eb9dadad1),
    (A::Lzo, C::Zeroes, 0x8987ca55a46eeba5),
    (A::Lzo, C::Random, 0x96fd9b7468f6d06f),
    (A::Lzo, C::HalfRandom, 0xc1f19cfc363e04a0),
    (A::Zstd, C::Text, 0xf52b795ec246b47b),
    (A::Zstd, C::Pointers, 0x9010687841e94d54),
    (A::Zstd, C::Code, 0x995002ca3a4ee9ab),
    (A::Zstd, C::Zeroes, 0x4af765a8c480171d),
    (A::Zstd, C::Random, 0x9d8f2ce4cc4f88b5),
    (A::Zstd, C::HalfRandom, 0x60a22704d407c179),
];
