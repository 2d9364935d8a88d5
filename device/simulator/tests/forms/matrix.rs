//! Streams through the matrix unit: products, slim convolutions and transposes against sums of products (isa-notes 10).
//!
//! All numbers are small whole numbers, so sums are exact in any order.

use half::f16;
use ipu21::parameters::Parameters;

use crate::support::{DATA, KERNEL, OUT, WORKER, run, segment, word, words_at};
use crate::table;
use crate::{Entry, Scene};

/// Where coefficients lie before they are loaded.
const COEFFICIENTS: u32 = 0x80000;
/// The supervisor code that loads them.
const LOADER: u32 = 0x50000;
/// Rows, or steps, of a stream.
const ROWS: usize = 3;
/// Words of one call in the stream: inputs, partials.
const CALL: usize = 4;

/// Formats of a form.
struct Format {
    /// Channels that one call multiplies.
    lanes: usize,
    /// Calls of a row.
    phases: usize,
    /// Sets of eight units.
    sets: usize,
    /// Whether partials are f16, and results.
    half_partials: bool,
    half_results: bool,
}

fn format(mnemonic: &str) -> Option<Format> {
    let of = |lanes, phases, sets, half_partials, half_results| Some(Format { lanes, phases, sets, half_partials, half_results });
    match mnemonic.trim_end_matches("amp").trim_end_matches("slic") {
        "f16v4hihov4" => of(4, 4, 2, true, true),
        "f16v4hiho" => of(4, 4, 1, true, true),
        "f16v4siho" => of(4, 4, 1, false, true),
        "f16v4siso" => of(4, 4, 1, false, false),
        "f8v8hihov4" => of(8, 4, 2, true, true),
        "f32siso" => of(1, 8, 1, false, false),
        "f32sisov2" => of(1, 8, 2, false, false),
        _ => None,
    }
}

impl Format {
    /// The units whose couple a call with this phase moves: the first of each couple.
    fn moved(&self, phase: usize) -> Vec<usize> {
        match (self.lanes, self.sets) {
            (1, 2) => vec![if phase.is_multiple_of(2) { phase } else { 8 + phase - 1 }],
            (1, _) => {
                if phase.is_multiple_of(2) {
                    vec![phase]
                } else {
                    Vec::new()
                }
            }
            (_, sets) => (0..sets).map(|set| 8 * set + 2 * phase).collect(),
        }
    }
}

/// A whole number of few bits.
fn small(seed: usize, range: u64) -> f64 {
    (table::scramble(seed as u64) % (2 * range + 1)) as f64 - range as f64
}

fn halves(values: [f64; 2]) -> u32 {
    let [low, high] = values.map(|value| u32::from(f16::from_f64(value).to_bits()));
    low | high << 16
}

/// A whole number up to 4 in magnitude as an FP8 of 1-4-3 bits with bias 8.
fn byte(value: f64) -> u8 {
    let magnitude = match value.abs() as u8 {
        0 => 0,
        1 => 0x40,
        2 => 0x48,
        3 => 0x4c,
        _ => 0x50,
    };
    if value < 0.0 { magnitude | 0x80 } else { magnitude }
}

/// Values in the format of a form's lanes, lowest first.
fn lanes(values: &[f64]) -> Vec<u32> {
    match values.len() {
        1 => vec![(values[0] as f32).to_bits()],
        4 => vec![halves([values[0], values[1]]), halves([values[2], values[3]])],
        _ => values.chunks(4).map(|four| u32::from_le_bytes(std::array::from_fn(|i| byte(four[i])))).collect(),
    }
}

/// Couples in the format of a form's partials.
fn couples(values: &[[f64; 2]], half: bool) -> Vec<u32> {
    let singles = |couple: &[f64; 2]| couple.map(|value| (value as f32).to_bits()).to_vec();
    if half { values.iter().map(|couple| halves(*couple)).collect() } else { values.iter().flat_map(singles).collect() }
}

fn results(words: &[u32], half: bool, count: usize) -> Vec<[f64; 2]> {
    let half_couple = |word: u32| [word as u16, (word >> 16) as u16].map(|bits| f16::from_bits(bits).to_f64());
    let single_couple = |pair: &[u32]| [pair[0], pair[1]].map(|bits| f64::from(f32::from_bits(bits)));
    if half {
        words[..count].iter().map(|&word| half_couple(word)).collect()
    } else {
        words.chunks(2).take(count).map(single_couple).collect()
    }
}

/// The coefficient of a unit and a channel, 16 or 32 channels a unit.
fn weight(unit: usize, channel: usize) -> f64 {
    small(unit * 64 + channel, 4)
}

/// All 64 entries: entry 4n + m holds the channels of unit n from m times the lanes of an entry on.
fn coefficients(lanes_of_entry: usize) -> Vec<u32> {
    let entry = |entry: usize| -> Vec<u32> {
        let channel = |i: usize| weight(entry / 4, entry % 4 * lanes_of_entry + i);
        if lanes_of_entry == 2 {
            return [channel(0), channel(1)].map(|value| (value as f32).to_bits()).to_vec();
        }
        lanes(&(0..lanes_of_entry).map(channel).collect::<Vec<f64>>())
    };
    (0..64).flat_map(entry).collect()
}

