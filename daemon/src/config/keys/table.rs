//! Each key, once.

use super::super::group;
use super::super::value::{Kind, Value};
use super::super::{Config, HostSettings, MAX_ARM_TIMEOUT_MS, MIN_EVENTS_PER_NC};
use super::Key;

use std::path::{Path, PathBuf};
use std::str::FromStr;

const FILES: &str = "Sockets and files";
const CAPTURES: &str = "Captures";
const LIMITS: &str = "Limits that hold whatever users do";
const HOST: &str = "Host monitor";
const LOG: &str = "Log";
/// What people are not shown.
pub(super) const TESTS: &str = "For tests only";

/// All keys. Values are written in this order, so that one may decide what another allows.
pub(in super::super) const KEYS: [Key; 37] = [
    Key {
        name: "test_small_rings",
        section: TESTS,
        text: "Lets rings have fewer than 1024 events.",
        allowed: "true or false",
        sample: "false",
        default: None,
        kind: Kind::Switch,
        reload: false,
        set: |c, v| switch(&mut c.test_small_rings, v),
        get: |c| Some(Value::Switch(c.test_small_rings)),
    },
    Key {
        name: "control_socket",
        section: FILES,
        text: "Path of the control socket, where nrt-tracectl and other clients of the API connect. A socket that the service manager hands over is used where it is.",
        allowed: "the path of a socket, another one than producer_socket's",
        sample: "\"/run/nrt-trace/control.sock\"",
        default: None,
        kind: Kind::Path,
        reload: false,
        set: |c, v| socket(&mut c.control_socket, v),
        get: |c| path_of(&c.control_socket),
    },
    Key {
        name: "producer_socket",
        section: FILES,
        text: "Path of the producer socket, which programs attach to.",
        allowed: "the path of a socket, another path than control_socket",
        sample: "\"/run/nrt-trace/producer.sock\"",
        default: None,
        kind: Kind::Path,
        reload: false,
        set: |c, v| socket(&mut c.producer_socket, v) && c.producer_socket != c.control_socket,
        get: |c| path_of(&c.producer_socket),
    },
    Key {
        name: "metrics_socket",
        section: FILES,
        text: "Path of a socket where metrics are read over HTTP, at /metrics. A socket that the service manager hands over is used where it is.",
        allowed: "the path of a socket, another one than the other two",
        sample: "\"/run/nrt-trace/metrics.sock\"",
        default: Some("none"),
        kind: Kind::Path,
        reload: false,
        set: metrics_socket,
        get: |c| c.metrics_socket.as_deref().and_then(path_of),
    },
    Key {
        name: "metrics_mode",
        section: FILES,
        text: "Permission bits of the metrics socket. Metrics name processes of all users.",
        allowed: "octal digits such as \"0660\", at most \"0777\"",
        sample: "\"0660\"",
        default: None,
        kind: Kind::Text,
        reload: false,
        set: |c, v| mode(&mut c.metrics_mode, v),
        get: |c| mode_of(c.metrics_mode),
    },
    Key {
        name: "metrics_group",
        section: FILES,
        text: "Group that may read metrics: a name of /etc/group, or a number.",
        allowed: "a group of /etc/group, or the number of any other",
        sample: "\"prometheus\"",
        default: Some("the daemon's own"),
        kind: Kind::Group,
        reload: false,
        set: |c, v| group(&mut c.metrics_group, v),
        get: |c| group_of(c.metrics_group),
    },
    Key {
        name: "state_dir",
        section: FILES,
        text: "Folder of the daemon's lock and of what a next daemon goes on from. No two daemons share one. It is of no use after a boot.",
        allowed: "a path",
        sample: "\"/run/nrt-trace\"",
        default: Some("the folder of the control socket"),
        kind: Kind::Path,
        reload: false,
        set: |c, v| path(&mut c.state_dir, v),
        get: |c| path_of(&c.state_dir),
    },
    Key {
        name: "control_mode",
        section: FILES,
        text: "Permission bits of the control socket. Not of one that is handed over: its unit decides (SocketMode=).",
        allowed: "octal digits such as \"0660\", at most \"0777\"",
        sample: "\"0660\"",
        default: None,
        kind: Kind::Text,
        reload: false,
        set: |c, v| mode(&mut c.control_mode, v),
        get: |c| mode_of(c.control_mode),
    },
    Key {
        name: "control_group",
        section: FILES,
        text: "Group that may control the daemon: a name of /etc/group, or a number.",
        allowed: "a group of /etc/group, or the number of any other",
        sample: "\"nrt-trace\"",
        default: Some(
            "nrt-trace if there is such a group and the daemon is root, else the daemon's own",
        ),
        kind: Kind::Group,
        reload: false,
        set: |c, v| group(&mut c.control_group, v),
        get: |c| group_of(c.control_group),
    },
    Key {
        name: "producer_group",
        section: FILES,
        text: "Group whose processes may attach. With it, producer_mode is \"0660\" unless it is said too.",
        allowed: "a group of /etc/group, or the number of any other",
        sample: "\"neuron\"",
        default: Some("everybody's"),
        kind: Kind::Group,
        reload: false,
        set: producer_group,
        get: |c| group_of(c.producer_group),
    },
    Key {
        name: "producer_mode",
        section: FILES,
        text: "Permission bits of the producer socket.",
        allowed: "octal digits such as \"0660\", at most \"0777\"",
        sample: "\"0666\"",
        default: None,
        kind: Kind::Text,
        reload: false,
        set: |c, v| mode(&mut c.producer_mode, v),
        get: |c| mode_of(c.producer_mode),
    },
    Key {
        name: "instance_id",
        section: FILES,
        text: "Name of the machine in traces.",
        allowed: "a string",
        sample: "\"i-0123456789abcdef0\"",
        default: Some("the cloud's instance id where known, else the host name"),
        kind: Kind::Text,
        reload: false,
        set: instance_id,
        get: |c| c.instance_id.clone().map(Value::Text),
    },
    Key {
        name: "default_max_events_per_nc",
        section: CAPTURES,
        text: "Events kept for each NeuronCore of each process, when a start does not say.",
        allowed: "1024 to 4294967296",
        sample: "1048576",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: events_per_nc,
        get: |c| number_of(c.default_max_events_per_nc),
    },
    Key {
        name: "default_cores",
        section: CAPTURES,
        text: "NeuronCores that get a ring in a process whose cores are not known.",
        allowed: "1 to 256",
        sample: "8",
        default: None,
        kind: Kind::Number,
        reload: false,
        set: |c, v| number(&mut c.default_cores, v, |n| (1..=256).contains(&n)),
        get: |c| number_of(c.default_cores),
    },
    Key {
        name: "arm_timeout_ms",
        section: CAPTURES,
        text: "How long a start waits for processes to answer when it does not say, ms.",
        allowed: "0 to 10000",
        sample: "250",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| number(&mut c.arm_timeout_ms, v, |n| n <= MAX_ARM_TIMEOUT_MS),
        get: |c| number_of(c.arm_timeout_ms),
    },
    Key {
        name: "disarm_timeout_ms",
        section: CAPTURES,
        text: "How long a stop waits for processes to answer, ms.",
        allowed: "1 to 10000",
        sample: "100",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| {
            number(&mut c.disarm_timeout_ms, v, |n| {
                (1..=MAX_ARM_TIMEOUT_MS).contains(&n)
            })
        },
        get: |c| number_of(c.disarm_timeout_ms),
    },
    Key {
        name: "resume",
        section: CAPTURES,
        text: "Whether runs go on when the daemon ends and starts again.",
        allowed: "true or false",
        sample: "true",
        default: None,
        kind: Kind::Switch,
        reload: false,
        set: |c, v| switch(&mut c.resume, v),
        get: |c| Some(Value::Switch(c.resume)),
    },
    Key {
        name: "allocate",
        section: CAPTURES,
        text: "Who takes the memory of rings, which is charged to its memory group: \"ahead\", the daemon, some MiB ahead of each tail; \"all\", the daemon, before a process is armed; \"producer\", the process as it writes.",
        allowed: "\"ahead\", \"all\" or \"producer\"",
        sample: "\"ahead\"",
        default: None,
        kind: Kind::Text,
        reload: false,
        set: |c, v| word(&mut c.allocate, v),
        get: |c| Some(Value::Text(c.allocate.to_string())),
    },
    Key {
        name: "max_producers",
        section: LIMITS,
        text: "Processes attached at a time.",
        allowed: "at least 1",
        sample: "1024",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| number(&mut c.budgets.producers, v, |n| n >= 1),
        get: |c| number_of(c.budgets.producers),
    },
    Key {
        name: "max_producers_per_uid",
        section: LIMITS,
        text: "Processes of one user attached at a time.",
        allowed: "at least 1",
        sample: "512",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| number(&mut c.budgets.producers_per_uid, v, |n| n >= 1),
        get: |c| number_of(c.budgets.producers_per_uid),
    },
    Key {
        name: "max_segment_bytes",
        section: LIMITS,
        text: "Bytes of one process's rings in one run. Memory is taken only as events come.",
        allowed: "at least 1",
        sample: "68719476736",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| number(&mut c.budgets.segment_bytes, v, |n| n >= 1),
        get: |c| number_of(c.budgets.segment_bytes),
    },
    Key {
        name: "max_segment_bytes_per_uid",
        section: LIMITS,
        text: "Bytes of the rings of all processes of one user, ended ones with unread events included, taken or not.",
        allowed: "at least 1",
        sample: "1099511627776",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| number(&mut c.budgets.segment_bytes_per_uid, v, |n| n >= 1),
        get: |c| number_of(c.budgets.segment_bytes_per_uid),
    },
    Key {
        name: "max_segment_bytes_total",
        section: LIMITS,
        text: "The same of all users.",
        allowed: "at least 1",
        sample: "4398046511104",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| number(&mut c.budgets.segment_bytes_total, v, |n| n >= 1),
        get: |c| number_of(c.budgets.segment_bytes_total),
    },
    Key {
        name: "memory_budget_bytes",
        section: LIMITS,
        text: "Bytes of shared memory really taken, above which no process is armed.",
        allowed: "a number of bytes",
        sample: "8589934592",
        default: Some("half of the machine's memory"),
        kind: Kind::Number,
        reload: false,
        set: |c, v| number(&mut c.budgets.memory_bytes, v, |_| true),
        get: |c| number_of(c.budgets.memory_bytes),
    },
    Key {
        name: "ended_budget_bytes",
        section: LIMITS,
        text: "Bytes of unread events of ended processes; beyond it the oldest are given up. It never exceeds memory_budget_bytes.",
        allowed: "a number of bytes",
        sample: "4294967296",
        default: Some("half of memory_budget_bytes"),
        kind: Kind::Number,
        reload: true,
        set: |c, v| number(&mut c.budgets.ended_bytes, v, |_| true),
        get: |c| number_of(c.budgets.ended_bytes),
    },
    Key {
        name: "string_table_bytes",
        section: LIMITS,
        text: "Bytes of each process's table of names.",
        allowed: "multiples of 4096 from 4096 to 4294967296",
        sample: "1048576",
        default: None,
        kind: Kind::Number,
        reload: false,
        set: string_table,
        get: |c| number_of(c.budgets.string_table_bytes),
    },
    Key {
        name: "names_budget_bytes",
        section: LIMITS,
        text: "Bytes of all names that the daemon remembers.",
        allowed: "a number of bytes",
        sample: "268435456",
        default: None,
        kind: Kind::Number,
        reload: false,
        set: |c, v| number(&mut c.budgets.names_bytes, v, |_| true),
        get: |c| number_of(c.budgets.names_bytes),
    },
    Key {
        name: "names_budget_bytes_per_uid",
        section: LIMITS,
        text: "Bytes of the names that the processes of one user were the first to tell; later ones show as their numbers.",
        allowed: "a number of bytes",
        sample: "67108864",
        default: None,
        kind: Kind::Number,
        reload: false,
        set: |c, v| number(&mut c.budgets.names_bytes_per_uid, v, |_| true),
        get: |c| number_of(c.budgets.names_bytes_per_uid),
    },
    Key {
        name: "forgotten_run_s",
        section: LIMITS,
        text: "Seconds after which the run of a token that nobody asks for, and that has no process, is given up; 0: never.",
        allowed: "a number of seconds",
        sample: "3600",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| number(&mut c.budgets.forgotten_run_s, v, |_| true),
        get: |c| number_of(c.budgets.forgotten_run_s),
    },
    Key {
        name: "host",
        section: HOST,
        text: "Whether the host monitor samples from the daemon's start on; else when somebody asks for it.",
        allowed: "true or false",
        sample: "false",
        default: None,
        kind: Kind::Switch,
        reload: false,
        set: |c, v| switch(&mut c.host.enabled, v),
        get: |c| Some(Value::Switch(c.host.enabled)),
    },
    Key {
        name: "host_period_ms",
        section: HOST,
        text: "Time between two ticks, ms.",
        allowed: "100 to 60000",
        sample: "1000",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| {
            number(&mut c.host.period_ms, v, |n| {
                HostSettings::PERIODS_MS.contains(&n)
            })
        },
        get: |c| number_of(c.host.period_ms),
    },
    Key {
        name: "host_max_samples",
        section: HOST,
        text: "Ticks that are kept.",
        allowed: "at least 1",
        sample: "10000",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| number(&mut c.host.max_samples, v, |n| n >= 1),
        get: |c| number_of(c.host.max_samples),
    },
    Key {
        name: "host_retention",
        section: HOST,
        text: "What happens when so many are kept: \"saturate\", it stops and every answer says so, or \"ring\", the oldest gives way.",
        allowed: "\"saturate\" or \"ring\"",
        sample: "\"saturate\"",
        default: None,
        kind: Kind::Text,
        reload: true,
        set: |c, v| word(&mut c.host.retention, v),
        get: |c| Some(Value::Text(c.host.retention.to_string())),
    },
    Key {
        name: "host_memory_bytes",
        section: HOST,
        text: "Bytes that the kept ticks take at most; beyond it the same happens.",
        allowed: "at least 1048576",
        sample: "268435456",
        default: None,
        kind: Kind::Number,
        reload: true,
        set: |c, v| number(&mut c.host.memory_bytes, v, |n| n >= 1 << 20),
        get: |c| number_of(c.host.memory_bytes),
    },
    Key {
        name: "proc_root",
        section: HOST,
        text: "Where the kernel's /proc is found, as in a container that has the host's elsewhere.",
        allowed: "a path",
        sample: "\"/proc\"",
        default: None,
        kind: Kind::Path,
        reload: false,
        set: |c, v| path(&mut c.host.proc_root, v),
        get: |c| path_of(&c.host.proc_root),
    },
    Key {
        name: "sys_root",
        section: HOST,
        text: "Where /sys is found, with the cgroups in fs/cgroup.",
        allowed: "a path",
        sample: "\"/sys\"",
        default: None,
        kind: Kind::Path,
        reload: false,
        set: |c, v| path(&mut c.host.sys_root, v),
        get: |c| path_of(&c.host.sys_root),
    },
    Key {
        name: "log_level",
        section: LOG,
        text: "What the log says at least: \"error\", an operator must act; \"warn\", something is degraded; \"info\", the steps of life cycles; \"debug\", details of one session; \"trace\". RUST_LOG overrides it, target by target.",
        allowed: "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"",
        sample: "\"info\"",
        default: None,
        kind: Kind::Text,
        reload: true,
        set: |c, v| word(&mut c.log_level, v),
        get: |c| Some(Value::Text(c.log_level.to_string())),
    },
];

