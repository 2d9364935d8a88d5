//! Names of targets, of a sweep's points, and of the artifacts inside them; parsed once, here.
//!
//! ```text
//! label   = ["@" repository] "//" [package] [":" target] | ":" target
//!           then at most one "[" key "=" value {"," key "=" value} "]" [member]
//!           then at most one "[" stage ["/" index] "]"
//! member  = ":" target | "//" [package] ":" target
//! pattern = label | ["@" repository] "//" [package "/"] "..."
//! ```
//!
//! `//a:sweep[tiles=8]` is a point of a sweep, `//a:sweep[tiles=8]:program` the target `//a:program` as it is at that point.
//!
//! `//a/b` is `//a/b:b`. Names are made of letters, digits and `_ - . +`; a package is names joined by `/`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A package: a directory with a BUILD.toml, in the workspace or in an embedded repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageName {
    /// Empty for the workspace itself, else the name after `@`.
    pub repository: String,
    /// Path below the repository's root, `/` between names; empty for the root package.
    pub path: String,
}

impl PackageName {
    /// The package `path` of the workspace itself.
    pub fn in_workspace(path: &str) -> PackageName {
        PackageName { repository: String::new(), path: path.to_owned() }
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.repository.is_empty() {
            write!(formatter, "@{}", self.repository)?;
        }
        write!(formatter, "//{}", self.path)
    }
}

/// One stage's artifact of a target: `[schedules/3]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageName {
    /// The stage.
    pub stage: String,
    /// Which of several, as in `3` or `2.14`.
    pub index: Option<String>,
}

impl fmt::Display for StageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{}", self.stage)?;
        if let Some(index) = &self.index {
            write!(formatter, "/{index}")?;
        }
        write!(formatter, "]")
    }
}

/// The name of a target, which may be a point of a sweep or a member of one, or of an artifact of it. Displayed in full:
/// `//nets:mlp[tiles=64][schedules/3]`.
///
/// As a field of a rule's schema it deserialises from a label relative to the declaring package and makes the named
/// target a dependency (see [`crate::Declaration`]).
///
/// Cheap to clone, to compare for equality and to hash: the text is shared, and its hash is known.
#[derive(Clone, Debug)]
pub struct Label(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    hash: u64,
    package: PackageName,
    name: String,
    point: BTreeMap<String, String>,
    /// Package and name of the target that this one is at the point; none for the point itself.
    member: Option<(PackageName, String)>,
    stage: Option<StageName>,
}

type PartsInOrder<'a> =
    (&'a PackageName, &'a String, &'a BTreeMap<String, String>, &'a Option<(PackageName, String)>, &'a Option<StageName>);

impl Parts {
    fn in_order(&self) -> PartsInOrder<'_> {
        (&self.package, &self.name, &self.point, &self.member, &self.stage)
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Label) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && self.0.in_order() == other.0.in_order())
    }
}

impl Eq for Label {}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Label) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Label {
    fn cmp(&self, other: &Label) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.in_order().cmp(&other.0.in_order()) }
    }
}

impl Hash for Label {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

/// Text that is not a label or a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelFault {
    /// The whole text.
    pub text: String,
    /// 1-based character column of the first character that does not fit.
    pub column: usize,
    /// What could stand there.
    pub expected: &'static str,
}

