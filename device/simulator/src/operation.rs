//! What an instruction does, as small enums; and the table from the ids of isa.toml to them.

use crate::transcendental::Function;

/// Operations on 32-bit registers, the same in both register files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integer {
    Abs,
    Add,
    And,
    AndComplement,
    BitReverseBytes,
    LeadingZeros,
    CompareEqual,
    CompareNotEqual,
    CompareSignedLess,
    CompareUnsignedLess,
    SignBits,
    Max,
    Min,
    Multiply,
    Not,
    Or,
    PopulationCount,
    Roll16,
    Roll8Left,
    Roll8Right,
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    Shuffle8High,
    Shuffle8Low,
    Sort16High,
    Sort16Low,
    Sort8,
    Sort8High,
    Sort8Low,
    Subtract,
    ReverseSubtract,
    Swap8,
    ExclusiveNor,
    ExclusiveOr,
}

/// Operations on 64-bit pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PairBits {
    And,
    AndComplement,
    Or,
    Not,
    Roll32,
    Sort32High,
    Sort32Low,
}

/// Which half of a broadcast source is used for every lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broadcast {
    /// No broadcast.
    None,
    /// `:BL`, and the whole register of an f32 `:B`.
    Lower,
    /// `:BU`.
    Upper,
}

/// Arithmetic of two lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Add,
    Subtract,
    Multiply,
    Divide,
    AbsoluteAdd,
    AbsoluteMax,
    Max,
    Min,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// What `*acc` instructions add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accumulated {
    Plain,
    Absolute,
    Square,
}

/// A test of a register's sign or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Zero,
    NotZero,
    Negative,
    Positive,
}

/// What a load or store moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    Word,
    SignedHalf,
    SignedByte,
    ZeroHalf,
    ZeroByte,
    AuxWord,
    AuxHalf,
    AuxByte,
    AuxPair,
    AuxQuad,
}

impl Transfer {
    /// Bytes of one element: the unit of offsets and strides.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Transfer::SignedByte | Transfer::ZeroByte | Transfer::AuxByte => 1,
            Transfer::SignedHalf | Transfer::ZeroHalf | Transfer::AuxHalf => 2,
            Transfer::Word | Transfer::AuxWord => 4,
            Transfer::AuxPair => 8,
            Transfer::AuxQuad => 16,
        }
    }
}

/// Instructions with triple-packed addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Load2,
    LoadPairWord,
    LoadPairHalf,
    LoadStore,
    Load2Store,
    Store,
}