fn number<T: Copy + TryFrom<u64>>(place: &mut T, value: &Value, allowed: fn(T) -> bool) -> bool {
    put(place, value.number().filter(|n| allowed(*n)))
}

/// Numbers of this machine fit into 64 bits.
fn number_of<T>(number: T) -> Option<Value>
where
    u64: TryFrom<T>,
{
    u64::try_from(number).ok().map(Value::Number)
}

fn events_per_nc(config: &mut Config, value: &Value) -> bool {
    let least = if config.test_small_rings {
        1
    } else {
        MIN_EVENTS_PER_NC
    };
    let events = value.number().filter(|n| (least..=1 << 32).contains(n));
    put(&mut config.default_max_events_per_nc, events)
}

fn string_table(config: &mut Config, value: &Value) -> bool {
    let fits = |bytes: &u64| nrt_trace_abi::layout::StringTableLayout::new(*bytes).is_some();
    put(
        &mut config.budgets.string_table_bytes,
        value.number().filter(fits),
    )
}

fn switch(place: &mut bool, value: &Value) -> bool {
    let on = match value {
        Value::Switch(on) => Some(*on),
        _ => None,
    };
    put(place, on)
}

fn path(place: &mut PathBuf, value: &Value) -> bool {
    put(place, value.path().map(Path::to_owned))
}

