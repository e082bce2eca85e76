//! Names and ids, from the daemon, from a file, and from nothing at all.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nrt_trace_export::NativeWriter;
use nrt_trace_model::strings::get_id;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{StringEntry, Strings, TracePart};

use crate::fake::Fake;
use crate::tool::{Ended, run};

fn entry(text: &str) -> StringEntry {
    StringEntry {
        id: get_id(text.as_bytes()),
        text: text.to_owned(),
    }
}

fn ask(fake: &Fake, more: &[&str]) -> Ended {
    let mut arguments: Vec<OsString> = vec!["--socket".into(), fake.socket().into()];
    arguments.extend(more.iter().map(OsString::from));
    run(arguments)
}

/// A trace file with these pages of names.
fn write(path: &Path, pages: &[Vec<StringEntry>]) {
    let mut writer = NativeWriter::new(Vec::new()).unwrap();
    for page in pages {
        let strings = Strings {
            first: 0,
            entries: page.clone(),
        };
        let part = Some(Part::Strings(strings));
        writer.part(&TracePart { part }).unwrap();
        writer.flush_frame().unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

#[test]
fn the_id_of_a_text_needs_no_daemon() {
    for (text, id) in [
        ("", 121_655_548_788_208_u64),
        ("a", 933_183_196_555_764),
        ("hello world", 540_227_844_098_000),
        ("日本語", 830_970_404_915_775),
    ] {
        let ended = run(["--socket", "/nowhere", "strings", "--of", text]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert_eq!(ended.stdout, format!("{id}\n"));
    }
    let bytes = [
        OsStr::new("strings"),
        OsStr::new("--of"),
        OsStr::from_bytes(b"\xFF"),
    ];
    run(bytes).one_line(2, &["--of takes text in UTF-8"]);
}

#[test]
fn all_pages_of_the_daemons_names_are_listed() {
    let names: Vec<_> = ["one", "", "two\x1b[2J", "日本語", "five"]
        .map(entry)
        .into();
    let fake = Fake::start(|script| script.names = names.clone());
    let ended = ask(&fake, &["strings", "--format", "json"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
    let listed: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let expected: Vec<_> = names
        .iter()
        .map(|entry| serde_json::json!({"id": entry.id, "name": entry.text}))
        .collect();
    assert_eq!(listed, serde_json::json!({ "strings": expected }));
    let asked = [
        "strings from=0 id=[]",
        "strings from=2 id=[]",
        "strings from=4 id=[]",
    ];
    assert_eq!(fake.asked(), asked);
    let table = ask(&fake, &["strings"]).stdout;
    assert!(table.starts_with("              ID  NAME\n"), "{table}");
    assert!(
        table.contains("two\\u{1b}[2J"),
        "a name can't steer the terminal: {table}"
    );
}

#[test]
fn an_id_without_a_name_is_a_failure_that_names_it() {
    let fake = Fake::start(|script| script.names = vec![entry("one"), entry("two")]);
    let (one, two) = (entry("one").id.to_string(), entry("two").id.to_string());
    let ended = ask(&fake, &["strings", "--id", &format!("{two},{one}")]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 3);
    let ended = ask(&fake, &["strings", "--id", &one, "--id", "77"]);
    assert_eq!(ended.status, Some(1));
    assert!(ended.stdout.contains("one"), "what was found is printed");
    assert_eq!(ended.stderr, "nrt-tracectl: error: no name has the id 77\n");
    ask(&fake, &["strings", "--id", "x"]).one_line(2, &["'x'"]);
}

#[test]
fn a_trace_file_gives_its_names_and_the_first_of_an_id_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.nrtt");
    let text = path.to_str().unwrap();
    let mut liar = entry("one");
    liar.text = "another".to_owned();
    write(
        &path,
        &[
            vec![entry("one"), entry("")],
            vec![liar, entry("one"), entry("two")],
        ],
    );
    let ended = run(["strings", text]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let id = entry("one").id;
    assert_eq!(
        ended.stderr,
        format!(
            "nrt-tracectl: Warning: conflicting id {id} with name \"one\" and \"another\": the first stays\n"
        )
    );
    let lines: Vec<_> = ended.stdout.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "ID  NAME".to_owned(),
            format!("{id}  one"),
            format!("{}  \"\"", entry("").id),
            format!("{}  two", entry("two").id),
        ]
    );
}

#[test]
fn a_cut_or_foreign_file_says_so_after_what_was_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.nrtt");
    let text = path.to_str().unwrap();
    write(&path, &[vec![entry("one")], vec![entry("two")]]);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let ended = run(["strings", text]);
    assert_eq!(ended.status, Some(1));
    assert!(ended.stdout.contains("one") && !ended.stdout.contains("two"));
    assert!(
        ended.stderr.contains("the file is cut after byte"),
        "{ended:?}"
    );
    fs::write(&path, "{}").unwrap();
    run(["strings", text]).one_line(1, &["t.nrtt", "not a native trace file"]);
    run(["strings", "/no/such.nrtt"]).one_line(1, &["cannot read /no/such.nrtt"]);
}