/// Formats of a matrix step: the inputs, whether partials and results are f32, and how many sets take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matrix {
    /// f16 inputs, f16 partials and results, 16 channels.
    HalfHalfHalf16,
    /// f16 inputs, f16 partials and results, 8 channels.
    HalfHalfHalf8,
    /// f16 inputs, f32 partials, f16 results, 8 channels.
    HalfSingleHalf8,
    /// f16 inputs, f32 partials and results, 8 channels.
    HalfSingleSingle8,
    /// FP8 inputs, f16 partials and results, 16 channels.
    ByteHalfHalf16,
    /// f32 inputs, partials and results, 8 channels.
    Single8,
    /// f32 inputs, partials and results, 16 channels.
    Single16,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    // not executable
    Illegal,
    Poison,
    NotSimulated,
    SecondWord,
    // main lane
    Integer(Integer),
    SetMain,
    AuxToMain,
    MoveIf,
    BranchTo,
    BranchRegister,
    BranchIf(Test),
    BranchDecrement,
    Call,
    Exit(Test),
    Repeat,
    Load { transfer: Transfer, step: bool },
    Store { transfer: Transfer, step: bool },
    Pace(Pace),
    LoadQuadWord,
    LoadDelta(Transfer),
    LoadDeltaPair,
    LoadTwoHalves,
    PackAddresses,
    // both contexts, system
    Get,
    Put,
    Trap,
    // supervisor
    PutCoefficients { two: bool },
    Run,
    RunAll,
    Sync,
    Announce,
    Delay,
    DelayPointer,
    DelaySelect,
    Send,
    SendOffset,
    SendControl,
    SendBoth,
    // aux lane
    SetAux,
    GetUpper,
    PutUpper,
    AuxInteger(Integer, Broadcast),
    PairBits(PairBits),
    Half { lane: Lane, four: bool, broadcast: Broadcast },
    Single { lane: Lane, two: bool, broadcast: Broadcast },
    HalfClamp { four: bool },
    SingleClamp { two: bool },
    HalfFunction(Function),
    SingleFunction(Function),
    HalfMaxAcross { four: bool },
    HalfSum { four: bool },
    HalfToSingle { two: bool },
    SingleToHalf { lanes: u8 },
    IntegerToSingle { signed: bool },
    SingleToInteger { signed: bool },
    RoundSingle,
    HalfToByte { eight: bool },
    ByteToHalf { four: bool },
    HalfClass { four: bool },
    SingleClass { two: bool },
    ByteClass,
    HalfUniform { four: bool },
    SingleUniform { two: bool },
    Random { two: bool },
    HalfGaussian,
    SingleGaussian,
    HalfMask,
    SingleMask,
    HalfAccumulate { kind: Accumulated, eight: bool },
    SingleAccumulate { kind: Accumulated },
    HalfDot { four: bool },
    SingleDot { two: bool },
    OuterProduct,
    HalfGetAccumulators,
    HalfExchangeAccumulators,
    SingleExchangeAccumulators,
    HalfMix,
    SingleAxpy,
    Matrix(Matrix),
    Slim(Matrix),
    SortIn,
    SortOut,
}

/// What the form with this id does; `None` for ids the table does not know.
pub(crate) fn kind_of(id: &str) -> Option<Kind> {
    let (mnemonic, variant) = id.split_once('.').unwrap_or((id, ""));
    control(mnemonic)
        .or_else(|| integer_form(mnemonic, variant))
        .or_else(|| memory_form(mnemonic, variant))
        .or_else(|| pair_bits(mnemonic))
        .or_else(|| lane_form(mnemonic, variant))
        .or_else(|| function_form(mnemonic))
        .or_else(|| conversion(mnemonic))
        .or_else(|| accumulator_form(mnemonic))
        .or_else(|| without_public_meaning(mnemonic))
}

fn control(mnemonic: &str) -> Option<Kind> {
    Some(match mnemonic {
        "atom" => Kind::AuxToMain,
        "movz" => Kind::MoveIf,
        "br" => Kind::BranchRegister,
        "bri" => Kind::BranchTo,
        "brneg" => Kind::BranchIf(Test::Negative),
        "brnz" => Kind::BranchIf(Test::NotZero),
        "brpos" => Kind::BranchIf(Test::Positive),
        "brz" => Kind::BranchIf(Test::Zero),
        "brnzdec" => Kind::BranchDecrement,
        "call" => Kind::Call,
        "exitneg" => Kind::Exit(Test::Negative),
        "exitnz" => Kind::Exit(Test::NotZero),
        "exitpos" => Kind::Exit(Test::Positive),
        "exitz" => Kind::Exit(Test::Zero),
        "rpt" => Kind::Repeat,
        "get" => Kind::Get,
        "put" => Kind::Put,
        "trap" => Kind::Trap,
        "uget" => Kind::GetUpper,
        "uput" => Kind::PutUpper,
        "run" => Kind::Run,
        "runall" => Kind::RunAll,
        "sync" => Kind::Sync,
        "sans" => Kind::Announce,
        "delay" => Kind::Delay,
        "delaypic" => Kind::DelayPointer,
        "delayxpic" => Kind::DelaySelect,
        "send" => Kind::Send,
        "sendoff" => Kind::SendOffset,
        "sendpic" => Kind::SendControl,
        "sendpicp" => Kind::SendBoth,
        "ld64putcs" => Kind::PutCoefficients { two: false },
        "ld128putcs" => Kind::PutCoefficients { two: true },
        "tapack" => Kind::PackAddresses,
        _ => return None,
    })
}

