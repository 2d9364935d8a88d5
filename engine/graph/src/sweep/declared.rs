//! The fields of a `sweep`, and the points they stand for.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use store::KeyBuilder;

use super::Value;
use super::condition::Condition;
use crate::label::is_name_character;
use crate::nearest::nearest;
use crate::{Declaration, Label};

/// More points than this are refused: each is loaded as a target.
const POINTS: usize = 20_000;

/// The fields of a `sweep`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Sweep {
    /// The target that is built at every point.
    pub of: Label,
    /// What changes, by name.
    #[serde(default)]
    pub axes: BTreeMap<String, Axis>,
    /// The points one by one, in place of all combinations of the axes' values.
    #[serde(default)]
    pub points: Option<Vec<BTreeMap<String, Value>>>,
    /// Conditions that all points meet.
    #[serde(default, rename = "where")]
    pub conditions: Vec<String>,
    /// Takes some of the points only.
    #[serde(default)]
    pub sample: Option<Sample>,
    /// What makes one point better than another.
    #[serde(default)]
    pub objective: Objective,
    /// Whether `sweep.parquet` is written, too.
    #[serde(default)]
    pub parquet: bool,
    /// The points in order; made of the fields above.
    #[serde(skip)]
    pub expanded: Vec<Point>,
}

/// Fields that change together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Axis {
    /// The field, as in `layout.tiles`.
    #[serde(default)]
    pub field: Option<String>,
    /// Several fields: values are lists then.
    #[serde(default)]
    pub fields: Option<Vec<String>>,
    /// The values.
    #[serde(default)]
    pub values: Option<Vec<Value>>,
    /// Their names in labels; unless given, the values as text.
    #[serde(default)]
    pub names: Option<Vec<String>>,
    /// The values as a range.
    #[serde(default)]
    pub range: Option<Range>,
}

/// Integers from `from` to at most `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Range {
    /// The first.
    pub from: i64,
    /// None is above it.
    pub to: i64,
    /// From one to the next, 1 unless `times` is given.
    #[serde(default)]
    pub step: Option<i64>,
    /// Each is so many times the one before.
    #[serde(default)]
    pub times: Option<i64>,
}

/// A choice of points that depends on the seed and on each point's name alone, so that other points change little of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Sample {
    /// So many.
    pub points: usize,
    /// Another seed gives another choice.
    #[serde(default)]
    pub seed: u64,
}

/// The figure that decides, of those that the target gives.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Less is better.
    Minimize(String),
    /// More is better.
    Maximize(String),
}

impl Default for Objective {
    fn default() -> Objective {
        Objective::Minimize("clocks".to_owned())
    }
}

impl Objective {
    /// The figure's name.
    pub fn figure(&self) -> &str {
        match self {
            Objective::Minimize(figure) | Objective::Maximize(figure) => figure,
        }
    }

    /// Whether `left` is better than `right`.
    pub fn prefers(&self, left: f64, right: f64) -> bool {
        match self {
            Objective::Minimize(_) => left < right,
            Objective::Maximize(_) => left > right,
        }
    }
}

/// One point.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Axis and value as the point's label names them.
    pub names: BTreeMap<String, String>,
    /// What is changed.
    pub settings: Vec<Setting>,
}

/// A changed field of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The field, as in `layout.tiles`, taken apart.
    pub path: Vec<String>,
    /// Its value.
    pub value: Value,
    /// Where the value stands in the sweep's declaration, as in `axes.tiles.values[2]`.
    pub at: String,
}

/// A value of an axis with its name, and where it stands.
#[derive(Clone)]
struct Named {
    name: String,
    value: Value,
    at: String,
}

impl Sweep {
    /// Reads the fields and makes the points; `None` after every fault was noted.
    pub(crate) fn read(declaration: &Declaration<'_>) -> Option<Sweep> {
        let mut sweep = declaration.read::<Sweep>()?;
        let reader = Reader { declaration, sweep: &sweep };
        sweep.expanded = reader.points()?;
        Some(sweep)
    }
}

/// A sweep whose points are being made; faults go to the declaration.
struct Reader<'a> {
    declaration: &'a Declaration<'a>,
    sweep: &'a Sweep,
}

