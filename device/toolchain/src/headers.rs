//! The headers real sources include, generated from the tables of the machine.
//!
//! The names are the usual ones, as the public constants of the chip's first generation (Saghetti0/graphcore-ipu-research, ipu1_consts)
//! and poplibs spell them; every value is that of a table here or in `ipu21`. Names without a public value are in
//! `data/vendor_names.toml`, which a user can replace.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ipu21::parameters::Parameters;
use ipu21::{csr, memory};
use serde::Deserialize;

use crate::assembler::Source;
use crate::statement::is_symbol;

/// Names of the headers.
pub const NAMES: [&str; 5] = [
    "arch/gc_tile_defines.h",
    "poplar/AvailableVTypes.h",
    "poplar/StackSizeDefs.hpp",
    "poplar/TileConstants.hpp",
    "poplibs_support/TileConstants.hpp",
];

/// Contexts of a tile (machine.md a.1) and of its floating-point unit (isa-notes.md 10).
#[rustfmt::skip]
const CONTEXTS: [(&str, u32); 7] = [
    ("CTXT_SUPERVISOR", 0), ("CTXT_WORKERS", 6), ("CTXT_TOTAL", 7),
    ("TFPU_NUM_AMP_SETS", 2), ("TFPU_AMP_UNITS_PER_SET", 8), ("TFPU_AACC_PER_AMP_UNIT", 2), ("TFPU_NUM_ACCUM", 32),
];

/// Zones of `sync` (isa-notes.md 6).
#[rustfmt::skip]
const SYNC_ZONES: [(&str, u32); 12] = [
    ("TEXCH_SYNCZONE_RECV",           0), ("TEXCH_SYNCZONE_ANS",            1),
    ("TEXCH_SYNCZONE_LOCAL",          2), ("TEXCH_SYNCZONE_INTERNAL",       3),
    ("TEXCH_SYNCZONE_EXTERNAL0_SLV",  4), ("TEXCH_SYNCZONE_EXTERNAL1_SLV",  5),
    ("TEXCH_SYNCZONE_EXTERNAL2_SLV",  6), ("TEXCH_SYNCZONE_EXTERNAL3_SLV",  7),
    ("TEXCH_SYNCZONE_EXTERNAL0_MSR", 12), ("TEXCH_SYNCZONE_EXTERNAL1_MSR", 13),
    ("TEXCH_SYNCZONE_EXTERNAL2_MSR", 14), ("TEXCH_SYNCZONE_EXTERNAL3_MSR", 15),
];

/// Formats of incoming items (machine.md c.4), exception types and states of contexts (isa-notes.md 7).
#[rustfmt::skip]
const STATES: [(&str, u32); 23] = [
    ("TEXCH_IFMT_32I", 0), ("TEXCH_IFMT_64E", 1), ("TEXCH_IFMT_64W", 2),
    ("TEXCPT_NONE",          0), ("TEXCPT_RBRK",    1), ("TEXCPT_PBRK0",        2), ("TEXCPT_PBRK1",       3), ("TEXCPT_BOS",         4),
    ("TEXCPT_FP",            5), ("TEXCPT_CONFLICT", 6), ("TEXCPT_EXCONF",      7), ("TEXCPT_INVALID_ADDR", 8), ("TEXCPT_INVALID_OP", 9),
    ("TEXCPT_INVALID_PC",   10), ("TEXCPT_DBRK",   11), ("TEXCPT_INVALID_INSTR", 12), ("TEXCPT_EXERR",    13), ("TEXCPT_MEMERR",     14),
    ("TEXCPT_IBRK",         15),
    ("TCTXT_STATUS_INACTIVE", 0), ("TCTXT_STATUS_ACTIVE", 1), ("TCTXT_STATUS_EXCEPTED_DBG", 2), ("TCTXT_STATUS_EXCEPTED_NDBG", 3),
];

