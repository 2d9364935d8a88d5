//! Programs of one tile drawn from bytes, for running them by the fast path and by the reference interpreter.
//!
//! They are mostly legal: worker code of solo instructions and bundles of every form, repeats, loops, branches, products,
//! floating-point modes, stores over code that is executed later; workers with the same work or skewed, launched together or
//! one by one, beside a busy supervisor. What faults all the same must fault alike.

use std::sync::Arc;

use ipu21::isa::{self, Form, FormId, Lane, Mode, Operand, OperandKind};
use simulator::Segment;

/// Entry of the call.
pub(crate) const ENTRY: u32 = 0x4c100;
const WORKER: u32 = 0x4c800;
/// Words that a program stores over its code.
const PATCHES: u32 = 0x62000;
const DATA: [u32; 3] = [0x60000, 0x80000, 0x90008];
const DATA_WORDS: u32 = 0x400;
/// Steps of worker code.
const STEPS_MAX: u32 = 14;

/// Decisions drawn from bytes; 0 when they run out.
struct Choices<'a> {
    bytes: &'a [u8],
}

impl Choices<'_> {
    fn below(&mut self, limit: u32) -> u32 {
        let mut value = 0;
        for _ in 0..if limit > 256 { 2 } else { 1 } {
            let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
            (value, self.bytes) = (value << 8 | u32::from(*first), rest);
        }
        value % limit
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == count - 1
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u32) as usize]
    }
}

fn word(id: &str, operands: &[u32]) -> u32 {
    isa::encode(FormId::named(id).expect(id), operands, false).expect(id).word()
}

fn set(register: u32, value: u32) -> u32 {
    word("setzi.m_zi20", &[register, value])
}

/// Forms for random use: those of workers that neither branch nor end nor launch.
fn forms(lane: Lane) -> Vec<FormId> {
    const APART: [&str; 8] = ["rpt", "trap", "put", "call", "br", "bri", "sync", "get"];
    let fits = |form: &Form| {
        let apart = APART.contains(&form.mnemonic) || form.mnemonic.starts_with("br") && form.mnemonic != "bitrev8";
        form.lane == lane && form.mode != Mode::Supervisor && form.words == 1 && !apart && !form.mnemonic.starts_with("exit")
    };
    isa::forms().filter(|(_, form)| fits(form)).map(|(id, _)| id).collect()
}

/// A scramble (splitmix64) for data.
fn scramble(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Parts of the names of forms that the simulator refuses.
const REFUSED: [&str; 4] = ["class", "aop", "slic", "ldb16b16"];

/// Registers of worker code: 0 number, 1..4 pointers, 4 a small offset, 5 strides, 6 and 7 packed addresses, 8 loop counter,
/// 9 a small number, 10 and 11 scratch.
struct Generator<'a> {
    choices: Choices<'a>,
    main: Vec<FormId>,
    aux: Vec<FormId>,
    code: Vec<u32>,
    patches: Vec<u32>,
}

