//! A worker's whole state before and after one form: how it gets onto the simulator, how it comes back, and what a rule may touch.

use ipu21::parameters::Parameters;
use simulator::{Segment, SingleTile};

use crate::support::{KERNEL, WORKER, segment, word, words_at};
use crate::table::{self, Entry, scramble};

/// Scratch area of worker 0, `$m12`: words before the form, and words behind it.
const SCRATCH: u32 = 0x7fa00;
const MAIN: u32 = 0;
const AUX: u32 = 12;
const TAS: u32 = 20;
const CONTROL: u32 = 21;
const BYTE_FORMAT: u32 = 22;
const BYTE_SCALE: u32 = 23;
const MAIN_OUT: u32 = 24;
const AUX_OUT: u32 = 36;
const STATUS_OUT: u32 = 44;
const TAS_OUT: u32 = 45;
const RANDOM: u32 = 46;
const SUMS: u32 = 50;
const WORDS: usize = 58;

/// Two stretches of memory that forms touch: in region 0 and, on both elements of a pair, in region 1.
pub(crate) const WINDOWS: [u32; 2] = [0x60000, 0x80000];
pub(crate) const WINDOW_BYTES: u32 = 512;

/// The state that a form can see and change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Machine {
    /// `$m0..$m11`.
    pub(crate) main: [u32; 12],
    /// `$a0..$a7`.
    pub(crate) aux: [u32; 8],
    /// Bits of AACC[0], [2] .. [14].
    pub(crate) sums: [u32; 8],
    /// `$TAS`.
    pub(crate) scale: u32,
    /// `$FP_CTL`.
    pub(crate) control: u32,
    /// `$FP_STS`.
    pub(crate) status: u32,
    /// `$FP_NFMT`.
    pub(crate) byte_format: u32,
    /// `$FP_SCL`.
    pub(crate) byte_scale: u32,
    /// `$PRNG`.
    pub(crate) random: [u64; 2],
    /// The windows.
    pub(crate) memory: [Vec<u8>; 2],
}

impl Machine {
    /// Every place where a machine found differs from the one expected, and the registers before when there is one.
    fn differences(&self, found: &Machine, expected: &Machine) -> Vec<String> {
        let places = |machine: &Machine| -> Vec<(String, u64)> {
            let named = |name: &'static str, words: &[u32]| -> Vec<(String, u64)> {
                words.iter().enumerate().map(|(i, word)| (format!("{name}{i}"), u64::from(*word))).collect()
            };
            let alone = [machine.scale, machine.status, machine.control];
            let memory = machine.memory.iter().zip(WINDOWS).flat_map(|(bytes, start)| {
                bytes.iter().zip(start..).map(|(byte, address)| (format!("byte {address:#x}"), u64::from(*byte)))
            });
            let registers = [
                named("$m", &machine.main),
                named("$a", &machine.aux),
                named("sum", &machine.sums),
                named("scale, flags, control ", &alone),
            ];
            let random = machine.random.iter().map(|word| ("random".to_owned(), *word));
            registers.into_iter().flatten().chain(random).chain(memory).collect()
        };
        let before = places(self);
        let triples = places(found).into_iter().zip(places(expected)).zip(&before);
        let mut lines: Vec<String> = triples
            .filter(|((found, expected), _)| found != expected)
            .map(|((found, expected), before)| {
                format!("{} found {:#x} expected {:#x} before {:#x}", found.0, found.1, expected.1, before.1)
            })
            .collect();
        if !lines.is_empty() {
            lines.push(format!("$m {:x?} $a {:x?} sums {:x?} control {:#x}", self.main, self.aux, self.sums, self.control));
        }
        lines
    }

    /// Bytes of memory, lowest first.
    pub(crate) fn load(&self, address: u32, bytes: u32) -> u64 {
        (0..bytes).rev().fold(0, |value, i| value << 8 | u64::from(self.memory[window(address + i)][(address + i) as usize % 512]))
    }

    /// Stores bytes, lowest first.
    pub(crate) fn store(&mut self, address: u32, bytes: u32, value: u64) {
        for i in 0..bytes {
            self.memory[window(address + i)][(address + i) as usize % 512] = (value >> (8 * i)) as u8;
        }
    }
}

fn window(address: u32) -> usize {
    WINDOWS.iter().position(|start| (*start..start + WINDOW_BYTES).contains(&address)).unwrap_or_else(|| panic!("{address:#x}"))
}

/// One execution: the form, its operands, and the state.
pub(crate) struct Case<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) values: &'a [u32],
    pub(crate) machine: Machine,
}

