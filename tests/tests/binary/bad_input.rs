//! Bad input of every kind of file: one clear error each, exit code 1 or 2, and a store that serves the next good build.

use tests::fake_sdk;
use tests::kernel_files::source;

use crate::place::{Place, Ran, halves, npy, safetensors};

/// What is done to a good workspace, the arguments, and the answer.
struct Case {
    name: &'static str,
    spoil: fn(&Place),
    arguments: &'static [&'static str],
    code: i32,
    /// Begins the message behind `error: `; an ellipsis stands for anything.
    message: &'static str,
}

const RUN: &[&str] = &["//:run"];

fn replaced(place: &Place, old: &str, new: &str) {
    place.replace("BUILD.toml", old, new);
}

const WORKSPACE_FILE: &[Case] = &[
    Case {
        name: "not TOML",
        spoil: |place| place.write("WORKSPACE.toml", b"name = \n"),
        arguments: RUN,
        code: 2,
        message: "not TOML: string values must be quoted, expected literal string\n --> WORKSPACE.toml:1:8",
    },
    Case {
        name: "unknown field",
        spoil: |place| place.write("WORKSPACE.toml", b"nmae = \"x\"\n"),
        arguments: RUN,
        code: 2,
        message: "unknown field `nmae`\n --> WORKSPACE.toml:1:1     expected `name`; nearest name",
    },
    Case {
        name: "absent",
        spoil: |place| std::fs::remove_file(place.root().join("WORKSPACE.toml")).expect("removed"),
        arguments: RUN,
        code: 2,
        message: "no WORKSPACE.toml in /…/workspace or above\n",
    },
];

const BUILD_FILE: &[Case] = &[
    Case {
        name: "not TOML",
        spoil: |place| replaced(place, "rule = \"model\"", "rule = \"model"),
        arguments: RUN,
        code: 2,
        message: "not TOML: invalid basic string, expected `\"`\n --> BUILD.toml:2:14",
    },
    Case {
        name: "not UTF-8",
        spoil: |place| place.write("BUILD.toml", b"[a]\nrule = \"\xff\"\n"),
        arguments: RUN,
        code: 2,
        message: "cannot be read: stream did not contain valid UTF-8\n --> BUILD.toml:1:1",
    },
    Case {
        name: "unknown rule",
        spoil: |place| replaced(place, "\"program\"\nmodel", "\"pogram\"\nmodel"),
        arguments: RUN,
        code: 2,
        message: "//:program, rule: unknown rule `pogram`\n --> BUILD.toml:30:8     expected one of `device`, `filegroup`, `kernel_library`, `machine`, `model`, `program`, `run`, `sweep`, `tensors`, `test_suite`, `toolchain`; nearest program\n",
    },
    Case {
        name: "unknown field",
        spoil: |place| replaced(place, "checkpoints", "checkpoint"),
        arguments: RUN,
        code: 2,
        message: "//:program: unknown field `checkpoint`\n --> BUILD.toml:35:1     expected one of `model`, `machine`, `kernels`, `layout`, `checkpoints`; nearest checkpoints\n",
    },
    Case {
        name: "missing field",
        spoil: |place| replaced(place, "machine = \":machine\"\n", ""),
        arguments: RUN,
        code: 2,
        message: "//:program: missing field `machine`\n --> BUILD.toml:29:2     expected label of a `machine`\n",
    },
    Case {
        name: "repeated target",
        spoil: |place| replaced(place, "[weights]", "[input]"),
        arguments: RUN,
        code: 2,
        message: "not TOML: duplicate key\n --> BUILD.toml:15:2\n",
    },
    Case {
        name: "wrong type",
        spoil: |place| replaced(place, "tiles = 2", "tiles = \"two\""),
        arguments: RUN,
        code: 2,
        message: "//:program, layout.tiles: found string \"two\"\n --> BUILD.toml:34:20     expected an integer from 0 to 4294967295\n",
    },
    Case {
        name: "out of range",
        spoil: |place| replaced(place, "tiles = 2", "tiles = 5000"),
        arguments: RUN,
        code: 2,
        message: "//:program, layout.tiles: found 5000\n --> BUILD.toml:34:20     expected 1 to 1472\n",
    },
    Case {
        name: "dangling label",
        spoil: |place| replaced(place, "\":weights\"", "\":wieghts\""),
        arguments: RUN,
        code: 2,
        message: "//:run, parameters: unknown target `//:wieghts`\n --> BUILD.toml:42:14     expected one of `input`, `machine`, `mine`, `model`, `program`, `run`, `weights`; nearest weights\n",
    },
    Case {
        name: "label of another rule",
        spoil: |place| replaced(place, "\":model\"", "\":weights\""),
        arguments: RUN,
        code: 2,
        message: "//:program, model: `//:weights` is a `tensors`\n --> BUILD.toml:31:9     expected a `model`\n --> BUILD.toml:15:2     `//:weights` is declared here\n",
    },
    Case {
        name: "malformed label",
        spoil: |place| replaced(place, "\":model\"", "\"//a::b\""),
        arguments: RUN,
        code: 2,
        message: "//:program, model: `//a::b` is not a label\n --> BUILD.toml:31:9     expected a target name at column 5\n",
    },
    Case {
        name: "circle",
        spoil: |place| {
            place.write("BUILD.toml", b"[a]\nrule = \"test_suite\"\ntests = [\":b\"]\n[b]\nrule = \"test_suite\"\ntests = [\":a\"]\n")
        },
        arguments: &["test", "//:a"],
        code: 2,
        message: "//:b, tests[0]: depends on itself: //:b -> //:a -> //:b\n --> BUILD.toml:6:10\n --> BUILD.toml:3:10     `//:a` names `//:b` here\n",
    },
    Case {
        name: "negative tolerance",
        spoil: |place| replaced(place, "3e-3", "-1"),
        arguments: RUN,
        code: 2,
        message: "//:run, tolerance.default: found -1\n --> BUILD.toml:43:25     expected a finite number of at least 0\n",
    },
    Case {
        name: "input without tensor",
        spoil: |place| replaced(place, "hidden = \":input\"", ""),
        arguments: RUN,
        code: 2,
        message: "//:run, tensors.hidden: there is no tensor for `hidden`: expected a label of `tensors` in `tensors.hidden`\n --> BUILD.toml:41:11\n",
    },
    Case {
        name: "no board",
        spoil: |place| replaced(place, "devices:simulator", "devices:ipu0"),
        arguments: RUN,
        code: 1,
        message: "@ipu//devices:ipu0: device node /dev/ipu0: …\nsecondary loader: no file named; …\nboard configuration: no file named; ",
    },
];