impl fmt::Display for LabelFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` is not a label: expected {} at column {}", self.text, self.expected, self.column)
    }
}

impl std::error::Error for LabelFault {}

impl Label {
    /// The label of a target.
    pub fn new(package: PackageName, name: &str) -> Label {
        Label::of(package, name.to_owned(), BTreeMap::new(), None, None)
    }

    fn of(
        package: PackageName,
        name: String,
        point: BTreeMap<String, String>,
        member: Option<(PackageName, String)>,
        stage: Option<StageName>,
    ) -> Label {
        let mut hasher = std::collections::hash_map::DefaultHasher::new();
        (&package, &name, &point, &member, &stage).hash(&mut hasher);
        Label(Arc::new(Parts { hash: hasher.finish(), package, name, point, member, stage }))
    }

    /// Parses `text` as it stands in `package`.
    pub fn parse(text: &str, package: &PackageName) -> Result<Label, LabelFault> {
        match Pattern::parse(text, package)? {
            Pattern::One(label) => Ok(label),
            Pattern::Below(_) => Err(LabelFault {
                text: text.to_owned(),
                column: text.chars().count().saturating_sub(2),
                expected: "one target instead of a pattern",
            }),
        }
    }

    /// The package that declares the target.
    pub fn package(&self) -> &PackageName {
        &self.0.package
    }

    /// The target's name in its package.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The sweep point's keys and values, empty when none is named.
    pub fn point(&self) -> &BTreeMap<String, String> {
        &self.0.point
    }

    /// The artifact named, if one is.
    pub fn stage(&self) -> Option<&StageName> {
        self.0.stage.as_ref()
    }

    /// This label without artifact: that of a target.
    pub fn target(&self) -> Label {
        if self.0.stage.is_none() {
            return self.clone();
        }
        self.changed(self.0.point.clone(), self.0.member.clone(), None)
    }

    /// The sweep that a point or a member of one belongs to; of other labels the target itself.
    pub fn sweep(&self) -> Label {
        if self.0.point.is_empty() {
            return self.target();
        }
        Label::new(self.0.package.clone(), &self.0.name)
    }

    /// Whether it is a point of a sweep, or a member of one.
    pub fn is_at_point(&self) -> bool {
        !self.0.point.is_empty()
    }

    /// Whether it is a point itself.
    pub fn is_point(&self) -> bool {
        self.is_at_point() && self.0.member.is_none()
    }

    /// The point with these keys and values of this sweep.
    pub fn at_point(&self, point: &BTreeMap<String, String>) -> Label {
        self.changed(point.clone(), None, None)
    }

    /// The point that a member belongs to.
    pub fn whole_point(&self) -> Label {
        self.at_point(&self.0.point)
    }

    /// `target` as it is at this point.
    pub fn member(&self, target: &Label) -> Label {
        let member = (target.0.package.clone(), target.0.name.clone());
        self.changed(self.0.point.clone(), Some(member), None)
    }

    /// The point itself, as in `[tiles=64]`; empty for a label without one.
    pub fn point_text(&self) -> String {
        let pairs: Vec<String> = self.0.point.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if pairs.is_empty() { String::new() } else { format!("[{}]", pairs.join(",")) }
    }

    /// This label naming an artifact of the target.
    pub fn with_stage(&self, stage: &str, index: Option<&str>) -> Label {
        let stage = StageName { stage: stage.to_owned(), index: index.map(str::to_owned) };
        self.changed(self.0.point.clone(), self.0.member.clone(), Some(stage))
    }

    /// Where the exported files of the target lie below the workspace's root: `artifacts/PACKAGE/TARGET`, of a point
    /// `artifacts/PACKAGE/SWEEP/points/KEY=VALUE,…`, and of its members folders below that.
    pub fn artifacts(&self) -> String {
        let Parts { package, name, point, member, .. } = &*self.0;
        let mut parts = vec!["artifacts".to_owned()];
        if !package.repository.is_empty() {
            parts.push(format!("@{}", package.repository));
        }
        let add = |path: &str, parts: &mut Vec<String>| parts.extend(path.split('/').filter(|part| !part.is_empty()).map(str::to_owned));
        add(&package.path, &mut parts);
        parts.push(name.clone());
        if !point.is_empty() {
            parts.push("points".to_owned());
            parts.push(self.point_text().trim_matches(['[', ']']).to_owned());
        }
        if let Some((member_package, name)) = member {
            if member_package.repository != package.repository {
                parts.push(format!("@{}", member_package.repository));
            }
            if member_package != package {
                add(&member_package.path, &mut parts);
            }
            parts.push(name.clone());
        }
        parts.join("/")
    }

    fn changed(&self, point: BTreeMap<String, String>, member: Option<(PackageName, String)>, stage: Option<StageName>) -> Label {
        Label::of(self.0.package.clone(), self.0.name.clone(), point, member, stage)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { package, name, member, stage, .. } = &*self.0;
        write!(formatter, "{package}:{name}{}", self.point_text())?;
        match member {
            Some((of, name)) if of == package => write!(formatter, ":{name}")?,
            Some((of, name)) if of.repository == package.repository => write!(formatter, "//{}:{name}", of.path)?,
            Some((of, name)) => write!(formatter, "{of}:{name}")?,
            None => {}
        }
        stage.iter().try_for_each(|stage| write!(formatter, "{stage}"))
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The name by which [`crate::Declaration`] recognises a label while reading a declaration.
pub(crate) const LABEL_MARK: &str = "$ipubuild::label";

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Label, D::Error> {
        struct Text;
        impl<'de> serde::de::Visitor<'de> for Text {
            type Value = String;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a label")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
                Ok(text.to_owned())
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
                deserializer.deserialize_str(self)
            }
        }
        let text = deserializer.deserialize_newtype_struct(LABEL_MARK, Text)?;
        Label::parse(&text, &PackageName::in_workspace("")).map_err(serde::de::Error::custom)
    }
}

/// One target, or all targets below a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// Exactly this one.
    One(Label),
    /// Every target of this package and of the packages below it: `//nets/...`.
    Below(PackageName),
}

