//! `copy`, `copy_panels`, `clear` and `join`.

use proptest::prelude::*;

use crate::bench::{Call, Outcome};
use crate::matrix::Draw;

const SRC: u32 = 0x54000;
const DST: u32 = 0x90000;

fn bytes(count: u32) -> Vec<u8> {
    let mut draw = Draw::new(u64::from(count));
    (0..count).map(|_| draw.byte()).collect()
}

pub(crate) fn copy(count: u32) -> Outcome {
    Call::new("copy", &[], &[SRC, DST]).with_values(&[count]).with([(SRC, bytes(count))]).run()
}

pub(crate) fn clear(count: u32) -> Outcome {
    Call::new("clear", &[], &[DST]).with_values(&[count]).run()
}

const COUNTS: [u32; 9] = [0, 8, 40, 48, 56, 96, 1000, 8192, 65536];

#[test]
fn copies_move_their_bytes_and_nothing_else() {
    for count in COUNTS {
        let outcome = copy(count);
        assert_eq!(outcome.read(DST, count), bytes(count), "copy of {count} bytes");
        outcome.untouched(DST, 0xe8000, &[(DST, count)]);
    }
}

/// Scales halves 0, 1, 2, ...
pub(crate) fn scale(count: u32, scale: f32) -> Outcome {
    let defines = [("BYTES", i64::from(count)), ("SCALE", i64::from(scale.to_bits()))];
    let halves = (0..count / 2).flat_map(|index| half::f16::from_f32(index as f32).to_le_bytes()).collect();
    Call::new("scale", &defines, &[SRC, DST]).with([(SRC, halves)]).run()
}

#[test]
fn scaled_copies_are_products_rounded_once() {
    for (count, factor) in [(8, 0.125), (40, 0.1178), (48, -3.0), (56, 1.0), (96, 0.1178), (1000, 0.1178), (4000, 0.125)] {
        let outcome = scale(count, factor);
        let rounded = half::f16::from_f32(factor).to_f32();
        let expected = (0..count / 2).flat_map(|index| half::f16::from_f32(rounded * index as f32).to_le_bytes());
        assert_eq!(outcome.read(DST, count), expected.collect::<Vec<u8>>(), "{count} bytes times {factor}");
        outcome.untouched(DST, 0xe8000, &[(DST, count)]);
    }
}

#[test]
fn clearing_stores_zeros_and_nothing_else() {
    for count in COUNTS {
        let outcome = clear(count);
        assert_eq!(outcome.read(DST, count), vec![0; count as usize], "clear of {count} bytes");
        outcome.untouched(DST, 0xe8000, &[(DST, count)]);
    }
}

/// Issue 3's outside witness: the vendor's figures are 1,308 clocks for the copy and 288 for a call.
#[test]
fn a_paced_copy_of_8_kib_takes_1020_clocks_more_than_one_of_nothing() {
    let difference = copy(8192).clocks() - copy(0).clocks();
    assert!(difference.abs_diff(1020) <= 12, "difference {difference}");
}

#[test]
fn joining_stores_nothing() {
    Call::new("join", &[], &[]).run().untouched(DST, 0xe8000, &[]);
}

/// Runs, bytes of one, distances of sources and targets.
pub(crate) fn panels_call(runs: u32, count: u32, src_panel: u32, dst_panel: u32) -> Call {
    let defines =
        [("G", i64::from(runs)), ("BYTES", i64::from(count)), ("SRC_PANEL", i64::from(src_panel)), ("DST_PANEL", i64::from(dst_panel))];
    Call::new("copy_panels", &defines, &[SRC, DST])
}

pub(crate) fn copy_panels(runs: u32, count: u32, src_panel: u32, dst_panel: u32) -> Outcome {
    let sources = (0..runs).map(|run| (SRC + run * src_panel, bytes(count + 8 * run)[..count as usize].to_vec()));
    panels_call(runs, count, src_panel, dst_panel).with(sources).run()
}

fn check_panels(runs: u32, count: u32, src_panel: u32, dst_panel: u32) {
    let outcome = copy_panels(runs, count, src_panel, dst_panel);
    for run in 0..runs {
        let expected = &bytes(count + 8 * run)[..count as usize];
        assert_eq!(
            outcome.read(DST + run * dst_panel, count),
            expected,
            "run {run} of {runs} x {count}, {src_panel} and {dst_panel} apart"
        );
    }
    let written: Vec<_> = (0..runs).map(|run| (DST + run * dst_panel, count)).collect();
    outcome.untouched(DST, 0xe8000, &written);
}

/// Runs as one, by words with and without strides that fit, by runs.
#[rustfmt::skip]
pub(crate) const PANELS: [(u32, u32, u32, u32); 13] = [
    (1, 8, 32, 32),          (1, 96, 96, 96),         (3, 96, 128, 160),     (5, 384, 384, 512),   (5, 2944, 3072, 2944),
    (5, 2944, 2944, 2944),   (7, 32, 64, 96),         (40, 32, 1024, 64),    (13, 48, 48, 96),     (3, 960, 16384, 960),
    (2, 104, 104, 200),      (2, 8, 32, 64),          (2, 2944, 8192, 2944),
];

#[test]
fn panels_are_copied_whatever_their_distance() {
    PANELS.iter().for_each(|&(runs, count, src_panel, dst_panel)| check_panels(runs, count, src_panel, dst_panel));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn drawn_panels_are_copied(runs in 1_u32..20, words in 1_u32..200, src_gap in 0_u32..100, dst_gap in 0_u32..100) {
        check_panels(runs, 8 * words, 8 * (words + src_gap), 8 * (words + dst_gap));
    }
}