fn integer_of(mnemonic: &str) -> Option<Integer> {
    Some(match mnemonic {
        "abs" => Integer::Abs,
        "add" => Integer::Add,
        "and" => Integer::And,
        "andc" => Integer::AndComplement,
        "bitrev8" => Integer::BitReverseBytes,
        "clz" => Integer::LeadingZeros,
        "cmpeq" => Integer::CompareEqual,
        "cmpne" => Integer::CompareNotEqual,
        "cmpslt" => Integer::CompareSignedLess,
        "cmpult" => Integer::CompareUnsignedLess,
        "cms" => Integer::SignBits,
        "max" => Integer::Max,
        "min" => Integer::Min,
        "mul" => Integer::Multiply,
        "not" => Integer::Not,
        "or" => Integer::Or,
        "popc" => Integer::PopulationCount,
        "roll16" => Integer::Roll16,
        "roll8l" => Integer::Roll8Left,
        "roll8r" => Integer::Roll8Right,
        "shl" => Integer::ShiftLeft,
        "shr" => Integer::ShiftRight,
        "shrs" => Integer::ShiftRightSigned,
        "shuf8x8hi" => Integer::Shuffle8High,
        "shuf8x8lo" => Integer::Shuffle8Low,
        "sort4x16hi" => Integer::Sort16High,
        "sort4x16lo" => Integer::Sort16Low,
        "sort8" => Integer::Sort8,
        "sort8x8hi" => Integer::Sort8High,
        "sort8x8lo" => Integer::Sort8Low,
        "sub" => Integer::Subtract,
        "swap8" => Integer::Swap8,
        "xnor" => Integer::ExclusiveNor,
        "xor" => Integer::ExclusiveOr,
        _ => return None,
    })
}

fn integer_form(mnemonic: &str, variant: &str) -> Option<Kind> {
    if mnemonic == "setzi" {
        return Some(if variant.starts_with('a') { Kind::SetAux } else { Kind::SetMain });
    }
    let operation = integer_of(mnemonic)?;
    Some(match (operation, variant) {
        (Integer::Subtract, "m_si16_m" | "m_zi16_m") => Kind::Integer(Integer::ReverseSubtract),
        (_, "bl" | "bu") => Kind::AuxInteger(operation, broadcast(variant)),
        _ if variant.starts_with('a') => Kind::AuxInteger(operation, Broadcast::None),
        _ => Kind::Integer(operation),
    })
}

fn broadcast(variant: &str) -> Broadcast {
    match variant {
        "bl" | "b" => Broadcast::Lower,
        "bu" => Broadcast::Upper,
        _ => Broadcast::None,
    }
}

