//! Turns `events.toml` into the enum of event types, the payload structs and the layout tables, and refuses a table
//! that does not hold together: overlapping or unaligned fields, a JSON key without a source, a category that the
//! hardware mask contradicts, two events with one name.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    record_size: u64,
    data_offset: u64,
    data_size: usize,
    hardware_mask: u64,
    event: Vec<Event>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    value: u32,
    #[serde(rename = "enum")]
    suffix: String,
    name: String,
    aliases: Vec<String>,
    category: String,
    confidence: String,
    #[serde(default)]
    payload: Vec<Payload>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    phases: Vec<String>,
    size: usize,
    fields: Vec<Field>,
    json_keys: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    offset: usize,
}

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    println!("cargo::rerun-if-changed=events.toml");
    println!("cargo::rerun-if-changed=build.rs");
    let table: Table = toml::from_str(&fs::read_to_string("events.toml")?)?;
    check(&table)?;
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("events.rs"), events(&table)?)?;
    fs::write(Path::new(&out).join("payloads.rs"), payloads(&table)?)?;
    Ok(())
}

fn check(table: &Table) -> Outcome<()> {
    if (table.record_size, table.data_offset, table.data_size) != (112, 48, 40) {
        return Err(
            "events.toml describes another record than the 112 bytes with 40 bytes of data at 48"
                .into(),
        );
    }
    let mut names = HashMap::new();
    for (index, event) in table.event.iter().enumerate() {
        let name = &event.name;
        if index != usize::try_from(event.value)? {
            return Err(
                format!("{name}: value {} is not its position {index}", event.value).into(),
            );
        }
        if (event.category == "hardware") != (table.hardware_mask >> event.value & 1 != 0) {
            return Err(format!(
                "{name}: category {} contradicts the hardware mask",
                event.category
            )
            .into());
        }
        for spelling in event.aliases.iter().chain([name]) {
            if let Some(other) = names.insert(spelling, name) {
                return Err(format!("{spelling} names both {other} and {name}").into());
            }
        }
        for payload in &event.payload {
            check_payload(payload, table.data_size)
                .map_err(|e| format!("{name} {:?}: {e}", payload.phases))?;
        }
    }
    Ok(())
}

fn check_payload(payload: &Payload, data_size: usize) -> Outcome<()> {
    let mut taken = vec![false; data_size];
    for field in &payload.fields {
        let size = size_of_kind(&field.kind)?;
        if !field.offset.is_multiple_of(size)
            || field.offset + size > payload.size
            || payload.size > data_size
        {
            return Err(format!(
                "{} is not aligned inside {} bytes",
                field.name, payload.size
            )
            .into());
        }
        for byte in &mut taken[field.offset..field.offset + size] {
            if std::mem::replace(byte, true) {
                return Err(format!("{} overlaps another field", field.name).into());
            }
        }
        field_doc(&field.name)?;
    }
    for key in &payload.json_keys {
        source(payload, key)?;
    }
    Ok(())
}

fn size_of_kind(kind: &str) -> Outcome<usize> {
    Ok(match kind {
        "bool" | "u8" => 1,
        "u16" => 2,
        "u32" | "i32" => 4,
        "u64" => 8,
        _ => return Err(format!("unknown field type {kind}").into()),
    })
}

/// Where a JSON key's value comes from: a field, or (`None`) another event of the same execution.
fn source(payload: &Payload, key: &str) -> Outcome<Option<usize>> {
    let field = if key == "algorithm" { "algo" } else { key };
    match payload.fields.iter().position(|f| f.name == field) {
        None if key == "model_id" && payload.fields.iter().any(|f| f.name == "exec_id") => Ok(None),
        None => Err(format!("JSON key {key} has no field").into()),
        found => Ok(found),
    }
}

/// How a JSON value is written.
fn rendering(key: &str) -> &'static str {
    match key {
        "algorithm" => "Algorithm",
        "usage_type" => "UsageType",
        "mem_type" => "MemType",
        "physical_address" => "Hex",
        "model_id" => "ModelId",
        _ => "Plain",
    }
}

fn camel(words: &str) -> String {
    let capitalize = |word: &str| {
        word.chars()
            .take(1)
            .chain(word.to_lowercase().chars().skip(1))
            .collect::<String>()
    };
    words.to_uppercase().split('_').map(capitalize).collect()
}

/// Name of a payload's struct: the event's, with the phase when the payload is not the same in every phase.
fn struct_name(event: &Event, payload: &Payload) -> String {
    let phase = if payload.phases.len() == 3 {
        ""
    } else {
        &payload.phases[0]
    };
    camel(&event.suffix) + &camel(phase)
}