impl Pattern {
    /// Parses `text` as it stands in `package`.
    pub fn parse(text: &str, package: &PackageName) -> Result<Pattern, LabelFault> {
        Parser { text, characters: text.chars().collect(), at: 0 }.pattern(package)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::One(label) => label.fmt(formatter),
            Pattern::Below(package) if package.path.is_empty() => write!(formatter, "{package}..."),
            Pattern::Below(package) => write!(formatter, "{package}/..."),
        }
    }
}

/// Whether `character` may be in the name of a package, target, key or stage.
pub(crate) fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-.+".contains(character)
}

struct Parser<'a> {
    text: &'a str,
    characters: Vec<char>,
    at: usize,
}

impl Parser<'_> {
    fn pattern(mut self, package: &PackageName) -> Result<Pattern, LabelFault> {
        if self.eat(':') {
            return self.rest_of_label(package.clone());
        }
        let repository = if self.eat('@') { self.name("a repository name")? } else { package.repository.clone() };
        // A label that starts with `//` inside an embedded repository names a target of that repository.
        if !(self.eat('/') && self.eat('/')) {
            return Err(self.fault("`//`, `@` or `:`"));
        }
        let (path, below) = self.package_path()?;
        let package = PackageName { repository, path };
        if below {
            return self.end(Pattern::Below(package));
        }
        if self.eat(':') {
            return self.rest_of_label(package);
        }
        let Some(name) = package.path.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned) else {
            return Err(self.fault("a package or `:`"));
        };
        self.brackets(package, name)
    }

    /// Names joined by `/`; true when the last of them is `...`.
    fn package_path(&mut self) -> Result<(String, bool), LabelFault> {
        let mut names: Vec<String> = Vec::new();
        if matches!(self.peek(), None | Some(':' | '[')) {
            return Ok((String::new(), false));
        }
        loop {
            let start = self.at;
            let name = self.run();
            match name.as_str() {
                "..." => return Ok((names.join("/"), true)),
                "" | "." | ".." => return Err(self.fault_at(start, "a package name")),
                _ => names.push(name),
            }
            if !self.eat('/') {
                return Ok((names.join("/"), false));
            }
        }
    }

    fn rest_of_label(mut self, package: PackageName) -> Result<Pattern, LabelFault> {
        let name = self.name("a target name")?;
        self.brackets(package, name)
    }

    fn brackets(mut self, package: PackageName, name: String) -> Result<Pattern, LabelFault> {
        let point = if self.peek() == Some('[') && self.is_point() { self.point()? } else { BTreeMap::new() };
        let member = if point.is_empty() { None } else { self.member(&package)? };
        let mut stage = None;
        if self.eat('[') {
            let name = self.name("a stage")?;
            let index = if self.eat('/') { Some(self.index()?) } else { None };
            self.need(']', "`]`")?;
            stage = Some(StageName { stage: name, index });
        }
        self.end(Pattern::One(Label::of(package, name, point, member, stage)))
    }

    /// The target that is meant at a point, if one is named.
    fn member(&mut self, package: &PackageName) -> Result<Option<(PackageName, String)>, LabelFault> {
        if self.eat(':') {
            return Ok(Some((package.clone(), self.name("a target name")?)));
        }
        let repository = if self.eat('@') {
            self.name("a repository name")?
        } else if self.peek() == Some('/') {
            package.repository.clone()
        } else {
            return Ok(None);
        };
        self.need('/', "`//`")?;
        self.need('/', "`/`")?;
        let start = self.at;
        let (path, below) = self.package_path()?;
        if below {
            return Err(self.fault_at(start, "a package name"));
        }
        self.need(':', "`:`")?;
        Ok(Some((PackageName { repository, path }, self.name("a target name")?)))
    }

    /// Whether the bracket here holds `key=value`; behind a stage's `/` an index may, too.
    fn is_point(&self) -> bool {
        self.characters[self.at..].iter().take_while(|character| !"]/".contains(**character)).any(|character| *character == '=')
    }

    /// Which of a stage's pieces, as in `kernel_object/gemm{k=5}`: whatever the rule calls it.
    fn index(&mut self) -> Result<String, LabelFault> {
        let start = self.at;
        while self.peek().is_some_and(|character| !"[]".contains(character) && !character.is_whitespace()) {
            self.at += 1;
        }
        if self.at == start { Err(self.fault("an index")) } else { Ok(self.characters[start..self.at].iter().collect()) }
    }

    fn point(&mut self) -> Result<BTreeMap<String, String>, LabelFault> {
        let mut point = BTreeMap::new();
        self.need('[', "`[`")?;
        loop {
            let start = self.at;
            let key = self.name("a key")?;
            self.need('=', "`=`")?;
            let value = self.name("a value")?;
            if point.insert(key, value).is_some() {
                return Err(self.fault_at(start, "a key that was not given before"));
            }
            if self.eat(']') {
                return Ok(point);
            }
            self.need(',', "`,` or `]`")?;
        }
    }

    fn end(self, pattern: Pattern) -> Result<Pattern, LabelFault> {
        match self.peek() {
            None => Ok(pattern),
            Some(_) => Err(self.fault(match pattern {
                Pattern::Below(_) => "nothing after `...`",
                Pattern::One(ref label) if label.stage().is_some() => "nothing after the stage",
                Pattern::One(ref label) if label.is_at_point() => "a name character, `:`, `//`, `@` or `[`",
                Pattern::One(_) => "a name character, `:` or `[`",
            })),
        }
    }

    fn name(&mut self, expected: &'static str) -> Result<String, LabelFault> {
        let start = self.at;
        let name = self.run();
        match name.as_str() {
            "" => Err(self.fault(expected)),
            "." | ".." | "..." => Err(self.fault_at(start, expected)),
            _ => Ok(name),
        }
    }

    fn run(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(is_name_character) {
            self.at += 1;
        }
        self.characters[start..self.at].iter().collect()
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, wanted: char, expected: &'static str) -> Result<(), LabelFault> {
        if self.eat(wanted) { Ok(()) } else { Err(self.fault(expected)) }
    }

    fn fault(&self, expected: &'static str) -> LabelFault {
        self.fault_at(self.at, expected)
    }

    fn fault_at(&self, at: usize, expected: &'static str) -> LabelFault {
        LabelFault { text: self.text.to_owned(), column: at + 1, expected }
    }
}