/// One call of a stream.
struct Call {
    immediate: u32,
    input: Vec<f64>,
    partials: Vec<[f64; 2]>,
}

/// Loads all coefficients, 64 or 128 bits at a time.
fn loads(wide: bool) -> String {
    if wide {
        (0..32).map(|pair| format!("ld128putcs {}\n", 2 * pair)).collect()
    } else {
        (0..64).map(|entry| format!("ld64putcs {entry}\n")).collect()
    }
}

/// Streams calls through a form and returns what each gives; calls that give nothing are not stored.
fn streamed(entry: &Entry, format: &Format, wide: bool, calls: &[Call], gives: impl Fn(usize) -> usize) -> Vec<Vec<[f64; 2]>> {
    let mut text = format!(".worker\nsetzi $m2, {DATA}\nsetzi $m3, {OUT}\nsetzi $a7, 8\nuput 1, $a7\n");
    let mut data = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let mut words = lanes(&call.input);
        words.resize(2, 0);
        words.extend(couples(&call.partials, format.half_partials));
        words.resize(CALL, 0);
        data.extend(words);
        text += &format!("ld64 $a0:1, $m2, $m15, {}\nld64 $a2:3, $m2, $m15, {}\n", 2 * number, 2 * number + 1);
        text += &format!("{}\n", entry.text(&[4, 0, 2, call.immediate]));
        match (gives(number), format.half_results) {
            (0, _) => {}
            (1, true) => text += &format!("st32 $a4, $m3, $m15, {}\n", 2 * number),
            _ => text += &format!("st64 $a4:5, $m3, $m15, {number}\n"),
        }
    }
    text += "exitz $m15\n";
    let lanes_of_entry = if format.lanes == 1 { 2 } else { format.lanes };
    let loads = loads(wide);
    let loader = format!(
        ".supervisor\nsetzi $m1, {COEFFICIENTS}\nput 80, $m1\nsetzi $m1, 3\nput 49, $m1\n{loads}setzi $m1, {WORKER}\nrunall $m1, $m15, 0\nsync 2\nbr $m10\n"
    );
    let jump = [word("bri.zi19", &[LOADER / 4])];
    let (tile, result) = run(&[
        segment(KERNEL, &jump),
        segment(LOADER, &table::code(&loader, LOADER)),
        segment(WORKER, &table::code(&text, WORKER)),
        segment(COEFFICIENTS, &coefficients(lanes_of_entry)),
        segment(DATA, &data),
    ]);
    result.unwrap_or_else(|fault| panic!("{}: {fault}", entry.id));
    let given = |number: usize| {
        let words = if gives(number) == 1 && format.half_results { 1 } else { 2 };
        results(&words_at(&tile, OUT + 8 * number as u32, words), format.half_results, gives(number))
    };
    (0..calls.len()).map(|number| if gives(number) == 0 { Vec::new() } else { given(number) }).collect()
}

/// Rows overlap: partials enter in one block of calls, inputs in the next, results leave in the third.
fn product(entry: &Entry) {
    product_loaded(entry, false);
}

