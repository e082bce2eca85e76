//! Programs that the documents show, compiled and traced as they stand there.

use std::fs;

use nrt_trace_tests::compile::{Link, compile};
use nrt_trace_tests::{Document, Host, artifacts};

/// The only block of this language in a page.
fn block(page: &str, language: &str) -> String {
    let text = fs::read_to_string(artifacts().workspace.join(page)).unwrap();
    let (_, rest) = text.split_once(&format!("\n```{language}\n")).unwrap();
    let (block, rest) = rest.split_once("\n```\n").unwrap();
    assert!(
        !rest.contains(&format!("\n```{language}\n")),
        "a second one"
    );
    block.to_owned()
}

/// Compiles a program with every warning an error, and records it.
fn traced(file: &str, source: &str) -> Document {
    let host = Host::with_daemon();
    let path = host.path(file);
    fs::write(&path, source).unwrap();
    let program = compile(&host, path.to_str().unwrap(), Link::Linked);
    let record = ["record", "-o", "t.json", "--", program.to_str().unwrap()];
    host.tracectl(&record).ok();
    Document::read(&host.path("t.json"))
}

/// One execution of the model that the page names.
fn has_the_execution(document: &Document) {
    let phases: Vec<&str> = (document.events.iter())
        .filter(|event| event.event_type == "nrt_execute")
        .map(|event| event.phase.as_str())
        .collect();
    assert_eq!(phases, ["start", "stop"]);
    let model = &document.events[0].data["model_name"];
    assert_eq!(model.as_str(), Some("model.neff"));
}

#[test]
fn the_program_of_the_quick_start() {
    let document = traced("program.c", &block("docs/quick-start.md", "c"));
    has_the_execution(&document);
}

#[test]
fn the_lines_of_the_readme() {
    let lines = block("README.md", "c");
    let source = format!("#include <nrt_trace.h>\nint main(void)\n{{\n{lines}\nreturn 0;\n}}\n");
    has_the_execution(&traced("lines.c", &source));
    let lines = block("README.md", "cpp");
    let source = format!("#include <nrt/nrt_trace.hpp>\nint main()\n{{\n{lines}\n}}\n");
    let document = traced("lines.cpp", &source);
    assert_eq!(document.events.len(), 2, "a span");
}