impl Case<'_> {
    /// The field of an operand.
    pub(crate) fn field(&self, name: &str) -> Option<u32> {
        self.entry.position(name).map(|i| self.values[i])
    }

    fn kind(&self, name: &str) -> &'static str {
        self.entry.operands[self.entry.position(name).unwrap_or_else(|| panic!("{} {name}", self.entry.id))].kind
    }

    /// The value of a source: a register, a pair with its first register in the low half, or the number that an immediate means.
    pub(crate) fn read(&self, name: &str) -> u64 {
        let field = self.field(name).unwrap();
        let pair = |file: &[u32]| u64::from(file[field as usize]) | u64::from(file[field as usize + 1]) << 32;
        match self.kind(name) {
            "m" => self.machine.main[field as usize].into(),
            "a" => self.machine.aux[field as usize].into(),
            "mp" => pair(&self.machine.main),
            "ap" => pair(&self.machine.aux),
            "immz12" => u64::from(field) << 20,
            _ => field.into(),
        }
    }

    /// Four registers.
    pub(crate) fn quad(&self, name: &str) -> [u32; 4] {
        let first = self.field(name).unwrap() as usize;
        std::array::from_fn(|i| self.machine.aux[first + i])
    }

    /// Writes a register or a pair.
    pub(crate) fn write(&mut self, name: &str, value: u64) {
        let field = self.field(name).unwrap() as usize;
        let words = [value as u32, (value >> 32) as u32];
        match self.kind(name) {
            "m" => self.machine.main[field] = words[0],
            "a" => self.machine.aux[field] = words[0],
            "mp" => self.machine.main[field..field + 2].copy_from_slice(&words),
            _ => self.machine.aux[field..field + 2].copy_from_slice(&words),
        }
    }
}

