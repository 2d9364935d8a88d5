//! Assembler, object files, linker, disassembler and kernel manifests for the IPU21.
//!
//! Sources and manifests come in as text with a name to report them under; nothing here reads a file, knows a kernel or a program.
//! Instruction encodings, register names and relocations are those of `ipu21`.

pub mod archive;
pub mod assembler;
pub mod diagnostic;
mod directive;
pub mod disassembler;
mod elf_file;
mod emission;
mod expansion;
pub mod expression;
pub mod headers;
mod instruction;
mod layout;
mod line_table;
pub mod linker;
pub mod listing;
pub mod manifest;
pub mod object;
pub mod object_file;
mod operand;
pub mod preprocessor;
mod section;
mod statement;

pub use assembler::{Assembled, Setting, Source, assemble, assemble_with};
pub use diagnostic::{Diagnostic, Position};
pub use ipu21::parameters::Parameters;
