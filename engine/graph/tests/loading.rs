//! Workspaces: what loads, and the whole message for what does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use graph::{
    Auto, Declaration, EmbeddedRepository, Field, FileGroup, Input, Label, LoadRequest, Override, PackageName, Pattern, Query, Registry,
    Rule, RuleData, RuleKind, SourcePath, Workspace,
};
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize)]
struct Net {
    model: Label,
    #[serde(default)]
    weights: BTreeMap<String, SourcePath>,
    #[serde(default)]
    layout: Layout,
    #[serde(default)]
    op: Vec<Op>,
    #[serde(default)]
    mode: Mode,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
struct Layout {
    #[serde(default)]
    tiles: Auto<u16>,
    #[serde(default)]
    partials: Auto<Partials>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Partials {
    Half,
    Single,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Plain,
    Scaled(f64),
}

#[derive(Debug, PartialEq, Deserialize)]
struct Op {
    name: String,
    args: Vec<String>,
}

struct NetRule;

impl Rule for NetRule {
    fn name(&self) -> &'static str {
        "net"
    }

    fn summary(&self) -> &'static str {
        "A net."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("model", "label of a `filegroup`", "The model.").accepting(&["filegroup"]),
            Field::optional("weights", "table of files", "The weights."),
            Field::optional("layout", "table", "The layout."),
            Field::optional("op", "list of tables", "The operations."),
            Field::optional("mode", "\"plain\" or { scaled = NUMBER }", "The mode."),
        ];
        FIELDS
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Built
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        let net = declaration.read::<Net>()?;
        if let Auto::Value(tiles) = net.layout.tiles
            && tiles > 1472
        {
            declaration.fault("layout.tiles", format!("{tiles} tiles"), "at most 1472");
            return None;
        }
        Some(Arc::new(net))
    }
}

struct Fixture {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
}

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Fixture {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = Utf8Path::from_path(directory.path()).expect("UTF-8").canonicalize_utf8().expect("a directory");
        std::fs::write(root.join("WORKSPACE.toml"), "name = \"test\"\n").expect("written");
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            std::fs::write(path, text).expect("written");
        }
        Fixture { _directory: directory, root }
    }

    fn load(&self, patterns: &[&str], overrides: &[&str]) -> Result<Workspace, String> {
        let mut registry = Registry::with_generic_rules();
        registry.add(NetRule);
        let package = PackageName::in_workspace("");
        let patterns: Vec<Pattern> = patterns.iter().map(|text| Pattern::parse(text, &package).expect("a pattern")).collect();
        let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("a change")).collect();
        Workspace::load(&LoadRequest {
            root: &self.root,
            registry: &registry,
            repositories: &[embedded()],
            patterns: &patterns,
            overrides: &overrides,
        })
        .map_err(|diagnostics| diagnostics.to_string())
    }
}

fn embedded() -> EmbeddedRepository {
    EmbeddedRepository::new(
        "ipu",
        [("kernels/BUILD.toml", &b"[gemm]\nrule = \"filegroup\"\nsrcs = [\"gemm.S\"]\n"[..]), ("kernels/gemm.S", &b"nop\n"[..])],
    )
}

fn label(text: &str) -> Label {
    Label::parse(text, &PackageName::in_workspace("")).expect("a label")
}

/// Loads `//...` of a workspace whose package `nets` has this BUILD.toml.
#[track_caller]
fn check(build: &str, expected: &str) {
    let fixture = Fixture::new(&[("nets/BUILD.toml", build), ("nets/w.npy", "")]);
    let found = fixture.load(&["//..."], &[]).map(|_| "loads".to_owned()).unwrap_or_else(|message| message);
    assert_eq!(found.trim_end(), expected.trim());
}

const MODEL: &str = "[model]\nrule = \"filegroup\"\nsrcs = [\"w.npy\"]\n";

#[test]
fn declaration_is_read_with_labels_and_sources_resolved() {
    let build = format!(
        "{MODEL}[mlp]\nrule = \"net\"\nmodel = \":model\"\nweights.w = \"w.npy\"\nlayout = {{ tiles = 64, partials = \"auto\" }}\nmode = {{ scaled = 2 }}\n[[mlp.op]]\nname = \"q\"\nargs = [\"a\"]\n"
    );
    let fixture = Fixture::new(&[("nets/BUILD.toml", &build), ("nets/w.npy", "")]);
    let workspace = fixture.load(&["//nets:mlp"], &[]).expect("loads");
    let target = workspace.target(&label("//nets:mlp")).expect("declared");
    let source = SourcePath { repository: String::new(), path: "nets/w.npy".to_owned() };
    let expected = Net {
        model: label("//nets:model"),
        weights: BTreeMap::from([("w".to_owned(), source)]),
        layout: Layout { tiles: Auto::Value(64), partials: Auto::Auto },
        op: vec![Op { name: "q".to_owned(), args: vec!["a".to_owned()] }],
        mode: Mode::Scaled(2.0),
    };
    assert_eq!(target.data::<Net>().as_deref(), Some(&expected));
    assert_eq!(workspace.requested(), [label("//nets:mlp")]);
    assert_eq!(target.place_of("layout.tiles").to_string(), "nets/BUILD.toml:8:20");
    assert_eq!(workspace.name(), "test");
}

