//! Writes FIDELITY.md: `cargo run -p tests --example fidelity > FIDELITY.md`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(tests::fidelity::document().as_bytes())
}
