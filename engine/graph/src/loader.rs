//! Reads WORKSPACE.toml and the BUILD.toml files that the requested targets reach, and checks them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use camino::Utf8Path;
use store::{Digest, FileStamp, FileState, KeyBuilder};

use crate::build_file::BuildFile;
use crate::declaration::{FieldFault, Noted, unknown_field};
use crate::diagnostic::{Diagnostics, Problem};
use crate::label::is_name_character;
use crate::label_map::LabelMap;
use crate::nearest::nearest;
use crate::sweep::expansion;
use crate::toml_tree::{self, Entry, Node, NodeValue, Span};
use crate::workspace::{LoadedTarget, is_below, matches};
use crate::{
    Declaration, Declared, Dependency, Diagnostic, Label, LoadRequest, PackageName, Pattern, Rule, SourceUse, Workspace, target_graph,
};

/// A target whose fields were read; the spans of its labels and files are still at hand.
pub(crate) struct ReadTarget {
    pub(crate) label: Label,
    pub(crate) rule: Option<Arc<dyn Rule>>,
    pub(crate) data: Option<Declared>,
    pub(crate) dependencies: Vec<(Dependency, Span)>,
    pub(crate) sources: Vec<(SourceUse, Span)>,
    pub(crate) file: Arc<BuildFile>,
    pub(crate) header: Span,
    pub(crate) node: Node,
}

impl ReadTarget {
    /// Reads the fields of `node`, declared in `package` under this name; what is wrong with them.
    pub(crate) fn of(
        label: Label,
        (package, name): (&PackageName, &str),
        rule: Option<Arc<dyn Rule>>,
        node: Node,
        (file, header): (&Arc<BuildFile>, Span),
    ) -> (ReadTarget, Vec<FieldFault>) {
        let mut noted = Noted { faults: Vec::new(), dependencies: Vec::new(), sources: Vec::new() };
        let mut data = None;
        if let Some(rule) = &rule {
            let declaration = Declaration::new(package, name, &node);
            check_fields(rule, &declaration, &header, &node);
            data = rule.read(&declaration);
            noted = declaration.into_noted();
        }
        let digest = declared_digest(package, &node);
        let data = data.zip(rule.as_ref()).map(|(data, rule)| Declared { rule: rule.name(), digest, data });
        let Noted { faults, dependencies, sources } = noted;
        (ReadTarget { label, rule, data, dependencies, sources, file: file.clone(), header, node }, faults)
    }
}

pub(crate) fn load(request: &LoadRequest<'_>) -> Result<Workspace, Diagnostics> {
    let mut loader = Loader::new(request, None);
    let name = loader.workspace_file();
    loader.request_patterns();
    loader.load_packages();
    expansion::expand(&mut loader);
    loader.check_requested();
    let mut faults = std::mem::take(&mut loader.faults);
    faults.extend(target_graph::check(&loader));
    faults.extend(loader.unused_overrides());
    if !faults.is_empty() {
        return Err(sorted(faults));
    }
    Ok(loader.finish(name))
}

/// Loads these targets alone, of a workspace that was loaded without faults and whose files have not changed since.
pub(crate) fn load_part(request: &LoadRequest<'_>, only: &BTreeSet<Label>) -> Result<Workspace, Diagnostics> {
    let mut loader = Loader::new(request, Some(only));
    let name = loader.workspace_file();
    only.iter().for_each(|label| loader.want(label.package()));
    loader.load_packages();
    let faults = std::mem::take(&mut loader.faults);
    if faults.is_empty() { Ok(loader.finish(name)) } else { Err(sorted(faults)) }
}

/// A fault and where it stands, for sorting.
pub(crate) struct Found {
    pub(crate) order: (String, (u8, usize)),
    pub(crate) diagnostic: Diagnostic,
}

fn sorted(mut faults: Vec<Found>) -> Diagnostics {
    faults.sort_by(|left, right| left.order.cmp(&right.order));
    Diagnostics(faults.into_iter().map(|found| found.diagnostic).collect())
}

