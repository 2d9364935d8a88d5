//! From a saved file to the first stage under `ipubuild watch`: `cargo bench -p tests --bench watch [-- --small]`.
//!
//! A stage's line comes when it has ended and tells how long it took, so its start is known. The saves are those of editors: in
//! place, and by a temporary file and a rename.

use std::fs;
use std::time::{Duration, Instant};

use tests::binary::{WorkspaceCopy, ipubuild};
use tests::bounds::{Report, median};
use tests::watching::Watching;

const FILE: &str = "sweeps/attention-packed/BUILD.toml";

fn main() {
    let small = std::env::args().any(|argument| argument == "--small");
    let mut report = Report::new(small);
    let copy = WorkspaceCopy::of("attention");
    let mut command = std::process::Command::new(ipubuild());
    command.arg("-C").arg(copy.root()).arg("--store").arg(copy.store()).args(["-v", "watch", "//sweeps/attention-packed:run"]);
    let mut watch = Watching::start(command);
    assert_eq!(watch.build().verdict, "PASS");
    let path = copy.root().join(FILE);
    let text = fs::read_to_string(&path).expect("it is shipped");
    let edits = [("output = 5e-4", "output = 6.00", "e-4", "verdict"), ("tiles = 64", "tiles = 64, accuracy = 2.90", "e-3", "planner")];
    for (old, start, end, what) in edits {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        for renamed in [false, true] {
            let mut times = Vec::new();
            for round in 0..if small { 3 } else { 15 } {
                // Every content is a new one.
                let text = text.replace(old, &format!("{start}{}{round:02}{end}", u8::from(renamed)));
                let saved = Instant::now();
                if renamed {
                    let temporary = path.with_extension("toml~");
                    fs::write(&temporary, text).expect("written");
                    fs::rename(&temporary, &path).expect("renamed");
                } else {
                    fs::write(&path, text).expect("written");
                }
                let line = watch.line("cached=false");
                let elapsed = saved.elapsed();
                times.push(elapsed.saturating_sub(Duration::from_secs_f64(own_ms(&line) / 1e3)));
                watch.build();
            }
            let how = if renamed { "temporary file and rename" } else { "in place" };
            report.line(&format!("saved {how} to the first stage, the {what}"), median(times), "ms", None, 50.0);
        }
    }
    report.finish();
}

/// What the stage of a line took.
fn own_ms(line: &str) -> f64 {
    let figure = line.split(' ').find_map(|figure| figure.strip_prefix("elapsed_ms="));
    figure.and_then(|figure| figure.parse().ok()).expect("every stage's line has it")
}