impl Reader<'_> {
    fn points(&self) -> Option<Vec<Point>> {
        let sound = self.check_axes() & self.check_sample() & self.check_parquet();
        let conditions = self.conditions()?;
        if !sound {
            return None;
        }
        let combinations = match &self.sweep.points {
            Some(points) => self.listed(points)?,
            None => self.product()?,
        };
        let mut points = self.meeting(combinations, &conditions)?;
        if points.is_empty() {
            return self.fault("where", "no point meets the conditions", "conditions that some combination of the axes' values meets");
        }
        if let Some(sample) = self.sweep.sample {
            points = drawn(points, sample);
        }
        Some(points)
    }

    fn fault<T>(&self, field: &str, message: impl Into<String>, expected: impl Into<String>) -> Option<T> {
        self.declaration.fault(field, message, expected);
        None
    }

    fn refuse(&self, field: &str, message: impl Into<String>, expected: impl Into<String>) -> bool {
        self.declaration.fault(field, message, expected);
        false
    }

    /// Every axis has a name that conditions can use, its fields, and its values in one way.
    fn check_axes(&self) -> bool {
        let sound = Cell::new(true);
        let fault = |field: &str, message: &str, expected: &str| sound.set(self.refuse(field, message, expected));
        if self.sweep.axes.is_empty() {
            fault("axes", "there is no axis", "at least one, as in `axes.tiles = { field = \"layout.tiles\", values = [32, 64] }`");
        }
        for (name, axis) in &self.sweep.axes {
            let at = format!("axes.{name}");
            if !is_axis_name(name) {
                fault("axes", &format!("`{name}` is no name of an axis"), "letters, digits and `_`, the first no digit");
                continue;
            }
            match (&axis.field, &axis.fields) {
                (Some(field), None) if is_path(field) => {}
                (None, Some(fields)) if !fields.is_empty() && fields.iter().all(|field| is_path(field)) => {}
                (Some(_), None) => fault(&format!("{at}.field"), "it names no field", "a field other than `rule`, as in layout.tiles"),
                (None, Some(_)) => fault(&format!("{at}.fields"), "they name no fields", "fields other than `rule`, as in layout.tiles"),
                (Some(_), Some(_)) => fault(&at, "`field` and `fields` are both given", "one of them"),
                (None, None) => fault(&at, "no field", "`field`, or `fields` that change together"),
            }
            match (&axis.values, axis.range, &self.sweep.points) {
                (None, None, Some(_)) | (Some(_), None, None) => {}
                (None, Some(range), None) => sound.set(sound.get() & self.check_range(&at, range)),
                (_, _, Some(_)) => fault(&at, "values, and `points` are given as well", "no values beside `points`"),
                (Some(_), Some(_), None) => fault(&at, "`values` and `range` are both given", "one of them"),
                (None, None, None) => fault(&at, "no values", "`values` or `range`"),
            }
        }
        sound.get()
    }

    fn check_range(&self, at: &str, range: Range) -> bool {
        let Range { from, to, step, times } = range;
        let fault = |message: String, expected: &str| self.refuse(&format!("{at}.range"), message, expected);
        match (step, times) {
            (Some(_), Some(_)) => fault("`step` and `times` are both given".to_owned(), "one of them"),
            (Some(step), None) if step < 1 => fault(format!("a step of {step}"), "a step of at least 1"),
            (None, Some(times)) if times < 2 || from < 1 => {
                fault(format!("{times} times from {from} on"), "at least 2 times, from 1 or more on")
            }
            _ if from > to => fault(format!("nothing from {from} to {to}"), "`from` not above `to`"),
            _ => true,
        }
    }

    fn check_sample(&self) -> bool {
        let is_empty = self.sweep.sample.is_some_and(|sample| sample.points == 0);
        !is_empty || self.refuse("sample.points", "a sample of 0 points", "at least 1")
    }

    fn check_parquet(&self) -> bool {
        let is_missing = self.sweep.parquet && !cfg!(feature = "parquet");
        let expected = "one built with it: `cargo build --release -p ipubuild --features parquet`";
        !is_missing || self.refuse("parquet", "this ipubuild was built without the feature `parquet`", expected)
    }

    fn conditions(&self) -> Option<Vec<Condition>> {
        let parse = |(number, text): (usize, &String)| {
            let at = format!("where[{number}]");
            let condition = match Condition::parse(text) {
                Ok(condition) => condition,
                Err(fault) => return self.fault(&at, format!("`{text}` is no condition"), fault.to_string()),
            };
            let unknown = condition.axes().into_iter().find(|name| !self.sweep.axes.contains_key(*name)).map(str::to_owned);
            match unknown {
                Some(name) => self.fault(&at, format!("there is no axis `{name}`"), self.axes_like(&name)),
                None => Some(condition),
            }
        };
        let parsed: Vec<Option<Condition>> = self.sweep.conditions.iter().enumerate().map(parse).collect();
        parsed.into_iter().collect()
    }

    fn axes_like(&self, name: &str) -> String {
        let known: Vec<&str> = self.sweep.axes.keys().map(String::as_str).collect();
        let nearest = nearest(name, known.iter().copied());
        let hint = if nearest.is_empty() { String::new() } else { format!("; nearest {}", nearest.join(", ")) };
        format!("one of `{}`{hint}", known.join("`, `"))
    }

    /// All combinations, the last axis changing first.
    fn product(&self) -> Option<Vec<BTreeMap<&str, Named>>> {
        let mut axes: Vec<(&str, Vec<Named>)> = Vec::new();
        let mut sound = true;
        for (name, axis) in &self.sweep.axes {
            match self.values(name, axis) {
                Some(values) => axes.push((name, values)),
                None => sound = false,
            }
        }
        if !sound {
            return None;
        }
        let count = axes.iter().try_fold(1_usize, |count, (_, values)| count.checked_mul(values.len())).filter(|count| *count <= POINTS);
        let Some(count) = count else {
            return self.fault("axes", format!("more than {POINTS} combinations"), "fewer values, or `points`");
        };
        let mut combinations = Vec::with_capacity(count);
        for number in 0..count {
            let mut rest = number;
            let mut combination = BTreeMap::new();
            for (name, values) in axes.iter().rev() {
                combination.insert(*name, values[rest % values.len()].clone());
                rest /= values.len();
            }
            combinations.push(combination);
        }
        Some(combinations)
    }

    /// The values of an axis, with different names.
    fn values(&self, name: &str, axis: &Axis) -> Option<Vec<Named>> {
        let at = format!("axes.{name}");
        let values: Vec<(Value, String)> = match (&axis.values, axis.range) {
            (Some(values), _) => values.iter().enumerate().map(|(index, value)| (value.clone(), format!("{at}.values[{index}]"))).collect(),
            (None, Some(range)) => integers(range).into_iter().map(|value| (Value::Integer(value), format!("{at}.range"))).collect(),
            (None, None) => Vec::new(),
        };
        if values.is_empty() {
            return self.fault(&format!("{at}.values"), "no values", "at least one");
        }
        if let Some(names) = &axis.names
            && names.len() != values.len()
        {
            return self.fault(&format!("{at}.names"), format!("{} names for {} values", names.len(), values.len()), "one for each value");
        }
        let mut known = BTreeSet::new();
        let mut found = Vec::new();
        let mut sound = true;
        for (index, (value, at)) in values.into_iter().enumerate() {
            let name = axis.names.as_ref().map(|names| names[index].clone());
            match self.named(axis, value, name, at) {
                Some(named) if !known.insert(named.name.clone()) => {
                    self.declaration.fault(&named.at, format!("`{}` is there twice", named.name), "values that differ, or `names`");
                    sound = false;
                }
                Some(named) => found.push(named),
                None => sound = false,
            }
        }
        sound.then_some(found)
    }

    /// A value with its name, one part for each field of the axis.
    fn named(&self, axis: &Axis, value: Value, name: Option<String>, at: String) -> Option<Named> {
        if let Some(fields) = &axis.fields {
            let count = if let Value::List(values) = &value { values.len() } else { 0 };
            if count != fields.len() {
                return self.fault(&at, format!("found {value}"), format!("a list of {} values, one for each field", fields.len()));
            }
        }
        let name = name.unwrap_or_else(|| value.to_string());
        let is_name = !name.is_empty() && name.chars().all(is_name_character) && !matches!(name.as_str(), "." | ".." | "...");
        if !is_name {
            return self.fault(&at, format!("`{name}` cannot stand in a label"), "letters, digits and `_ - . +`; `names` gives other ones");
        }
        Some(Named { name, value, at })
    }

    /// The points given one by one.
    fn listed(&self, points: &[BTreeMap<String, Value>]) -> Option<Vec<BTreeMap<&str, Named>>> {
        let mut known = BTreeSet::new();
        let mut listed = Vec::new();
        let mut sound = true;
        for (index, point) in points.iter().enumerate() {
            let mut combination = BTreeMap::new();
            for (name, value) in point {
                let at = format!("points[{index}].{name}");
                let Some((name, axis)) = self.sweep.axes.get_key_value(name) else {
                    self.declaration.fault(&at, format!("there is no axis `{name}`"), self.axes_like(name));
                    sound = false;
                    continue;
                };
                match self.named(axis, value.clone(), None, at) {
                    Some(named) => _ = combination.insert(name.as_str(), named),
                    None => sound = false,
                }
            }
            let names: Vec<(&str, String)> = combination.iter().map(|(name, named)| (*name, named.name.clone())).collect();
            if point.is_empty() {
                sound = self.refuse(&format!("points[{index}]"), "a point that sets nothing", "a value for some axis");
            } else if !known.insert(names) {
                sound = self.refuse(&format!("points[{index}]"), "the point is there twice", "points that differ");
            }
            listed.push(combination);
        }
        if points.is_empty() || points.len() > POINTS {
            return self.fault("points", format!("{} points", points.len()), format!("from 1 to {POINTS}"));
        }
        sound.then_some(listed)
    }

    /// The points that meet all conditions.
    fn meeting(&self, combinations: Vec<BTreeMap<&str, Named>>, conditions: &[Condition]) -> Option<Vec<Point>> {
        let mut points = Vec::new();
        for combination in combinations {
            let values: BTreeMap<&str, &Value> = combination.iter().map(|(name, named)| (*name, &named.value)).collect();
            let mut holds = true;
            for (number, condition) in conditions.iter().enumerate() {
                match condition.holds(&values) {
                    Ok(answer) => holds &= answer,
                    Err(message) => {
                        let names: Vec<String> = combination.iter().map(|(name, named)| format!("{name}={}", named.name)).collect();
                        let message = format!("at [{}]: {message}", names.join(","));
                        return self.fault(&format!("where[{number}]"), message, "true or false at every point");
                    }
                }
            }
            if holds {
                points.push(self.point(combination));
            }
        }
        Some(points)
    }

    fn point(&self, combination: BTreeMap<&str, Named>) -> Point {
        let names = combination.iter().map(|(name, named)| ((*name).to_owned(), named.name.clone())).collect();
        let settings = combination.into_iter().flat_map(|(name, named)| self.sweep.axes[name].settings(named)).collect();
        Point { names, settings }
    }
}