pub(crate) struct Loader<'a> {
    pub(crate) request: &'a LoadRequest<'a>,
    /// Packages that were looked for; true when they exist.
    pub(crate) packages: BTreeMap<PackageName, bool>,
    pub(crate) targets: LabelMap<ReadTarget>,
    /// Packages whose file is not TOML: what they declare is not known.
    broken: BTreeSet<PackageName>,
    queue: VecDeque<PackageName>,
    pub(crate) faults: Vec<Found>,
    overrides: Arc<[String]>,
    overrides_used: BTreeSet<usize>,
    /// The only targets to read, where the others are known to be sound.
    only: Option<&'a BTreeSet<Label>>,
    files: Vec<(String, Digest)>,
    walk: OnceCell<PackageWalk>,
}

impl<'a> Loader<'a> {
    fn new(request: &'a LoadRequest<'a>, only: Option<&'a BTreeSet<Label>>) -> Loader<'a> {
        Loader {
            request,
            packages: BTreeMap::new(),
            targets: LabelMap::default(),
            broken: BTreeSet::new(),
            queue: VecDeque::new(),
            faults: Vec::new(),
            overrides: request.overrides.iter().map(|change| change.text().to_owned()).collect(),
            overrides_used: BTreeSet::new(),
            only,
            files: Vec::new(),
            walk: OnceCell::new(),
        }
    }

    /// Checks WORKSPACE.toml and gives the workspace's name, by default that of its directory.
    fn workspace_file(&mut self) -> String {
        let directory = self.request.root.file_name().unwrap_or("workspace").to_owned();
        let text = match read_text(&self.request.root.join("WORKSPACE.toml")) {
            Ok(Some(text)) => text,
            Ok(None) => {
                let problem = Problem::NoWorkspace { directory: self.request.root.to_string() };
                self.fault_without_place(problem);
                return directory;
            }
            Err(message) => {
                self.fault_without_place(Problem::Unreadable { message: format!("WORKSPACE.toml: {message}") });
                return directory;
            }
        };
        self.files.push(("WORKSPACE.toml".to_owned(), Digest::of(text.as_bytes())));
        let file = self.build_file("WORKSPACE.toml".to_owned(), text);
        let entries = self.parse(&file);
        let mut name = directory;
        for entry in entries {
            match (entry.key.as_str(), &entry.node.value) {
                ("name", NodeValue::Text(text)) => name = text.clone(),
                ("name", _) => {
                    let found = entry.node.describe();
                    let problem = Problem::Value { found, expected: "a string".to_owned(), nearest: Vec::new() };
                    self.fault_in(&file, None, "name", &entry.node.span, problem);
                }
                (key, _) => {
                    self.fault_in(&file, None, "", &entry.key_span, unknown_field(key, &["name"]));
                }
            }
        }
        name
    }

    fn request_patterns(&mut self) {
        for pattern in self.request.patterns {
            match pattern {
                Pattern::One(label) => self.want(label.package()),
                Pattern::Below(package) => self.packages_below(package).iter().for_each(|package| self.want(package)),
            }
        }
    }

    fn want(&mut self, package: &PackageName) {
        if !self.packages.contains_key(package) {
            self.packages.insert(package.clone(), false);
            self.queue.push_back(package.clone());
        }
    }

    fn load_packages(&mut self) {
        while let Some(package) = self.queue.pop_front() {
            self.load_package(&package);
        }
        self.targets.sort();
    }

    fn load_package(&mut self, package: &PackageName) {
        let name = build_file_name(package);
        match self.read_build_file(package) {
            Ok(None) => {}
            Ok(Some(text)) => {
                self.packages.insert(package.clone(), true);
                if package.repository.is_empty() {
                    self.files.push((name.clone(), Digest::of(text.as_bytes())));
                }
                let file = self.build_file(name, text);
                let faults = self.faults.len();
                let entries = self.parse(&file);
                if self.faults.len() > faults {
                    self.broken.insert(package.clone());
                }
                for entry in entries {
                    self.read_target(package, &file, entry);
                }
            }
            Err(message) => {
                self.packages.insert(package.clone(), true);
                self.broken.insert(package.clone());
                let file = self.build_file(name, String::new());
                self.fault_in(&file, None, "", &Span::Text(0..0), Problem::Unreadable { message });
            }
        }
    }

    fn read_target(&mut self, package: &PackageName, file: &Arc<BuildFile>, entry: Entry) {
        let Entry { key, key_span, mut node } = entry;
        if !key.chars().all(is_name_character) || matches!(key.as_str(), "" | "." | ".." | "...") {
            return self.fault_in(file, None, "", &key_span, Problem::TargetName { name: key });
        }
        let label = Label::new(package.clone(), &key);
        if self.only.is_some_and(|only| !only.contains(&label)) {
            return;
        }
        let NodeValue::Table(entries) = &node.value else {
            return self.fault_in(file, None, "", &key_span, Problem::NotATarget { name: key });
        };
        let rule = self.rule_of(&label, file, &key_span, entries);
        if let Some(rule) = &rule {
            self.apply_overrides(package, rule, &mut node);
        }
        let (read, faults) = ReadTarget::of(label, (package, &key), rule, node, (file, key_span));
        for FieldFault { field, span, problem } in faults {
            self.fault_in(file, Some(&read.label), &field, &span, problem);
        }
        if self.only.is_none() {
            read.dependencies.iter().for_each(|(dependency, _)| self.want(dependency.label.package()));
        }
        self.targets.insert(read.label.clone(), read);
    }

    fn rule_of(&mut self, label: &Label, file: &BuildFile, header: &Span, entries: &[Entry]) -> Option<Arc<dyn Rule>> {
        let Some(entry) = entries.iter().find(|entry| entry.key == "rule") else {
            self.fault_in(file, Some(label), "", header, Problem::NoRule);
            return None;
        };
        let NodeValue::Text(found) = &entry.node.value else {
            let found = entry.node.describe();
            let problem = Problem::Value { found, expected: "the name of a rule".to_owned(), nearest: Vec::new() };
            self.fault_in(file, Some(label), "rule", &entry.node.span, problem);
            return None;
        };
        let rule = self.request.registry.get(found).cloned();
        if rule.is_none() {
            let known: Vec<String> = self.request.registry.rules().map(|rule| rule.name().to_owned()).collect();
            let nearest = nearest(found, known.iter().map(String::as_str));
            let problem = Problem::UnknownRule { found: found.clone(), nearest, known };
            self.fault_in(file, Some(label), "rule", &entry.node.span, problem);
        }
        rule
    }

    fn apply_overrides(&mut self, package: &PackageName, rule: &Arc<dyn Rule>, node: &mut Node) {
        if !package.repository.is_empty() {
            return;
        }
        for (number, change) in self.request.overrides.iter().enumerate() {
            if rule.fields().iter().any(|field| field.name == change.field()) {
                change.apply(node, number);
                self.overrides_used.insert(number);
            }
        }
    }

    /// A change that no loaded target has a field for.
    fn unused_overrides(&self) -> Vec<Found> {
        let rules = self.targets.values().filter(|target| target.label.package().repository.is_empty());
        let known: BTreeSet<&str> =
            rules.filter_map(|target| target.rule.as_ref()).flat_map(|rule| rule.fields().iter().map(|field| field.name)).collect();
        let known: Vec<&str> = known.into_iter().collect();
        let unused = self.request.overrides.iter().enumerate().filter(|(number, _)| !self.overrides_used.contains(number));
        unused
            .map(|(number, change)| {
                let file = BuildFile { name: String::new(), text: "".into(), overrides: self.overrides.clone() };
                found(&file, None, "", &Span::Override(number), unknown_field(change.field(), &known))
            })
            .collect()
    }

    /// Every label of the request must exist, every pattern must name something.
    fn check_requested(&mut self) {
        for pattern in self.request.patterns {
            match pattern {
                Pattern::One(label) => {
                    if let Some(problem) = self.missing(&label.target()) {
                        self.fault_without_place(problem);
                    }
                }
                Pattern::Below(_) if !self.targets.labels().any(|label| matches(pattern, label)) => {
                    // A pattern over broken files may name nothing because of them.
                    if self.faults.is_empty() {
                        self.fault_without_place(Problem::EmptyPattern { pattern: pattern.to_string() });
                    }
                }
                Pattern::Below(_) => {}
            }
        }
    }

    /// What is wrong with `label` when it names no target; nothing when its package is broken, which is said elsewhere.
    pub(crate) fn missing(&self, label: &Label) -> Option<Problem> {
        if self.targets.contains(label) || self.broken.contains(label.package()) {
            return None;
        }
        let PackageName { repository, .. } = label.package();
        let repositories = self.request.repositories;
        if !repository.is_empty() && !repositories.iter().any(|known| known.name == *repository) {
            let known = repositories.iter().map(|known| known.name.clone()).collect();
            return Some(Problem::UnknownRepository { found: repository.clone(), known });
        }
        if !self.packages.get(label.package()).copied().unwrap_or(false) {
            let known: Vec<String> = self.all_packages(repository).iter().map(ToString::to_string).collect();
            let found = label.package().to_string();
            let nearest = nearest(&found, known.iter().map(String::as_str));
            return Some(Problem::UnknownPackage { found, nearest });
        }
        let package = self.targets.labels().filter(|known| known.package() == label.package());
        if label.is_at_point() && self.targets.contains(&label.sweep()) {
            let points: Vec<String> =
                package.filter(|known| known.is_point() && known.sweep() == label.sweep()).map(Label::to_string).collect();
            let nearest = nearest(&label.to_string(), points.iter().map(String::as_str));
            return Some(Problem::UnknownPoint { found: label.clone(), nearest, first: points.into_iter().next() });
        }
        let known: Vec<String> = package.filter(|known| !known.is_at_point()).map(|known| known.name().to_owned()).collect();
        let nearest = nearest(label.name(), known.iter().map(String::as_str));
        Some(Problem::UnknownTarget { found: label.sweep(), nearest, known })
    }

    fn all_packages(&self, repository: &str) -> Vec<PackageName> {
        self.packages_below(&PackageName { repository: repository.to_owned(), path: String::new() })
    }

    /// Packages at and below `package`, in order.
    fn packages_below(&self, package: &PackageName) -> Vec<PackageName> {
        let all = if package.repository.is_empty() {
            self.walk.get_or_init(|| PackageWalk::of(self.request.root)).packages.clone()
        } else {
            let repository = self.request.repositories.iter().find(|known| known.name == package.repository);
            let files = repository.iter().flat_map(|repository| repository.files.keys());
            files.filter_map(|path| package_of_build_file(path)).map(str::to_owned).collect()
        };
        let repository = &package.repository;
        let named = all.into_iter().map(|path| PackageName { repository: repository.clone(), path });
        named.filter(|candidate| is_below(package, candidate)).collect()
    }

    fn read_build_file(&self, package: &PackageName) -> Result<Option<String>, String> {
        let path = if package.path.is_empty() { "BUILD.toml".to_owned() } else { format!("{}/BUILD.toml", package.path) };
        if package.repository.is_empty() {
            return read_text(&self.request.root.join(path));
        }
        let repository = self.request.repositories.iter().find(|known| known.name == package.repository);
        match repository.and_then(|repository| repository.files.get(&path)) {
            None => Ok(None),
            Some(bytes) => String::from_utf8(bytes.to_vec()).map(Some).map_err(|error| error.to_string()),
        }
    }

    fn build_file(&self, name: String, text: String) -> Arc<BuildFile> {
        Arc::new(BuildFile { name, text: text.into(), overrides: self.overrides.clone() })
    }

    fn parse(&mut self, file: &BuildFile) -> Vec<Entry> {
        let (entries, faults) = toml_tree::parse(&file.text);
        let broken = !faults.is_empty();
        for (message, bytes) in faults {
            self.fault_in(file, None, "", &Span::Text(bytes), Problem::Syntax { message });
        }
        // What a recovering parser makes of broken text gives faults that are not the user's.
        if broken { Vec::new() } else { entries }
    }

    fn fault_in(&mut self, file: &BuildFile, label: Option<&Label>, field: &str, span: &Span, problem: Problem) {
        self.faults.push(found(file, label, field, span, problem));
    }

    fn fault_without_place(&mut self, problem: Problem) {
        let diagnostic = Diagnostic { label: None, field: String::new(), place: None, problem, other: None };
        self.faults.push(Found { order: (String::new(), (0, 0)), diagnostic });
    }

    fn finish(self, name: String) -> Workspace {
        let root = self.request.root.to_owned();
        let targets: LabelMap<LoadedTarget> =
            self.targets.into_entries().filter_map(|(label, read)| Some((label, loaded(read)?))).collect();
        let mut requested: Vec<Label> = Vec::new();
        let mut seen = HashSet::new();
        for pattern in self.request.patterns {
            for label in targets.labels().filter(|label| matches(pattern, label)) {
                if seen.insert(label.clone()) {
                    requested.push(label.clone());
                }
            }
        }
        let walk = self.walk.into_inner();
        Workspace { root, name, targets, requested, files: self.files, walk }
    }
}

/// Without faults every read target has a rule and data.
fn loaded(read: ReadTarget) -> Option<LoadedTarget> {
    let (rule, declared) = (read.rule?, read.data?);
    let mut dependencies: Vec<Dependency> = read.dependencies.into_iter().map(|(dependency, _)| dependency).collect();
    let mut sources: Vec<SourceUse> = read.sources.into_iter().map(|(source, _)| source).collect();
    // The order of a table's keys in the text must not reach a key.
    dependencies.sort();
    sources.sort();
    let ReadTarget { label, file, header, node, .. } = read;
    Some(LoadedTarget { label, rule, declared, dependencies, sources, file, header, node })
}

pub(crate) fn found(file: &BuildFile, label: Option<&Label>, field: &str, span: &Span, problem: Problem) -> Found {
    let place = Some(file.place(span));
    let diagnostic = Diagnostic { label: label.cloned(), field: field.to_owned(), place, problem, other: None };
    Found { order: (file.name.clone(), span.order()), diagnostic }
}

/// Unknown and missing fields of the target itself, by the rule's list.
fn check_fields(rule: &Arc<dyn Rule>, declaration: &Declaration<'_>, header: &Span, node: &Node) {
    let NodeValue::Table(entries) = &node.value else { return };
    let names: Vec<&str> = rule.fields().iter().map(|field| field.name).collect();
    for entry in entries.iter().filter(|entry| entry.key != "rule" && !names.contains(&entry.key.as_str())) {
        let (span, problem) = (entry.key_span.clone(), unknown_field(&entry.key, &names));
        declaration.add_fault(FieldFault { field: String::new(), span, problem });
    }
    for field in rule.fields().iter().filter(|field| field.required) {
        if !entries.iter().any(|entry| entry.key == field.name) {
            let problem = Problem::MissingField { name: field.name.to_owned(), value: Some(field.value.to_owned()) };
            declaration.add_fault(FieldFault { field: String::new(), span: header.clone(), problem });
        }
    }
}

/// The package belongs to it: relative labels and paths mean other things elsewhere.
fn declared_digest(package: &PackageName, node: &Node) -> Digest {
    let mut key = KeyBuilder::new("declaration");
    key.text(&package.to_string());
    node.add_to(&mut key);
    key.finish()
}

fn build_file_name(package: &PackageName) -> String {
    let folder = if package.path.is_empty() { String::new() } else { format!("{}/", package.path) };
    let repository = if package.repository.is_empty() { String::new() } else { format!("@{}//", package.repository) };
    format!("{repository}{folder}BUILD.toml")
}

fn package_of_build_file(path: &str) -> Option<&str> {
    if path == "BUILD.toml" { Some("") } else { path.strip_suffix("/BUILD.toml") }
}

/// What a walk through the workspace saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackageWalk {
    /// Paths of all packages, in order.
    pub(crate) packages: Vec<String>,
    /// All directories looked into, in order, with the stamps they had before: their paths, empty for the root.
    pub(crate) directories: Vec<(String, FileState)>,
}

