//! A tensor of a `tensors` target: from the files that are named, or drawn.

use graph::{Artifact, Db, Failure, Made, SourceFile, data_of, read_source, stage};

use crate::key::{TensorKey, digest_of, spec};
use crate::rule::Tensors;
use crate::tensor::{Draw, Tensor};

/// The tensor; the facts are its shape. Key: how it is drawn, or the files' digests and its name in them.
#[salsa::tracked(returns(clone))]
pub fn tensor<'db>(db: &'db dyn Db, key: TensorKey<'db>) -> Result<Artifact<Tensor, Vec<u32>>, Failure> {
    let (target, name) = (key.target(db), key.name(db));
    let label = target.label(db).clone();
    let tensors = data_of::<Tensors>(db, &label)?;
    let spec = spec("tensor", &[], &label).index(name);
    let unknown = |known: Vec<&str>| {
        Failure::input(format!(
            "there is no tensor `{name}`; there are {}",
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        ))
        .at_label(&label)
    };
    if let Some(normal) = tensors.normal.get(name) {
        let draw = Draw { shape: normal.shape.clone(), mean: normal.mean, variance: normal.variance };
        let seed = tensors.seed.unwrap_or_default();
        let drawn = digest_of(&(seed, name, &draw));
        return stage(db, &spec, &[("draw", drawn)], || made(crate::tensor::draw(seed, name, &draw)));
    }
    let wanted = match tensors.select.get(name) {
        Some(wanted) => wanted.clone(),
        None if tensors.select.is_empty() => name.clone(),
        None => return Err(unknown(tensors.select.keys().chain(tensors.normal.keys()).map(String::as_str).collect())),
    };
    let files: Vec<(String, SourceFile)> = tensors.files.iter().map(|path| (path.to_string(), db.source(path))).collect();
    let mut inputs = vec![("name", digest_of(&wanted))];
    inputs.extend(files.iter().map(|(_, file)| ("file", file.digest(db))));
    stage(db, &spec, &inputs, || {
        let mut known = Vec::new();
        for (path, file) in &files {
            let bytes = read_source(db, *file)?;
            let mut found =
                crate::tensor::read_file(path, &bytes).map_err(|fault| Failure::input(format!("{path}: {fault}")).at_field("files"))?;
            if let Some(tensor) = found.remove(&wanted) {
                return made(tensor);
            }
            known.extend(found.into_keys());
        }
        Err(Failure::input(format!("there is no tensor `{wanted}` in the files; there are {}", known.join(", "))).at_field("files"))
    })
}

fn made(tensor: Tensor) -> Result<Made<Tensor, Vec<u32>>, Failure> {
    let shape = tensor.shape.clone();
    let elements: u32 = shape.iter().product();
    Ok(Made::with_facts(tensor, shape).figure("elements", elements))
}