const MODEL: &[Case] = &[
    Case {
        name: "unknown operation",
        spoil: |place| replaced(place, "\"matmul\"", "\"matmull\""),
        arguments: RUN,
        code: 2,
        message: "//:model[model]: operation `output`: unknown op `matmull`; expected matmul, split or attention\n",
    },
    Case {
        name: "unknown argument",
        spoil: |place| replaced(place, "\"hidden\", ", "\"hiden\", "),
        arguments: RUN,
        code: 2,
        message: "//:model[model]: operation `output`, args[0]: `hiden` is no input, parameter or earlier result\n",
    },
    Case {
        name: "shapes that disagree",
        spoil: |place| replaced(place, "shape = [16, 16]", "shape = [24, 16]"),
        arguments: RUN,
        code: 2,
        message: "//:model[model]: operation `output`, args[1]: expected shape [16, out], found [24, 16]\n",
    },
    Case {
        name: "extent of 0",
        spoil: |place| replaced(place, "shape = [1, 16, 16]", "shape = [1, 0, 16]"),
        arguments: RUN,
        code: 2,
        message: "//:model[model]: `hidden`: expected shape one to four extents of at least 1, at most 1073741824 elements, found [1, 0, 16]\n",
    },
    Case {
        name: "more elements than can be counted",
        spoil: |place| replaced(place, "shape = [1, 16, 16]", "shape = [4294967295, 4294967295, 16]"),
        arguments: RUN,
        code: 2,
        message: "//:model[model]: `hidden`: expected shape one to four extents of at least 1, at most 1073741824 elements, found [4294967295, 4294967295, 16]\n",
    },
    Case {
        name: "checkpoint that is not there",
        spoil: |place| replaced(place, "[0]", "[7]"),
        arguments: RUN,
        code: 1,
        message: "//:program[finalists]: checkpoint 7 is no operation with a result of its own; possible: [0]\n",
    },
    Case {
        name: "too large for the tiles",
        spoil: |place| {
            replaced(place, "shape = [1, 16, 16]", "shape = [1, 2048, 512]");
            replaced(place, "shape = [16, 16]", "shape = [512, 512]");
        },
        arguments: &["build", "//:program"],
        code: 1,
        message: "//:program[finalists]: does not fit: the smallest plan needs … bytes on a tile, ",
    },
];

