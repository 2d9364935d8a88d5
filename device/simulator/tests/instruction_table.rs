//! Every form of isa.toml is executed once, with plain operands: the simulator executes it or refuses it by name.

mod support;

use ipu21::isa::{self, Class, Form, FormId, Mode, Operand, OperandKind};
use ipu21::parameters::Parameters;
use simulator::{Cause, Segment, SingleTile};
use support::{KERNEL, WORKER, segment, word};

/// Memory that loads and stores touch: three places in three memory elements.
const PLACES: [u32; 3] = [0x80000, 0x90000, 0x98008];
/// Behind the code: a worker that ends at once.
const EXIT: u32 = WORKER + 0x400;
/// Main registers 2..12 before the form: base, destination, packed addresses, offsets, and a pointer of its own.
const MAIN: [(u32, u32); 8] = [(2, PLACES[0]), (3, 0), (4, PLACES[0]), (6, 0), (7, 0), (8, 0), (9, EXIT), (11, PLACES[1])];

/// What the simulator does not execute in a context, `supervisor` or `worker`, and the fault that it reports instead.
///
/// A worker keeps no control register that `put` could write. `f16v8topk` and `f32v4topk` have no encoding, so no word can name
/// them.
const REFUSED: [&str; 3] = [
    "put.zi8_m worker: control register of a worker with 0xa4 is not simulated",
    "trap.zi4 worker: breakpoint, trap 5",
    "trap.zi4 supervisor: the call did not return: trap 5",
];

/// The value of an operand; registers are those of [`MAIN`], aux operands 0..3 and results 4..7.
fn operand(form: &Form, operand: &Operand, next: u32) -> u32 {
    match (operand.name, operand.kind) {
        ("delta", _) if form.mnemonic == "ldb16b16" => 4,
        ("dst1" | "dst", OperandKind::Aux | OperandKind::AuxPair | OperandKind::AuxQuad) => 4,
        ("src1", OperandKind::Aux | OperandKind::AuxPair) => 2,
        (_, OperandKind::Aux | OperandKind::AuxPair | OperandKind::AuxQuad) | ("dst", OperandKind::MainPair) => 0,
        ("addr", OperandKind::MainPair) => 4,
        ("base" | "addr0" | "addr1" | "addr2", _) => 2,
        ("dst" | "srcDst", _) => 3,
        ("ptr", _) if operand.modifier == isa::Modifier::PostIncrementFixed || form.mnemonic == "stm32step" => 11,
        ("ptr", _) => 6,
        ("entry", _) => 9,
        ("src0", OperandKind::Main) if form.mnemonic == "br" => 10,
        (_, OperandKind::Main) => {
            if operand.name == "stride" {
                7
            } else {
                8
            }
        }
        ("target", _) => next / 4,
        ("csr", _) => {
            if form.mnemonic == "put" {
                0xa4
            } else {
                1
            }
        }
        ("zone", _) => 2,
        ("value" | "xpic", _) => ipu21::exchange_word::NEUTRAL,
        ("imm", OperandKind::Unsigned(4)) => 0x5,
        ("imm", OperandKind::Unsigned(6)) if form.class != Class::Normal => 0x15,
        _ => 0,
    }
}

fn encoded(id: FormId, next: u32) -> Vec<u32> {
    let form = isa::form(id);
    let operands: Vec<u32> = form.operands.iter().map(|one| operand(form, one, next)).collect();
    isa::encode(id, &operands, false).unwrap_or_else(|fault| panic!("{}: {fault:?}", form.id)).words().to_vec()
}

/// Gives main registers their values; `$m5` holds the second and the third address of a triple.
fn prepare_main() -> Vec<u32> {
    let mut code: Vec<u32> = MAIN.iter().map(|&(register, value)| word("setzi.m_zi20", &[register, value])).collect();
    code.push(word("ld32.m_rri", &[5, 2, 15, 8]));
    code
}

