//! Rules of Rust sources.

use crate::tree::{File, Tree, nothing};

/// The only crate that may touch memory the compiler knows nothing of.
const UNSAFE_CRATE: &str = "device/driver/";
/// Lines above an unsafe block in which its reason stands.
const REASON_LINES: usize = 4;

#[test]
fn every_source_starts_with_what_it_is() {
    let tree = Tree::here();
    nothing(tree.with_endings(&["rs"]).filter(|file| !file.text.starts_with("//! ")).map(|file| &file.path));
}

#[test]
fn unsafe_code_stands_in_the_driver_alone_and_says_why_it_is_sound() {
    let tree = Tree::here();
    let sources = tree.with_endings(&["rs"]);
    nothing(sources.clone().filter(|file| !file.path.as_str().starts_with(UNSAFE_CRATE)).flat_map(|file| file.lines_where(is_unsafe)));
    nothing(sources.flat_map(without_reason));
}

/// Whether the keyword stands in the code of a line: not in a comment, not inside a name or a string.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or(line);
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe trait", "unsafe extern"].iter().any(|form| {
        let quoted = format!("\"{form}");
        code.contains(form) && !code.contains(&quoted)
    })
}

fn without_reason(file: &File) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().collect();
    let has_reason = |index: usize| lines[index.saturating_sub(REASON_LINES)..index].iter().any(|line| line.contains("// SAFETY: "));
    let bare = lines.iter().enumerate().filter(|(index, line)| is_unsafe(line) && !has_reason(*index));
    let bare = bare.filter(|_| file.path.as_str().starts_with(UNSAFE_CRATE));
    bare.map(|(index, line)| format!("{}:{}: {}", file.path, index + 1, line.trim())).collect()
}
