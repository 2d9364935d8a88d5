//! `ipubuild gc`: takes back the space of results that are not used any more.

use std::time::Duration;

use store::{GcPolicy, GcReport};

use crate::arguments::Options;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened;
use crate::scratch;
use crate::show::table::grouped;

/// Bounds as the user gave them.
pub(crate) struct Bounds<'a> {
    pub(crate) max_size: Option<&'a str>,
    pub(crate) older_than: Option<&'a str>,
    pub(crate) keep_runs: Option<u32>,
    pub(crate) dry_run: bool,
}

pub(crate) fn gc(bounds: &Bounds<'_>, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let policy = GcPolicy {
        max_bytes: bounds.max_size.map(bytes).transpose()?,
        older_than: bounds.older_than.map(age).transpose()?,
        keep_runs: bounds.keep_runs,
        dry_run: bounds.dry_run,
    };
    if !policy.dry_run {
        // First: they may be what fills the disk.
        scratch::remove_left_behind(&opened::store_directory(options)?, "verify");
    }
    let report = opened::store(options)?.gc(&policy)?;
    tell(&policy, &report, console);
    Ok(Exit::Success)
}

fn tell(policy: &GcPolicy, report: &GcReport, console: &Console) {
    let GcReport { bytes_before, bytes_after, records, blobs, runs, in_use, processes, working_set } = report;
    let word = if policy.dry_run { "would go" } else { "gone" };
    console.result(&format!("{} -> {} bytes", grouped(*bytes_before), grouped(*bytes_after)));
    console.result(&format!("{} records, {} blobs and {} runs {word}", grouped(*records as u64), grouped(*blobs as u64), runs));
    if *processes > 0 {
        console.result(&format!("{processes} other processes build now; {} records stay because of them", grouped(*in_use as u64)));
    }
    if policy.max_bytes.is_some_and(|max_bytes| max_bytes < *working_set) {
        let max_bytes = grouped(policy.max_bytes.unwrap_or_default());
        console.tell(&format!(
            "warning: --max-size {max_bytes} bytes is below the working set: the newest run alone uses {} bytes, and the next one makes them again",
            grouped(*working_set)
        ));
    }
}

/// `10G`, `500M`, `64K` or a plain number of bytes; a unit is 1,024 of the next.
fn bytes(text: &str) -> Result<u64, Fault> {
    let fault = || Fault::input(format!("--max-size {text}: expected a number of bytes, or one with K, M, G or T, as in 10G"));
    let (number, unit) = match text.find(|character: char| !character.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(fault()),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)).ok_or_else(fault)
}

/// `30d`, `12h`, `90m` or `45s`.
fn age(text: &str) -> Result<Duration, Fault> {
    let fault = || Fault::input(format!("--older-than {text}: expected a number with s, m, h or d, as in 30d"));
    let unit = text.chars().last().ok_or_else(fault)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(fault()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| fault())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::{age, bytes};

    #[test]
    fn sizes_and_ages_have_units() {
        assert_eq!(["7", "64K", "10G"].map(|text| bytes(text).ok()), [Some(7), Some(65_536), Some(10 << 30)]);
        assert_eq!(["45s", "30d"].map(|text| age(text).ok().map(|age| age.as_secs())), [Some(45), Some(2_592_000)]);
        for text in ["", "G", "-1", "1.5G", "10GB", "99999999999T", "1é"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for text in ["", "d", "30", "1y", "99999999999999999999d", "1é"] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
