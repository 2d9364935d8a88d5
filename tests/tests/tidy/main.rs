//! The repository about itself: rules of its files that no compiler checks.

mod edges;
mod fidelity;
mod sources;
mod tree;

use tree::{Tree, nothing};

#[test]
fn licences_lie_at_the_root() {
    let tree = Tree::here();
    nothing(["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"].iter().filter(|name| tree.named(name).is_none()));
}

#[test]
fn text_has_no_tabs_no_trailing_blanks_and_ends_with_a_line_break() {
    let tree = Tree::here();
    let texts = tree.with_endings(&["rs", "toml", "md", "S"]);
    let blank = |line: &str| line.contains('\t') || line.ends_with(' ') || line.ends_with('\r');
    nothing(texts.clone().flat_map(|file| file.lines_where(blank)));
    nothing(texts.filter(|file| !file.text.ends_with('\n')).map(|file| &file.path));
}

#[test]
fn no_path_of_a_machine_stands_in_a_text() {
    let tree = Tree::here();
    // Written in two parts, so that this file may be looked at as well.
    let machine = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    nothing(tree.with_endings(&["rs", "toml", "md", "S"]).flat_map(|file| file.lines_where(|line| contains_any(line, &machine))));
}

#[test]
fn nothing_is_left_to_do_ignored_or_expected_to_panic() {
    let tree = Tree::here();
    let leftovers = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("#[ig", "nore"),
        concat!("#[should_", "panic"),
        concat!("d", "bg!("),
    ];
    nothing(tree.with_endings(&["rs"]).flat_map(|file| file.lines_where(|line| contains_any(line, &leftovers))));
}

fn contains_any(line: &str, needles: &[&str]) -> bool {
    needles.iter().any(|needle| line.contains(needle))
}
