//! Labels and patterns: what is one, what is not, and which character is to blame.

use graph::{Label, PackageName, Pattern};

fn here() -> PackageName {
    PackageName::in_workspace("nets/deep")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let found = match Pattern::parse(text, &here()) {
        Ok(pattern) => pattern.to_string(),
        Err(fault) => fault.to_string(),
    };
    assert_eq!(found, expected);
}

#[test]
fn labels_are_displayed_in_full() {
    check("//nets:mlp", "//nets:mlp");
    check("//nets/mlp", "//nets/mlp:mlp");
    check("//:top", "//:top");
    check(":mlp", "//nets/deep:mlp");
    check("@ipu//kernels:gemm", "@ipu//kernels:gemm");
    check("@ipu//kernels", "@ipu//kernels:kernels");
    check("//nets:mlp[tiles=64,rows=3]", "//nets:mlp[rows=3,tiles=64]");
    check("//nets:mlp[exchange/3]", "//nets:mlp[exchange/3]");
    check("//nets:mlp[tiles=64][exchange]", "//nets:mlp[tiles=64][exchange]");
    check("//nets:mlp[kernel_object/gemm{k=5,n=1}]", "//nets:mlp[kernel_object/gemm{k=5,n=1}]");
    check("//nets:mlp[tiles=64][measured/gemm{k=5}]", "//nets:mlp[tiles=64][measured/gemm{k=5}]");
    check("//nets:mlp[tiles=64]:program", "//nets:mlp[tiles=64]:program");
    check("//nets:mlp[tiles=64]//nets:program[rows/3]", "//nets:mlp[tiles=64]:program[rows/3]");
    check("//nets:mlp[tiles=64]//other/deep:program", "//nets:mlp[tiles=64]//other/deep:program");
    check("//nets:mlp[tiles=64]@sdk//gemm:f16", "//nets:mlp[tiles=64]@sdk//gemm:f16");
    check("@w//e[se=+]//:s", "@w//e:e[se=+]//:s");
    check("@w//e[se=+]@w//:s", "@w//e:e[se=+]//:s");
    check("//nets/...", "//nets/...");
    check("//...", "//...");
    check("@ipu//...", "@ipu//...");
}

#[test]
fn text_that_is_no_label_is_refused_at_its_column() {
    check("", "`` is not a label: expected `//`, `@` or `:` at column 1");
    check("nets:mlp", "`nets:mlp` is not a label: expected `//`, `@` or `:` at column 1");
    check("/nets", "`/nets` is not a label: expected `//`, `@` or `:` at column 2");
    check("//", "`//` is not a label: expected a package or `:` at column 3");
    check("//nets:", "`//nets:` is not a label: expected a target name at column 8");
    check("//nets//a", "`//nets//a` is not a label: expected a package name at column 8");
    check("//nets/../a", "`//nets/../a` is not a label: expected a package name at column 8");
    check("//nets:a b", "`//nets:a b` is not a label: expected a name character, `:` or `[` at column 9");
    check("//nets:ä", "`//nets:ä` is not a label: expected a target name at column 8");
    check("//a:b[x=1", "`//a:b[x=1` is not a label: expected `,` or `]` at column 10");
    check("//a:b[x=1,x=2]", "`//a:b[x=1,x=2]` is not a label: expected a key that was not given before at column 11");
    check("//a:b[s/]", "`//a:b[s/]` is not a label: expected an index at column 9");
    check("//a:b[s][t]", "`//a:b[s][t]` is not a label: expected nothing after the stage at column 9");
    check("//a:b[x=1]c", "`//a:b[x=1]c` is not a label: expected a name character, `:`, `//`, `@` or `[` at column 11");
    check("//a:b[x=1]@//c:d", "`//a:b[x=1]@//c:d` is not a label: expected a repository name at column 12");
    check("//a:b[x=1]@c:d", "`//a:b[x=1]@c:d` is not a label: expected `//` at column 13");
    check("//a:b[x=1]:", "`//a:b[x=1]:` is not a label: expected a target name at column 12");
    check("//a:b[x=1]//c", "`//a:b[x=1]//c` is not a label: expected `:` at column 14");
    check("//a:b[x=1]//...:c", "`//a:b[x=1]//...:c` is not a label: expected a package name at column 13");
    check("//a:b:c", "`//a:b:c` is not a label: expected a name character, `:` or `[` at column 6");
    check("//a/...:b", "`//a/...:b` is not a label: expected nothing after `...` at column 8");
    check("@//a", "`@//a` is not a label: expected a repository name at column 2");
}

#[test]
fn pattern_where_a_label_is_needed_is_refused() {
    let fault = Label::parse("//nets/...", &here()).expect_err("a pattern");
    assert_eq!(fault.to_string(), "`//nets/...` is not a label: expected one target instead of a pattern at column 8");
}

#[test]
fn parts_of_a_label_are_told_apart() {
    let label = Label::parse("//nets:mlp[tiles=64][exchange/3]", &here()).expect("a label");
    assert_eq!(label.package(), &PackageName::in_workspace("nets"));
    assert_eq!(label.name(), "mlp");
    assert_eq!(label.point().get("tiles").map(String::as_str), Some("64"));
    assert_eq!(label.stage().map(ToString::to_string), Some("[exchange/3]".to_owned()));
    assert_eq!(label.target().to_string(), "//nets:mlp[tiles=64]");
    assert_eq!(label.sweep().to_string(), "//nets:mlp");
    assert_eq!(label.sweep().with_stage("rows", Some("1")).to_string(), "//nets:mlp[rows/1]");
}

#[test]
fn artifacts_of_points_lie_below_those_of_their_sweep() {
    let folder = |text: &str| Label::parse(text, &here()).expect("a label").artifacts();
    assert_eq!(folder("//nets:mlp"), "artifacts/nets/mlp");
    assert_eq!(folder("//:mlp"), "artifacts/mlp");
    assert_eq!(folder("@ipu//nets:mlp"), "artifacts/@ipu/nets/mlp");
    assert_eq!(folder("//nets:mlp[b=1,a=2]"), "artifacts/nets/mlp/points/a=2,b=1");
    assert_eq!(folder("//nets:mlp[a=2]:program"), "artifacts/nets/mlp/points/a=2/program");
    assert_eq!(folder("//nets:mlp[a=2]//other:program"), "artifacts/nets/mlp/points/a=2/other/program");
    assert_eq!(folder("//nets:mlp[a=2]@sdk//other:program"), "artifacts/nets/mlp/points/a=2/@sdk/other/program");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_is_a_pattern_or_a_fault_inside_it(text in "[:/@\\[\\]=,. a-cä]{0,16}") {
        match Pattern::parse(&text, &here()) {
            Ok(pattern) => proptest::prop_assert_eq!(Pattern::parse(&pattern.to_string(), &here()), Ok(pattern)),
            Err(fault) => proptest::prop_assert!((1..=text.chars().count() + 1).contains(&fault.column)),
        }
    }
}