#[test]
fn every_independent_fault_is_reported_in_source_order() {
    check(
        r#"[model]
rule = "filegroup"
srcs = ["w.npi", "../w.npy", 3]

[mlp]
rule = "net"
modle = ":model"
weights = { a = "w.npy", b = "/etc/passwd" }
layout = { tile = 3, tiles = 70000, partials = "haalf" }
[[mlp.op]]
name = 5
args = ["a", 1, "b", false]
[[mlp.op]]
name = "b"

[other]
rule = "nett"

[last]
rule = "net"
model = ":modell"
mode = 3
"#,
        r#"
error: //nets:model, srcs[0]: there is no file `nets/w.npi`
 --> nets/BUILD.toml:3:9     expected a file below the workspace root; nearest w.npy
error: //nets:model, srcs[1]: `../w.npy` is not a source
 --> nets/BUILD.toml:3:18     expected a path without `.`, `..` and empty names: sources lie below the workspace root
error: //nets:model, srcs[2]: found integer 3
 --> nets/BUILD.toml:3:30     expected a file's path or a label
error: //nets:mlp: missing field `model`
 --> nets/BUILD.toml:5:2     expected label of a `filegroup`
error: //nets:mlp: unknown field `modle`
 --> nets/BUILD.toml:7:1     expected one of `model`, `weights`, `layout`, `op`, `mode`; nearest mode, model
error: //nets:mlp, weights.b: `/etc/passwd` is not a source
 --> nets/BUILD.toml:8:30     expected a path relative to the package, or `//` and a path below the workspace root
error: //nets:mlp, layout: unknown field `tile`
 --> nets/BUILD.toml:9:12     expected one of `tiles`, `partials`; nearest tiles
error: //nets:mlp, layout.tiles: found integer 70000
 --> nets/BUILD.toml:9:30     expected an integer from 0 to 65535
error: //nets:mlp, layout.partials: found string "haalf"
 --> nets/BUILD.toml:9:48     expected "half" or "single"; nearest half
error: //nets:mlp, op[0].name: found integer 5
 --> nets/BUILD.toml:11:8     expected a string
error: //nets:mlp, op[0].args[1]: found integer 1
 --> nets/BUILD.toml:12:14     expected a string
error: //nets:mlp, op[0].args[3]: found boolean false
 --> nets/BUILD.toml:12:22     expected a string
error: //nets:mlp, op[1]: missing field `args`
 --> nets/BUILD.toml:13:1
error: //nets:other, rule: unknown rule `nett`
 --> nets/BUILD.toml:17:8     expected one of `filegroup`, `net`, `sweep`, `test_suite`; nearest net
error: //nets:last, model: unknown target `//nets:modell`
 --> nets/BUILD.toml:21:9     expected one of `last`, `mlp`, `model`, `other`; nearest model
error: //nets:last, mode: found integer 3
 --> nets/BUILD.toml:22:8     expected "plain" or "scaled"
"#,
    );
}

#[test]
fn fault_of_a_rule_has_the_place_of_its_field() {
    check(
        &format!("{MODEL}[mlp]\nrule = \"net\"\nmodel = \":model\"\nlayout.tiles = 1473\n"),
        "error: //nets:mlp, layout.tiles: 1473 tiles\n --> nets/BUILD.toml:7:16     expected at most 1472",
    );
}

#[test]
fn text_that_is_not_toml_is_one_fault_at_its_place() {
    check(
        "[model]\nrule = \nsrcs = []\n",
        "error: not TOML: string values must be quoted, expected literal string\n --> nets/BUILD.toml:2:8",
    );
}

#[test]
fn target_that_is_no_table_and_name_that_is_no_label_are_refused() {
    check(
        "model = 3\n[\"a b\"]\nrule = \"filegroup\"\n[c]\n",
        "error: `model` is not a table\n --> nets/BUILD.toml:1:1     expected a table with `rule = \"…\"`\n\
         error: `a b` cannot be a target's name\n --> nets/BUILD.toml:2:2     expected letters, digits and `_ - . +`\n\
         error: //nets:c: no rule\n --> nets/BUILD.toml:4:2     expected a field `rule` with the name of a rule",
    );
}

