//! The embedded repository `@ipu`: the standard kernels, machines and devices.

use graph::EmbeddedRepository;

const MACHINES: &str = "[c600]\nrule = \"machine\"\nchip = \"c600\"\nparameters = \"parameters.toml\"\n";
const DEVICES: &str =
    "[simulator]\nrule = \"device\"\nkind = \"simulator\"\n\n[ipu0]\nrule = \"device\"\nkind = \"hardware\"\nnumber = 0\n";

/// `@ipu//kernels`, `@ipu//machines:c600`, `@ipu//devices:simulator` and `@ipu//devices:ipu0`.
#[must_use]
pub fn repository() -> EmbeddedRepository {
    let names: Vec<String> = kernels::files().iter().map(|file| format!("{:?}", file.name)).collect();
    let library = format!("[kernels]\nrule = \"kernel_library\"\nmanifest = \"manifest.toml\"\nsrcs = [{}]\n", names.join(", "));
    let mut files = vec![
        ("kernels/BUILD.toml".to_owned(), library.into_bytes()),
        ("kernels/manifest.toml".to_owned(), kernels::manifest().as_bytes().to_vec()),
        ("machines/BUILD.toml".to_owned(), MACHINES.as_bytes().to_vec()),
        ("machines/parameters.toml".to_owned(), ipu21::data::PARAMETERS.as_bytes().to_vec()),
        ("devices/BUILD.toml".to_owned(), DEVICES.as_bytes().to_vec()),
    ];
    files.extend(kernels::files().iter().map(|file| (format!("kernels/{}", file.name), file.text.as_bytes().to_vec())));
    EmbeddedRepository::new("ipu", files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())))
}
