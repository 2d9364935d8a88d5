//! Predecoded instructions: blocks of 64 words, made when first executed, forgotten when stored over.
//!
//! A block is a pure function of its words, so tiles with equal code share it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use ipu21::isa::{self, Form, FormId, Lane, Mode, OperandKind};
use ipu21::parameters::Parameters;

use crate::choice::Choices;
use crate::fault::{Cause, Step, fail};
use crate::memory::{BASE, REGION_1, TileMemory};
use crate::operation::{Kind, Matrix, kind_of};

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: u32 = 256;
const BLOCK_WORDS: usize = BLOCK_BYTES as usize / 4;
/// Shared blocks remembered; programs that patch themselves would otherwise grow the table for ever.
const BLOCKS_KEPT: usize = 1 << 15;

/// One instruction, ready to execute. Register fields that the form lacks hold 15, the zero register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    /// What it does.
    pub(crate) kind: Kind,
    /// Destination, or the data register of a store.
    pub(crate) d: u8,
    /// Second destination, or the source of a paced store.
    pub(crate) e: u8,
    /// First source; base or address register of memory forms.
    pub(crate) x: u8,
    /// Second source; delta, pointer or stride of memory forms.
    pub(crate) y: u8,
    /// Third source.
    pub(crate) z: u8,
    /// Phase of a matrix step, column of a SLIC step, number of a sort step.
    pub(crate) phase: u8,
    /// Chain length of a matrix step.
    pub(crate) units: u8,
    /// Slots a worker needs.
    pub(crate) slots: u8,
    /// First word of a bundle whose second word is the next operation.
    pub(crate) bundle: bool,
    /// Second word of a bundle: not entered alone.
    follower: bool,
    /// Aux lane.
    pub(crate) is_aux: bool,
    /// `y` (or `z` of a memory form) is replaced by the immediate.
    pub(crate) uses_immediate: bool,
    /// Not inside a repeat body.
    pub(crate) is_barred_from_repeat: bool,
    /// Main registers that must not be poison.
    pub(crate) needs_main: u16,
    /// Aux registers that must not be poison.
    pub(crate) needs_aux: u16,
    /// Main registers that the supervisor waits for.
    pub(crate) reads_main: u16,
    /// The immediate; the whole first word of exchange and undecodable words.
    pub(crate) immediate: u32,
    /// Second word of `sendpicp`, body size of `rpt`, or what [`Choices`] say of the form.
    pub(crate) second: u32,
    form: Option<FormId>,
}

/// A block of operations.
#[derive(Debug)]
pub(crate) struct Block {
    operations: [Operation; BLOCK_WORDS],
}

/// The predecoded blocks of a tile, by number from the start of region 0, grown on demand.
#[derive(Debug, Default)]
pub(crate) struct CodeTable {
    blocks: Vec<Option<Arc<Block>>>,
}

/// Blocks by their words and a bit for each word that is no poison.
type BlocksByWords = HashMap<([u32; BLOCK_WORDS], u64), Arc<Block>>;

/// Turns words into blocks.
#[derive(Debug)]
pub(crate) struct Decoder {
    recipes: Vec<Recipe>,
    phases: Phases,
    choices: Choices,
    blocks: Mutex<BlocksByWords>,
    parameters: Parameters,
    /// A word of each form met, and of each phase or zone of it.
    met: Mutex<BTreeMap<(usize, u32), u32>>,
}

/// What of a form does not depend on the word.
#[derive(Clone, Copy, Debug)]
struct Recipe {
    kind: Kind,
    slots: u8,
}

/// Values of the matrix, SLIC and transpose immediates (parameters.toml `[immediate]`).
#[derive(Debug)]
struct Phases {
    half: Vec<(u32, u8, u8)>,
    single: Vec<(u32, u8, u8)>,
    byte: Vec<(u32, u8, u8)>,
    slim: Vec<(u32, u8, u8)>,
    slim_single: Vec<(u32, u8, u8)>,
    sort_in: Vec<(u32, u8, u8)>,
    sort_out: Vec<(u32, u8, u8)>,
}

/// Pairs each immediate value with its phase and chain length.
fn numbered(values: &[u32], units: u8) -> impl Iterator<Item = (u32, u8, u8)> {
    values.iter().enumerate().map(move |(phase, &value)| (value, phase as u8, units))
}

