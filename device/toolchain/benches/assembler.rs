//! How fast sources are assembled: plain lines, lines with macros, the kernel library.
//!
//! Aims on one core: a million plain lines a second, the library in 20 ms. Measured on one core of an AMD EPYC: 1.5 million plain
//! lines and 1.7 million out of macros a second, the library in 1.8 ms.

#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ipu21::parameters::Parameters;
use toolchain::manifest;
use toolchain::{Source, assemble};

/// Lines of the plain source; its words fill most of the executable memory.
const LINES: usize = 48_000;

fn source(text: String) -> Source {
    Source { name: "bench.S".to_owned(), text }
}

/// Instructions of a worker as they stand in kernels, four kinds in turn.
fn plain() -> Source {
    let lines = [
        "    ld32    $m2, $mvertex_base, $mzero, 1\n",
        "    add     $m3, $m2, 12\n",
        "    f32add  $a0, $a1, $a2\n",
        "    and     $m0, $m0, 0x7 // a remark\n",
    ];
    source(format!(".worker\n{}", lines.iter().copied().cycle().take(LINES).collect::<String>()))
}

/// The same number of instructions through a macro of the assembler and one of the preprocessor.
fn expanded() -> Source {
    let head = "#define STEP(register, amount) add register, register, amount\n.macro four a\nSTEP(\\a, 1)\nSTEP(\\a, 2)\nSTEP(\\a, 3)\nSTEP(\\a, 4)\n.endm\n";
    source(format!("{head}{}", "    four $m1\n".repeat(LINES / 4)))
}

fn library(parameters: &Parameters) -> usize {
    let kernels = manifest::parse(kernels::manifest()).expect("the manifest is sound");
    let assembled = kernels.iter().map(|kernel| {
        let file = kernels::files().iter().find(|file| file.name == kernel.source).expect("the file is listed");
        let defines: BTreeMap<String, i64> = kernel.parameters.iter().map(|(name, range)| (name.clone(), range.min)).collect();
        assemble(&source(file.text.to_owned()), &defines, parameters).expect("the kernel is sound").len()
    });
    assembled.sum()
}

fn benches(criterion: &mut Criterion) {
    let (parameters, none) = (Parameters::shipped(), BTreeMap::new());
    let mut group = criterion.benchmark_group("assembler");
    group.throughput(Throughput::Elements(LINES as u64));
    for (name, source) in [("plain_lines", plain()), ("lines_of_macros", expanded())] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(assemble(&source, &none, &parameters).expect("the source is sound")))
        });
    }
    group.finish();
    criterion.bench_function("kernel_library", |bencher| bencher.iter(|| black_box(library(&parameters))));
}

criterion_group!(assembler, benches);
criterion_main!(assembler);
