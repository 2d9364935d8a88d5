//! A run as a Chrome trace: one row a thread, one span a stage or a piece of the engine's own work, and a row of waves. Chrome's and Perfetto's viewers open it.

use std::fs::File;
use std::io::{self, Seek, Write};

use graph::{RunRecord, StageEnd};
use serde_json::{Value, json};

/// Makes the trace all that `file` holds.
pub(crate) fn write(mut file: &File, run: &RunRecord, number: i64) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
        file.rewind()?;
    }
    file.write_all(trace(run, number).as_bytes())
}

/// The trace as JSON text.
fn trace(run: &RunRecord, number: i64) -> String {
    let microseconds = |milliseconds: f64| (milliseconds * 1e3).round();
    let mut events = vec![json!({
        "name": run.command.join(" "), "cat": "run", "ph": "X", "pid": number, "tid": "run", "ts": 0.0,
        "dur": microseconds(run.elapsed_ms), "args": { "run": number, "started_ms": run.started_ms },
    })];
    events.extend(run.stages.iter().map(|stage| -> Value {
        json!({
            "name": format!("{}{}", stage.label, stage.name), "cat": stage.name.stage, "ph": "X", "pid": number, "tid": stage.thread,
            "ts": microseconds(stage.start_ms), "dur": microseconds(stage.elapsed_ms),
            "args": {
                "key": stage.key, "digest": stage.digest, "cached": stage.end == StageEnd::Found,
                "success": stage.end != StageEnd::Failed, "help_ms": stage.help_ms,
            },
        })
    }));
    events.extend(run.spans.iter().map(|span| -> Value {
        let (name, category) = match &span.label {
            Some(label) => (format!("{label} {}", span.name), "wave"),
            None => (span.name.clone(), "engine"),
        };
        json!({
            "name": name, "cat": category, "ph": "X", "pid": number, "tid": span.thread.map_or(json!("waves"), |thread| json!(thread)),
            "ts": microseconds(span.start_ms), "dur": microseconds(span.elapsed_ms),
        })
    }));
    json!({ "displayTimeUnit": "ms", "traceEvents": events }).to_string()
}