#[test]
fn missing_source_is_named_with_files_like_it() {
    check(
        "[model]\nrule = \"filegroup\"\nsrcs = [\"v.npy\", \"w.npy\"]\n",
        "error: //nets:model, srcs[0]: there is no file `nets/v.npy`\n --> nets/BUILD.toml:3:9     expected a file below the workspace root; nearest w.npy",
    );
}

#[test]
fn folder_is_no_source() {
    let build = "[model]\nrule = \"filegroup\"\nsrcs = [\"below\"]\n";
    let fixture = Fixture::new(&[("nets/BUILD.toml", build), ("nets/below/w.npy", "")]);
    let found = fixture.load(&["//..."], &[]).map(|_| ()).expect_err("refused");
    assert_eq!(
        found.trim_end(),
        "error: //nets:model, srcs[0]: `nets/below` is not a regular file\n --> nets/BUILD.toml:3:9     expected a file below the workspace root"
    );
}

#[test]
fn label_of_another_kind_names_both_places() {
    check(
        &format!("{MODEL}[a]\nrule = \"net\"\nmodel = \":b\"\n[b]\nrule = \"net\"\nmodel = \":model\"\n"),
        "error: //nets:a, model: `//nets:b` is a `net`\n --> nets/BUILD.toml:6:9     expected a `filegroup`\n --> nets/BUILD.toml:7:2     `//nets:b` is declared here",
    );
}

#[test]
fn circle_of_targets_names_both_places() {
    check(
        "[a]\nrule = \"test_suite\"\ntests = [\":b\"]\n[b]\nrule = \"test_suite\"\ntests = [\":c\"]\n[c]\nrule = \"test_suite\"\ntests = [\":b\"]\n[d]\nrule = \"test_suite\"\ntests = [\":d\"]\n",
        "error: //nets:c, tests[0]: depends on itself: //nets:c -> //nets:b -> //nets:c\n --> nets/BUILD.toml:9:10\n --> nets/BUILD.toml:6:10     `//nets:b` names `//nets:c` here\n\
         error: //nets:d, tests[0]: depends on itself: //nets:d -> //nets:d\n --> nets/BUILD.toml:12:10\n --> nets/BUILD.toml:12:10     `//nets:d` names `//nets:d` here",
    );
}

#[test]
fn unknown_packages_and_repositories_are_named() {
    check(
        "[a]\nrule = \"test_suite\"\ntests = [\"//net:x\", \"@ipv//kernels:gemm\", \"@ipu//kernels:gem\", \":a:b\"]\n",
        "error: //nets:a, tests[0]: unknown package `//net`\n --> nets/BUILD.toml:3:10     expected a directory with a BUILD.toml; nearest //nets\n\
         error: //nets:a, tests[1]: unknown repository `@ipv`\n --> nets/BUILD.toml:3:21     expected `@ipu`\n\
         error: //nets:a, tests[2]: unknown target `@ipu//kernels:gem`\n --> nets/BUILD.toml:3:43     expected `gemm`; nearest gemm\n\
         error: //nets:a, tests[3]: `:a:b` is not a label\n --> nets/BUILD.toml:3:64     expected a name character, `:` or `[` at column 3",
    );
}

#[test]
fn unknown_target_on_the_command_line_has_no_place() {
    let fixture = Fixture::new(&[("nets/BUILD.toml", MODEL), ("nets/w.npy", "")]);
    let message = |pattern: &str| fixture.load(&[pattern], &[]).err().expect("refused");
    assert_eq!(message("//nets:modle"), "error: unknown target `//nets:modle`\n     expected `model`; nearest model");
    assert_eq!(message("//nats:model"), "error: unknown package `//nats`\n     expected a directory with a BUILD.toml; nearest //nets");
    assert_eq!(message("//nats/..."), "error: `//nats/...` names no target");
}

#[test]
fn workspace_file_is_checked_and_found_from_below() {
    let fixture = Fixture::new(&[("nets/deep/BUILD.toml", "")]);
    assert_eq!(Workspace::find_root(&fixture.root.join("nets/deep")), Ok(fixture.root.clone()));
    std::fs::write(fixture.root.join("WORKSPACE.toml"), "nane = \"x\"\n").expect("written");
    assert_eq!(
        fixture.load(&[], &[]).err().expect("refused"),
        "error: unknown field `nane`\n --> WORKSPACE.toml:1:1     expected `name`; nearest name"
    );
}