fn memory_form(mnemonic: &str, variant: &str) -> Option<Kind> {
    use Transfer::{AuxByte, AuxHalf, AuxPair, AuxQuad, AuxWord, SignedByte, SignedHalf, Word, ZeroByte, ZeroHalf};
    let word = if variant.starts_with('a') { AuxWord } else { Word };
    let (transfer, step, store) = match mnemonic {
        "ld32" => (word, false, false),
        "ld32step" => (word, true, false),
        "ld64" => (AuxPair, false, false),
        "ld64step" => (AuxPair, true, false),
        "ld128" => (AuxQuad, false, false),
        "ld128step" => (AuxQuad, true, false),
        "ldb16" => (AuxHalf, false, false),
        "ldb16step" => (AuxHalf, true, false),
        "ldb8" => (AuxByte, false, false),
        "ldb8step" => (AuxByte, true, false),
        "lds16" => (SignedHalf, false, false),
        "lds16step" => (SignedHalf, true, false),
        "lds8" => (SignedByte, false, false),
        "lds8step" => (SignedByte, true, false),
        "ldz16" => (ZeroHalf, false, false),
        "ldz16step" => (ZeroHalf, true, false),
        "ldz8" => (ZeroByte, false, false),
        "ldz8step" => (ZeroByte, true, false),
        "st32" => (word, false, true),
        "st32step" => (word, true, true),
        "st64" => (AuxPair, false, true),
        "st64step" => (AuxPair, true, true),
        "stm32" => (Word, false, true),
        "stm32step" => (Word, true, true),
        "ld2x64pace" => return Some(Kind::Pace(Pace::Load2)),
        "ld64a32pace" => return Some(Kind::Pace(Pace::LoadPairWord)),
        "ld64b16pace" => return Some(Kind::Pace(Pace::LoadPairHalf)),
        "ldst64pace" => return Some(Kind::Pace(Pace::LoadStore)),
        "ld2xst64pace" => return Some(Kind::Pace(Pace::Load2Store)),
        "st64pace" => return Some(Kind::Pace(Pace::Store)),
        "ld64a32" => return Some(Kind::LoadQuadWord),
        "ldd16a32" => return Some(Kind::LoadDelta(AuxWord)),
        "ldd16a64" => return Some(Kind::LoadDelta(AuxPair)),
        "ldd16b16" => return Some(Kind::LoadDelta(AuxHalf)),
        "ldd16v2a32" => return Some(Kind::LoadDeltaPair),
        "ldb16b16" => return Some(Kind::LoadTwoHalves),
        _ => return None,
    };
    Some(if store { Kind::Store { transfer, step } } else { Kind::Load { transfer, step } })
}

fn pair_bits(mnemonic: &str) -> Option<Kind> {
    Some(Kind::PairBits(match mnemonic {
        "and64" => PairBits::And,
        "andc64" => PairBits::AndComplement,
        "or64" => PairBits::Or,
        "not64" => PairBits::Not,
        "roll32" => PairBits::Roll32,
        "sort4x32hi" => PairBits::Sort32High,
        "sort4x32lo" => PairBits::Sort32Low,
        _ => return None,
    }))
}

fn lane_of(name: &str) -> Option<Lane> {
    Some(match name {
        "add" => Lane::Add,
        "sub" => Lane::Subtract,
        "mul" => Lane::Multiply,
        "div" => Lane::Divide,
        "absadd" => Lane::AbsoluteAdd,
        "absmax" => Lane::AbsoluteMax,
        "max" => Lane::Max,
        "min" => Lane::Min,
        "cmpeq" => Lane::Equal,
        "cmpne" => Lane::NotEqual,
        "cmplt" => Lane::Less,
        "cmple" => Lane::LessEqual,
        "cmpgt" => Lane::Greater,
        "cmpge" => Lane::GreaterEqual,
        _ => return None,
    })
}

/// Splits a vector mnemonic into its prefix and its operation.
fn vector_prefix(mnemonic: &str) -> Option<(&'static str, &str)> {
    ["f16v2", "f16v4", "f32v2", "f32"].into_iter().find_map(|p| mnemonic.strip_prefix(p).map(|rest| (p, rest)))
}

fn lane_form(mnemonic: &str, variant: &str) -> Option<Kind> {
    let (prefix, name) = vector_prefix(mnemonic)?;
    if name == "clamp" {
        return Some(match prefix {
            "f16v2" => Kind::HalfClamp { four: false },
            "f16v4" => Kind::HalfClamp { four: true },
            "f32v2" => Kind::SingleClamp { two: true },
            _ => Kind::SingleClamp { two: false },
        });
    }
    let (lane, broadcast) = (lane_of(name)?, broadcast(variant));
    Some(match prefix {
        "f16v2" => Kind::Half { lane, four: false, broadcast },
        "f16v4" => Kind::Half { lane, four: true, broadcast },
        "f32v2" => Kind::Single { lane, two: true, broadcast },
        _ => Kind::Single { lane, two: false, broadcast },
    })
}

