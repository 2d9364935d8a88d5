//! Relocations of Colossus objects (isa.toml `[[relocation]]`, isa-notes.md 12).

/// What a relocation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relocation {
    /// Nothing.
    None,
    /// A byte.
    Byte,
    /// 16 bits.
    Half,
    /// `word[19:0]`.
    Word20,
    /// 32 bits.
    Word32,
    /// 64 bits.
    Word64,
    /// 16 bits of the address relative to the memory base, in words.
    Relative16Words,
    /// `word[17:0]`, in words.
    Word18Words,
    /// `word[18:0]`, in words: branches and calls.
    Word19Words,
    /// The split 16-bit immediate of `run`, relative to the memory base, in words.
    Run,
    /// 16 bits in units of 8 bytes.
    Half8,
    /// 16 bits in units of 16 bytes.
    Half16,
    /// 16 bits in units of 32 bytes.
    Half32,
    /// `word[20:0]`.
    Word21,
}

/// Every relocation with its number and vendor name.
#[rustfmt::skip]
pub const TABLE: [(u32, &str, Relocation); 14] = [
    ( 0, "R_COLOSSUS_NONE",           Relocation::None),
    ( 1, "R_COLOSSUS_8",              Relocation::Byte),
    ( 2, "R_COLOSSUS_16",             Relocation::Half),
    ( 3, "R_COLOSSUS_20",             Relocation::Word20),
    ( 4, "R_COLOSSUS_32",             Relocation::Word32),
    ( 5, "R_COLOSSUS_64",             Relocation::Word64),
    ( 6, "R_COLOSSUS_RELATIVE_16_S2", Relocation::Relative16Words),
    ( 7, "R_COLOSSUS_18_S2",          Relocation::Word18Words),
    ( 8, "R_COLOSSUS_19_S2",          Relocation::Word19Words),
    ( 9, "R_COLOSSUS_RUN",            Relocation::Run),
    (14, "R_COLOSSUS_16_S3",          Relocation::Half8),
    (15, "R_COLOSSUS_16_S4",          Relocation::Half16),
    (16, "R_COLOSSUS_16_S5",          Relocation::Half32),
    (17, "R_COLOSSUS_21",             Relocation::Word21),
];

impl Relocation {
    /// Number in an object file.
    #[must_use]
    pub fn number(self) -> u32 {
        TABLE.iter().find(|(_, _, kind)| *kind == self).map_or(0, |(number, _, _)| *number)
    }

    /// The relocation with a number.
    #[must_use]
    pub fn numbered(number: u32) -> Option<Self> {
        TABLE.iter().find(|(known, _, _)| *known == number).map(|(_, _, kind)| *kind)
    }

    /// Vendor name.
    #[must_use]
    pub fn name(self) -> &'static str {
        TABLE.iter().find(|(_, _, kind)| *kind == self).map_or("", |(_, name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::TABLE;
    use crate::data;

    #[test]
    fn numbers_and_names_are_those_of_the_data_file() {
        let table: toml::Table = toml::from_str(data::ISA).unwrap();
        let rows = table["relocation"].as_array().unwrap();
        let recorded: Vec<_> = rows.iter().map(|row| (row["number"].as_integer().unwrap(), row["name"].as_str().unwrap())).collect();
        let ours: Vec<_> = TABLE.iter().map(|(number, name, _)| (i64::from(*number), *name)).collect();
        assert_eq!(ours, recorded);
    }
}
