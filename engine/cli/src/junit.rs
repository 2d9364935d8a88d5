//! Verdicts of tests as JUnit XML, which servers that run tests read.

use std::time::Duration;

use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::{Writer, events::attributes::Attribute};

/// How a test ended.
pub(crate) enum Verdict {
    Passed,
    /// Its verdict is a failure: the lines that say so.
    Failed(Vec<String>),
    /// It could not be run: what was wrong.
    Broken(String),
}

/// A test that ended.
pub(crate) struct Case {
    /// The package, `//nets`.
    pub(crate) package: String,
    /// The rest of the label, `run`.
    pub(crate) name: String,
    pub(crate) elapsed: Duration,
    pub(crate) verdict: Verdict,
    /// What it told.
    pub(crate) lines: Vec<String>,
}

/// The file. Characters that XML does not have become U+FFFD.
pub(crate) fn xml(cases: &[Case]) -> std::io::Result<Vec<u8>> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    let count = |test: fn(&Verdict) -> bool| cases.iter().filter(|case| test(&case.verdict)).count().to_string();
    let time: Duration = cases.iter().map(|case| case.elapsed).sum();
    let totals = [
        ("name", "ipubuild".to_owned()),
        ("tests", cases.len().to_string()),
        ("failures", count(|verdict| matches!(verdict, Verdict::Failed(_)))),
        ("errors", count(|verdict| matches!(verdict, Verdict::Broken(_)))),
        ("time", seconds(time)),
    ];
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer.write_event(Event::Start(element("testsuites", &totals)))?;
    writer.write_event(Event::Start(element("testsuite", &totals)))?;
    for case in cases {
        let attributes = [("classname", case.package.clone()), ("name", case.name.clone()), ("time", seconds(case.elapsed))];
        writer.write_event(Event::Start(element("testcase", &attributes)))?;
        match &case.verdict {
            Verdict::Passed => {}
            Verdict::Failed(lines) => {
                write(&mut writer, element("failure", &[("message", lines.first().cloned().unwrap_or_default())]), &lines.join("\n"))?;
            }
            Verdict::Broken(text) => {
                let first = text.lines().next().unwrap_or_default().to_owned();
                write(&mut writer, element("error", &[("message", first)]), text)?;
            }
        }
        write(&mut writer, element("system-out", &[]), &case.lines.join("\n"))?;
        writer.write_event(Event::End(BytesEnd::new("testcase")))?;
    }
    writer.write_event(Event::End(BytesEnd::new("testsuite")))?;
    writer.write_event(Event::End(BytesEnd::new("testsuites")))?;
    let mut bytes = writer.into_inner();
    bytes.push(b'\n');
    Ok(bytes)
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}

fn element<'a>(name: &'a str, attributes: &[(&'a str, String)]) -> BytesStart<'a> {
    let mut element = BytesStart::new(name);
    for (name, value) in attributes {
        element.push_attribute(Attribute::from((*name, legal(value).as_str())));
    }
    element
}

fn write(writer: &mut Writer<Vec<u8>>, element: BytesStart<'_>, text: &str) -> std::io::Result<()> {
    let end = element.to_end().into_owned();
    writer.write_event(Event::Start(element))?;
    writer.write_event(Event::Text(BytesText::new(&legal(text))))?;
    writer.write_event(Event::End(end))
}

/// XML 1.0 has no control characters but tab and the ends of lines.
fn legal(text: &str) -> String {
    let is_legal = |character: char| !character.is_control() || matches!(character, '\t' | '\n' | '\r');
    text.chars()
        .map(|character| if is_legal(character) && !matches!(character, '\u{fffe}' | '\u{ffff}') { character } else { '\u{fffd}' })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Case, Verdict, xml};

    #[test]
    fn any_text_is_a_well_formed_file_with_every_verdict() {
        let case = |name: &str, verdict| Case {
            package: "//a".to_owned(),
            name: name.to_owned(),
            elapsed: Duration::from_millis(1500),
            verdict,
            lines: vec!["total  7".to_owned(), "<&>\"'\u{1b}[31m ]]> é".to_owned()],
        };
        let failed = Verdict::Failed(vec!["clocksTest=FAIL <1 & \"2\">".to_owned(), "more".to_owned()]);
        let cases =
            [case("good", Verdict::Passed), case("b\u{0}ad[x='1']", failed), case("broken", Verdict::Broken("no\nprogram".to_owned()))];
        let text = String::from_utf8(xml(&cases).expect("written")).expect("UTF-8");
        let document = roxmltree::Document::parse(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
        let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).expect("a suite");
        let counts = ["tests", "failures", "errors", "time"].map(|name| suite.attribute(name).unwrap_or_default());
        assert_eq!(counts, ["3", "1", "1", "4.500"]);
        let failure = document.descendants().find(|node| node.has_tag_name("failure")).expect("a failure");
        assert_eq!(
            (failure.attribute("message"), failure.text()),
            (Some("clocksTest=FAIL <1 & \"2\">"), Some("clocksTest=FAIL <1 & \"2\">\nmore"))
        );
        let names: Vec<_> = document.descendants().filter_map(|node| node.attribute("classname").and(node.attribute("name"))).collect();
        assert_eq!(names, ["good", "b\u{fffd}ad[x='1']", "broken"]);
        let told: Vec<_> = document.descendants().filter(|node| node.has_tag_name("system-out")).filter_map(|node| node.text()).collect();
        assert!(told.iter().all(|told| *told == "total  7\n<&>\"'\u{fffd}[31m ]]> é"), "{told:?}");
    }
}