fn function_form(mnemonic: &str) -> Option<Kind> {
    let (prefix, name) = vector_prefix(mnemonic)?;
    let function = match name {
        "exp" => Function::Exp,
        "exp2" => Function::Exp2,
        "ln" => Function::Ln,
        "log2" => Function::Log2,
        "tanh" => Function::Tanh,
        "sigm" => Function::Sigmoid,
        "sqrt" => Function::Sqrt,
        "oox" => Function::Reciprocal,
        "oorx" => Function::ReciprocalSqrt,
        _ => return None,
    };
    match prefix {
        "f16v2" => Some(Kind::HalfFunction(function)),
        "f32" => Some(Kind::SingleFunction(function)),
        _ => None,
    }
}

fn conversion(mnemonic: &str) -> Option<Kind> {
    Some(match mnemonic {
        "f16v2maxc" => Kind::HalfMaxAcross { four: false },
        "f16v4maxc" => Kind::HalfMaxAcross { four: true },
        "f16v2sum" => Kind::HalfSum { four: false },
        "f16v4sum" => Kind::HalfSum { four: true },
        "f16tof32" => Kind::HalfToSingle { two: false },
        "f16v2tof32" => Kind::HalfToSingle { two: true },
        "f32tof16" => Kind::SingleToHalf { lanes: 1 },
        "f32v2tof16" => Kind::SingleToHalf { lanes: 2 },
        "f32v4tof16" => Kind::SingleToHalf { lanes: 4 },
        "f32fromi32" => Kind::IntegerToSingle { signed: true },
        "f32fromui32" => Kind::IntegerToSingle { signed: false },
        "f32toi32" => Kind::SingleToInteger { signed: true },
        "f32toui32" => Kind::SingleToInteger { signed: false },
        "f32int" => Kind::RoundSingle,
        "f16v2tof8" => Kind::HalfToByte { eight: false },
        "f16v8tof8" => Kind::HalfToByte { eight: true },
        "f8v2tof16" => Kind::ByteToHalf { four: false },
        "f8v4tof16" => Kind::ByteToHalf { four: true },
        "f16v2class" => Kind::HalfClass { four: false },
        "f16v4class" => Kind::HalfClass { four: true },
        "f32class" => Kind::SingleClass { two: false },
        "f32v2class" => Kind::SingleClass { two: true },
        "f8v4class" => Kind::ByteClass,
        "f16v2sufromui" => Kind::HalfUniform { four: false },
        "f16v4sufromui" => Kind::HalfUniform { four: true },
        "f32sufromui" => Kind::SingleUniform { two: false },
        "f32v2sufromui" => Kind::SingleUniform { two: true },
        "urand32" => Kind::Random { two: false },
        "urand64" => Kind::Random { two: true },
        "f16v2grand" => Kind::HalfGaussian,
        "f32v2grand" => Kind::SingleGaussian,
        "f16v4rmask" => Kind::HalfMask,
        "f32v2rmask" => Kind::SingleMask,
        _ => return None,
    })
}