const TENSORS: &[Case] = &[
    Case {
        name: "npy cut short",
        spoil: |place| place.write("hidden.npy", &npy("<f2", "(1, 16, 16)", &halves(255))),
        arguments: RUN,
        code: 2,
        message: "//:input[tensor/hidden], files: hidden.npy: failed to fill whole buffer\n --> BUILD.toml:13:9\n",
    },
    Case {
        name: "npy without its magic",
        spoil: |place| place.write("hidden.npy", b"hello"),
        arguments: RUN,
        code: 2,
        message: "//:input[tensor/hidden], files: hidden.npy: magic not found for NPY file\n --> BUILD.toml:13:9\n",
    },
    Case {
        name: "npy of integers",
        spoil: |place| place.write("hidden.npy", &npy("<i2", "(1, 16, 16)", &halves(256))),
        arguments: RUN,
        code: 2,
        message: "//:input[tensor/hidden], files: hidden.npy: tensor `hidden`: expected elements of type f16, f32 or f64, found '<i2'\n",
    },
    Case {
        name: "npy of another shape",
        spoil: |place| place.write("hidden.npy", &npy("<f2", "(1, 8, 32)", &halves(256))),
        arguments: RUN,
        code: 2,
        message: "//:run, tensors.hidden: tensor `hidden` of //:input: expected shape [1, 16, 16], found [1, 8, 32]\n --> BUILD.toml:41:22\n",
    },
    Case {
        name: "npy with a shape beyond counting",
        spoil: |place| place.write("hidden.npy", &npy("<f2", "(4294967296, 4294967296, 4)", &halves(256))),
        arguments: RUN,
        code: 2,
        message: "//:input[tensor/hidden], files: hidden.npy: tensor `hidden`: more than 2^32 elements\n",
    },
    Case {
        name: "safetensors with a header beyond its end",
        spoil: |place| place.write("weights.safetensors", &[0xff; 16]),
        arguments: RUN,
        code: 2,
        message: "//:weights[tensor/weight], files: weights.safetensors: header too large\n --> BUILD.toml:17:9\n",
    },
    Case {
        name: "safetensors with a broken header",
        spoil: |place| place.write("weights.safetensors", &safetensors("{\"weight\":", &[])),
        arguments: RUN,
        code: 2,
        message: "//:weights[tensor/weight], files: weights.safetensors: invalid JSON in header: EOF while parsing a value at line 1 column 10\n",
    },
    Case {
        name: "safetensors without the tensor",
        spoil: |place| {
            let header = r#"{"wieght":{"dtype":"F16","shape":[16,16],"data_offsets":[0,512]}}"#;
            place.write("weights.safetensors", &safetensors(header, &halves(256)));
        },
        arguments: RUN,
        code: 2,
        message: "//:weights[tensor/weight], files: there is no tensor `weight` in the files; there are wieght\n",
    },
    Case {
        name: "file that is not there",
        spoil: |place| replaced(place, "hidden.npy", "hiden.npy"),
        arguments: RUN,
        code: 2,
        message: "//:input, files[0]: there is no file `hiden.npy`\n --> BUILD.toml:13:10     expected a file below the workspace root; nearest hidden.npy\n",
    },
    Case {
        name: "file of another kind",
        spoil: |place| {
            place.write("hidden.txt", b"1 2 3");
            replaced(place, "hidden.npy", "hidden.txt");
        },
        arguments: RUN,
        code: 2,
        message: "//:input[tensor/hidden], files: hidden.txt: expected a file named *.npy or *.safetensors\n",
    },
    Case {
        name: "drawn without a seed",
        spoil: |place| replaced(place, "files = [\"hidden.npy\"]", "normal.hidden = { shape = [1, 16, 16] }"),
        arguments: RUN,
        code: 2,
        message: "//:input, normal: values are drawn without a `seed`\n --> BUILD.toml:13:1     expected a field `seed`\n",
    },
];

