//! Rates of the simulator on one core: loops of worker code, an exchange phase. Throughput is in bundles, or in words.
//!
//! Time is processor time of the process, so that other programs on the machine disturb less. Each loop runs twice, by the fast
//! path and by the reference interpreter, for their ratio in one run.
//!
//! Million a second on a 3.2 GHz EPYC with AVX-512, fast path and reference: matrix 48 and 13, copy 140 and 45, arithmetic 149
//! and 24, floats 196 and 33, scalar 370 and 80, skewed 80 and 75; exchange 140 words. With other programs on both cores a
//! third less.

use std::sync::Arc;
use std::time::Duration;

use cpu_time::ProcessTime;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ipu21::isa::{self, FormId};
use ipu21::parameters::Parameters;
use ipu21::tile::PhysTile;
use simulator::{Chip, ChipOptions, Segment, SingleTile, Stop};

/// Processor time of this process.
struct ProcessorTime;

impl Measurement for ProcessorTime {
    type Intermediate = ProcessTime;
    type Value = Duration;

    fn start(&self) -> ProcessTime {
        ProcessTime::now()
    }

    fn end(&self, start: ProcessTime) -> Duration {
        start.elapsed()
    }

    fn add(&self, first: &Duration, second: &Duration) -> Duration {
        *first + *second
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        WallTime.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

const CODE: u32 = 0x4c100;
const PASSES: u32 = 4000;

fn encoded(id: &str, operands: &[u32], coissue: bool) -> u32 {
    isa::encode(FormId::named(id).expect(id), operands, coissue).expect(id).word()
}

fn word(id: &str, operands: &[u32]) -> u32 {
    encoded(id, operands, false)
}

fn segment(address: u32, words: &[u32]) -> Segment {
    let data: Arc<[u8]> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Segment { address, memory_bytes: data.len() as u32, data }
}

fn zeros(address: u32, bytes: u32) -> Segment {
    Segment { address, data: Arc::from([]), memory_bytes: bytes }
}

/// A call that starts six workers and joins them.
fn launcher() -> [u32; 6] {
    [
        word("setzi.m_zi20", &[1, CODE + 0x40]),
        word("setzi.m_zi20", &[2, 7]),
        word("put.zi8_m", &[2, 2]),
        word("runall.mm_zi16", &[1, 15, 0]),
        word("sync.zi4", &[2]),
        word("br.m", &[10]),
    ]
}

/// A kernel whose workers set pointers, then repeat `body` (bundles) `PASSES` times.
fn kernel(body: &[u32]) -> Vec<Segment> {
    let mut code = vec![
        word("setzi.m_zi20", &[5, 0x60000]),
        word("setzi.m_zi20", &[6, 0x64000]),
        word("setzi.m_zi20", &[7, 0x80008]),
        word("tapack.p_mmm", &[2, 5, 6, 7]),
        word("setzi.m_zi20", &[4, 0]),
        word("setzi.a_zi20", &[0, 0]),
        word("setzi.a_zi20", &[1, 0]),
        word("setzi.a_zi20", &[2, 0]),
        word("setzi.a_zi20", &[3, 0]),
        word("setzi.a_zi20", &[4, 0x3]),
        word("setzi.a_zi20", &[5, 0]),
        word("setzi.a_zi20", &[6, 8]),
        word("uput.zi8_a", &[1, 6]),
        word("setzi.m_zi20", &[8, PASSES]),
        word("setzi.m_zi20", &[9, 0]),
        word("setzi.m_zi20", &[11, 0x66000]),
        isa::NOP,
        word("rpt.m_zi8", &[8, body.len() as u32 / 2 - 1]),
    ];
    code.extend_from_slice(body);
    code.push(word("exitz.m", &[15]));
    vec![segment(CODE, &launcher()), segment(CODE + 0x40, &code), zeros(0x60000, 0x8000), zeros(0x80000, 0x8000)]
}

/// All strides 0: code 1 with a zero stride register keeps the addresses in place.
fn matrix_body() -> Vec<u32> {
    (0..4)
        .flat_map(|phase| {
            [encoded("ld2xst64pace", &[0, 4, 2, 4, 0b01_01_01], true), encoded("f16v4hihov4amp.ppp_ef6", &[6, 0, 2, phase], true)]
        })
        .collect()
}

fn copy_body() -> Vec<u32> {
    vec![encoded("ldst64pace", &[0, 0, 2, 4, 0b01_01], true), isa::FNOP | isa::COISSUE]
}

/// Arithmetic on f16 and integers beside a load and a store.
fn arithmetic_body() -> Vec<u32> {
    let bundle = |main: u32, aux: u32| [main, aux];
    [
        bundle(encoded("ld64step.p_imm", &[0, 15, 5, 0], true), encoded("f16v4mul.ppp", &[4, 0, 2], true)),
        bundle(encoded("add.mm_si16", &[9, 9, 1], true), encoded("f16v4add.ppp", &[2, 0, 4], true)),
        bundle(encoded("xor.mmm", &[10, 9, 4], true), encoded("or64.ppp", &[6, 0, 2], true)),
        bundle(encoded("st64step.p_imm", &[6, 15, 11, 0], true), encoded("f16v4max.ppp", &[2, 0, 2], true)),
    ]
    .concat()
}

/// f16 to f32 and back, arithmetic of both, sums in the accumulators, functions.
fn floats_body() -> Vec<u32> {
    let bundle = |main: u32, aux: u32| [main, aux];
    let load = || encoded("ld64step.p_imm", &[0, 15, 5, 0], true);
    let add = || encoded("add.mm_si16", &[9, 9, 1], true);
    [
        bundle(load(), encoded("f16v2tof32.pa", &[4, 2], true)),
        bundle(add(), encoded("f32v2mul.ppp", &[4, 4, 4], true)),
        bundle(add(), encoded("f16v8acc.q", &[0], true)),
        bundle(load(), encoded("f32v2tof16.ap", &[3, 4], true)),
        bundle(add(), encoded("f16v2exp.aa", &[2, 1], true)),
        bundle(load(), encoded("f16v4cmac.pp", &[2, 2], true)),
        bundle(add(), encoded("f16v4sum.pp", &[6, 2], true)),
        bundle(encoded("st64step.p_imm", &[6, 15, 11, 0], true), encoded("f32v2add.ppp", &[6, 4, 6], true)),
    ]
    .concat()
}

/// Solo instructions and a branch: a sum over words. `skewed`: odd workers are an instruction late from the start.
fn scalar(skewed: bool) -> Vec<Segment> {
    let worker = CODE + 0x40;
    let code = [
        word("get.m_zi8", &[0, 1]),
        word("and.mm_zi12", &[0, 0, if skewed { 1 } else { 8 }]),
        word("setzi.m_zi20", &[5, 0x60000]),
        word("setzi.m_zi20", &[8, PASSES]),
        word("setzi.m_zi20", &[7, 0]),
        word("brz.m_zi19", &[0, worker / 4 + 7]),
        isa::NOP,
        word("ld32step.m_imm", &[6, 15, 5, 0]),
        word("add.mmm", &[7, 7, 6]),
        word("xor.mmm", &[9, 7, 8]),
        word("st32.m_rri", &[9, 5, 15, 16]),
        word("brnzdec.m_zi19", &[8, worker / 4 + 7]),
        word("exitz.m", &[15]),
    ];
    vec![segment(CODE, &launcher()), segment(worker, &code), zeros(0x60000, 0x8000)]
}

fn calls(criterion: &mut Criterion<ProcessorTime>) {
    let loops = [
        ("matrix", kernel(&matrix_body())),
        ("copy", kernel(&copy_body())),
        ("arithmetic", kernel(&arithmetic_body())),
        ("floats", kernel(&floats_body())),
        ("scalar", scalar(false)),
        ("skewed", scalar(true)),
    ];
    for (name, segments) in loops {
        let parameters = Parameters::shipped();
        for (way, reference) in [("fast", false), ("reference", true)] {
            let mut tile = SingleTile::new(&parameters, 1);
            tile.load(&segments).expect("the kernel fits");
            if reference {
                tile.use_reference_interpreter();
            }
            let bundles = tile.run_call(CODE, 0).expect("the kernel runs").worker_turns;
            let mut group = criterion.benchmark_group(name);
            group.sample_size(10).throughput(Throughput::Elements(bundles));
            group.bench_function(way, |bencher| bencher.iter(|| tile.run_call(CODE, 0).expect("every call returns")));
            group.finish();
        }
    }
}

/// Every tile of one half of the chip sends 4096 words to one of the other half.
fn exchange_chip(parameters: &Arc<Parameters>) -> Chip {
    let options = ChipOptions { seed: 1, threads: 1, clock_limit: 1 << 40 };
    let mut chip = Chip::new(parameters.clone(), options);
    let pairs = 1472 / 2;
    for (index, tile) in PhysTile::all().enumerate() {
        let partner = PhysTile::all().nth((index + pairs) % 1472).expect("there are 1472 tiles");
        let mut code = vec![word("sync.zi4", &[3])];
        if index < pairs {
            code.extend([0x40a0_0000 | 199, 0x7fec_0003, 0x7000_0003 | (4031 & 63) << 21 | (4031 >> 6) << 14]);
        } else {
            let offset = ipu21::route::route(partner, tile).offset;
            let select = (200 + offset + 1) as u32;
            let pointer = 52 + 2 * u32::from(tile.row());
            code.extend([
                0x6400_0000 | (select - 1) << 14 | u32::from(partner.get()),
                0x6000_0000 | (pointer - 1) << 19 | (0x70000 / 4),
                0x6400_0000 | (4095 - pointer) << 14 | 0x640,
                0x40a0_0000 | (pointer + 10),
            ]);
        }
        let at = 0x4c010 + 4 * code.len() as u32;
        code.push(word("bri.zi19", &[at / 4]));
        chip.load(tile, &[segment(0x4c010, &code), zeros(0x60000, 0x8000)]).expect("the code fits");
    }
    chip.start();
    chip
}

fn exchange(criterion: &mut Criterion<ProcessorTime>) {
    let parameters = Arc::new(Parameters::shipped());
    assert_eq!(exchange_chip(&parameters).run(), Stop::Finished);
    let mut group = criterion.benchmark_group("words");
    group.sample_size(10).throughput(Throughput::Elements(736 * 4096));
    group.bench_function("exchange", |bencher| {
        bencher.iter_batched_ref(|| exchange_chip(&parameters), Chip::run, criterion::BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(name = benches; config = Criterion::default().with_measurement(ProcessorTime); targets = calls, exchange);
criterion_main!(benches);