impl Phases {
    fn new(parameters: &Parameters) -> Phases {
        let immediate = &parameters.immediate;
        let chains = |e4: &[u32], e2: &[u32], e1: &[u32]| numbered(e4, 8).chain(numbered(e2, 4)).chain(numbered(e1, 2)).collect();
        Phases {
            half: chains(&immediate.tamp_f16v4_e4.p, &immediate.tamp_f16v4_e2.p, &immediate.tamp_f16v4_e1.p),
            single: chains(&immediate.tamp_f32_e4.p, &immediate.tamp_f32_e2.p, &[]),
            byte: chains(&immediate.tamp_f8v8_e4.p, &[], &[]),
            slim: numbered(&immediate.tslic_f16v4_1x4.w, 8).collect(),
            slim_single: numbered(&immediate.tslic_f32_1x4.p, 8).collect(),
            sort_in: numbered(&immediate.tistacc.p, 0).collect(),
            sort_out: numbered(&immediate.tstacc.p, 0).collect(),
        }
    }

    fn table(&self, kind: Kind) -> Option<&[(u32, u8, u8)]> {
        Some(match kind {
            Kind::Matrix(Matrix::Single8 | Matrix::Single16) => &self.single,
            Kind::Matrix(Matrix::ByteHalfHalf16) => &self.byte,
            Kind::Matrix(_) => &self.half,
            Kind::Slim(Matrix::Single8 | Matrix::Single16) => &self.slim_single,
            Kind::Slim(_) => &self.slim,
            Kind::SortIn => &self.sort_in,
            Kind::SortOut => &self.sort_out,
            _ => return None,
        })
    }
}

impl Operation {
    fn bare(kind: Kind, word: u32) -> Operation {
        Operation {
            kind,
            d: 15,
            e: 15,
            x: 15,
            y: 15,
            z: 15,
            phase: 0,
            units: 0,
            slots: 1,
            bundle: false,
            follower: false,
            is_aux: false,
            uses_immediate: false,
            is_barred_from_repeat: true,
            needs_main: 0,
            needs_aux: 0,
            reads_main: 0,
            immediate: word,
            second: 0,
            form: None,
        }
    }

    /// The form's id in isa.toml.
    pub(crate) fn name(&self) -> &'static str {
        self.form.map_or("undecodable word", |form| isa::form(form).id)
    }

    /// The form's mnemonic.
    pub(crate) fn mnemonic(&self) -> Option<&'static str> {
        self.form.map(|form| isa::form(form).mnemonic)
    }

    /// Whether only workers may execute the form.
    pub(crate) fn is_worker_only(&self) -> bool {
        self.form.is_some_and(|form| isa::form(form).mode == Mode::Worker)
    }
}

impl Decoder {
    /// A decoder for these parameters.
    pub(crate) fn new(parameters: &Parameters) -> Decoder {
        let recipe = |form: &Form| Recipe {
            kind: kind_of(form.id).unwrap_or(Kind::NotSimulated),
            slots: parameters.slots_of(form.mnemonic).clamp(1, 255) as u8,
        };
        Decoder {
            recipes: isa::forms().map(|(_, form)| recipe(form)).collect(),
            phases: Phases::new(parameters),
            choices: Choices::of(&parameters.choice),
            blocks: Mutex::new(HashMap::new()),
            parameters: parameters.clone(),
            met: Mutex::new(BTreeMap::new()),
        }
    }

    /// The block of these words; `written` has a bit for each word that is no poison.
    fn block(&self, words: [u32; BLOCK_WORDS], written: u64) -> Arc<Block> {
        let key = (words, written);
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks.len() >= BLOCKS_KEPT {
            blocks.clear();
        }
        blocks.entry(key).or_insert_with(|| Arc::new(self.decode_block(&words, written))).clone()
    }

    /// What the instructions of all blocks made so far depend on; see [`Parameters::read_by`].
    pub(crate) fn depended_on(&self) -> BTreeSet<String> {
        let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        met.values().flat_map(|word| self.parameters.read_by(&[*word])).collect()
    }