/// Gives aux registers, accumulators and the scale their values.
fn prepare_aux() -> Vec<u32> {
    let mut code: Vec<u32> = (0..8).map(|register| word("setzi.a_zi20", &[register, 8])).collect();
    code.extend([word("uput.zi8_a", &[1, 7]), word("uput.zi8_a", &[8, 7])]);
    code
}

/// Code with the form, one word off the alignment that a repeat body needs behind it; `tail` follows three words later.
/// `$m10` holds the address behind the form.
fn around(id: FormId, start: u32, mut code: Vec<u32>, tail: &[u32]) -> Vec<u32> {
    let at_even = (start / 4 + code.len() as u32 + 1).is_multiple_of(2);
    if at_even != (isa::form(id).words == 2) {
        code.push(isa::NOP);
    }
    let next = start + 4 * (code.len() as u32 + 2);
    code.push(word("setzi.m_zi20", &[10, next]));
    code.extend(encoded(id, next));
    code.extend([isa::NOP; 3]);
    code.extend(tail);
    code
}

fn run(id: FormId, by_worker: bool) -> Option<Cause> {
    let exit = word("exitz.m", &[15]);
    let launch = [word("setzi.m_zi20", &[1, WORKER]), word("runall.mm_zi16", &[1, 15, 0])];
    let clear = [word("setzi.m_zi20", &[3, 4]), word("put.zi8_m", &[2, 3]), word("put.zi8_m", &[0x50, 2])];
    let leave = [word("sync.zi4", &[2]), word("br.m", &[1])];
    let keep = vec![word("or.mm_zi12", &[1, 10, 0])];
    let kernel = if by_worker {
        [
            vec![word("setzi.m_zi20", &[3, 4]), word("put.zi8_m", &[2, 3])],
            launch.to_vec(),
            vec![word("sync.zi4", &[2]), word("br.m", &[10])],
        ]
        .concat()
    } else {
        around(id, KERNEL, [keep, prepare_main(), clear.to_vec()].concat(), &leave)
    };
    let worker =
        around(if by_worker { id } else { FormId::named("exitz.m").unwrap() }, WORKER, [prepare_main(), prepare_aux()].concat(), &[exit]);
    let mut tile = SingleTile::new(&Parameters::shipped(), 3);
    tile.load(&[vec![segment(KERNEL, &kernel), segment(WORKER, &worker), segment(EXIT, &[exit])], data()].concat()).unwrap();
    tile.run_call(KERNEL, 0).err().map(|fault| fault.cause)
}

fn data() -> Vec<Segment> {
    let upper = PLACES[1] | (PLACES[2] >> 11) << 21;
    let mut first = [0; 64];
    first[8] = upper;
    vec![segment(PLACES[0], &first), segment(PLACES[1], &[0; 64]), segment(PLACES[2] & !0x7ff, &[0; 64])]
}

/// The fault, if any, in each context that may execute the form.
fn faults(id: FormId) -> Vec<String> {
    let (worker, supervisor) = ((true, "worker"), (false, "supervisor"));
    let contexts = match isa::form(id).mode {
        Mode::Worker => vec![worker],
        Mode::Supervisor => vec![supervisor],
        Mode::Both => vec![worker, supervisor],
    };
    let fault = |(by_worker, name)| run(id, by_worker).map(|cause| format!("{} {name}: {cause}", isa::form(id).id));
    contexts.into_iter().filter_map(fault).collect()
}

#[test]
fn every_form_is_executed_or_refused_by_name() {
    let encodable: Vec<FormId> = isa::forms().filter(|(_, form)| form.words > 0).map(|(id, _)| id).collect();
    assert_eq!(encodable.len(), 368);
    let found: Vec<String> = encodable.into_iter().flat_map(faults).collect();
    assert_eq!(found, REFUSED);
}

#[test]
fn only_the_two_sorting_forms_have_no_encoding() {
    let without: Vec<&str> = isa::forms().filter(|(_, form)| form.words == 0).map(|(_, form)| form.id).collect();
    assert_eq!(without, ["f16v8topk", "f32v4topk"]);
}
