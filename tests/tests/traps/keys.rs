//! What must not reach a key, and what must.

use std::fs;
use std::os::unix::process::CommandExt;

use tests::place::Place;

use crate::{executed, good};

#[test]
fn environment_reaches_no_key_in_whatever_order_it_is_listed() {
    let place = Place::small();
    assert!(executed(&place, &["//:run"]) > 0);
    let settings: [&[(&str, &str)]; 4] = [
        &[("PATH", "/nowhere"), ("HOME", "/nowhere"), ("LANG", "de_DE.UTF-8")],
        &[("LANG", "C"), ("HOME", "/"), ("PATH", "/bin")],
        &[("TMPDIR", "/tmp"), ("TZ", "Asia/Tokyo"), ("LC_ALL", "tr_TR.UTF-8"), ("RAYON_NUM_THREADS", "1")],
        &[("A", "1"), ("B", "2"), ("SOURCE_DATE_EPOCH", "0"), ("RUST_BACKTRACE", "1")],
    ];
    for setting in settings {
        // Without what is remembered of the request everything is keyed again, and found.
        for fresh in [false, true] {
            if fresh {
                fs::remove_dir_all(place.root().join("artifacts")).expect("removed");
            }
            let mut command = place.command(&["-v", "//:run"]);
            command.envs(setting.iter().copied());
            let ran = good(command.output().expect("the program starts").into());
            assert!(!ran.err.contains("cached=false") && ran.err.contains("//:run cached=true"), "{setting:?} {}", ran.err);
        }
    }
    let mut command = std::process::Command::new("sh");
    let program = place.command(&["//:run"]);
    command.arg0("sh").args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(program.get_program()).args(program.get_args());
    command.current_dir(place.root()).env("XDG_CACHE_HOME", place.beside("cache"));
    let ran = good(command.output().expect("sh starts").into());
    assert!(ran.err.contains("//:run cached=true"), "{}", ran.err);
}

#[test]
fn comments_order_and_form_of_declarations_execute_nothing() {
    let place = Place::small();
    assert!(executed(&place, &["//:run"]) > 0);
    let text = String::from_utf8(place.read("BUILD.toml")).expect("text");
    let (model, rest) = text.split_once("[input]").expect("a target");
    let reordered = format!("# Days of work.\n[input]{rest}\n\n{model}");
    let reformatted = text
        .replace("layout = { tiles = 2 }\ncheckpoints = [0]", "checkpoints = [\n  0, # the product\n]\nlayout.tiles = 2")
        .replace("tolerance = { default = 3e-3 }", "tolerance = { default = 0.003 }")
        .replace("rule = \"model\"", "  rule  =  'model'   # a model");
    assert_ne!(reformatted, text);
    for form in [format!("# Days of work.\n{text}"), reordered, reformatted] {
        place.write("BUILD.toml", form.as_bytes());
        let ran = good(place.run(&["-v", "//:run"]));
        assert_eq!(ran.err, "//:run cached=true\n", "{form}");
    }
}

#[test]
fn input_that_git_ignores_is_built_from_like_any_other() {
    let place = Place::small();
    place.write(".gitignore", b"*.npy\n*.S\n");
    place.write(".ignore", b"*\n");
    assert!(executed(&place, &["//:run"]) > 0);
    place.replace("gemm.S", "# ", "# Ignored by git. ");
    assert!(executed(&place, &["//:run"]) > 0);
}

#[test]
fn two_configurations_in_turn_execute_nothing_after_the_first_two() {
    let place = Place::small();
    let tiles = |count: usize| format!("layout.tiles={count}");
    let turns: Vec<usize> = (0..10).map(|turn| executed(&place, &["--set", &tiles(1 + turn % 2), "//:run"])).collect();
    assert!(turns[0] > 0 && turns[1] > 0, "{turns:?}");
    assert_eq!(turns[2..], [0; 8]);
}
