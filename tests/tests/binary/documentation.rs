//! The documents say what is so: their examples work, and no rule or field is left out.

use std::collections::{BTreeMap, BTreeSet};

use tests::binary::WorkspaceCopy;

use crate::place::{Place, repository};

fn document(name: &str) -> String {
    std::fs::read_to_string(repository().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Blocks below a line that is a file's name in backquotes, joined by file.
fn files(text: &str) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut lines = text.lines();
    let mut name = None;
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block: String = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
            if let Some(name) = name.take() {
                let file = files.entry(name).or_default();
                *file = format!("{file}{}{block}", if file.is_empty() { "" } else { "\n" });
            }
        } else if !line.is_empty() {
            let path = line.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            name = path.filter(|path| !path.contains(['`', ' '])).map(str::to_owned);
        }
    }
    files
}

/// Commands after `$ ` in console blocks, with the output shown.
fn console(text: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap_or_default().lines() {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_owned(), String::new())),
                (None, Some((_, output))) => *output = format!("{output}{line}\n"),
                (None, None) => panic!("output before a command: {line}"),
            }
        }
    }
    commands
}

/// Words as a shell splits them, for commands without anything but single quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in command.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("never empty").push(character),
        }
    }
    words
}

#[test]
fn examples_of_the_build_language_load_and_run_as_shown() {
    let text = document("BUILD.md");
    let place = Place::new();
    let files = files(&text);
    assert!(files.len() >= 5, "{:?}", files.keys());
    for (path, contents) in &files {
        place.write(path, contents.as_bytes());
    }
    let commands = console(&text);
    assert!(!commands.is_empty());
    for (command, shown) in commands {
        let words = words(&command);
        assert_eq!(words[0], "ipubuild");
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let ran = place.run(&arguments);
        assert_eq!(ran.code, Some(0), "{command}\n{}", ran.err);
        let is_exact = ["query", "nm", "size", "disasm"].contains(&words[1].as_str())
            || words[1..].starts_with(&["exchange".to_owned(), "check".to_owned()]);
        if is_exact {
            assert_eq!(ran.out, shown, "{command}");
        }
    }
}

/// Every number as `0` and every run of blanks as one, so that figures may improve without a word about it.
fn form(line: &str) -> String {
    let mut form = String::new();
    for character in line.trim().chars() {
        let character = if character.is_ascii_digit() || ",.".contains(character) { '0' } else { character };
        if !(matches!(character, '0' | ' ') && form.ends_with(character)) {
            form.push(character);
        }
    }
    form
}

#[test]
fn commands_of_the_readme_work_and_print_what_it_shows() {
    let text = document("README.md");
    let copy = WorkspaceCopy::of("attention");
    let commands = text.lines().filter_map(|line| line.strip_prefix("    cargo ipubuild -C workspaces/attention "));
    let mut printed = BTreeSet::new();
    for command in commands.chain(["//models/minilm-attention:run"]) {
        let words = words(command);
        let run = copy.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(run.code, Some(0), "{command}\n{}{}", run.stdout, run.stderr);
        printed.extend(run.stdout.lines().map(form));
    }
    let stages = |line: &str| line.starts_with("//…:") || line == "…";
    let shown =
        text.lines().filter_map(|line| line.strip_prefix("    ")).filter(|line| !line.starts_with("cargo ") && !stages(line.trim()));
    let missing: Vec<&str> = shown.filter(|line| !printed.contains(&form(line))).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn every_rule_and_field_is_in_the_reference() {
    let text = document("BUILD.md");
    let mut missing = Vec::new();
    for rule in pipeline::rule::registry().rules() {
        let Some(section) = text.split(&format!("\n### {}\n", rule.name())).nth(1) else {
            missing.push(rule.name().to_owned());
            continue;
        };
        let section = section.split("\n### ").next().unwrap_or_default();
        let rows: BTreeSet<&str> = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        for field in rule.fields().iter().filter(|field| !rows.contains(field.name)) {
            missing.push(format!("{}.{}", rule.name(), field.name));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_command_and_option_is_in_the_reference() {
    let text = document("BUILD.md");
    let help = Place::new().run(&["--help"]).out;
    let commands = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a list of commands");
    for command in commands.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        let is_named = [' ', '`'].iter().any(|end| text.contains(&format!("| `{command}{end}")));
        assert!(is_named, "{command}");
    }
    let options = help.split("Options:\n").nth(1).expect("a list of options");
    let named = options.split([' ', ',', '\n']).filter(|word| word.starts_with('-') && word.len() > 1);
    for option in named.filter(|word| !matches!(*word, "-h" | "--help" | "-V" | "--version")) {
        assert!(text.contains(&format!("`{option}")), "{option}");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for name in ["README.md", "BUILD.md", "ARCHITECTURE.md"] {
        let text = document(name);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if link.contains("://") {
                continue;
            }
            assert!(file.is_empty() || repository().join(file).exists(), "{name}: {link}");
            let target = if file.is_empty() {
                text.clone()
            } else if anchor.is_empty() {
                continue;
            } else {
                document(file)
            };
            let anchors = target.lines().filter(|line| line.starts_with('#')).map(|line| {
                let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
                title.chars().filter(|character| character.is_alphanumeric() || "-_".contains(*character)).collect::<String>()
            });
            assert!(anchors.into_iter().any(|title| title == anchor), "{name}: {link}");
        }
    }
}
