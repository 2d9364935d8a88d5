//! The page `report.html` of a sweep: its points in pictures, in one file that needs nothing else.

use std::collections::BTreeMap;

use serde::Serialize;

use super::table::{Row, Table, gain};
use super::{Objective, Setting};
use crate::{Figure, StageEntry, TargetRecord};

/// The page; `@DATA@` stands for what it shows.
const PAGE: &str = include_str!("page.html");

/// Characters of a digest that name an artifact.
const DIGITS: usize = 12;

#[derive(Serialize)]
struct Data<'a> {
    sweep: String,
    objective: Goal<'a>,
    axes: Vec<&'a str>,
    figures: &'a [&'a str],
    points: Vec<Point<'a>>,
    declared: Declared<'a>,
    /// Of the points.
    best: Option<usize>,
    gain: Option<String>,
    /// Names of stages that points refer to.
    stages: Vec<String>,
}

#[derive(Serialize)]
struct Goal<'a> {
    figure: &'a str,
    goal: &'static str,
}

#[derive(Serialize)]
struct Declared<'a> {
    label: String,
    figures: Vec<Option<&'a Figure>>,
}

#[derive(Serialize)]
struct Point<'a> {
    label: String,
    /// For each axis.
    values: Vec<Option<&'a str>>,
    result: &'static str,
    /// For each figure.
    figures: Vec<Option<&'a Figure>>,
    message: Option<String>,
    lines: &'a [String],
    /// Field and value.
    settings: Vec<(String, String)>,
    /// Name and the first digits of the artifact's digest.
    stages: Vec<(usize, String)>,
}

/// The page of these points.
pub(crate) fn write(table: &Table<'_>) -> Result<Vec<u8>, serde_json::Error> {
    // An end of script in a message would end the data early.
    let data = serde_json::to_string(&Data::of(table))?.replace('<', "\\u003c");
    Ok(PAGE.replacen("@DATA@", &data, 1).into_bytes())
}

impl<'a> Data<'a> {
    fn of(table: &'a Table<'_>) -> Data<'a> {
        let mut names = Names::default();
        let best = table.best();
        let objective = &table.sweep.objective;
        let goal = match objective {
            Objective::Minimize(_) => "minimize",
            Objective::Maximize(_) => "maximize",
        };
        Data {
            sweep: table.label.to_string(),
            objective: Goal { figure: objective.figure(), goal },
            axes: table.sweep.axes.keys().map(String::as_str).collect(),
            figures: &table.figures,
            points: table
                .rows
                .iter()
                .zip(&table.sweep.expanded)
                .map(|(row, point)| Point::of(table, row, &point.settings, &mut names))
                .collect(),
            declared: Declared { label: table.sweep.of.to_string(), figures: figures(table, table.declared) },
            best: best.and_then(|best| table.rows.iter().position(|row| row.label == best.label)),
            gain: best.and_then(|best| Some(gain(objective, best.value?, table.declared.objective(objective)?, &table.sweep.of))),
            stages: names.list,
        }
    }
}

impl<'a> Point<'a> {
    fn of(table: &'a Table<'_>, row: &'a Row<'_>, settings: &[Setting], names: &mut Names) -> Point<'a> {
        Point {
            label: row.label.to_string(),
            values: table.sweep.axes.keys().map(|axis| row.names.get(axis).map(String::as_str)).collect(),
            result: row.result(),
            figures: figures(table, row.record),
            message: row.record.why_not().map(|message| message.to_string()),
            lines: &row.record.lines,
            settings: settings.iter().map(|setting| (setting.path.join("."), setting.value.to_string())).collect(),
            stages: row.record.stages.iter().map(|stage| names.entry(stage)).collect(),
        }
    }
}

fn figures<'a>(table: &Table<'_>, record: &'a TargetRecord) -> Vec<Option<&'a Figure>> {
    let known: BTreeMap<&str, &Figure> = record.figures.iter().map(|(name, figure)| (name.as_str(), figure)).collect();
    table.figures.iter().map(|name| known.get(name).copied()).collect()
}

/// Names of stages in the order in which they are met.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl Names {
    fn entry(&mut self, stage: &StageEntry) -> (usize, String) {
        let name = stage.name.to_string();
        let place = *self.places.entry(name.clone()).or_insert_with(|| {
            self.list.push(name);
            self.list.len() - 1
        });
        (place, stage.digest.to_string().chars().take(DIGITS).collect())
    }
}