/// The memory map (machine.md b).
#[rustfmt::skip]
const MEMORY: [(&str, u32); 12] = [
    ("TMEM_BASE_ADDR",         memory::BASE),    ("TMEM_REGION0_BASE_ADDR", memory::BASE),
    ("TMEM_REGION1_BASE_ADDR", memory::REGION1), ("TMEM_BASE_ADDR_WORD",    memory::BASE / 4),
    // Sizes are in KiB, as in the public constants.
    ("TMEM_SIZE",              memory::SIZE / 1024),
    ("TMEM_REGION0_SIZE",      (memory::REGION1 - memory::BASE) / 1024),
    ("TMEM_REGION1_SIZE",      (memory::END - memory::REGION1) / 1024),
    ("TMEM_ELEMSIZE",          memory::UNIT0 / 1024),
    ("TMEM_SIZE_WORDS",        memory::SIZE / 4),
    // 21 bits reach the last address (isa.toml).
    ("TMEM_BYTE_MAX_ADDRESS_WIDTH", 21), ("TMEM_FULL_ADDRESS_MASK", 0x1f_ffff),
    ("TMEM_REGION0_NUM_ELEMENTS", (memory::REGION1 - memory::BASE) / memory::UNIT0),
];

/// Names of which only the vendor has the values, with those to use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VendorNames {
    /// Names of `arch/gc_tile_defines.h`.
    define: BTreeMap<String, i64>,
    /// Names that `poplar/AvailableVTypes.h` defines.
    vector: Vectors,
    /// How stack usage is recorded.
    stack: Stack,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    available: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stack {
    section: String,
}

impl VendorNames {
    /// The table that is shipped: the simulator's own values.
    ///
    /// # Panics
    /// Never: a test reads the table.
    #[must_use]
    pub fn shipped() -> Self {
        Self::parse(include_str!("../data/vendor_names.toml")).expect("the shipped table is right")
    }

    /// Reads a table.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names: Self = toml::from_str(text).map_err(|fault| fault.to_string())?;
        let wrong = names.define.keys().chain(&names.vector.available).find(|name| !is_symbol(name));
        wrong.map_or(Ok(()), |name| Err(format!("expected a name, found `{name}`")))?;
        let section = &names.stack.section;
        let right = section.starts_with('.') && is_symbol(section);
        if right { Ok(names) } else { Err(format!("stack.section: expected the name of a section, found `{section}`")) }
    }
}

/// The header of this name.
#[must_use]
pub fn header(name: &str, parameters: &Parameters, vendor: &VendorNames) -> Option<Source> {
    let text = match name {
        "arch/gc_tile_defines.h" => tile_defines(parameters, vendor),
        "poplar/TileConstants.hpp" | "poplibs_support/TileConstants.hpp" => "#include <arch/gc_tile_defines.h>\n".to_owned(),
        "poplar/AvailableVTypes.h" => vendor.vector.available.iter().map(|name| defined(name, 1)).collect(),
        "poplar/StackSizeDefs.hpp" => stack_usage(&vendor.stack.section),
        _ => return None,
    };
    let guard: String =
        name.chars().map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' }).collect();
    Some(Source { name: name.to_owned(), text: format!("#ifndef IPUBUILD_{guard}\n#define IPUBUILD_{guard}\n{text}#endif\n") })
}

fn defined(name: &str, value: i64) -> String {
    let value = if value < 0 { format!("({value})") } else { format!("{value:#x}") };
    format!("#define {name} {value}\n")
}

fn tile_defines(parameters: &Parameters, vendor: &VendorNames) -> String {
    let tables = [&CONTEXTS[..], &SYNC_ZONES, &STATES, &MEMORY].concat();
    let mut text: String = tables.iter().map(|(name, value)| defined(name, i64::from(*value))).collect();
    text.extend(parameters.symbols().iter().map(|(name, value)| defined(name, i64::from(*value))));
    text.extend(vendor.define.iter().map(|(name, value)| defined(name, *value)));
    for register in csr::all() {
        // What every context sees is named for each of them.
        let contexts: &[&str] = match register.mode {
            "worker" => &["W"],
            "supervisor" => &["S"],
            _ => &["W", "S"],
        };
        contexts.iter().for_each(|context| text.push_str(&register_defines(context, register)));
    }
    text
}

