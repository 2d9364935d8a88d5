//! Reads the instruction table, refuses a wrong one, and writes it as Rust tables.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::print_stdout,
    reason = "a build script: its modules are private and its output is for cargo"
)]

mod isa;
mod write;

use std::path::Path;
use std::{env, fs, process};

fn main() {
    println!("cargo::rerun-if-changed=data/isa.toml");
    println!("cargo::rerun-if-changed=build");
    let text = fs::read_to_string("data/isa.toml").expect("data/isa.toml is readable");
    match isa::read(&text) {
        Ok(table) => {
            let folder = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
            fs::write(Path::new(&folder).join("isa.rs"), write::tables(&table)).expect("OUT_DIR is writable");
        }
        Err(faults) => {
            for fault in &faults {
                println!("cargo::error=data/isa.toml: {fault}");
            }
            process::exit(1);
        }
    }
}