fn accumulator_form(mnemonic: &str) -> Option<Kind> {
    use Accumulated::{Absolute, Plain, Square};
    Some(match mnemonic {
        "f16v4acc" => Kind::HalfAccumulate { kind: Plain, eight: false },
        "f16v4absacc" => Kind::HalfAccumulate { kind: Absolute, eight: false },
        "f16v8acc" => Kind::HalfAccumulate { kind: Plain, eight: true },
        "f16v8absacc" => Kind::HalfAccumulate { kind: Absolute, eight: true },
        "f16v8sqacc" => Kind::HalfAccumulate { kind: Square, eight: true },
        "f32v4acc" => Kind::SingleAccumulate { kind: Plain },
        "f32v4absacc" => Kind::SingleAccumulate { kind: Absolute },
        "f32v4sqacc" => Kind::SingleAccumulate { kind: Square },
        "f16v2cmac" => Kind::HalfDot { four: false },
        "f16v4cmac" => Kind::HalfDot { four: true },
        "f32mac" => Kind::SingleDot { two: false },
        "f32v2mac" => Kind::SingleDot { two: true },
        "f32v2aop" => Kind::OuterProduct,
        "f16v4gacc" => Kind::HalfGetAccumulators,
        "f16v2gina" => Kind::HalfExchangeAccumulators,
        "f32v2gina" => Kind::SingleExchangeAccumulators,
        "f16v4mix" => Kind::HalfMix,
        "f32v2axpy" => Kind::SingleAxpy,
        "f16v4hihov4amp" => Kind::Matrix(Matrix::HalfHalfHalf16),
        "f16v4hihoamp" => Kind::Matrix(Matrix::HalfHalfHalf8),
        "f16v4sihoamp" => Kind::Matrix(Matrix::HalfSingleHalf8),
        "f16v4sisoamp" => Kind::Matrix(Matrix::HalfSingleSingle8),
        "f8v8hihov4amp" => Kind::Matrix(Matrix::ByteHalfHalf16),
        "f32sisoamp" => Kind::Matrix(Matrix::Single8),
        "f32sisov2amp" => Kind::Matrix(Matrix::Single16),
        "f16v4hihov4slic" => Kind::Slim(Matrix::HalfHalfHalf16),
        "f16v4hihoslic" => Kind::Slim(Matrix::HalfHalfHalf8),
        "f16v4sihoslic" => Kind::Slim(Matrix::HalfSingleHalf8),
        "f16v4sisoslic" => Kind::Slim(Matrix::HalfSingleSingle8),
        "f8v8hihov4slic" => Kind::Slim(Matrix::ByteHalfHalf16),
        "f32sisoslic" => Kind::Slim(Matrix::Single8),
        "f32sisov2slic" => Kind::Slim(Matrix::Single16),
        "f16v4istacc" => Kind::SortIn,
        "f16v4stacc" => Kind::SortOut,
        _ => return None,
    })
}

/// Forms that public sources name and nothing more.
fn without_public_meaning(mnemonic: &str) -> Option<Kind> {
    matches!(mnemonic, "f16v8topk" | "f32v4topk").then_some(Kind::NotSimulated)
}

impl Integer {
    /// The result for two sources; forms of one source ignore the second.
    #[inline]
    pub(crate) fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            Integer::Abs => (a as i32).wrapping_abs() as u32,
            Integer::Add => a.wrapping_add(b),
            Integer::And => a & b,
            Integer::AndComplement => a & !b,
            Integer::BitReverseBytes => a.reverse_bits().swap_bytes(),
            Integer::LeadingZeros => a.leading_zeros(),
            Integer::CompareEqual => u32::from(a == b),
            Integer::CompareNotEqual => u32::from(a != b),
            Integer::CompareSignedLess => u32::from((a as i32) < b as i32),
            Integer::CompareUnsignedLess => u32::from(a < b),
            Integer::SignBits => (a ^ ((a as i32 >> 31) as u32)).leading_zeros() - 1,
            Integer::Max => (a as i32).max(b as i32) as u32,
            Integer::Min => (a as i32).min(b as i32) as u32,
            Integer::Multiply => a.wrapping_mul(b),
            Integer::Not => !a,
            Integer::Or => a | b,
            Integer::PopulationCount => a.count_ones(),
            Integer::Roll16 => (a >> 16) | (b << 16),
            Integer::Roll8Left => (a >> 24) | (b << 8),
            Integer::Roll8Right => (a >> 8) | (b << 24),
            Integer::ShiftLeft => a.checked_shl(b).unwrap_or(0),
            Integer::ShiftRight => a.checked_shr(b).unwrap_or(0),
            Integer::ShiftRightSigned => (a as i32 >> b.min(31)) as u32,
            Integer::Shuffle8High => bytes([(a, 2), (b, 2), (a, 3), (b, 3)]),
            Integer::Shuffle8Low => bytes([(a, 0), (b, 0), (a, 1), (b, 1)]),
            Integer::Sort16High => (a >> 16) | (b & 0xffff_0000),
            Integer::Sort16Low => (a & 0xffff) | (b << 16),
            Integer::Sort8 => bytes([(a, 0), (a, 2), (a, 1), (a, 3)]),
            Integer::Sort8High => bytes([(a, 1), (a, 3), (b, 1), (b, 3)]),
            Integer::Sort8Low => bytes([(a, 0), (a, 2), (b, 0), (b, 2)]),
            Integer::Subtract => a.wrapping_sub(b),
            Integer::ReverseSubtract => b.wrapping_sub(a),
            Integer::Swap8 => bytes([(a, 1), (a, 0), (a, 3), (a, 2)]),
            Integer::ExclusiveNor => !(a ^ b),
            Integer::ExclusiveOr => a ^ b,
        }
    }
}