fn events(table: &Table) -> Outcome<String> {
    let mut o = String::new();
    let n = table.event.len();
    writeln!(
        o,
        "/// Bit set of the hardware event types.\npub const HARDWARE_MASK: u64 = {:#x};\n",
        table.hardware_mask
    )?;
    writeln!(
        o,
        "/// An event type of Neuron's system trace; the value is the record's `trace_type`."
    )?;
    writeln!(
        o,
        "#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]\n#[repr(u32)]"
    )?;
    writeln!(o, "pub enum EventType {{")?;
    for event in &table.event {
        writeln!(o, "    /// `{}` ({}).", event.name, event.category)?;
        writeln!(o, "    {} = {},", camel(&event.suffix), event.value)?;
    }
    writeln!(
        o,
        "}}\n\nimpl EventType {{\n    /// All {n} types, by value.\n    pub const ALL: [Self; {n}] = ["
    )?;
    for event in &table.event {
        writeln!(o, "        Self::{},", camel(&event.suffix))?;
    }
    writeln!(o, "    ];\n}}\n\nstatic INFO: [Info; {n}] = [")?;
    for event in &table.event {
        let Event {
            name,
            suffix,
            aliases,
            confidence,
            ..
        } = event;
        let attested = camel(confidence);
        writeln!(
            o,
            "    Info {{ name: {name:?}, suffix: {suffix:?}, aliases: &{aliases:?}, attested: Attested::{attested} }},"
        )?;
    }
    writeln!(o, "];")?;
    Ok(o)
}

fn payloads(table: &Table) -> Outcome<String> {
    let mut o = String::new();
    let all = || {
        table
            .event
            .iter()
            .flat_map(|e| e.payload.iter().map(move |p| (e, p)))
    };
    for (event, payload) in all() {
        payload_struct(&mut o, event, payload)?;
    }
    writeln!(
        o,
        "/// Every payload, by event type and then by phase.\npub static ALL: [PayloadLayout; {}] = [",
        all().count()
    )?;
    for (event, payload) in all() {
        writeln!(o, "    {}::LAYOUT,", struct_name(event, payload))?;
    }
    writeln!(o, "];\n\n/// Index in [`ALL`] by event type and phase.")?;
    writeln!(
        o,
        "static BY_TYPE_AND_PHASE: [[Option<usize>; 3]; {}] = [",
        table.event.len()
    )?;
    let mut next = 0;
    for event in &table.event {
        let mut row = [None; 3];
        for payload in &event.payload {
            for phase in &payload.phases {
                let column = ["start", "stop", "instant"].iter().position(|p| p == phase);
                row[column.ok_or_else(|| format!("unknown phase {phase}"))?] = Some(next);
            }
            next += 1;
        }
        writeln!(o, "    {row:?}, // {}", event.name)?;
    }
    writeln!(o, "];")?;
    // For tests that hold for each payload: `each_payload!(check)` calls `check::<P>()` with all of them.
    writeln!(
        o,
        "\n#[cfg(test)]\nmacro_rules! each_payload {{\n    ($check:ident) => {{"
    )?;
    for (event, payload) in all() {
        writeln!(o, "        $check::<{}>();", struct_name(event, payload))?;
    }
    writeln!(o, "    }};\n}}")?;
    Ok(o)
}

