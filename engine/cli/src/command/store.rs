//! `ipubuild store`: what the store holds, and whether it is sound.

use serde_json::{Map, Value, json};
use store::{Amount, Statistics};

use crate::arguments::{Options, StoreCommand};
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened;
use crate::show::table::{grouped, table};
use crate::show::to_json;

pub(crate) fn store(command: &StoreCommand, options: &Options, console: &Console) -> Result<Exit, Fault> {
    match command {
        StoreCommand::Stats { json } => statistics(*json, options, console),
        StoreCommand::Check { repair, json } => check(*repair, *json, options, console),
    }
}

fn statistics(json: bool, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let store = opened::store(options)?;
    let statistics = store.statistics()?;
    let root = store.root().as_str();
    let text = if json { to_json(&described(root, &statistics))? } else { as_table(root, &statistics) };
    console.result(text.trim_end());
    Ok(Exit::Success)
}

fn described(root: &str, statistics: &Statistics) -> Value {
    let amount = |amount: &Amount| json!({ "count": amount.count, "bytes": amount.bytes });
    let records: Map<String, Value> = statistics.records.iter().map(|(kind, records)| (kind.name().to_owned(), amount(records))).collect();
    json!({
        "store": root, "records": records, "small_blobs": amount(&statistics.small_blobs), "packs": amount(&statistics.packs),
        "large_blobs": amount(&statistics.large_blobs), "runs": statistics.runs, "files": statistics.stats,
        "database_bytes": statistics.database_bytes, "disk_bytes": statistics.disk_bytes,
    })
}

fn as_table(root: &str, statistics: &Statistics) -> String {
    let row = |what: &str, amount: &Amount| vec![what.to_owned(), grouped(amount.count), grouped(amount.bytes)];
    let mut rows: Vec<Vec<String>> =
        statistics.records.iter().map(|(kind, amount)| row(&format!("{} records", kind.name()), amount)).collect();
    rows.push(row("small blobs", &statistics.small_blobs));
    rows.push(row("packs of them", &statistics.packs));
    rows.push(row("large blobs", &statistics.large_blobs));
    rows.push(row("database", &Amount { count: 1, bytes: statistics.database_bytes }));
    let on_disk = grouped(statistics.disk_bytes);
    format!(
        "{root}\n{}{on_disk} bytes on disk, {} runs, {} files in the stat cache\n",
        table(&["what", "count", "bytes"], &rows),
        grouped(statistics.runs),
        grouped(statistics.stats)
    )
}

fn check(repair: bool, json: bool, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let report = opened::store(options)?.check(repair)?;
    if json {
        let defects: Vec<String> = report.defects.iter().map(ToString::to_string).collect();
        let value = json!({ "records": report.records, "blobs": report.blobs, "defects": defects, "repaired": repair });
        console.result(&to_json(&value)?);
    } else {
        report.defects.iter().for_each(|defect| console.result(&defect.to_string()));
        let found = report.defects.len();
        let done = match (found, repair) {
            (0, _) => "all of them are sound".to_owned(),
            (_, true) => format!("{found} defects, removed: builds make again what is missing"),
            (_, false) => format!("{found} defects; `ipubuild store check --repair` removes them, and builds make again what is missing"),
        };
        console.result(&format!("{} records and {} blobs read, {done}", grouped(report.records as u64), grouped(report.blobs as u64)));
    }
    Ok(if report.defects.is_empty() || repair { Exit::Success } else { Exit::Failed })
}