impl PackageWalk {
    /// Walks through `root`. Hidden folders and `artifacts` at the root hold no packages.
    pub(crate) fn of(root: &Utf8Path) -> PackageWalk {
        let skipped = |entry: &walkdir::DirEntry| {
            let name = entry.file_name().to_string_lossy();
            entry.depth() > 0 && (name.starts_with('.') || (entry.depth() == 1 && name == "artifacts"))
        };
        let mut walk = PackageWalk { packages: Vec::new(), directories: Vec::new() };
        for entry in walkdir::WalkDir::new(root).into_iter().filter_entry(|entry| !skipped(entry)).filter_map(Result::ok) {
            let Some(relative) = Utf8Path::from_path(entry.path()).and_then(|path| path.strip_prefix(root).ok()) else { continue };
            if entry.file_type().is_dir() {
                // The walk gives a directory before it reads it.
                let recorded_ns = store::now_ns();
                let stamp = entry.metadata().map(|metadata| FileStamp::of(&metadata)).unwrap_or_default();
                walk.directories.push((relative.to_string(), FileState { stamp, digest: Digest::ABSENT, recorded_ns }));
            } else if entry.file_name() == "BUILD.toml"
                && let Some(package) = package_of_build_file(relative.as_str())
            {
                walk.packages.push(package.to_owned());
            }
        }
        walk.packages.sort();
        walk.directories.sort_by(|left, right| left.0.cmp(&right.0));
        walk
    }
}

fn read_text(path: &Utf8Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