impl Generator<'_> {
    fn operand(&mut self, form: &Form, operand: &Operand, in_bundle: bool) -> u32 {
        let choices = &mut self.choices;
        let steps = form.mnemonic.ends_with("step");
        let first_aux = if in_bundle && form.lane == Lane::Aux { 4 } else { 0 };
        let aux_count = if in_bundle { 4 } else { 8 };
        let is_destination = operand.name.starts_with("dst");
        match (operand.name, operand.kind) {
            ("base", _) if steps => 15,
            ("base" | "ptr", _) if form.mnemonic.starts_with("ld128") => 2,
            ("base", _) if choices.one_in(40) => 10,
            ("base" | "ptr", _) => choices.of(&[1, 2, 3]),
            ("delta", _) => choices.of(&[15, 15, 4]),
            ("stride", OperandKind::Main) if steps => 15,
            ("stride", OperandKind::Main) => 5,
            ("addr", OperandKind::MainPair) => 6,
            ("off", OperandKind::Main) => choices.of(&[15, 9, 4, 0]),
            ("addr0" | "addr1" | "addr2", _) => choices.of(&[1, 2, 3]),
            (_, OperandKind::Main) if is_destination && choices.one_in(40) => choices.below(16),
            (_, OperandKind::Main) if is_destination => choices.of(&[9, 10, 11]),
            (_, OperandKind::Main) => choices.below(16),
            (_, OperandKind::MainPair) => choices.of(&[10, 6]),
            (_, OperandKind::Aux) if is_destination => first_aux + choices.below(aux_count),
            (_, OperandKind::AuxPair) if is_destination => first_aux + 2 * choices.below(aux_count / 2),
            (_, OperandKind::AuxQuad) if is_destination => first_aux + 4 * choices.below(aux_count / 4),
            (_, OperandKind::Aux) => choices.of(&[0, 1, 2, 3, 4, 5, 6, 7, 0, 4, 15]),
            (_, OperandKind::AuxPair) => choices.of(&[0, 2, 4, 6, 14]),
            (_, OperandKind::AuxQuad) => choices.of(&[0, 4, 0, 4, 12]),
            // Steps of less than 8 bytes leave a pointer that wider loads fault on.
            ("stride", _) if !form.mnemonic.contains("64") && !form.mnemonic.contains("128") && !choices.one_in(20) => 0,
            ("off" | "stride", _) => choices.below(4),
            ("csr", _) => choices.of(&[0, 1, 2, 3, 7, 8, 8, 9, 10]),
            (_, OperandKind::Unsigned(bits) | OperandKind::Named(bits)) if bits <= 6 && form.mnemonic.contains("pace") => {
                choices.below(1 << bits)
            }
            (_, OperandKind::Unsigned(bits) | OperandKind::Named(bits)) if bits <= 8 => choices.below(4),
            (_, OperandKind::Signed(_)) => choices.below(8).wrapping_sub(3),
            (_, OperandKind::High12) => choices.of(&[0x3c0, 0x3f8, 0x400]) << 20,
            (_, _) => choices.below(1 << 12),
        }
    }

    fn instruction(&mut self, lane: Lane, in_bundle: bool) -> u32 {
        const MAIN_OFTEN: [&str; 9] = [
            "ld64.p_rri",
            "ld64step.p_imm",
            "st64.p_rri",
            "st64step.p_imm",
            "ldst64pace",
            "ld2xst64pace",
            "ld2x64pace",
            "st32.m_rri",
            "ld128step.q_imm",
        ];
        const AUX_OFTEN: [&str; 20] = [
            "f16v4hihov4amp.ppp_ef6",
            "f16v4sisoamp.ppp_ef6",
            "f16v4hihov4amp.ppp_ef6",
            "f16v4add.ppp",
            "f16v4mul.ppp",
            "f16v4max.ppp",
            "f32v2add.ppp",
            "f32v2mul.b",
            "f16v2tof32.pa",
            "f32v2tof16.ap",
            "f32v4tof16.pq",
            "f16v8acc.q",
            "f32v4acc.q",
            "f16v4cmac.pp",
            "f32v2mac.pp",
            "f16v4gacc.p",
            "f32v2gina.pp_zi12",
            "f16v2exp.aa",
            "f16v4cmple.ppp",
            "or64.ppp",
        ];
        for _ in 0..8 {
            let may_be_refused = self.choices.one_in(60);
            let often: &[&str] = if lane == Lane::Main { &MAIN_OFTEN } else { &AUX_OFTEN };
            let named = if self.choices.one_in(2) { FormId::named(self.choices.of(often)) } else { None };
            let all = if lane == Lane::Main { &self.main } else { &self.aux };
            let id = match named {
                Some(id) => id,
                None => all[self.choices.below(all.len() as u32) as usize],
            };
            let form = isa::form(id);
            if in_bundle && !form.coissue || REFUSED.iter().any(|part| form.mnemonic.contains(part)) && !may_be_refused {
                continue;
            }
            let operands: Vec<u32> = form.operands.iter().map(|operand| self.operand(form, operand, in_bundle)).collect();
            if let Ok(encoded) = isa::encode(id, &operands, in_bundle) {
                return encoded.word();
            }
        }
        let coissue = if in_bundle { isa::COISSUE } else { 0 };
        coissue | if lane == Lane::Main { isa::NOP } else { isa::FNOP }
    }

    fn here(&self) -> u32 {
        WORKER + 4 * self.code.len() as u32
    }

    fn align(&mut self) {
        if !self.code.len().is_multiple_of(2) {
            self.code.push(isa::NOP);
        }
    }

    fn bundle(&mut self) {
        let main = self.instruction(Lane::Main, true);
        let aux = self.instruction(Lane::Aux, true);
        self.code.extend([main, aux]);
    }

    fn bundles(&mut self, count: u32) {
        self.align();
        (0..count).for_each(|_| self.bundle());
    }

    fn repeat(&mut self) {
        let size = 1 + self.choices.below(4);
        self.align();
        let count = if self.choices.one_in(2) { None } else { Some(self.choices.below(12)) };
        match count {
            None => self.code.extend([isa::NOP, word("rpt.m_zi8", &[9, size - 1])]),
            Some(count) => self.code.extend([isa::NOP, word("rpt.zi12_zi8", &[count, size - 1])]),
        }
        self.bundles(size);
    }

    /// A loop of few passes, the same for all workers or not.
    fn counted_loop(&mut self) {
        self.code.push(if self.choices.one_in(2) { set(8, self.choices.below(6)) } else { word("and.mm_zi12", &[8, 0, 3]) });
        let start = self.here();
        for _ in 0..=self.choices.below(3) {
            self.solo();
        }
        self.code.push(word("brnzdec.m_zi19", &[8, start / 4]));
    }

    fn solo(&mut self) {
        let lane = if self.choices.one_in(3) { Lane::Aux } else { Lane::Main };
        let one = self.instruction(lane, false);
        self.code.push(one);
    }

    fn forward_branch(&mut self) {
        let form = self.choices.of(&["brz.m_zi19", "brnz.m_zi19", "brpos.m_zi19", "brneg.m_zi19"]);
        let register = self.choices.of(&[0, 9, 10, 15]);
        let skipped = 1 + self.choices.below(3);
        self.code.push(word(form, &[register, self.here() / 4 + 1 + skipped]));
        (0..skipped).for_each(|_| self.solo());
    }

    /// Stores an instruction over a word that is executed soon, by one worker or by all.
    fn patch(&mut self) {
        let patch = self.instruction(Lane::Main, false);
        let number = self.patches.len() as u32;
        self.patches.push(patch);
        let distance = 3 + self.choices.below(3);
        if self.choices.one_in(2) {
            self.code.push(word("brnz.m_zi19", &[0, self.here() / 4 + 5]));
        }
        let target = self.here() + 4 * (3 + distance);
        self.code.extend([set(10, PATCHES), word("ld32.m_rri", &[11, 10, 15, number]), set(10, target)]);
        self.code.push(word("st32.m_rri", &[11, 10, 15, 0]));
        (1..=distance).for_each(|_| self.code.push(isa::NOP));
    }

    fn prologue(&mut self) {
        let apart = self.choices.below(3) != 0;
        self.code.extend([word("get.m_zi8", &[0, 1]), word("and.mm_zi12", &[0, 0, 7])]);
        self.code.push(word("shl.mm_zi12", &[11, 0, if apart { 7 } else { 16 }]));
        if !apart {
            self.code.push(set(11, 0));
        }
        for (register, base) in (1..).zip(DATA.iter().rev()) {
            self.code.extend([set(register, *base), word("add.mmm", &[register, register, 11])]);
        }
        let strides = self.choices.of(&[0x401, 1, 0xffc02, 0]);
        let small = self.choices.below(12);
        self.code.extend([set(4, 8 * self.choices.below(4)), set(5, strides), word("tapack.p_mmm", &[6, 2, 1, 3])]);
        self.code.push(if self.choices.one_in(3) { word("add.mm_si16", &[9, 0, small]) } else { set(9, small) });
        self.code.extend([set(8, 0), set(10, 0x61000)]);
        for register in (0..8).step_by(2) {
            if self.choices.one_in(60) {
                continue;
            }
            self.code.push(word("ld64.p_rri", &[register, self.choices.of(&[1, 2, 3]), 15, register]));
        }
        if !self.choices.one_in(6) {
            self.code.extend([word("setzi.a_zi20", &[7, 8]), word("uput.zi8_a", &[1, 7])]);
        }
        if !self.choices.one_in(20) {
            self.code.push(word("uput.zi8_a", &[8, 0]));
        }
        if self.choices.one_in(4) {
            self.code.extend([word("setzi.a_zi20", &[7, self.choices.of(&[7, 1 << 16, 2 << 16, 1 << 19])]), word("uput.zi8_a", &[2, 7])]);
        }
        if self.choices.one_in(2) {
            self.code.push(word("brz.m_zi19", &[0, self.here() / 4 + 2]));
            self.code.push(isa::NOP);
        }
    }

    fn worker(&mut self) {
        self.prologue();
        for _ in 0..=self.choices.below(STEPS_MAX) {
            match self.choices.below(14) {
                0..4 => {
                    let count = 1 + self.choices.below(6);
                    self.bundles(count);
                }
                4..7 => self.repeat(),
                7..9 => self.counted_loop(),
                9..11 => self.solo(),
                11 => self.forward_branch(),
                12 => self.patch(),
                _ if self.choices.one_in(8) => {
                    let any = self.choices.below(1 << 16) << 16 | self.choices.below(1 << 16);
                    self.code.push(any);
                }
                _ => self.solo(),
            }
        }
        let form = self.choices.of(&["exitz.m", "exitnz.m", "exitpos.m"]);
        self.code.push(word(form, &[15]));
    }

    fn supervisor(&mut self) -> Vec<u32> {
        let choices = &mut self.choices;
        let mut code = vec![set(1, DATA[1] + 0x400), word("put.zi8_m", &[0x50, 1]), set(2, WORKER), set(3, DATA[0]), set(9, 5)];
        if !choices.one_in(10) {
            code.extend((0..64).map(|entry| word("ld64putcs.zi8", &[entry])));
        }
        for _ in 0..1 + choices.below(2) {
            match choices.below(4) {
                0..3 => code.push(word("runall.mm_zi16", &[2, 15, choices.below(4)])),
                _ => (0..1 + choices.below(6)).for_each(|n| code.push(word("run.mm_zi16", &[2, 15, n]))),
            }
            for _ in 0..choices.below(6) {
                code.push(choices.of(&[
                    word("ld32.m_rri", &[9, 3, 15, 16]),
                    word("st32.m_rri", &[9, 3, 15, 17]),
                    word("add.mm_si16", &[9, 9, 1]),
                    isa::NOP,
                ]));
            }
            code.push(word("sync.zi4", &[2]));
        }
        code.push(word("br.m", &[10]));
        code
    }
}