const KERNELS: &[Case] = &[
    Case {
        name: "manifest that is not TOML",
        spoil: |place| place.write("kernels.toml", b"[[kernel]\n"),
        arguments: RUN,
        code: 2,
        message: "//:mine, manifest: kernels.toml:1:10: unclosed array table, expected `]`\n --> BUILD.toml:21:12\n",
    },
    Case {
        name: "manifest with a broken expression",
        spoil: |place| place.replace("kernels.toml", "cycles = \"", "cycles = \"1+*"),
        arguments: RUN,
        code: 2,
        message: "//:mine, manifest: kernels.toml:6:13: gemm: expected a value, found `*`\n --> BUILD.toml:21:12\n",
    },
    Case {
        name: "manifest with a source that is not listed",
        spoil: |place| place.replace("kernels.toml", "gemm.S", "gmem.S"),
        arguments: RUN,
        code: 2,
        message: "//:mine, manifest: kernel `gemm`: its source `gmem.S` is not in `srcs`\n --> BUILD.toml:21:12\n",
    },
    Case {
        name: "assembly with an unknown instruction",
        spoil: |place| place.replace("gemm.S", "        runall ", "        runnall "),
        arguments: RUN,
        code: 2,
        message: "//:program[kernel_object/gemm{…}]: gemm.S:87:9: unknown instruction `runnall`; nearest is `runall`\n",
    },
    Case {
        name: "assembly without its entry",
        spoil: |place| place.replace("kernels.toml", "entry = \"gemm\"", "entry = \"gmem\""),
        arguments: RUN,
        code: 2,
        message: "//:program[measured/gemm{…}]: gemm.S: the entry symbol `gmem` is not defined\n",
    },
    Case {
        name: "assembly that is not text",
        spoil: |place| place.write("gemm.S", b"\xff\xfe\x00"),
        arguments: RUN,
        code: 2,
        message: "//:program[kernel_object/gemm{…}]: gemm.S: invalid utf-8 sequence of 1 bytes from index 0\n",
    },
    Case {
        name: "parameters that are not TOML",
        spoil: |place| place.write("parameters.toml", b"[immediate\n"),
        arguments: RUN,
        code: 2,
        message: "//:machine, parameters: parameters.toml:1:11: unclosed table, expected `]`\n",
    },
    Case {
        name: "parameters that lack one",
        spoil: |place| place.replace("parameters.toml", "tamp_f16v4_e4", "tamp_f16v4_e5"),
        arguments: RUN,
        code: 2,
        message: "//:machine, parameters: parameters.toml:7:1: unknown field `tamp_f16v4_e5`, expected one of …\n",
    },
    Case {
        name: "parameter of another type",
        spoil: |place| place.replace("parameters.toml", "default = 1", "default = \"one\""),
        arguments: RUN,
        code: 2,
        message: "//:machine, parameters: parameters.toml:24:11: slots.default: invalid type: string \"one\", expected u32\n",
    },
    Case {
        name: "parameter that the simulator cannot follow",
        spoil: |place| place.replace("parameters.toml", "abs_int_min = \"int_min\"", "abs_int_min = \"zero\""),
        arguments: RUN,
        code: 2,
        message: "//:machine, parameters: parameters.toml:…: state.abs_int_min: expected \"int_min\", the only way of the simulator, found \"zero\"\n",
    },
];

const PACKAGE: &[Case] = &[
    Case {
        name: "cut short",
        spoil: |place| {
            let file = place.read("artifacts/program/model.ipuexe");
            place.write("cut.ipuexe", &file[..file.len() / 2]);
        },
        arguments: &["show", "cut.ipuexe"],
        code: 2,
        message: "cut.ipuexe: checksum is …, the contents have …: the package was changed or damaged\n",
    },
    Case {
        name: "byte flipped",
        spoil: |place| {
            let mut file = place.read("artifacts/program/model.ipuexe");
            let middle = file.len() / 2;
            file[middle] ^= 1;
            place.write("flipped.ipuexe", &file);
        },
        arguments: &["show", "flipped.ipuexe"],
        code: 2,
        message: "flipped.ipuexe: checksum is …, the contents have …: the package was changed or damaged\n",
    },
    Case {
        name: "another file",
        spoil: |place| place.write("text.ipuexe", b"hello"),
        arguments: &["show", "text.ipuexe"],
        code: 2,
        message: "text.ipuexe: not an .ipuexe package: it starts with ",
    },
];

