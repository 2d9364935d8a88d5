//! The library as a whole: files, manifest, and variants at the limits of their parameters.

use std::collections::BTreeMap;

use ipu21::parameters::Parameters;
use toolchain::manifest::{self, Kernel, Range};
use toolchain::object::Object;
use toolchain::{Source, assemble};

fn listed() -> Vec<Kernel> {
    manifest::parse(kernels::manifest()).expect("the manifest is sound")
}

#[test]
fn every_file_belongs_to_the_kernel_of_its_name() {
    let mut sources: Vec<String> = listed().into_iter().map(|kernel| kernel.source).collect();
    sources.sort_unstable();
    sources.dedup();
    assert_eq!(sources, kernels::files().iter().map(|file| file.name).collect::<Vec<_>>());
    // A second kernel of a file is a variant of the first: it has the first one's name in front of its own.
    assert!(listed().iter().all(|kernel| kernel.source == format!("{}.S", kernel.entry) && kernel.name.starts_with(&kernel.entry)));
}

fn assert_assembles(kernel: &Kernel, defines: &BTreeMap<String, i64>) {
    let file = kernels::files().iter().find(|file| file.name == kernel.source).expect("the file is listed");
    let source = Source { name: file.name.to_owned(), text: file.text.to_owned() };
    match assemble(&source, defines, &Parameters::shipped()) {
        Ok(bytes) => assert!(Object::parse(&bytes).expect("it is an object").symbols().contains_key(&kernel.entry)),
        Err(faults) => panic!("{} {defines:?}: {}", kernel.name, faults[0]),
    }
}

#[test]
fn variants_at_the_limits_of_their_parameters_assemble() {
    let ends: [fn(&Range) -> i64; 2] = [|range| range.min, |range| range.max];
    for kernel in listed() {
        let names: Vec<&String> = kernel.parameters.keys().collect();
        for choice in 0..1_u32 << names.len() {
            let value = |at: usize| ends[(choice >> at & 1) as usize](&kernel.parameters[names[at]]);
            assert_assembles(&kernel, &names.iter().enumerate().map(|(at, name)| ((*name).clone(), value(at))).collect());
        }
    }
}

#[test]
fn limits_of_parameters_are_multiples_of_their_step() {
    for kernel in listed() {
        let even = |range: &Range| range.min % range.multiple_of == 0 && range.max % range.multiple_of == 0;
        assert!(kernel.parameters.values().all(even), "{}", kernel.name);
    }
}
