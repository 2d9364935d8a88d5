//! Sections as directives name them: `.section name, "flags", @type`.

use std::rc::Rc;

use crate::layout::Item;

/// A section being laid out.
#[derive(Debug, Default)]
pub(crate) struct SectionLayout {
    pub(crate) name: String,
    pub(crate) traits: Traits,
    pub(crate) align: u32,
    pub(crate) items: Vec<Item>,
    /// From which offset on `.loc` tells which file and line.
    pub(crate) told_lines: Vec<(u32, Rc<str>, u32)>,
    /// Bytes so far.
    pub(crate) offset: u32,
}

/// What a section is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    pub(crate) is_loaded: bool,
    pub(crate) is_code: bool,
    pub(crate) is_writable: bool,
    pub(crate) is_zeros: bool,
    pub(crate) is_kept: bool,
    pub(crate) group: Option<String>,
}

impl Traits {
    /// What a section of this name is when nothing is said.
    pub(crate) fn usual(name: &str) -> Self {
        let is = |usual: &str| name == usual || name.strip_prefix(usual).is_some_and(|rest| rest.starts_with('.'));
        let (code, data, zeros, constant) = (is(".text"), is(".data"), is(".bss"), is(".rodata"));
        Self { is_loaded: code || data || zeros || constant, is_code: code, is_writable: data || zeros, is_zeros: zeros, ..Self::default() }
    }

    /// Reads what follows a section's name.
    pub(crate) fn read(name: &str, words: &[&str]) -> Result<Self, String> {
        let Some((flags, rest)) = words.split_first() else { return Ok(Self::usual(name)) };
        let flags = flags.trim_matches('"');
        let mut traits = Self::default();
        for flag in flags.chars() {
            match flag {
                'a' => traits.is_loaded = true,
                'x' => traits.is_code = true,
                'w' => traits.is_writable = true,
                'R' => traits.is_kept = true,
                // Mergeable sections may as well stay apart, and a group is named at the end.
                'M' | 'S' | 'G' => {}
                other => return Err(format!("expected section flags of `awxMSGR`, found `{other}`")),
            }
        }
        let mut rest = rest.iter();
        match rest.next().map(|kind| kind.trim_start_matches(['@', '%'])) {
            None | Some("progbits" | "note" | "init_array" | "fini_array") => {}
            Some("nobits") => traits.is_zeros = true,
            Some(other) => return Err(format!("expected `@progbits` or `@nobits`, found `{other}`")),
        }
        if flags.contains('M') && rest.next().is_none() {
            return Err("expected the size of the members of a section with the flag `M`".to_owned());
        }
        if flags.contains('G') {
            let group = rest.next().ok_or("expected the name of the group of a section with the flag `G`")?;
            traits.group = Some(group.trim_matches('"').to_owned());
        }
        match rest.next() {
            None | Some(&"comdat") => Ok(traits),
            Some(other) => Err(format!("expected the end, found `{other}`")),
        }
    }
}