#[test]
fn form_of_a_declaration_does_not_reach_its_digest() {
    let digest = |build: &str| {
        let fixture = Fixture::new(&[("nets/BUILD.toml", &format!("{MODEL}{build}")), ("nets/w.npy", "")]);
        let workspace = fixture.load(&["//..."], &[]).expect("loads");
        workspace.target(&label("//nets:mlp")).expect("declared").declared().digest
    };
    let plain = digest("[mlp]\nrule = \"net\"\nmodel = \":model\"\nlayout = { tiles = 64 }\n");
    assert_eq!(plain, digest("# why\n\n[mlp]\nlayout.tiles = 0x40 # so\nmodel = ':model'\nrule   = \"net\"\n"));
    assert_ne!(plain, digest("[mlp]\nrule = \"net\"\nmodel = \":model\"\nlayout = { tiles = 65 }\n"));
}

#[test]
fn change_on_the_command_line_reaches_targets_with_the_field() {
    let build = format!("{MODEL}[mlp]\nrule = \"net\"\nmodel = \":model\"\n");
    let fixture = Fixture::new(&[("nets/BUILD.toml", &build), ("nets/w.npy", "")]);
    let tiles = |change: &str| {
        let workspace = fixture.load(&["//nets:mlp"], &[change])?;
        let net = workspace.target(&label("//nets:mlp")).and_then(|target| target.data::<Net>());
        Ok::<_, String>(net.expect("a net").layout.tiles)
    };
    assert_eq!(tiles("layout.tiles=32"), Ok(Auto::Value(32)));
    assert_eq!(tiles("layout.tiles=auto"), Ok(Auto::Auto));
    assert_eq!(
        tiles("layout.tiles=many"),
        Err("error: //nets:mlp, layout.tiles: found string \"many\"\n --> --set layout.tiles=many     expected an integer from 0 to 65535"
            .to_owned())
    );
    assert_eq!(
        tiles("layuot.tiles=3"),
        Err("error: unknown field `layuot`\n --> --set layuot.tiles=3     expected one of `layout`, `mode`, `model`, `op`, `srcs`, `weights`; nearest layout".to_owned())
    );
}

#[test]
fn queries_follow_dependencies_both_ways() {
    let build = format!(
        "{MODEL}[mlp]\nrule = \"net\"\nmodel = \":model\"\n[all]\nrule = \"test_suite\"\ntests = [\":mlp\", \"@ipu//kernels:gemm\"]\n"
    );
    let fixture = Fixture::new(&[("nets/BUILD.toml", &build), ("nets/w.npy", "")]);
    let workspace = fixture.load(&["//..."], &[]).expect("loads");
    let answer = |text: &str| {
        let query = Query::parse(text, &PackageName::in_workspace("")).expect("a query");
        query.answer(&workspace).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(answer("deps(//nets:mlp)"), "//nets:mlp //nets:model");
    assert_eq!(answer("rdeps(//..., //nets:model)"), "//nets:all //nets:mlp //nets:model");
    assert_eq!(answer("rdeps(//..., @ipu//kernels:gemm)"), "//nets:all @ipu//kernels:gemm");
    assert_eq!(answer("//nets/..."), "//nets:all //nets:mlp //nets:model");
    let members = workspace.expand_suites(&[label("//nets:all"), label("//nets:mlp")]);
    assert_eq!(members, [label("//nets:mlp"), label("@ipu//kernels:gemm")]);
}

#[test]
fn embedded_targets_resolve_inside_their_repository() {
    let workspace = Fixture::new(&[]).load(&["@ipu//kernels:gemm"], &[]).expect("loads");
    let group = workspace.target(&label("@ipu//kernels:gemm")).and_then(|target| target.data::<FileGroup>());
    let path = SourcePath { repository: "ipu".to_owned(), path: "kernels/gemm.S".to_owned() };
    assert_eq!(path.to_string(), "@ipu//kernels/gemm.S");
    assert_eq!(group.expect("a group").srcs, [Input::File(path)]);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(128))]

    #[test]
    fn any_build_file_loads_or_is_explained(lines in proptest::collection::vec(line(), 0..12)) {
        let fixture = Fixture::new(&[("nets/BUILD.toml", &lines.join("\n")), ("nets/w.npy", "")]);
        if let Err(message) = fixture.load(&["//..."], &[]) {
            proptest::prop_assert!(message.starts_with("error: "));
        }
    }
}

fn line() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let key = "(rule|model|srcs|layout|layout\\.tiles|op|mode|tests|weights|\"x y\")";
    let value = "(\"net\"|\"filegroup\"|\":a\"|\":b\"|3|-1e9|99999999999999999999|1979-05-27|true|\\[\\]|\\[\"w.npy\", 4\\]|\\{ tiles = \"auto\" \\}|\\{ scaled = \\[\\] \\}|\"\")";
    prop_oneof![
        4 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        2 => "\\[(a|b|a\\.layout|a\\.op)\\]",
        1 => "\\[\\[(a\\.op|b\\.op|c)\\]\\]",
        1 => ".{0,12}",
    ]
}