fn payload_struct(o: &mut String, event: &Event, payload: &Payload) -> Outcome<()> {
    let name = struct_name(event, payload);
    let kind = camel(&event.suffix);
    let phases = match payload.phases.as_slice() {
        [_, _, _] => "every phase".to_owned(),
        some => some.join(" and "),
    };
    writeln!(
        o,
        "/// Payload of `{}` in {phases}: {} bytes.",
        event.name, payload.size
    )?;
    writeln!(
        o,
        "#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub struct {name} {{"
    )?;
    for f in &payload.fields {
        writeln!(
            o,
            "    /// {} `{}` at byte {}.",
            field_doc(&f.name)?,
            f.kind,
            f.offset
        )?;
        writeln!(o, "    pub {}: {},", f.name, f.kind)?;
    }
    writeln!(
        o,
        "}}\n\n// The table, the struct's types and the union agree, or nothing compiles."
    )?;
    for f in &payload.fields {
        writeln!(
            o,
            "const _: () = fits::<{}>({}, {});",
            f.kind, f.offset, payload.size
        )?;
    }
    writeln!(o, "\nimpl {name} {{")?;
    writeln!(o, "    /// Fields and JSON keys.")?;
    writeln!(o, "    pub const LAYOUT: PayloadLayout = PayloadLayout {{")?;
    writeln!(
        o,
        "        name: {name:?},\n        event: EventType::{kind},\n        size: {},",
        payload.size
    )?;
    let phases: Vec<String> = payload
        .phases
        .iter()
        .map(|p| format!("Phase::{}", camel(p)))
        .collect();
    writeln!(
        o,
        "        phases: &[{}],\n        fields: &[",
        phases.join(", ")
    )?;
    for Field { name, kind, offset } in &payload.fields {
        let kind = camel(kind);
        writeln!(
            o,
            "            Field {{ name: {name:?}, kind: FieldKind::{kind}, offset: {offset} }},"
        )?;
    }
    writeln!(o, "        ],\n        json_keys: &[")?;
    for key in &payload.json_keys {
        let field = source(payload, key)?;
        writeln!(
            o,
            "            JsonKey {{ name: {key:?}, field: {field:?}, rendering: Rendering::{} }},",
            rendering(key)
        )?;
    }
    writeln!(o, "        ],\n    }};\n")?;
    writeln!(
        o,
        "    /// The union words that hold this payload.\n    #[inline]\n    #[must_use]"
    )?;
    writeln!(
        o,
        "    pub fn to_data(&self) -> [u64; 5] {{\n        let mut data = [0; 5];"
    )?;
    for f in &payload.fields {
        writeln!(o, "        self.{}.put(&mut data, {});", f.name, f.offset)?;
    }
    writeln!(o, "        data\n    }}\n")?;
    writeln!(
        o,
        "    /// The payload in these union words; any words are a payload.\n    #[inline]\n    #[must_use]"
    )?;
    writeln!(
        o,
        "    pub fn from_data(data: &[u64; 5]) -> Self {{\n        Self {{"
    )?;
    for f in &payload.fields {
        writeln!(
            o,
            "            {}: FieldType::get(data, {}),",
            f.name, f.offset
        )?;
    }
    writeln!(o, "        }}\n    }}\n}}\n\nimpl Payload for {name} {{")?;
    writeln!(o, "    const LAYOUT: PayloadLayout = Self::LAYOUT;\n")?;
    writeln!(
        o,
        "    #[inline]\n    fn to_data(&self) -> [u64; 5] {{\n        Self::to_data(self)\n    }}\n"
    )?;
    writeln!(
        o,
        "    #[inline]\n    fn from_data(data: &[u64; 5]) -> Self {{\n        Self::from_data(data)\n    }}\n}}\n"
    )?;
    Ok(())
}

fn field_doc(name: &str) -> Outcome<&'static str> {
    Ok(match name {
        "model_id" => "String id of the model's name.",
        "request_id" => "Number of the request.",
        "g_device_id" => "Rank of the device among all of the job's.",
        "g_device_count" => "Devices of the whole job.",
        "exec_id" => "Number of the execution.",
        "nc_timestamp_ns" => "Device clock, ns.",
        "cpu_timestamp_ns" => "Host clock (`CLOCK_REALTIME`) read with the device's, ns.",
        "device_core_idx" => "Physical core of the device.",
        "gid" => "Group of the collective.",
        "op_id" => "Operation inside the group.",
        "algo" => "Algorithm, see [`crate::names::algorithm`].",
        "tensor_id" => "Number of the tensor.",
        "size" => "Bytes.",
        "num_batches" => "Batches of the call.",
        "peer_id" => "Rank of the peer.",
        "nec_dev_id" => "Device of the collectives engine.",
        "is_neuron_core_work" => "Whether the work is the NeuronCore's own.",
        "available_request_slots" => "Slots that are free in the request queue.",
        "has_work" => "Whether there is work.",
        "hint" => "Hint of the notification.",
        "custom_data" => "Data of the notification.",
        "ref_count" => "References that are left.",
        "pending_reader_count" => "Readers that are waited for.",
        "pending_writer_count" => "Writers that are waited for.",
        "mem_type" => "Where the memory is, see [`crate::names::mem_type`].",
        "mem_handle" => "Handle of the memory.",
        "offset" => "Byte offset in the memory.",
        "total_num_ops" => "Operations of all batches.",
        "total_size" => "Bytes of all batches.",
        "hbm_idx" => "HBM bank.",
        "usage_type" => "What the memory is for, see [`crate::names::usage_type`].",
        "is_nc_hbm" => "Whether the bank is the NeuronCore's own.",
        "is_aligned" => "Whether alignment was asked for.",
        "mla_idx" => "Device (accelerator) index.",
        "allocated_bytes" => "Bytes that were allocated.",
        "freed_bytes" => "Bytes that were freed.",
        "physical_address" => "Physical address on the device.",
        "return_code" => "Status of the call.",
        "usage_type_total_bytes" => "Bytes in use for this usage type, after the call.",
        "total_bytes" => "Bytes in use for everything, after the call.",
        "ctx_device_id" => "Rank of the device in the context.",
        "ctx_device_count" => "Devices of the context.",
        "cc_op" => "Collective, see [`crate::names::cc_op`].",
        "enc_op" => "Operation, see [`crate::names::enc_op`].",
        "dtype" => "Element type, see [`crate::names::dtype`].",
        "num_elem" => "Elements.",
        "stream_id" => "Number of the stream.",
        "total_notif_expected" => "Notifications that are waited for.",
        _ => return Err(format!("field {name} has no description").into()),
    })
}