fn bytes(picks: [(u32, u32); 4]) -> u32 {
    picks.iter().rev().fold(0, |word, &(value, index)| word << 8 | (value >> (8 * index)) & 0xff)
}

impl PairBits {
    /// The result for two 64-bit sources.
    pub(crate) fn apply(self, a: u64, b: u64) -> u64 {
        match self {
            PairBits::And => a & b,
            PairBits::AndComplement => a & !b,
            PairBits::Or => a | b,
            PairBits::Not => !a,
            PairBits::Roll32 => (a >> 32) | (b << 32),
            PairBits::Sort32High => (a >> 32) | (b & !0xffff_ffff),
            PairBits::Sort32Low => (a & 0xffff_ffff) | (b << 32),
        }
    }
}

impl Test {
    /// Whether a register value passes.
    pub(crate) fn passes(self, value: u32) -> bool {
        match self {
            Test::Zero => value == 0,
            Test::NotZero => value != 0,
            Test::Negative => value >> 31 == 1,
            Test::Positive => value >> 31 == 0,
        }
    }
}

impl Kind {
    /// Whether the form belongs to the aux lane.
    pub(crate) fn is_aux(self) -> bool {
        matches!(
            self,
            Kind::SetAux
                | Kind::GetUpper
                | Kind::PutUpper
                | Kind::AuxInteger(..)
                | Kind::PairBits(_)
                | Kind::Half { .. }
                | Kind::Single { .. }
                | Kind::HalfClamp { .. }
                | Kind::SingleClamp { .. }
                | Kind::HalfFunction(_)
                | Kind::SingleFunction(_)
                | Kind::HalfMaxAcross { .. }
                | Kind::HalfSum { .. }
                | Kind::HalfToSingle { .. }
                | Kind::SingleToHalf { .. }
                | Kind::IntegerToSingle { .. }
                | Kind::SingleToInteger { .. }
                | Kind::RoundSingle
                | Kind::HalfToByte { .. }
                | Kind::ByteToHalf { .. }
                | Kind::HalfClass { .. }
                | Kind::SingleClass { .. }
                | Kind::ByteClass
                | Kind::HalfUniform { .. }
                | Kind::SingleUniform { .. }
                | Kind::Random { .. }
                | Kind::HalfGaussian
                | Kind::SingleGaussian
                | Kind::HalfMask
                | Kind::SingleMask
                | Kind::HalfAccumulate { .. }
                | Kind::SingleAccumulate { .. }
                | Kind::HalfDot { .. }
                | Kind::SingleDot { .. }
                | Kind::OuterProduct
                | Kind::HalfGetAccumulators
                | Kind::HalfExchangeAccumulators
                | Kind::SingleExchangeAccumulators
                | Kind::HalfMix
                | Kind::SingleAxpy
                | Kind::Matrix(_)
                | Kind::Slim(_)
                | Kind::SortIn
                | Kind::SortOut
        )
    }

