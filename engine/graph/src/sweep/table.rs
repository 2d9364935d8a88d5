//! What the points of a sweep gave, side by side: the files and lines of its outcome.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Objective, Sweep, page};
use crate::{Engine, Export, Failure, Figure, Label, Outcome, TargetRecord};

/// A point and what it gave.
pub(crate) struct Row<'a> {
    pub(crate) label: Label,
    pub(crate) names: &'a BTreeMap<String, String>,
    pub(crate) record: &'a TargetRecord,
    /// The objective's figure of a point that passes.
    pub(crate) value: Option<f64>,
}

/// All points in the order of the sweep, and its target as declared.
pub(crate) struct Table<'a> {
    pub(crate) sweep: &'a Sweep,
    pub(crate) label: &'a Label,
    pub(crate) rows: Vec<Row<'a>>,
    pub(crate) declared: &'a TargetRecord,
    /// Names of figures, in the order in which they are met.
    pub(crate) figures: Vec<&'a str>,
}

/// The sweep's outcome from the records of what it depends on.
pub(crate) fn outcome(engine: &Engine, label: &Label, sweep: &Sweep, records: &[(Label, Arc<TargetRecord>)]) -> Result<Outcome, Failure> {
    let table = Table::of(label, sweep, records)?;
    let csv = table.csv().map_err(|error| Failure::build(format!("sweep.csv cannot be written: {error}")))?;
    let page = page::write(&table).map_err(|error| Failure::build(format!("report.html cannot be written: {error}")))?;
    #[cfg_attr(not(feature = "parquet"), expect(unused_mut, reason = "there is one table only"))]
    let mut exports = vec![Export::of_bytes(engine, "sweep.csv", csv), Export::of_bytes(engine, "report.html", page)];
    #[cfg(feature = "parquet")]
    if sweep.parquet {
        let bytes = super::parquet_file::write(&table);
        let bytes = bytes.map_err(|error| Failure::build(format!("sweep.parquet cannot be written: {error}")))?;
        exports.push(Export::of_bytes(engine, "sweep.parquet", bytes));
    }
    let best = table.best();
    let figures = best.map(|row| (sweep.objective.figure().to_owned(), row.figure(sweep.objective.figure()).cloned()));
    let figures = figures.and_then(|(name, figure)| Some((name, figure?))).into_iter().collect();
    Ok(Outcome { success: best.is_some(), lines: table.lines(), figures, exports, ..Outcome::default() })
}

impl<'a> Table<'a> {
    fn of(label: &'a Label, sweep: &'a Sweep, records: &'a [(Label, Arc<TargetRecord>)]) -> Result<Table<'a>, Failure> {
        let known: BTreeMap<&Label, &TargetRecord> = records.iter().map(|(label, record)| (label, record.as_ref())).collect();
        let find =
            |label: &Label| known.get(label).copied().ok_or_else(|| Failure::build(format!("`{label}` was not built before the sweep")));
        let mut rows = Vec::new();
        for point in &sweep.expanded {
            let label = label.at_point(&point.names);
            let record = find(&label)?;
            rows.push(Row { value: record.objective(&sweep.objective), names: &point.names, record, label });
        }
        let declared = find(&sweep.of)?;
        let mut figures: Vec<&str> = Vec::new();
        for (name, _) in [declared].into_iter().chain(rows.iter().map(|row| row.record)).flat_map(|record| &record.figures) {
            if !figures.contains(&name.as_str()) {
                figures.push(name);
            }
        }
        let figure = sweep.objective.figure();
        if !figures.is_empty() && !figures.contains(&figure) {
            let message = format!("no point gives a figure `{figure}`; there are `{}`", figures.join("`, `"));
            return Err(Failure::input(message).at_label(label).at_field("objective"));
        }
        Ok(Table { sweep, label, rows, declared, figures })
    }

    /// The first of the best points that pass.
    pub(crate) fn best(&self) -> Option<&Row<'a>> {
        let objective = &self.sweep.objective;
        self.rows.iter().filter(|row| row.value.is_some()).reduce(|best, row| match (best.value, row.value) {
            (Some(known), Some(value)) if objective.prefers(value, known) => row,
            _ => best,
        })
    }

    /// A line for each point: axes, `result`, figures, `message`.
    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let axes: Vec<&str> = self.sweep.axes.keys().map(String::as_str).collect();
        let names = axes.iter().copied().chain(["result"]).chain(self.figures.iter().copied()).chain(["message"]);
        writer.write_record(names)?;
        for row in &self.rows {
            let axes = axes.iter().map(|axis| row.names.get(*axis).cloned().unwrap_or_default());
            let figures = self.figures.iter().map(|name| row.figure(name).map_or_else(String::new, Figure::to_string));
            let message = row.record.why_not().map_or_else(String::new, |message| message.to_string());
            writer.write_record(axes.chain([row.result().to_owned()]).chain(figures).chain([message]))?;
        }
        writer.into_inner().map_err(|error| error.into_error().into())
    }

    /// Counts, then what failed and why, at last the best point with what it gains.
    fn lines(&self) -> Vec<String> {
        let count = |result: &str| self.rows.iter().filter(|row| row.result() == result).count();
        let points = self.rows.len();
        let mut lines = vec![format!("points={points} pass={} fail={} failed={}", count("pass"), count("fail"), count("failed"))];
        for row in &self.rows {
            if let Some(message) = row.record.why_not() {
                lines.push(format!("{} {}: {message}", row.result(), row.label));
            }
        }
        let (objective, figure) = (&self.sweep.objective, self.sweep.objective.figure());
        match (self.best(), self.declared.objective(objective)) {
            (None, _) => lines.push(format!("no point of {} passes", self.label)),
            (Some(best), declared) => {
                let value = best.figure(figure).map_or_else(String::new, Figure::to_string);
                let gain = best.value.zip(declared).map(|(value, declared)| gain(objective, value, declared, &self.sweep.of));
                lines.push(format!("best={} {figure}={value}{}", best.label, gain.map_or_else(String::new, |gain| format!(", {gain}"))));
            }
        }
        lines
    }
}

/// What a value gains over that of the target as it is declared.
pub(crate) fn gain(objective: &Objective, value: f64, declared: f64, of: &Label) -> String {
    let percent = if declared == 0.0 { 0.0 } else { 100.0 * (declared - value) / declared };
    let (percent, word) = match objective {
        Objective::Minimize(_) if percent >= 0.0 => (percent, "less"),
        Objective::Minimize(_) => (-percent, "more"),
        Objective::Maximize(_) if percent <= 0.0 => (-percent, "more"),
        Objective::Maximize(_) => (percent, "less"),
    };
    format!("{percent:.2} % {word} than {declared} of {of}")
}

impl Row<'_> {
    pub(crate) fn figure(&self, name: &str) -> Option<&Figure> {
        self.record.figures.iter().find(|(known, _)| known == name).map(|(_, figure)| figure)
    }

    /// `pass`; `fail` when it gave something and the verdict is a failure; `failed` when it gave nothing.
    pub(crate) fn result(&self) -> &'static str {
        match &self.record.failure {
            Some(_) => "failed",
            None if self.record.success => "pass",
            None => "fail",
        }
    }
}
