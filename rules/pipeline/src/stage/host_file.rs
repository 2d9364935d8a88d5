//! The bytes of a binding in the package's slice order.

use compiler::host_files;
use compiler::program::Group;
use graph::{Artifact, Bytes, Db, Failure, Made, data_of, load, note_facts, stage};

use crate::fingerprint::Crate;
use crate::key::{BindingKey, FinalistKey, spec};
use crate::rule::Run;
use crate::stage::expanded::expanded;
use crate::stage::reference::given;
use crate::stage::selected::selected;

/// The host file. Key: the tensor and how the program has it on its tiles, whose pieces give the order.
#[salsa::tracked(returns(clone))]
pub fn host_file<'db>(db: &'db dyn Db, key: BindingKey<'db>) -> Result<Artifact<Bytes>, Failure> {
    let (target, name) = (key.run(db), key.name(db));
    let label = target.label(db);
    let run = data_of::<Run>(db, label)?;
    let program = db.target(&run.program);
    let selected = selected(db, program)?;
    let expanded = expanded(db, FinalistKey::new(db, program, selected.facts().finalist))?;
    let tensor = given(db, key)?;
    let missing = || Failure::build(format!("the program has no binding `{name}`"));
    let inputs = [("tensor", tensor.digest()), ("binding", *expanded.facts().given.get(name).ok_or_else(missing)?)];
    stage(db, &spec("host_file", &[Crate::Compiler], label).index(name), &inputs, || {
        note_facts(&selected);
        let (program, tensor) = (load(db, &expanded)?, load(db, &tensor)?);
        let binding = program.bindings.iter().find(|binding| binding.group != Group::Output && binding.name == *name);
        let binding = binding.ok_or_else(missing)?;
        let row_major: Vec<u8> = tensor.f16_bits().into_iter().flat_map(u16::to_le_bytes).collect();
        let bytes = host_files::file_of(binding, &row_major).map_err(|fault| Failure::build(fault.to_string()))?;
        let size = bytes.len();
        Ok(Made::new(Bytes::from(bytes)).figure("bytes", size))
    })
}