/// A product whose coefficients come 64 or 128 bits at a time.
pub(crate) fn product_loaded(entry: &Entry, wide: bool) {
    let format = format(entry.mnemonic).unwrap();
    let immediate = Parameters::shipped().immediate;
    let phases: &[u32] = match format.lanes {
        1 => &immediate.tamp_f32_e4.p,
        4 => &immediate.tamp_f16v4_e4.p,
        _ => &immediate.tamp_f8v8_e4.p,
    };
    let input = |row: usize, channel: usize| small(5000 + row * 64 + channel, 3);
    let partial = |row: usize, unit: usize| small(9000 + row * 64 + unit, 100);
    let call = |number: usize| {
        let (block, phase) = (number / format.phases, number % format.phases);
        let channel = |i: usize| if (1..=ROWS).contains(&block) { input(block - 1, phase * format.lanes + i) } else { 0.0 };
        let couple = |&unit: &usize| if block < ROWS { [partial(block, unit), partial(block, unit + 1)] } else { [0.0; 2] };
        Call {
            immediate: phases[phase],
            input: (0..format.lanes).map(channel).collect(),
            partials: format.moved(phase).iter().map(couple).collect(),
        }
    };
    let calls: Vec<Call> = (0..(ROWS + 2) * format.phases).map(call).collect();
    let found = streamed(entry, &format, wide, &calls, |number| format.moved(number % format.phases).len());
    let mut compared = 0;
    for (number, couples) in found.iter().enumerate().skip(2 * format.phases) {
        let row = number / format.phases - 2;
        for (unit, couple) in format.moved(number % format.phases).into_iter().zip(couples) {
            for (side, value) in couple.iter().enumerate() {
                let channels = format.lanes * format.phases;
                let sum: f64 = (0..channels).map(|k| input(row, k) * weight(unit + side, k)).sum();
                assert_eq!(*value, sum + partial(row, unit + side), "{} row {row} unit {}", entry.id, unit + side);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, ROWS * 8 * format.sets, "{}", entry.id);
}

/// A partial and its three successors' inputs come out four steps later: a sliding sum of four products.
fn convolution(entry: &Entry) {
    let format = format(entry.mnemonic).unwrap();
    let immediate = Parameters::shipped().immediate;
    let steps = ROWS + 5;
    let input = |step: usize, channel: usize| small(5000 + step * 64 + channel, 3);
    let partial = |step: usize, set: usize, side: usize| small(9000 + step * 64 + set * 2 + side, 100);
    // An f32 step is two calls: the low halves of the coefficients, then the high ones.
    let (calls_of_step, channels) = if format.lanes == 1 { (2, 2) } else { (1, format.lanes) };
    for column in 0..4 {
        let call = |number: usize| {
            let (step, part) = (number / calls_of_step, number % calls_of_step);
            let couple = |set: usize| [partial(step, set, 0), partial(step, set, 1)];
            Call {
                immediate: if calls_of_step == 2 {
                    immediate.tslic_f32_1x4.p[2 * column + part]
                } else {
                    immediate.tslic_f16v4_1x4.w[column]
                },
                input: (0..format.lanes).map(|i| input(step, part * format.lanes + i)).collect(),
                partials: match (calls_of_step, part) {
                    (2, 1) if format.sets == 1 => Vec::new(),
                    (2, part) => vec![couple(part)],
                    _ => (0..format.sets).map(couple).collect(),
                },
            }
        };
        let calls: Vec<Call> = (0..steps * calls_of_step).map(call).collect();
        let gives = |number: usize| match (calls_of_step, number % 2) {
            (2, 1) if format.sets == 1 => 0,
            (2, _) => 1,
            _ => format.sets,
        };
        let found = streamed(entry, &format, false, &calls, gives);
        let mut compared = 0;
        for step in 4..steps {
            for set in 0..format.sets {
                let couple = if calls_of_step == 2 { found[2 * step + set][0] } else { found[step][set] };
                for (side, value) in couple.iter().enumerate() {
                    let first = step - 4;
                    let product = |later: usize| -> f64 {
                        let unit = 8 * set + 6 - 2 * later + side;
                        (0..channels).map(|k| input(first + later, k) * weight(unit, column * channels + k)).sum()
                    };
                    let expected = partial(first, set, side) + (0..4).map(product).sum::<f64>();
                    assert_eq!(*value, expected, "{} column {column} step {step} set {set} side {side}", entry.id);
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 2 * format.sets * (steps - 4));
    }
}

/// Two blocks of four rows come back as columns, the last two of a block while the next one enters.
fn transpose(_: &Entry) {
    let immediate = Parameters::shipped().immediate;
    let lane = |block: usize, row: usize, column: usize| f64::from((100 * block + 10 * row + column) as u32);
    let data: Vec<u32> =
        (0..16).flat_map(|i| [0, 2].map(|pair| halves([lane(i / 4, i % 4, pair), lane(i / 4, i % 4, pair + 1)]))).collect();
    let (enter, leave) = (table::named("f16v4istacc.ppp_ef6"), table::named("f16v4stacc.p_ef8"));
    let mut text = format!(".worker\nsetzi $m2, {DATA}\nsetzi $m3, {OUT}\n");
    for block in 0..3 {
        for half in 0..2 {
            let row = 4 * (block % 2) + 2 * half;
            text += &format!("ld64 $a0:1, $m2, $m15, {row}\nld64 $a2:3, $m2, $m15, {}\n", row + 1);
            text += &format!("{}\n", enter.text(&[4, 0, 2, immediate.tistacc.p[half]]));
            if block > 0 {
                text += &format!("st64 $a4:5, $m3, $m15, {}\n", 4 * (block - 1) + 2 + half);
            }
        }
        for half in 0..2 {
            text += &format!("{}\nst64 $a4:5, $m3, $m15, {}\n", leave.text(&[4, immediate.tstacc.p[half]]), 4 * block + half);
        }
    }
    text += "exitz $m15\n";
    let launcher = crate::support::launcher();
    let (tile, result) = run(&[segment(KERNEL, &launcher), segment(WORKER, &table::code(&text, WORKER)), segment(DATA, &data)]);
    result.unwrap();
    for block in 0..2 {
        for column in 0..4 {
            let expected = [0, 2].map(|row| halves([lane(block, row, column), lane(block, row + 1, column)]));
            let address = OUT + 8 * (4 * block + column) as u32;
            assert_eq!(words_at(&tile, address, 2), expected, "block {block} column {column}");
        }
    }
}

pub(crate) fn scene(entry: &Entry) -> Option<Scene> {
    match entry.mnemonic {
        "f16v4istacc" | "f16v4stacc" => Some(transpose),
        name if format(name).is_none() => None,
        name if name.ends_with("amp") => Some(product),
        name if name.ends_with("slic") => Some(convolution),
        _ => None,
    }
}