    fn note(&self, operations: &[Operation], words: &[u32]) {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        for (operation, &word) in operations.iter().zip(words) {
            let Some(form) = operation.form else { continue };
            let varies = matches!(operation.kind, Kind::Matrix(_) | Kind::Slim(_) | Kind::SortIn | Kind::SortOut | Kind::Sync);
            met.entry((form.index(), if varies { operation.immediate } else { 0 })).or_insert(word);
        }
    }

    fn decode_block(&self, words: &[u32; BLOCK_WORDS], written: u64) -> Block {
        let mut operations = [Operation::bare(Kind::Poison, 0); BLOCK_WORDS];
        for (i, operation) in operations.iter_mut().enumerate() {
            let is_written = |at: usize| written >> at & 1 == 1;
            if is_written(i) {
                let follows = i + 1 < BLOCK_WORDS && is_written(i + 1);
                *operation = self.decode(&words[i..i + 1 + usize::from(follows)], i);
            }
        }
        for i in (0..BLOCK_WORDS).step_by(2) {
            join(&mut operations[i..i + 2], words[i], words[i + 1]);
        }
        self.note(&operations, words);
        Block { operations }
    }

    fn decode(&self, words: &[u32], position: usize) -> Operation {
        let Some(decoded) = isa::decode(words) else {
            return Operation::bare(Kind::Illegal, words[0]);
        };
        let form = isa::form(decoded.form);
        let recipe = self.recipes[decoded.form.index()];
        if decoded.words == 2 && position % 2 == 1 {
            return Operation::bare(Kind::Illegal, words[0]);
        }
        let mut operation = Operation::bare(recipe.kind, 0);
        operation.form = Some(decoded.form);
        operation.slots = recipe.slots;
        operation.is_aux = form.lane == Lane::Aux;
        operation.is_barred_from_repeat = recipe.kind.is_barred_from_repeat() || recipe.kind.is_supervisor_only();
        for (operand, &value) in form.operands.iter().zip(decoded.operands()) {
            operation.wire(operand.name, value, operand.kind);
        }
        operation.finish(form, decoded.operands());
        if recipe.kind.is_exchange() {
            operation.immediate = words[0];
            operation.second = if decoded.words == 2 { words[1] } else { 0 };
        }
        self.choose_phase(&mut operation);
        self.choices.enter(&mut operation);
        operation
    }

    fn choose_phase(&self, operation: &mut Operation) {
        let Some(table) = self.phases.table(operation.kind) else { return };
        match table.iter().find(|(value, ..)| *value == operation.immediate) {
            Some(&(_, phase, units)) => (operation.phase, operation.units) = (phase, units),
            None => operation.kind = Kind::NotSimulated,
        }
    }
}

impl Operation {
    /// Puts an operand into its field.
    fn wire(&mut self, name: &str, value: u32, kind: OperandKind) {
        let register = value as u8;
        match (name, kind) {
            ("dst" | "dst0" | "srcDst", _) => self.d = register,
            ("dst1", _) => self.e = register,
            ("target", _) => self.immediate = (value & 0x7_ffff) << 2,
            ("base", _) => self.x = register,
            ("size", _) => self.second = value,
            (_, kind) if !is_register(kind) => {
                self.immediate = value;
                self.uses_immediate = true;
            }
            ("src0" | "addr" | "addr0" | "entry" | "count", _) => self.x = register,
            ("src1" | "delta" | "ptr" | "addr1" | "vbase" | "cond", _) => self.y = register,
            _ => self.z = register,
        }
    }

    /// Puts right the forms whose operands play other roles, and fills the masks.
    fn finish(&mut self, form: &Form, values: &[u32]) {
        let register = |name: &str| form.operands.iter().position(|operand| operand.name == name).map(|i| values[i] as u8);
        match self.kind {
            Kind::Store { .. } => self.d = register("src0").unwrap_or(15),
            Kind::Pace(_) => {
                if let Some(source) = register("src0") {
                    self.e = source;
                }
                self.x = register("addr").unwrap_or(15);
                self.y = register("stride").unwrap_or(15);
            }
            Kind::LoadQuadWord | Kind::LoadDelta(_) | Kind::LoadDeltaPair => {
                self.x = register("ptr").unwrap_or(15);
                self.y = register("base").unwrap_or(15);
                self.z = register("delta").unwrap_or(15);
            }
            _ => {}
        }
        if matches!(self.kind, Kind::Store { .. } | Kind::Load { .. }) {
            self.x = register("base").unwrap_or(15);
            self.y = register("delta").or(register("ptr")).unwrap_or(15);
            self.z = register("off").or(register("stride")).filter(|_| !self.uses_immediate).unwrap_or(15);
        }
        self.reads_main = reads(form, values, OperandKind::Main, OperandKind::MainPair, true);
        self.needs_main = self.strict_main(form, values);
        self.needs_aux = self.strict_aux(form, values);
    }