const FLAGS: &[Case] = &[
    Case { name: "unknown package", spoil: |_| {}, arguments: &["//nets:run"], code: 2, message: "unknown package `//nets`\n" },
    Case {
        name: "point of a target",
        spoil: |_| {},
        arguments: &["//:run[tiles=2]"],
        code: 2,
        message: "`//:run` has no point `//:run[tiles=2]`\n     expected a label without point: `//:run` is no sweep\n",
    },
    Case {
        name: "artifact in place of a target",
        spoil: |_| {},
        arguments: &["//:program[finalists]"],
        code: 2,
        message: "`//:program[finalists]` names an artifact of a target; expected the whole target, `//:program`\n",
    },
    Case {
        name: "both ways of going on",
        spoil: |_| {},
        arguments: &["--fail-fast", "--keep-going", "//:run"],
        code: 2,
        message: "the argument '--fail-fast' cannot be used with '--keep-going'\n",
    },
    Case {
        name: "change that is none",
        spoil: |_| {},
        arguments: &["--set", "layout.tiles", "//:run"],
        code: 2,
        message: "--set `layout.tiles` is not a change: expected FIELD=VALUE, as in layout.tiles=32\n",
    },
    Case {
        name: "change to what is not possible",
        spoil: |_| {},
        arguments: &["--set", "layout.tiles=0", "//:run"],
        code: 2,
        message: "//:program, layout.tiles: found 0\n --> --set layout.tiles=0     expected 1 to 1472\n",
    },
    Case {
        name: "events in no folder",
        spoil: |_| {},
        arguments: &["--events", "no/such/folder", "//:run"],
        code: 2,
        message: "--events no/such/folder: No such file or directory",
    },
    Case {
        name: "store that is a file",
        spoil: |_| {},
        arguments: &["--store", "BUILD.toml", "//:run"],
        code: 1,
        message: "cannot create the store ",
    },
    Case {
        name: "directory that is not there",
        spoil: |_| {},
        arguments: &["-C", "nowhere", "//:run"],
        code: 2,
        message: "-C nowhere: there is no such directory\n",
    },
    Case {
        name: "no threads",
        spoil: |_| {},
        arguments: &["-j", "0", "//:run"],
        code: 2,
        message: "invalid value '0' for '--jobs <N>': 0 is not in 1..=1024\n",
    },
    Case {
        name: "query that is none",
        spoil: |_| {},
        arguments: &["query", "uses(//:run)"],
        code: 2,
        message: "`uses(//:run)` is not a query: expected one of deps(X[, DEPTH]), rdeps(UNIVERSE, X[, DEPTH]), allpaths(FROM, TO), somepath(FROM, TO), kind(RULE, X), attr(FIELD, VALUE, X), set(PATTERN ...), nearest `set` at column 1, found `uses`\n",
    },
    Case {
        name: "nothing to test",
        spoil: |_| {},
        arguments: &["test", "//:model"],
        code: 2,
        message: "`//:model` is a `model`\n --> BUILD.toml:1:2     expected a run target, a sweep or a test suite\n",
    },
];

