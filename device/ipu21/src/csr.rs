//! Control and status registers (isa.toml `[[csr]]`, machine.md c.4), and the numbers code generators use by name.

/// A control and status register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Csr {
    /// Name without `$`.
    pub name: &'static str,
    /// Index; from 0x100 on it is reached by `uget`/`uput` with index - 0x100.
    pub index: u32,
    /// Contexts that see it: `worker`, `supervisor` or `both`.
    pub mode: &'static str,
    /// Fields: name and bits `high:low`.
    pub fields: &'static [(&'static str, &'static str)],
}

/// All registers of the table.
#[must_use]
pub fn all() -> &'static [Csr] {
    crate::isa::csrs()
}

/// The index of a register by name; the same name has the same index in every mode it exists in.
#[must_use]
pub fn index_of(name: &str) -> Option<u32> {
    all().iter().find(|csr| csr.name == name).map(|csr| csr.index)
}

/// Status register of the supervisor.
pub const SSR: u32 = 0x01;
/// First of the six worker scratch pointers.
pub const WORKER0_BASE: u32 = 0x21;
/// Low word of the cycle counter.
pub const COUNT_L: u32 = 0x60;
/// Own source select.
pub const INCOMING_MUX: u32 = 0xa0;
/// Source select of the pair stream.
pub const INCOMING_MUXPAIR: u32 = 0xa1;
/// Receive format.
pub const INCOMING_FORMAT: u32 = 0xa3;
/// Base of incoming pointers.
pub const INCOMING_BASE: u32 = 0xa4;
/// Words still expected.
pub const INCOMING_DCOUNT: u32 = 0xa6;
/// Base of outgoing addresses.
pub const OUTGOING_BASE: u32 = 0xa7;
/// Exchange control.
pub const EXCHANGE_CTL: u32 = 0xa9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_constants_are_those_of_the_table() {
        let named = [
            ("SSR", SSR),
            ("INCOMING_MUX", INCOMING_MUX),
            ("INCOMING_MUXPAIR", INCOMING_MUXPAIR),
            ("INCOMING_FORMAT", INCOMING_FORMAT),
            ("INCOMING_BASE", INCOMING_BASE),
            ("INCOMING_DCOUNT", INCOMING_DCOUNT),
            ("OUTGOING_BASE", OUTGOING_BASE),
        ];
        for (name, index) in named {
            assert_eq!(index_of(name), Some(index), "{name}");
        }
    }
}
