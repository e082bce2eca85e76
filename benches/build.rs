//! Makes, from the event table, what a program would write by hand to serialize each payload through serde's derive:
//! a struct with the JSON keys in their order. `nrt-trace-bench json` measures against that.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use serde::Deserialize;

const TABLE: &str = "../crates/model/events.toml";

#[derive(Deserialize)]
struct Table {
    event: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    value: u32,
    name: String,
    #[serde(default)]
    payload: Vec<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    phases: Vec<String>,
    fields: Vec<Field>,
    json_keys: Vec<String>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    offset: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={TABLE}");
    println!("cargo::rerun-if-changed=build.rs");
    let table: Table = toml::from_str(&fs::read_to_string(TABLE)?)?;
    let (mut structs, mut variants, mut arms, mut names) =
        (String::new(), String::new(), String::new(), String::new());
    for event in &table.event {
        writeln!(names, "    {:?},", event.name)?;
        for (number, payload) in event.payload.iter().enumerate() {
            let name = format!("Payload{}N{number}", event.value);
            writeln!(variants, "    {name}({name}),")?;
            let phases = match payload.phases.as_slice() {
                [_, _, _] => "0..=2".to_owned(),
                some => some
                    .iter()
                    .map(|p| phase(p))
                    .collect::<Vec<_>>()
                    .join(" | "),
            };
            let values = keys(&mut structs, &name, payload)?;
            writeln!(
                arms,
                "        ({}, {phases}) => Data::{name}({name} {{ {values} }}),",
                event.value
            )?;
        }
    }
    let code = format!(
        "{structs}#[derive(Debug, Serialize)]\n#[serde(untagged)]\npub(crate) enum Data {{\n{variants}    Empty {{}},\n}}\n\n\
         /// The payload of (type, phase) in these bytes.\n\
         pub(crate) fn decode(trace_type: u32, phase: u32, data: &[u8; 40], known: Known) -> Data {{\n    \
         match (trace_type, phase) {{\n{arms}        _ => Data::Empty {{}},\n    }}\n}}\n\n\
         pub(crate) const NAMES: [&str; {}] = [\n{names}];\n",
        table.event.len()
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("derived.rs"), code)?;
    Ok(())
}

fn phase(name: &str) -> &'static str {
    match name {
        "start" => "0",
        "stop" => "1",
        _ => "2",
    }
}

/// Writes the struct; the answer is how its fields are filled.
fn keys(structs: &mut String, name: &str, payload: &Payload) -> Result<String, Box<dyn Error>> {
    const OPTIONAL: &str = "    #[serde(skip_serializing_if = \"Option::is_none\")]\n";
    let mut values = String::new();
    writeln!(
        structs,
        "#[derive(Debug, Serialize)]\npub(crate) struct {name} {{"
    )?;
    for key in &payload.json_keys {
        let wanted = if key == "algorithm" { "algo" } else { key };
        let field = payload.fields.iter().find(|field| field.name == wanted);
        let read = field.map(|field| format!("{}_at(data, {})", field.kind, field.offset));
        let kind = field.map_or("u64", |field| field.kind.as_str());
        match (key.as_str(), read) {
            ("model_id", Some(read)) => {
                writeln!(
                    structs,
                    "    model_id: {kind},\n{OPTIONAL}    model_name: Option<&'static str>,"
                )?;
                write!(values, "model_id: {read}, model_name: model_name({read}), ")?;
            }
            ("model_id", None) => {
                writeln!(
                    structs,
                    "{OPTIONAL}    model_id: Option<u64>,\n{OPTIONAL}    model_name: Option<&'static str>,"
                )?;
                write!(
                    values,
                    "model_id: known.model, model_name: known.model.and_then(model_name), "
                )?;
            }
            ("physical_address", Some(read)) => {
                writeln!(structs, "    physical_address: String,")?;
                write!(values, "physical_address: format!(\"{{:#x}}\", {read}), ")?;
            }
            ("algorithm" | "usage_type" | "mem_type", Some(read)) => {
                writeln!(structs, "    {key}: &'static str,")?;
                write!(values, "{key}: names::{key}({read}.into()), ")?;
            }
            (_, Some(read)) => {
                writeln!(structs, "    {key}: {kind},")?;
                write!(values, "{key}: {read}, ")?;
            }
            (_, None) => return Err(format!("{key} has no field").into()),
        }
    }
    writeln!(structs, "}}\n")?;
    Ok(values)
}
