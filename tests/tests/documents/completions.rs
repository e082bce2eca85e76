//! Completions, asked of the shells themselves.

use std::process::Command;

use nrt_trace_tests::run;

use crate::install::Installed;

/// What bash offers for the last of these words.
fn offered(installed: &Installed, words: &[&str]) -> Vec<String> {
    let script = r#"
        . "$1" && shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        complete -p "$1" >/dev/null || exit 3
        function=$(complete -p "$1" | sed 's/.*-F \([^ ]*\).*/\1/')
        "$function" "$1" "${@: -1}" "${@: -2:1}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = installed.host.command("bash");
    let file = format!("usr/share/bash-completion/completions/{}", words[0]);
    bash.args(["--norc", "-c", script, "bash"]);
    bash.arg(installed.root().join(file)).args(words);
    let ended = run(bash).ok();
    assert_eq!(ended.stderr, "", "{ended}");
    ended.text().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let installed = Installed::new(&["prefix=/usr"]);
    let offer = |words: &[&str]| offered(&installed, words);
    assert_eq!(offer(&["nrt-tracectl", "rec"]), ["record"]);
    assert_eq!(offer(&["nrt-tracectl", "set"]), ["set-filter"]);
    assert_eq!(
        offer(&["nrt-tracectl", "status", "--format", "j"]),
        ["json"]
    );
    assert_eq!(offer(&["nrt-tracectl", "host", "sta"]), ["start"]);
    assert_eq!(offer(&["nrt-tracectl", "fetch", "--disc"]), ["--discard"]);
    assert_eq!(offer(&["nrt-traced", "--producer"]), ["--producer-socket"]);
    let all = offer(&["nrt-tracectl", ""]);
    assert!(
        !all.iter()
            .any(|word| word.starts_with("demo-") || word == "generate"),
        "{all:?}"
    );
}

/// Whether the other shells read their scripts; they are rarely there where tests run.
#[test]
fn zsh_and_fish_read_their_scripts() {
    let installed = Installed::new(&["prefix=/usr"]);
    for (shell, flag, file) in [
        ("zsh", "-n", "zsh/site-functions/_nrt-tracectl"),
        ("zsh", "-n", "zsh/site-functions/_nrt-traced"),
        (
            "fish",
            "--no-execute",
            "fish/vendor_completions.d/nrt-tracectl.fish",
        ),
        (
            "fish",
            "--no-execute",
            "fish/vendor_completions.d/nrt-traced.fish",
        ),
    ] {
        let path = installed.root().join("usr/share").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("nrt-trace") && text.contains("socket"),
            "{text}"
        );
        if Command::new(shell).arg("--version").output().is_err() {
            println!("NOT RUN: there is no {shell} here to read {file}");
            continue;
        }
        let mut command = installed.host.command(shell);
        command.arg(flag).arg(path);
        let ended = run(command).ok();
        assert_eq!(ended.stderr, "", "{ended}");
    }
}