    /// Main registers that steer: addresses, conditions, counts, launches. Arithmetic lets poison through.
    fn strict_main(&self, form: &Form, values: &[u32]) -> u16 {
        let mask = match self.kind {
            Kind::Integer(_) | Kind::AuxToMain | Kind::PackAddresses | Kind::SetMain | Kind::Call => 0,
            Kind::MoveIf => 1 << self.y,
            Kind::Store { transfer: crate::operation::Transfer::Word, .. } => 1 << self.x | 1 << self.y | 1 << self.z,
            Kind::Put => 1 << self.x,
            _ => reads(form, values, OperandKind::Main, OperandKind::MainPair, true),
        };
        mask & 0x0fff
    }

    /// Aux registers that are computed with: all sources of floating-point forms except partials and moved bits.
    fn strict_aux(&self, form: &Form, values: &[u32]) -> u16 {
        let mask = match self.kind {
            Kind::AuxInteger(..)
            | Kind::PairBits(_)
            | Kind::SortIn
            | Kind::SortOut
            | Kind::HalfExchangeAccumulators
            | Kind::SingleExchangeAccumulators => 0,
            _ if !self.is_aux => 0,
            Kind::Matrix(_) | Kind::Slim(_) => operand_mask(form, values, "src0"),
            _ => reads(form, values, OperandKind::Aux, OperandKind::AuxPair, false) | operand_mask(form, values, "src0"),
        };
        mask & 0x00ff
    }
}

fn is_register(kind: OperandKind) -> bool {
    matches!(kind, OperandKind::Main | OperandKind::MainPair | OperandKind::Aux | OperandKind::AuxPair | OperandKind::AuxQuad)
}

fn width(kind: OperandKind) -> u32 {
    match kind {
        OperandKind::MainPair | OperandKind::AuxPair => 2,
        OperandKind::AuxQuad => 4,
        _ => 1,
    }
}

fn mask_of(value: u32, kind: OperandKind) -> u16 {
    (((1u32 << width(kind)) - 1) << value) as u16
}

fn operand_mask(form: &Form, values: &[u32], name: &str) -> u16 {
    let at = form.operands.iter().position(|operand| operand.name == name);
    at.map_or(0, |i| if is_register(form.operands[i].kind) { mask_of(values[i], form.operands[i].kind) } else { 0 })
}

/// Registers of one file that a form reads. `main` counts the fields of memory forms in.
fn reads(form: &Form, values: &[u32], single: OperandKind, pair: OperandKind, main: bool) -> u16 {
    let mut mask = 0;
    for (operand, &value) in form.operands.iter().zip(values) {
        let in_file = operand.kind == single || operand.kind == pair;
        let is_destination = operand.name.starts_with("dst");
        let is_source = operand.name.starts_with("src") || main;
        if in_file && is_source && !is_destination {
            mask |= mask_of(value, operand.kind);
        }
    }
    mask
}

/// Makes a bundle of two coissued words, or marks them illegal.
fn join(pair: &mut [Operation], first: u32, second: u32) {
    let coissued = |word: u32| word & isa::COISSUE != 0;
    let decoded = |operation: &Operation| operation.form.is_some();
    if pair[0].kind == Kind::SendBoth {
        pair[1] = Operation::bare(Kind::SecondWord, second);
        return;
    }
    let wanted = (decoded(&pair[0]) && coissued(first), decoded(&pair[1]) && coissued(second));
    match wanted {
        (false, false) => {}
        (true, true) if !pair[0].is_aux && pair[1].is_aux && !destinations_meet(&pair[0], &pair[1]) => {
            pair[0].bundle = true;
            pair[1].follower = true;
        }
        _ => {
            if wanted.0 {
                pair[0] = Operation::bare(Kind::Illegal, first);
            }
            if wanted.1 {
                pair[1] = Operation::bare(Kind::Illegal, second);
            }
        }
    }
}

