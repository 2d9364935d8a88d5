//! One call of a kernel: assembled, placed, run on one tile.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipu21::parameters::Parameters;
use simulator::{Segment, SingleTile};
use toolchain::object::Object;
use toolchain::{Source, assemble};

const CODE: u32 = 0x4c100;
const ARGUMENTS: u32 = 0x50800;
const OPERANDS: u32 = 0x54000;

/// A kernel, its parameters, its arguments and the memory it finds.
pub(crate) struct Call {
    kernel: String,
    defines: BTreeMap<String, i64>,
    arguments: Vec<u32>,
    memory: Vec<(u32, Vec<u8>)>,
}

/// The tile after the call.
pub(crate) struct Outcome {
    tile: SingleTile,
    clocks: u64,
}

impl Call {
    pub(crate) fn new(kernel: &str, defines: &[(&str, i64)], operands: &[u32]) -> Self {
        Call {
            kernel: kernel.to_owned(),
            defines: defines.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            arguments: operands.to_vec(),
            memory: Vec::new(),
        }
    }

    /// A call at addresses the manifest allows, whose operands hold zeros.
    pub(crate) fn zeros(name: &str, defines: &[(&str, i64)]) -> Self {
        Self::zeros_with(name, defines, &[])
    }

    /// The same with the run-time values of the call.
    pub(crate) fn zeros_with(name: &str, defines: &[(&str, i64)], values: &[u32]) -> Self {
        let kernels = toolchain::manifest::parse(kernels::manifest()).expect("the manifest is sound");
        let kernel = kernels.iter().find(|kernel| kernel.name == name).expect("the kernel is listed");
        let mut call = Call::new(name, defines, &[]);
        let mut symbols = call.defines.clone();
        symbols.extend(kernel.values.iter().cloned().zip(values.iter().map(|value| i64::from(*value))));
        call.arguments = kernel.place_operands(&symbols, OPERANDS).expect("the operands fit");
        let bytes = |operand: &toolchain::manifest::Operand| operand.reach(&symbols).expect("the size evaluates") as usize;
        call.memory = call.arguments.iter().zip(&kernel.operands).map(|(address, operand)| (*address, vec![0; bytes(operand)])).collect();
        call.with_values(values)
    }

    /// What the manifest's expressions may read.
    pub(crate) fn symbols(&self) -> BTreeMap<String, i64> {
        self.defines.clone()
    }

    pub(crate) fn with_values(mut self, values: &[u32]) -> Self {
        self.arguments.extend(values);
        self
    }

    pub(crate) fn with(mut self, memory: impl IntoIterator<Item = (u32, Vec<u8>)>) -> Self {
        self.memory.extend(memory);
        self
    }

    /// Runs the call by the fast path and by the reference interpreter of the simulator, which must agree in everything.
    pub(crate) fn run(self) -> Outcome {
        let (code, entry) = code(&self.kernel, &self.defines);
        let arguments = self.arguments.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut memory = self.memory;
        memory.extend([(CODE, code), (ARGUMENTS, arguments)]);
        memory.retain(|(_, bytes)| !bytes.is_empty());
        let segments: Vec<Segment> = memory.into_iter().map(|(address, bytes)| segment(address, bytes)).collect();
        let [mut tile, mut reference] = [1; 2].map(|seed| SingleTile::new(&Parameters::shipped(), seed));
        reference.use_reference_interpreter();
        for tile in [&mut tile, &mut reference] {
            tile.load(&segments).unwrap_or_else(|fault| panic!("{}: {fault}", self.kernel));
        }
        let call = |tile: &mut SingleTile| {
            tile.run_call(entry, ARGUMENTS).unwrap_or_else(|fault| panic!("{} {:?}: {fault}", self.kernel, self.defines))
        };
        let measured = call(&mut tile);
        assert_eq!(measured, call(&mut reference), "{} {:?}", self.kernel, self.defines);
        assert_eq!(tile.first_difference(&reference), None, "{} {:?}", self.kernel, self.defines);
        Outcome { tile, clocks: measured.clocks }
    }
}

fn segment(address: u32, bytes: Vec<u8>) -> Segment {
    Segment { address, memory_bytes: bytes.len() as u32, data: Arc::from(bytes) }
}

/// The linked code of a variant and its entry address.
fn code(kernel: &str, defines: &BTreeMap<String, i64>) -> (Vec<u8>, u32) {
    let listed = toolchain::manifest::parse(kernels::manifest()).expect("the manifest is sound");
    let manifest = listed.iter().find(|listed| listed.name == kernel).expect("the kernel is listed");
    let file = kernels::files().iter().find(|file| file.name == manifest.source).expect("its file is there");
    let source = Source { name: file.name.to_owned(), text: file.text.to_owned() };
    let bytes = assemble(&source, defines, &Parameters::shipped())
        .unwrap_or_else(|faults| panic!("{kernel} {defines:?}: {}", faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")));
    let object = Object::parse(&bytes).expect("the assembler writes objects");
    let linked = object.link_at(CODE, &BTreeMap::new()).expect("a kernel refers to nothing outside");
    (linked, CODE + object.symbols()[&manifest.entry])
}

impl Outcome {
    pub(crate) fn clocks(&self) -> u64 {
        self.clocks
    }

    /// Memory that must have been written.
    pub(crate) fn read(&self, address: u32, bytes: u32) -> Vec<u8> {
        self.tile.read(address, bytes).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// Nothing between `from` and `to` was written but the listed spans.
    pub(crate) fn untouched(&self, from: u32, to: u32, written: &[(u32, u32)]) {
        let mut at = from;
        let mut spans = written.to_vec();
        spans.sort_unstable();
        for (address, bytes) in spans.into_iter().chain([(to, 0)]) {
            let touched = (at..address).step_by(8).find(|word| self.tile.read(*word, 8).is_ok());
            assert_eq!(touched, None, "a word outside the results was written");
            at = at.max(address + bytes);
        }
    }
}