fn segment(address: u32, words: &[u32]) -> Segment {
    let data: Arc<[u8]> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Segment { address, memory_bytes: data.len() as u32, data }
}

/// Ordinary f16 numbers, or any bits.
fn data(seed: u32, is_any: bool) -> Vec<u32> {
    let mask = if is_any { u32::MAX } else { 0xbbff_bbff };
    (0..DATA_WORDS).map(|i| scramble(u64::from(seed) << 32 | u64::from(i)) as u32 & mask).collect()
}

/// The program of some bytes; call it at [`ENTRY`].
pub(crate) fn program(bytes: &[u8]) -> Vec<Segment> {
    let choices = Choices { bytes };
    let (main, aux) = (forms(Lane::Main), forms(Lane::Aux));
    let mut generator = Generator { choices, main, aux, code: Vec::new(), patches: Vec::new() };
    let (seed, is_any) = (generator.choices.below(1 << 16), generator.choices.one_in(4));
    let supervisor = generator.supervisor();
    generator.worker();
    let mut segments = vec![segment(ENTRY, &supervisor), segment(WORKER, &generator.code), segment(PATCHES, &generator.patches)];
    segments.extend((0..).zip(DATA).map(|(n, address)| segment(address, &data(3 * seed + n, is_any))));
    segments
}