fn socket(place: &mut PathBuf, value: &Value) -> bool {
    let named = value.path().filter(|path| path.file_name().is_some());
    put(place, named.map(Path::to_owned))
}

fn metrics_socket(config: &mut Config, value: &Value) -> bool {
    let others = [&config.control_socket, &config.producer_socket];
    let named = (value.path()).filter(|path| path.file_name().is_some());
    let free = named.filter(|path| others.iter().all(|other| other != path));
    put(
        &mut config.metrics_socket,
        free.map(|path| Some(path.to_owned())),
    )
}

fn path_of(path: &Path) -> Option<Value> {
    Some(Value::Path(path.to_owned()))
}

fn mode(place: &mut u32, value: &Value) -> bool {
    let bits = (value.text()).and_then(|text| u32::from_str_radix(text, 8).ok());
    put(place, bits.filter(|bits| *bits <= 0o777))
}

fn mode_of(mode: u32) -> Option<Value> {
    Some(Value::Text(format!("{mode:04o}")))
}

fn group(place: &mut Option<u32>, value: &Value) -> bool {
    let id = value
        .number()
        .or_else(|| value.text().and_then(group::id_of));
    put(place, id.map(Some))
}

fn group_of(group: Option<u32>) -> Option<Value> {
    group.map(|id| Value::Number(id.into()))
}

fn producer_group(config: &mut Config, value: &Value) -> bool {
    // Others are kept out, unless `producer_mode`, which comes later, lets them in.
    config.producer_mode = 0o660;
    group(&mut config.producer_group, value)
}

fn instance_id(config: &mut Config, value: &Value) -> bool {
    let name = value.text().map(str::to_owned);
    put(&mut config.instance_id, name.map(Some))
}

fn word<T: FromStr>(place: &mut T, value: &Value) -> bool {
    put(place, value.text().and_then(|text| text.parse().ok()))
}

fn put<T>(place: &mut T, value: Option<T>) -> bool {
    value.is_some_and(|value| {
        *place = value;
        true
    })
}