/// Compilers that fail, by script.
const COMPILERS: &[Case] = &[
    Case {
        name: "compiler that is not there",
        spoil: |place| replaced(place, "compiler = \"sdk/popc\"", "compiler = \"/no/such/sdk/popc\""),
        arguments: RUN,
        code: 2,
        message: "//:sdk, compiler: there is no file `/no/such/sdk/popc`\n --> BUILD.toml:",
    },
    Case {
        name: "compiler by a path that is none",
        spoil: |place| replaced(place, "compiler = \"sdk/popc\"", "compiler = \"/opt/../popc\""),
        arguments: RUN,
        code: 2,
        message: "//:sdk, compiler: `/opt/../popc` is not a source\n --> BUILD.toml:…expected an absolute path without `.`, `..` and empty names, or the path of a source\n",
    },
    Case {
        name: "compiler that is no program",
        spoil: |place| replaced(place, "compiler = \"sdk/popc\"", "compiler = \"gemm.S\""),
        arguments: RUN,
        code: 2,
        message: "//:program[kernel_object/gemm{…}]: gemm.S: cannot run gemm.S: Permission denied (os error 13)\n",
    },
    Case {
        name: "compiler that finds a fault",
        spoil: |place| place.write("sdk/popc", b"#!/bin/sh\necho gemm.S:3:5: error: no such thing >&2\necho 1 error >&2\nexit 1\n"),
        arguments: RUN,
        code: 2,
        message: "//:program[kernel_object/gemm{…}]: gemm.S: sdk/popc ended with exit code 1\n    gemm.S:3:5: error: no such thing\n    1 error\n",
    },
    Case {
        name: "compiler that is killed",
        spoil: |place| place.write("sdk/popc", b"#!/bin/sh\nkill -9 $$\n"),
        arguments: RUN,
        code: 2,
        message: "//:program[kernel_object/gemm{…}]: gemm.S: sdk/popc was ended by signal 9\n",
    },
    Case {
        name: "compiler that writes nothing",
        spoil: |place| {
            place.write("sdk/popc", b"#!/bin/sh\n");
            replaced(place, "extractor = \"sdk/pop-objdump\"\n", "");
        },
        arguments: RUN,
        code: 1,
        message: "//:program[kernel_object/gemm{…}]: gemm.S: sdk/popc ended well and gave no object\n",
    },
    Case {
        name: "compiler whose container is not that of the extractor",
        spoil: |place| replaced(place, "extractor = \"sdk/pop-objdump\"\n", ""),
        arguments: RUN,
        code: 1,
        message: "//:program[kernel_object/gemm{…}]: gemm.S: the object of sdk/popc cannot be read: expected an ELF32 object, found none: …\n",
    },
    Case {
        name: "extractor that finds no object",
        spoil: |place| place.write("sdk/pop-objdump", b"#!/bin/sh\necho no ipu21 in \"$3\"\nexit 4\n"),
        arguments: RUN,
        code: 2,
        message: "//:program[kernel_object/gemm{…}]: gemm.S: sdk/pop-objdump ended with exit code 4\n    no ipu21 in ../made/kernel\n",
    },
    Case {
        name: "C++ without a compiler",
        spoil: |place| {
            place.replace("kernels.toml", "gemm.S", "gemm.cpp");
            place.write("gemm.cpp", b"int x;\n");
            replaced(place, "srcs = [\"gemm.S\"]\ntoolchain = \":sdk\"", "srcs = [\"gemm.cpp\"]");
        },
        arguments: RUN,
        code: 2,
        message: "//:mine, manifest: kernel `gemm`: `gemm.cpp` is no assembly; expected a field `toolchain`\n --> BUILD.toml:",
    },
    Case {
        name: "headers without a compiler",
        spoil: |place| replaced(place, "toolchain = \":sdk\"", "headers = [\"gemm.S\"]"),
        arguments: RUN,
        code: 2,
        message: "//:mine, headers: files for a compiler without a compiler\n --> BUILD.toml:…expected a field `toolchain`, or no `headers`\n",
    },
    Case {
        name: "compiler of another rule",
        spoil: |place| replaced(place, "toolchain = \":sdk\"", "toolchain = \":machine\""),
        arguments: RUN,
        code: 2,
        message: "//:mine, toolchain: `//:machine` is a `machine`\n --> BUILD.toml:…expected a `toolchain`\n",
    },
    Case {
        name: "environment that cannot be",
        spoil: |place| replaced(place, "compiler = ", "environment = { \"A=B\" = \"x\" }\ncompiler = "),
        arguments: RUN,
        code: 2,
        message: "//:sdk, environment.A=B: no program can be given this\n --> BUILD.toml:",
    },
];

/// The small workspace with its kernel made by a compiler.
fn restore_compiled(place: &Place) {
    place.restore_small();
    fake_sdk::install(&place.root().join("sdk"));
    replaced(place, "srcs = [\"gemm.S\"]", "srcs = [\"gemm.S\"]\ntoolchain = \":sdk\"");
    let text = String::from_utf8(place.read("BUILD.toml")).expect("text");
    let sdk = "[sdk]\nrule = \"toolchain\"\ncompiler = \"sdk/popc\"\nextractor = \"sdk/pop-objdump\"\n";
    place.write("BUILD.toml", format!("{text}\n{sdk}").as_bytes());
}

