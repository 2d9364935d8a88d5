//! Kernels of the standard library as files of a workspace.

/// The manifest's entries of these kernels, in this order.
///
/// # Panics
/// When the library has no such kernel.
#[must_use]
pub fn manifest(names: &[&str]) -> String {
    let entry = |name: &&str| {
        let wanted = format!("\nname = \"{name}\"\n");
        let found = kernels::manifest().split("[[kernel]]").find(|entry| entry.starts_with(&wanted));
        format!("[[kernel]]{}", found.unwrap_or_else(|| panic!("the library has no kernel {name}")))
    };
    names.iter().map(entry).collect()
}

/// A source of the standard library.
///
/// # Panics
/// When it has no such file.
#[must_use]
pub fn source(name: &str) -> &'static str {
    kernels::files().iter().find(|file| file.name == name).unwrap_or_else(|| panic!("the library has no {name}")).text
}