    /// Whether a repeat body may not contain the form: control and system instructions (isa-notes 5).
    pub(crate) fn is_barred_from_repeat(self) -> bool {
        matches!(
            self,
            Kind::BranchTo
                | Kind::BranchRegister
                | Kind::BranchIf(_)
                | Kind::BranchDecrement
                | Kind::Call
                | Kind::Exit(_)
                | Kind::Repeat
                | Kind::Get
                | Kind::Put
                | Kind::Trap
                | Kind::GetUpper
                | Kind::PutUpper
        )
    }

    /// Whether only the supervisor may execute the form.
    pub(crate) fn is_supervisor_only(self) -> bool {
        matches!(self, Kind::PutCoefficients { .. } | Kind::Run | Kind::RunAll | Kind::Sync | Kind::Announce) || self.is_exchange()
    }

    /// Whether the form belongs to a row: it counts exchange events.
    pub(crate) fn is_exchange(self) -> bool {
        matches!(
            self,
            Kind::Delay | Kind::DelayPointer | Kind::DelaySelect | Kind::Send | Kind::SendOffset | Kind::SendControl | Kind::SendBoth
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_shuffles_follow_the_tables_of_the_isa() {
        let (a, b) = (0xa3a2_a1a0, 0xb3b2_b1b0);
        assert_eq!(Integer::Shuffle8High.apply(a, b), 0xb3a3_b2a2);
        assert_eq!(Integer::Shuffle8Low.apply(a, b), 0xb1a1_b0a0);
        assert_eq!(Integer::Sort8High.apply(a, b), 0xb3b1_a3a1);
        assert_eq!(Integer::Sort8Low.apply(a, b), 0xb2b0_a2a0);
        assert_eq!(Integer::Sort8.apply(a, b), 0xa3a1_a2a0);
        assert_eq!(Integer::Swap8.apply(a, b), 0xa2a3_a0a1);
        assert_eq!(Integer::Roll8Left.apply(a, b), 0xb2b1_b0a3);
        assert_eq!(Integer::Roll8Right.apply(a, b), 0xb0a3_a2a1);
        assert_eq!(Integer::Roll16.apply(a, b), 0xb1b0_a3a2);
        assert_eq!(Integer::Sort16High.apply(a, b), 0xb3b2_a3a2);
        assert_eq!(Integer::Sort16Low.apply(a, b), 0xb1b0_a1a0);
        assert_eq!(Integer::BitReverseBytes.apply(0x0180_00f1, 0), 0x8001_008f);
    }

    #[test]
    fn integer_edges_follow_the_parameters() {
        assert_eq!(Integer::Abs.apply(0x8000_0000, 0), 0x8000_0000);
        assert_eq!(Integer::ShiftLeft.apply(1, 32), 0);
        assert_eq!(Integer::ShiftRight.apply(u32::MAX, 40), 0);
        assert_eq!(Integer::ShiftRightSigned.apply(0x8000_0000, 99), u32::MAX);
        assert_eq!(Integer::SignBits.apply(0, 0), 31);
        assert_eq!(Integer::SignBits.apply(u32::MAX, 0), 31);
        assert_eq!(Integer::SignBits.apply(0x4000_0000, 0), 0);
        assert_eq!(Integer::SignBits.apply(0xe000_0000, 0), 2);
        assert_eq!(Integer::LeadingZeros.apply(0, 0), 32);
        assert_eq!(Integer::ReverseSubtract.apply(3, 10), 7);
    }

    #[test]
    fn every_form_of_the_isa_has_a_kind() {
        for (_, form) in ipu21::isa::forms() {
            assert!(kind_of(form.id).is_some(), "{}", form.id);
        }
    }
}