/// Whether `text` begins with `error: ` and the parts of `expected` in order.
fn fits(text: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix("error: ").and_then(|text| text.strip_prefix(first)) else { return false };
    parts.all(|part| match rest.split_once(part) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

/// Runs the cases one after another, each on a fresh copy of the good workspace, all on one store, and a good build behind each.
#[track_caller]
fn check(cases: &[Case]) {
    check_on(cases, Place::restore_small);
}

/// The same on another good workspace.
#[track_caller]
fn check_on(cases: &[Case], restore: fn(&Place)) {
    let place = Place::new();
    restore(&place);
    let good = place.run(&["//:run"]);
    assert_eq!(good.code, Some(0), "{}", good.err);
    let mut wrong = Vec::new();
    for case in cases {
        (case.spoil)(&place);
        let Ran { code, out, err } = place.run(case.arguments);
        if code != Some(case.code) || !fits(&err, case.message) || !out.is_empty() || err.contains("panicked") {
            wrong.push(format!("{}: exit {code:?}\n{out}{err}", case.name));
        }
        restore(&place);
        let after = place.run(&["//:run"]);
        assert_eq!((after.code, after.out.as_str()), (Some(0), good.out.as_str()), "after {}: {}", case.name, after.err);
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn bad_workspace_files_are_refused() {
    check(WORKSPACE_FILE);
}

#[test]
fn bad_build_files_are_refused() {
    check(BUILD_FILE);
}

#[test]
fn bad_models_are_refused() {
    check(MODEL);
}

#[test]
fn bad_tensors_are_refused() {
    check(TENSORS);
}

#[test]
fn bad_kernels_and_parameters_are_refused() {
    check(KERNELS);
}

#[test]
fn bad_compilers_are_refused() {
    check_on(COMPILERS, restore_compiled);
}

/// A compiler outside of the workspace: sources in C++, files beside them, and an environment of its own.
#[test]
fn a_compiler_elsewhere_is_called_with_what_the_key_says() {
    let place = Place::small();
    let same = place.run(&["//:run"]);
    restore_compiled(&place);
    fake_sdk::install(&place.beside("sdk"));
    let script = std::fs::read_to_string(place.beside("sdk/popc")).expect("text");
    let check = "#!/bin/sh\n[ \"$LICENCE$SECRET$HOME\" = mine ] && [ -e nets/beside.h ] && [ \"$3\" = -Os ] || exit 9\n";
    fake_sdk::program(&place.beside("sdk/popc"), &script.replacen("#!/bin/sh\n", check, 1));
    place.write("nets/gemm.cpp", format!("#include \"beside.h\"\n{}", source("gemm.S")).as_bytes());
    place.write("nets/beside.h", b"/* nothing */\n");
    place.replace("kernels.toml", "gemm.S", "gemm.cpp");
    replaced(&place, "srcs = [\"gemm.S\"]", "srcs = [\"nets/gemm.cpp\"]\nheaders = [\"nets/beside.h\"]");
    replaced(
        &place,
        "sdk/popc\"",
        &format!("{}\"\nflags = [\"-Os\"]\nenvironment = {{ LICENCE = \"mine\" }}", place.beside("sdk/popc").display()),
    );
    let run = place.command(&["//:run"]).env("SECRET", "s").output().expect("the program starts");
    let Ran { code, out, err } = run.into();
    // The kernel is the assembled one, and so is everything made of it.
    assert_eq!((code, out), (Some(0), same.out), "{err}");
    // The next process finds nothing to do, and another compiler is noticed although it lies outside.
    let why = || place.run(&["why", "//:run"]).out;
    let again = place.run(&["//:run"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    std::fs::write(place.beside("sdk/popc"), "#!/bin/sh\nexit 7\n").expect("written");
    let broken = place.run(&["//:run"]);
    assert_eq!(broken.code, Some(2), "{}", broken.out);
    assert!(fits(&broken.err, "//:program[kernel_object/gemm{…}]: nets/gemm.cpp: /…/sdk/popc ended with exit code 7\n"), "{}", broken.err);
    assert!(why().contains("toolchain"), "{}", why());
}

#[test]
fn bad_packages_are_refused() {
    check(PACKAGE);
}

#[test]
fn bad_labels_and_flags_are_refused() {
    check(FLAGS);
}