/// Index, and of each field the lowest bit, the width and the mask before it is shifted.
fn register_defines(context: &str, register: &csr::Csr) -> String {
    let name = format!("CSR_{context}_{}", register.name);
    let mut text = defined(&format!("{name}__INDEX"), i64::from(register.index));
    for (field, bits) in register.fields {
        let Some((high, low)) = bits.split_once(':').and_then(|(high, low)| Some((high.parse::<u32>().ok()?, low.parse::<u32>().ok()?)))
        else {
            continue;
        };
        let width = high + 1 - low;
        let mask = (1_i64 << width) - 1;
        for (what, value) in [("SHIFT", i64::from(low)), ("SIZE", i64::from(width)), ("MASK", mask)] {
            text.push_str(&defined(&format!("{name}__{field}__{what}"), value));
        }
    }
    text
}

/// `DEF_STACK_USAGE size function` leaves a pair of words, the function and its size, in a section that is not loaded.
fn stack_usage(section: &str) -> String {
    let mut text = String::from(".macro DEF_STACK_USAGE size:req, function:req\n");
    // Writing to a text cannot fail.
    let _ = writeln!(text, ".pushsection {section}, \"\", @progbits");
    text + ".long \\function, \\size\n.popsection\n.endm\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_shipped_header_is_there_and_defines_each_name_once() {
        for name in NAMES {
            let text = header(name, &Parameters::shipped(), &VendorNames::shipped()).unwrap().text;
            let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#define ")?.split(' ').next()).collect();
            assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{name}");
        }
        assert_eq!(header("stdio.h", &Parameters::shipped(), &VendorNames::shipped()), None);
    }

    #[test]
    fn constants_have_the_values_of_the_tables() {
        let text = header("arch/gc_tile_defines.h", &Parameters::shipped(), &VendorNames::shipped()).unwrap().text;
        for line in [
            "TMEM_REGION0_BASE_ADDR 0x4c000",
            "TMEM_REGION1_SIZE 0x1a0",
            "CTXT_WORKERS 0x6",
            "TEXCH_SYNCZONE_LOCAL 0x2",
            "CSR_W_WSR__INDEX 0x1",
            "CSR_W_WSR__CTXTID_M1__MASK 0x7",
            "CSR_W_FP_CLR__ZAACC__SHIFT 0x3",
            "CSR_S_FP_ICTL__RND__SIZE 0x3",
            "CSR_W_PC__ADDR__SHIFT 0x2",
            "CSR_S_PC__ADDR__SHIFT 0x2",
            "CSR_W_COUNT_L__VALUE__MASK 0xffffffff",
        ] {
            assert!(text.contains(&format!("#define {line}\n")), "{line}");
        }
    }

    #[test]
    fn a_users_table_replaces_the_shipped_one() {
        let table = "[define]\nTSOMETHING = 5\n[vector]\navailable = [\"VECTOR_AVAIL_X\"]\n[stack]\nsection = \".stack\"\n";
        let vendor = VendorNames::parse(table).unwrap();
        let text = |name: &str| header(name, &Parameters::shipped(), &vendor).unwrap().text;
        assert!(text("arch/gc_tile_defines.h").contains("#define TSOMETHING 0x5\n"));
        assert!(text("poplar/AvailableVTypes.h").contains("#define VECTOR_AVAIL_X 0x1\n"));
        assert!(text("poplar/StackSizeDefs.hpp").contains(".pushsection .stack,"));
        assert_eq!(VendorNames::parse(&table.replace("TSOME", "1")).unwrap_err(), "expected a name, found `1THING`");
        let section = "stack.section: expected the name of a section, found `stack`";
        assert_eq!(VendorNames::parse(&table.replace(".stack", "stack")).unwrap_err(), section);
        assert!(VendorNames::parse(&format!("{table}other = 1")).unwrap_err().contains("unknown field `other`"));
    }
}
