//! The assembler: a source text with defines in, an ELF object out.
//!
//! Statements are cut (`statement`), expanded (`expansion`) and laid out (`layout`), then encoded (`emission`). All independent errors
//! are reported, in source order.
//!
//! Language: labels (`name:`, local `.Lname:`, numbered `1:` with `1f` and `1b`), `#`, `//` and `/* */` comments, `;` or a line end between
//! statements, bundles `{ main ; aux }`, the instructions and aliases of `isa.toml`, and the directives
//!
//! | | |
//! |---|---|
//! | `.worker` `.supervisor` | who executes what follows, checked; supervisor at the start |
//! | `.equ name, value` `.set` `name = value` | a constant; set again, it changes for what follows |
//! | `.if` `.elseif` `.else` `.endif`, `.ifdef` `.ifndef` `.ifc` `.ifnc` `.ifeq` `.ifne` | conditions |
//! | `.macro name a, b=1` .. `.endm` | `\a`, `\@` (a number of the use), `\()` (nothing); arguments by position or `b=2` |
//! | `.rept count` .. `.endr` | repetition |
//! | `.align bytes` `.balign` `.p2align` | padding with `nop` |
//! | `.byte` `.half` `.short` `.int` `.long` `.word` `.zero` `.space` `.skip` | data |
//! | `.globl name` `.global` | an exported label |
//! | `.text` `.section .text` `.type` `.size` `.extern` | accepted; there is one section |
//! | `.error "text"` | an error |
//!
//! Alignment is never repaired silently: a bundle, or the body of an `rpt`, off a multiple of 8 is an error.

use std::collections::BTreeMap;

use ipu21::parameters::Parameters;
use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
use crate::emission::emit;
use crate::expansion::expand;
use crate::layout::Layout;
use crate::statement::cut;

/// A source text with the name it is reported under.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Source {
    /// Name of the file.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Assembles a source into the bytes of an ELF object. `defines` are constants the source may use and not change, as are the named
/// immediates of `parameters`.
///
/// # Errors
/// Every error of the source, in source order.
pub fn assemble(source: &Source, defines: &BTreeMap<String, i64>, parameters: &Parameters) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let mut constants: BTreeMap<String, i64> = parameters.symbols().into_iter().map(|(name, value)| (name, i64::from(value))).collect();
    constants.extend(defines.iter().map(|(name, value)| (name.clone(), *value)));
    let (statements, mut faults) = cut(&source.name, &source.text);
    let mut layout = Layout::new(constants);
    expand(&statements, &mut layout);
    let (object, late) = emit(&layout, &source.name);
    faults.append(&mut layout.faults);
    faults.extend(late);
    if faults.is_empty() {
        return Ok(object.write(parameters.immediate.elf_e_flags_ipu21.value));
    }
    faults.sort();
    faults.dedup();
    Err(faults)
}