/// Whether both halves of a bundle write one aux register.
fn destinations_meet(main: &Operation, aux: &Operation) -> bool {
    let mask = |operation: &Operation| {
        let Some(form) = operation.form.map(isa::form) else { return 0 };
        let fields = [("dst", operation.d), ("dst0", operation.d), ("dst1", operation.e)];
        form.operands.iter().fold(0u16, |mask, operand| {
            let in_file = matches!(operand.kind, OperandKind::Aux | OperandKind::AuxPair | OperandKind::AuxQuad);
            let field = fields.iter().find(|(name, _)| *name == operand.name && in_file);
            mask | field.map_or(0, |&(_, register)| mask_of(register.into(), operand.kind))
        })
    };
    mask(main) & mask(aux) != 0
}

/// An operation, and its partner if it is a bundle.
pub(crate) type Fetched<'a> = (&'a Operation, Option<&'a Operation>);

impl Block {
    /// The operation at `pc`, a multiple of 4 in this block, and its partner if it is a bundle.
    #[inline(always)]
    pub(crate) fn fetch(&self, pc: u32) -> Step<Fetched<'_>> {
        let index = (pc / 4) as usize % BLOCK_WORDS;
        let operation = &self.operations[index];
        if matches!(operation.kind, Kind::Poison) {
            return fail(Cause::PoisonExecuted { address: pc });
        }
        if operation.follower {
            return fail(Cause::IllegalBundle { word: operation.immediate, rule: "entered at its second word" });
        }
        Ok((operation, if operation.bundle { Some(&self.operations[(index + 1) % BLOCK_WORDS]) } else { None }))
    }
}

impl CodeTable {
    /// The operation at `pc`, and its partner if it is a bundle.
    #[inline]
    pub(crate) fn fetch(&mut self, memory: &mut TileMemory, decoder: &Decoder, pc: u32) -> Step<Fetched<'_>> {
        self.prepare(memory, decoder, pc)?;
        self.prepared(pc)
    }

    /// Makes the block that holds `pc`, unless it is there and its words are as they were.
    #[inline]
    pub(crate) fn prepare(&mut self, memory: &mut TileMemory, decoder: &Decoder, pc: u32) -> Step {
        if memory.has_stale() {
            self.forget(memory);
        }
        if self.block(pc).is_none() {
            self.decode(memory, decoder, pc)?;
        }
        Ok(())
    }

    /// The operation at `pc` in a block that [`CodeTable::prepare`] made.
    #[inline]
    pub(crate) fn prepared(&self, pc: u32) -> Step<Fetched<'_>> {
        let Some(block) = self.block(pc).filter(|_| pc.is_multiple_of(4)) else {
            return fail(Cause::BadProgramCounter { address: pc });
        };
        block.fetch(pc)
    }

    /// The block that holds `pc`, if it was made.
    #[inline]
    pub(crate) fn block(&self, pc: u32) -> Option<&Block> {
        self.blocks.get((pc.wrapping_sub(BASE) / BLOCK_BYTES) as usize)?.as_deref()
    }

    #[cold]
    fn forget(&mut self, memory: &mut TileMemory) {
        for number in memory.take_stale() {
            if let Some(block) = self.blocks.get_mut(number as usize) {
                *block = None;
            }
        }
    }

    #[cold]
    fn decode(&mut self, memory: &mut TileMemory, decoder: &Decoder, pc: u32) -> Step {
        if !(BASE..REGION_1).contains(&pc) {
            return fail(Cause::BadProgramCounter { address: pc });
        }
        let (words, written) = memory.block_words(pc);
        let number = ((pc - BASE) / BLOCK_BYTES) as usize;
        if self.blocks.len() <= number {
            self.blocks.resize(number + 1, None);
        }
        self.blocks[number] = Some(decoder.block(words, written));
        memory.note_decoded(pc);
        Ok(())
    }
}