impl Axis {
    fn settings(&self, named: Named) -> Vec<Setting> {
        let path = |field: &String| field.split('.').map(str::to_owned).collect();
        let Named { value, at, .. } = named;
        match (&self.field, &self.fields, value) {
            (Some(field), _, value) => vec![Setting { path: path(field), value, at }],
            (None, Some(fields), Value::List(values)) => {
                let settings = fields.iter().zip(values);
                settings.map(|(field, value)| Setting { path: path(field), value, at: at.clone() }).collect()
            }
            (None, _, _) => Vec::new(),
        }
    }
}

fn is_axis_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        && !matches!(name, "true" | "false")
}

fn is_path(field: &str) -> bool {
    field != "rule" && field.split('.').all(|step| !step.is_empty())
}

/// At most one more than there may be points.
fn integers(range: Range) -> Vec<i64> {
    let next = |value: &i64| match range.times {
        Some(times) => value.checked_mul(times),
        None => value.checked_add(range.step.unwrap_or(1)),
    };
    std::iter::successors(Some(range.from), next).take_while(|value| *value <= range.to).take(POINTS + 1).collect()
}

/// The points whose names come first in the order that the seed draws, in their own order.
fn drawn(points: Vec<Point>, sample: Sample) -> Vec<Point> {
    let draw = |point: &Point| {
        let mut key = KeyBuilder::new("sweep sample");
        key.number(sample.seed);
        point.names.iter().for_each(|(axis, value)| _ = key.text(axis).text(value));
        key.finish()
    };
    let mut order: Vec<_> = points.iter().map(draw).zip(0..).collect();
    order.sort_unstable();
    let chosen: BTreeSet<usize> = order.into_iter().take(sample.points).map(|(_, index)| index).collect();
    points.into_iter().enumerate().filter(|(index, _)| chosen.contains(index)).map(|(_, point)| point).collect()
}
