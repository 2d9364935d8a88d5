//! Queries over a graph of filegroups: `a` over `b` and `c`, both over `d`; `e` by itself; `far:f` over `a`.

use camino::Utf8Path;
use graph::{LoadRequest, PackageName, Pattern, Query, Registry, Workspace};

const BUILD: &str = r#"
a = { rule = "filegroup", srcs = [":b", ":c"] }
b = { rule = "filegroup", srcs = [":d", "one.txt"] }
c = { rule = "filegroup", srcs = [":d"] }
d = { rule = "filegroup", srcs = ["one.txt"] }
e = { rule = "filegroup", srcs = [] }
all = { rule = "test_suite", tests = [] }
"#;

fn workspace() -> (tempfile::TempDir, Workspace) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = Utf8Path::from_path(directory.path()).expect("UTF-8").canonicalize_utf8().expect("a directory");
    for (path, text) in [
        ("WORKSPACE.toml", ""),
        ("near/BUILD.toml", BUILD),
        ("near/one.txt", "1"),
        ("far/BUILD.toml", "f = { rule = \"filegroup\", srcs = [\"//near:a\"] }"),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        std::fs::write(path, text).expect("written");
    }
    let registry = Registry::with_generic_rules();
    let patterns = [Pattern::Below(PackageName::in_workspace(""))];
    let request = LoadRequest { root: &root, registry: &registry, repositories: &[], patterns: &patterns, overrides: &[] };
    let workspace = Workspace::load(&request).unwrap_or_else(|faults| panic!("{faults}"));
    (directory, workspace)
}

fn parse(text: &str) -> Result<Query, String> {
    Query::parse(text, &PackageName::in_workspace("near")).map_err(|fault| fault.to_string())
}

#[test]
fn every_function_and_operator_has_its_answer() {
    let (_directory, workspace) = workspace();
    for (text, expected) in [
        (":a", "a"),
        ("//near/...", "a all b c d e"),
        ("set(:a :e //far:f)", "f a e"),
        ("deps(:a)", "a b c d"),
        ("deps(:a, 1)", "a b c"),
        ("deps(:a, 0)", "a"),
        ("rdeps(//..., :d)", "f a b c d"),
        ("rdeps(//..., :d, 1)", "b c d"),
        ("rdeps(:b, :d)", "b d"),
        ("rdeps(:e, :d)", ""),
        ("allpaths(//far:f, :d)", "f a b c d"),
        ("allpaths(:b, :c)", ""),
        ("somepath(//far:f, :d)", "f a b d"),
        ("somepath(:d, :a)", ""),
        ("somepath(:d, :d)", "d"),
        ("kind(test_suite, //...)", "all"),
        ("kind('file*', //far/...)", "f"),
        ("attr(srcs, '[\":d\"]', //...)", "c"),
        ("attr(srcs, *one*, //...)", "b d"),
        ("deps(:a) - deps(:b)", "a c"),
        ("deps(:a) except :a except :b", "c d"),
        ("deps(:b) ^ deps(:c)", "d"),
        (":e + (deps(:a) intersect set(:b :c)) union :all", "all b c e"),
        ("somepath(:a, :d) - :a", "b d"),
    ] {
        let query = parse(text).unwrap_or_else(|fault| panic!("{fault}"));
        let answer: Vec<String> = query.answer(&workspace).iter().map(|label| label.name().to_owned()).collect();
        assert_eq!(answer.join(" "), expected, "{text}");
    }
}

#[test]
fn faults_name_column_expected_and_found() {
    for (text, expected) in [
        ("", "`` is not a query: expected a pattern, a function or `(` at column 1, found the end"),
        ("deps(:a", "`deps(:a` is not a query: expected `)` at column 8, found the end"),
        ("deps(:a, x)", "`deps(:a, x)` is not a query: expected a number of steps at column 10, found `x`"),
        (":a :b", "`:a :b` is not a query: expected `union`, `intersect`, `except` or the end at column 4, found `:b`"),
        ("deps(nets)", "`deps(nets)` is not a query: expected `//`, `@` or `:` at column 6, found `n`"),
        ("allpaths(:a)", "`allpaths(:a)` is not a query: expected `,` at column 12, found `)`"),
        (
            "dep(:a)",
            "`dep(:a)` is not a query: expected one of deps(X[, DEPTH]), rdeps(UNIVERSE, X[, DEPTH]), allpaths(FROM, TO), \
             somepath(FROM, TO), kind(RULE, X), attr(FIELD, VALUE, X), set(PATTERN ...), nearest `deps`, `rdeps`, `set` at column 1, found `dep`",
        ),
    ] {
        assert_eq!(parse(text).expect_err("no query"), expected, "{text}");
    }
    let long = format!(":a{}", " + :a".repeat(25_000));
    assert!(parse(&long).expect_err("too long").contains("expected at most 1000 operators in a row, or `set(...)` at column 5004"));
    let deep = format!("{}:a{}", "(".repeat(5000), ")".repeat(5000));
    assert!(parse(&deep).expect_err("too deep").contains("at most 100 expressions inside of each other at column 101"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_a_query_or_explained(words in proptest::collection::vec(
        proptest::sample::select(vec!["deps", "(", ")", ",", ":a", "//...", "+", "-", "^", "union", "set", "'", "\"", "[", "]", " ", "3", "kind", "é"]), 0..24)
    ) {
        let (text, spaced) = (words.concat(), words.join(" "));
        for text in [text, spaced] {
            if let Err(fault) = parse(&text) {
                proptest::prop_assert!(fault.contains(" is not a query: expected "), "{}", fault);
            }
        }
    }
}
