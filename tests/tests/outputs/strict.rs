//! Readers of JSON that are not ours.

use std::path::Path;
use std::process::Command;

use nrt_trace_tests::run;

/// Whether a program is there; says so if it is not.
pub(crate) fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        #[expect(
            clippy::print_stderr,
            reason = "the test's output says what was not tested"
        )]
        {
            eprintln!("NOT RUN: no {program}");
        }
    }
    there
}

/// What a Python expression makes of the document, which is read as strict UTF-8 and without constants that are no
/// JSON. `d` is the document, `events` its events.
pub(crate) fn python(document: &Path, expression: &str) -> String {
    let program = "import json, sys\n\
        def refuse(x): raise ValueError(x)\n\
        def pairs(p):\n    \
            keys = [k for k, _ in p]\n    \
            assert len(keys) == len(set(keys)), keys\n    \
            return dict(p)\n\
        text = open(sys.argv[1], 'rb').read().decode('utf-8', 'strict')\n\
        d = json.loads(text, parse_constant=refuse, object_pairs_hook=pairs)\n\
        events = d['events']\n\
        sys.stdout.reconfigure(encoding='utf-8')\n\
        print(eval(sys.argv[2]))";
    let mut command = Command::new("python3");
    command.args(["-c", program]).arg(document).arg(expression);
    run(command).ok().text().trim_end().to_owned()
}

/// What a jq filter makes of it.
pub(crate) fn jq(document: &Path, filter: &str) -> String {
    let mut command = Command::new("jq");
    command.args(["-e", "-r", filter]).arg(document);
    run(command).ok().text().trim_end().to_owned()
}

/// What a JavaScript expression makes of it; `d` is the document.
pub(crate) fn node(document: &Path, expression: &str) -> String {
    let program = format!(
        "const d = JSON.parse(require('fs').readFileSync(process.argv[1], 'utf8')); console.log({expression})"
    );
    let mut command = Command::new("node");
    command.args(["-e", &program]).arg(document);
    run(command).ok().text().trim_end().to_owned()
}
