//! The `.proto` files as a contract: everything in them is documented, and what clients were built against stays.
//!
//! `tests/contract.txt` lists every message, field, enum, value and RPC. A line may be added; none may change or go.
//! `NRT_TRACE_BLESS=1` writes the list anew, and refuses to, where a line would be lost.

#![expect(clippy::unwrap_used, reason = "a failed assumption fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use nrt_trace_proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::source_code_info::Location;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet};

fn files() -> Vec<FileDescriptorProto> {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let ours = |file: &FileDescriptorProto| file.package() == "nrt.trace.v1";
    let files: Vec<_> = set.file.into_iter().filter(ours).collect();
    assert_eq!(files.len(), 3);
    files
}

/// What has no comment, by the paths of descriptor.proto.
fn undocumented(file: &FileDescriptorProto) -> Vec<String> {
    let locations = &file.source_code_info.as_ref().unwrap().location;
    let has_text = |location: &Location| {
        let text = location.leading_comments().trim();
        text.len() >= 3
    };
    let commented: BTreeSet<&[i32]> = (locations.iter())
        .filter(|location| has_text(location))
        .map(|location| &location.path[..])
        .collect();
    let mut missing = Vec::new();
    let mut ask = |path: &[i32], name: String| {
        if !commented.contains(path) {
            missing.push(name);
        }
    };
    let number = |at: usize| i32::try_from(at).unwrap();
    for (at, message) in file.message_type.iter().enumerate() {
        ask(&[4, number(at)], message.name().to_owned());
        assert!(message.nested_type.is_empty() && message.enum_type.is_empty());
        for (inner, field) in message.field.iter().enumerate() {
            let name = format!("{}.{}", message.name(), field.name());
            ask(&[4, number(at), 2, number(inner)], name);
        }
    }
    for (at, kind) in file.enum_type.iter().enumerate() {
        ask(&[5, number(at)], kind.name().to_owned());
        for (inner, value) in kind.value.iter().enumerate() {
            ask(&[5, number(at), 2, number(inner)], value.name().to_owned());
        }
    }
    for (at, service) in file.service.iter().enumerate() {
        ask(&[6, number(at)], service.name().to_owned());
        for (inner, method) in service.method.iter().enumerate() {
            ask(&[6, number(at), 2, number(inner)], method.name().to_owned());
        }
    }
    missing
}

#[test]
fn everything_is_documented() {
    let missing: Vec<String> = files().iter().flat_map(undocumented).collect();
    assert!(missing.is_empty(), "without a comment: {missing:#?}");
}

/// Each call, and the codes that it is refused with beside those of every call: what the daemon's tests of refusals hold too.
const CODES: [(&str, &[&str]); 16] = [
    ("Start", &["FAILED_PRECONDITION", "INVALID_ARGUMENT"]),
    ("SetFilter", &["INVALID_ARGUMENT", "NOT_FOUND"]),
    ("Stop", &["FAILED_PRECONDITION", "INVALID_ARGUMENT"]),
    (
        "Fetch",
        &[
            "ABORTED",
            "INVALID_ARGUMENT",
            "NOT_FOUND",
            "RESOURCE_EXHAUSTED",
        ],
    ),
    (
        "Snapshot",
        &["INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED"],
    ),
    (
        "Subscribe",
        &[
            "INVALID_ARGUMENT",
            "NOT_FOUND",
            "RESOURCE_EXHAUSTED",
            "UNAVAILABLE",
        ],
    ),
    ("Commit", &["NOT_FOUND"]),
    ("GetStatus", &[]),
    ("ListProducers", &["INVALID_ARGUMENT"]),
    ("GetMetrics", &[]),
    ("ListEventTypes", &[]),
    ("GetStrings", &["INVALID_ARGUMENT"]),
    ("StartHost", &["FAILED_PRECONDITION", "INVALID_ARGUMENT"]),
    ("StopHost", &[]),
    ("GetHostStats", &[]),
    (
        "WatchHostStats",
        &["FAILED_PRECONDITION", "INVALID_ARGUMENT", "UNAVAILABLE"],
    ),
];
/// What any call may be refused with.
const ALL_CALLS: [&str; 6] = [
    "INTERNAL",
    "OUT_OF_RANGE",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
];
/// The comment at a path of descriptor.proto, in one line.
fn comment(file: &FileDescriptorProto, path: &[i32]) -> String {
    let locations = &file.source_code_info.as_ref().unwrap().location;
    let location = locations.iter().find(|one| one.path == path).unwrap();
    let words: Vec<&str> = location.leading_comments().split_whitespace().collect();
    words.join(" ")
}

