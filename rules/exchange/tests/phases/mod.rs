//! Exchange phases to measure with: recorded ones and one all-to-all.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod generated;

use exchange::{BufferId, Place, Problem, Transfer, read_phase};
use ipu21::tile::TileId;

/// Recorded phases: name, text, horizon of the reference compiler.
pub(crate) const RECORDED: [(&str, &str, u32); 5] = [
    ("attn_h1_t64_p06", include_str!("../data/phases/attn_h1_t64_p06.tsv"), 5046),
    ("attn_h1_t64_flash_p09", include_str!("../data/phases/attn_h1_t64_flash_p09.tsv"), 5327),
    ("gemm_2048x256x64_t1472_p00", include_str!("../data/phases/gemm_2048x256x64_t1472_p00.tsv"), 726),
    ("mlp_n256_d256_t64_p01", include_str!("../data/phases/mlp_n256_d256_t64_p01.tsv"), 4947),
    ("mlp3_n128_d128_t64_p02", include_str!("../data/phases/mlp3_n128_d128_t64_p02.tsv"), 3666),
];

/// Sent data and received data are two buffers of every tile, their offsets the recorded addresses.
const SENT: BufferId = BufferId(0);
const RECEIVED: BufferId = BufferId(1);

/// A tile by number.
pub(crate) fn tile(number: u16) -> TileId {
    TileId::new(number).expect("a logical tile number")
}

/// The problem of a recorded phase.
pub(crate) fn parse(text: &str) -> Problem {
    let place = |buffer, (tile, offset)| Place { tile, buffer, offset };
    let transfers = read_phase(text).expect("a recorded phase").into_iter().map(|transfer| Transfer {
        source: place(SENT, transfer.source),
        words: transfer.words,
        destinations: transfer.destinations.into_iter().map(|destination| place(RECEIVED, destination)).collect(),
    });
    Problem { transfers: transfers.collect(), serial: Vec::new() }
}

/// Every one of 64 tiles sends ten pieces of 96 words to all others.
pub(crate) fn gather() -> Problem {
    let mut transfers = Vec::new();
    for source in 0..64 {
        for piece in 0..10 {
            let place = |number: u16| Place { tile: tile(number), buffer: RECEIVED, offset: (u32::from(source) * 10 + piece) * 384 };
            transfers.push(Transfer {
                source: Place { tile: tile(source), buffer: SENT, offset: piece * 384 },
                words: 96,
                destinations: (0..64).filter(|number| *number != source).map(place).collect(),
            });
        }
    }
    Problem { transfers, serial: Vec::new() }
}