/// What a form needs and does.
pub(crate) struct Rule {
    /// Gives registers and memory the values of a case, by its number, where chance will not do.
    pub(crate) prepare: fn(&mut Case<'_>, u64),
    /// The effect.
    pub(crate) effect: fn(&mut Case<'_>),
    /// Numbers that lanes of aux registers take besides chance.
    pub(crate) edges: &'static [u32],
    /// Whether the edges are halves of registers.
    pub(crate) halves: bool,
}

/// Executes a form on so many states and compares everything with its rule: the first difference, if any.
pub(crate) fn check(entry: &Entry, rule: &Rule, cases: u64) -> Option<String> {
    let values = entry.sample(7);
    let code = around(entry, &values);
    for number in 0..cases {
        let mut case = Case { entry, values: &values, machine: state(rule, number) };
        (rule.prepare)(&mut case, number);
        let before = case.machine.clone();
        let found = match execute(&code, &before) {
            Ok(found) => found,
            Err(fault) => return Some(format!("{} case {number}: {fault}", entry.text(&values))),
        };
        (rule.effect)(&mut case);
        let differ = before.differences(&found, &case.machine);
        if !differ.is_empty() {
            return Some(format!("{} case {number}: {}", entry.text(&values), differ.join("; ")));
        }
    }
    None
}

/// A state by chance and edges.
fn state(rule: &Rule, number: u64) -> Machine {
    let chance = |i: u64| scramble(number << 16 | i);
    let edge = |i: u64| rule.edges[(chance(i) >> 8) as usize % rule.edges.len()];
    let lane = |i: u64| {
        let random = chance(100 + i) as u32;
        match (chance(200 + i) % 3 == 0 || rule.edges.is_empty(), rule.halves) {
            (true, _) => random,
            (false, false) => edge(i),
            (false, true) => edge(i) & 0xffff | edge(i + 50) << 16,
        }
    };
    let seed = chance(5) as u32;
    Machine {
        main: std::array::from_fn(|i| lane(i as u64)),
        aux: std::array::from_fn(|i| lane(20 + i as u64)),
        sums: std::array::from_fn(|i| ((chance(40 + i as u64) % 2001) as f32 * 0.37 - 370.0).to_bits()),
        scale: (1.5 - (number % 5) as f32).to_bits(),
        control: (number as u32 % 5) << 16 | (number as u32 / 5 % 2) << 20,
        status: 0,
        byte_format: number as u32 % 2,
        byte_scale: [0, 1, 0x3e, 5][number as usize / 2 % 4],
        random: [u64::from(seed) | u64::from(!seed) << 32, u64::from(seed << 13 | !seed >> 19) | u64::from(!seed << 13 | seed >> 19) << 32],
        memory: WINDOWS.map(|start| (0..WINDOW_BYTES).map(|i| scramble(u64::from(start + i) ^ number << 40) as u8).collect()),
    }
}

/// Worker code around a form.
fn around(entry: &Entry, values: &[u32]) -> Vec<u32> {
    let mut text = String::from(".worker\n");
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    for pair in 0..4 {
        line(format!("ld64 $a0:1, $m12, $m15, {}", SUMS / 2 + pair));
        line("f32v2gina $a2:3, $a0:1, 0".to_owned());
    }
    for (register, at) in [(8, TAS), (2, CONTROL), (9, BYTE_FORMAT), (10, BYTE_SCALE), (7, RANDOM)] {
        line(format!("ld32 $a0, $m12, $m15, {at}"));
        line(format!("uput {register}, $a0"));
    }
    for pair in 0..4 {
        line(format!("ld64 $a{}:{}, $m12, $m15, {}", 2 * pair, 2 * pair + 1, AUX / 2 + pair));
    }
    for register in 0..12 {
        line(format!("ld32 $m{register}, $m12, $m15, {}", MAIN + register));
    }
    line(entry.text(values));
    for register in 0..12 {
        line(format!("st32 $m{register}, $m12, $m15, {}", MAIN_OUT + register));
    }
    for pair in 0..4 {
        line(format!("st64 $a{}:{}, $m12, $m15, {}", 2 * pair, 2 * pair + 1, AUX_OUT / 2 + pair));
    }
    for (register, at) in [(0, STATUS_OUT), (8, TAS_OUT), (3, RANDOM), (4, RANDOM + 1), (5, RANDOM + 2), (6, RANDOM + 3)] {
        line(format!("uget $a0, {register}"));
        line(format!("st32 $a0, $m12, $m15, {at}"));
    }
    for pair in 0..4 {
        line("f32v2gina $a0:1, $a14:15, 0".to_owned());
        line(format!("st64 $a0:1, $m12, $m15, {}", SUMS / 2 + pair));
    }
    line("exitz $m15".to_owned());
    let words = table::code(&text, WORKER);
    let at = words.windows(entry.words(values).len()).any(|found| found == entry.words(values));
    assert!(at, "{}: the code lacks the word of the form", entry.id);
    words
}

/// Starts worker 0 alone and joins it.
fn launcher() -> Vec<u32> {
    vec![
        word("setzi.m_zi20", &[1, WORKER]),
        word("setzi.m_zi20", &[2, 0]),
        word("run.mm_zi16", &[1, 2, 0]),
        word("sync.zi4", &[2]),
        word("br.m", &[10]),
    ]
}

fn execute(code: &[u32], before: &Machine) -> Result<Machine, simulator::Fault> {
    let mut scratch = [0_u32; WORDS];
    let mut put = |at: u32, words: &[u32]| scratch[at as usize..at as usize + words.len()].copy_from_slice(words);
    put(MAIN, &before.main);
    put(AUX, &before.aux);
    put(TAS, &[before.scale, before.control, before.byte_format, before.byte_scale]);
    put(RANDOM, &[before.random[0] as u32]);
    put(SUMS, &before.sums);
    let mut segments = vec![segment(KERNEL, &launcher()), segment(WORKER, code), segment(SCRATCH, &scratch)];
    segments.extend(WINDOWS.iter().zip(&before.memory).map(|(start, bytes)| Segment {
        address: *start,
        memory_bytes: WINDOW_BYTES,
        data: bytes.as_slice().into(),
    }));
    let mut tile = SingleTile::new(&Parameters::shipped(), 3);
    tile.load(&segments).unwrap();
    tile.run_call(KERNEL, 0)?;
    let out = words_at(&tile, SCRATCH, WORDS);
    let words = |at: u32| &out[at as usize..];
    let wide = |at: u32| u64::from(out[at as usize]) | u64::from(out[at as usize + 1]) << 32;
    Ok(Machine {
        main: words(MAIN_OUT)[..12].try_into().unwrap(),
        aux: words(AUX_OUT)[..8].try_into().unwrap(),
        sums: words(SUMS)[..8].try_into().unwrap(),
        scale: words(TAS_OUT)[0],
        control: before.control,
        status: words(STATUS_OUT)[0],
        byte_format: before.byte_format,
        byte_scale: before.byte_scale,
        random: [wide(RANDOM), wide(RANDOM + 2)],
        memory: WINDOWS.map(|start| tile.read(start, WINDOW_BYTES).unwrap()),
    })
}