/// The codes of gRPC in a text.
fn codes_in(text: &str) -> BTreeSet<&str> {
    const NAMES: [&str; 16] = [
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    let between = |c: char| !c.is_ascii_uppercase() && c != '_';
    let words = text.split(between);
    words.filter(|word| NAMES.contains(word)).collect()
}

/// Each call says all the codes that it is refused with, and no other.
#[test]
fn an_rpc_that_refuses_names_its_codes() {
    let file = files()
        .into_iter()
        .find(|file| !file.service.is_empty())
        .unwrap();
    let methods = &file.service[0].method;
    let named: Vec<&str> = methods.iter().map(|method| method.name()).collect();
    assert_eq!(named, CODES.map(|(name, _)| name), "each has its codes");
    for (at, (name, codes)) in CODES.into_iter().enumerate() {
        let text = comment(&file, &[6, 0, 2, i32::try_from(at).unwrap()]);
        let expected: BTreeSet<&str> = codes.iter().copied().collect();
        assert_eq!(codes_in(&text), expected, "{name}: {text}");
        let only = "Fails only as every call does";
        assert_eq!(text.contains(only), codes.is_empty(), "{name}: {text}");
    }
    let text = comment(&file, &[6, 0]);
    let (of_all, of_client) = text.split_once("Without `nrt-status`").unwrap();
    assert_eq!(codes_in(of_all), BTreeSet::from(ALL_CALLS));
    let clients = BTreeSet::from(["CANCELLED", "DEADLINE_EXCEEDED", "INVALID_ARGUMENT"]);
    assert_eq!(codes_in(of_client), clients);
}

fn lines() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for file in files() {
        file.message_type
            .iter()
            .for_each(|message| lines_of_message(message, &mut lines));
        file.enum_type
            .iter()
            .for_each(|kind| lines_of_enum(kind, &mut lines));
        for service in &file.service {
            for method in &service.method {
                let stream = |is: bool| if is { "stream " } else { "" };
                lines.insert(format!(
                    "rpc {}.{}({}{}) returns ({}{})",
                    service.name(),
                    method.name(),
                    stream(method.client_streaming()),
                    method.input_type(),
                    stream(method.server_streaming()),
                    method.output_type()
                ));
            }
        }
    }
    lines
}

fn lines_of_message(message: &DescriptorProto, lines: &mut BTreeSet<String>) {
    lines.insert(format!("message {}", message.name()));
    for field in &message.field {
        let kind = match field.r#type() {
            Type::Message | Type::Enum => field.type_name().to_owned(),
            other => format!("{other:?}").to_lowercase(),
        };
        let rule = match (field.label(), field.proto3_optional(), field.oneof_index) {
            (Label::Repeated, ..) => "repeated ".to_owned(),
            (_, true, _) => "optional ".to_owned(),
            (_, false, Some(at)) => {
                let place = usize::try_from(at).unwrap();
                format!("oneof {} ", message.oneof_decl[place].name())
            }
            _ => String::new(),
        };
        lines.insert(format!(
            "field {}.{} = {}: {rule}{kind}",
            message.name(),
            field.name(),
            field.number()
        ));
    }
}

fn lines_of_enum(kind: &EnumDescriptorProto, lines: &mut BTreeSet<String>) {
    lines.insert(format!("enum {}", kind.name()));
    for value in &kind.value {
        lines.insert(format!(
            "value {}.{} = {}",
            kind.name(),
            value.name(),
            value.number()
        ));
    }
}

#[test]
fn what_clients_were_built_against_stays() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/contract.txt");
    let golden = fs::read_to_string(&path).unwrap_or_default();
    let golden: BTreeSet<String> = golden.lines().map(str::to_owned).collect();
    let now = lines();
    let lost: Vec<_> = golden.difference(&now).collect();
    assert!(
        lost.is_empty(),
        "clients that were built before would break; these lines changed or went: {lost:#?}"
    );
    if golden != now {
        assert!(
            std::env::var_os("NRT_TRACE_BLESS").is_some(),
            "new in the API, to be added to {} by NRT_TRACE_BLESS=1: {:#?}",
            path.display(),
            now.difference(&golden).collect::<Vec<_>>()
        );
        let text: String = now.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, text).unwrap();
    }
}
