//! What a manual says of a program besides its arguments: variables of the environment, and files.

use clap_mangen::roff::{Roff, italic, roman};

/// Terms with what they mean.
type Terms = [(&'static str, &'static str)];

/// What all pages of a program say.
#[derive(Debug)]
pub(super) struct Around {
    environment: &'static Terms,
    files: &'static Terms,
}

const CONTROL: &str = "/run/nrt-trace/control.sock";

/// Of `nrt-tracectl`.
const TRACECTL: Around = Around {
    environment: &[
        (
            "NRT_TRACE_SOCKET",
            "Control socket of the daemon, where --socket is not given.",
        ),
        (
            "NRT_TRACE_PRODUCER_SOCKET",
            "Where traced programs look for the daemon; record sets it for its command.",
        ),
        (
            "NEURON_RT_INSPECT_EVENT_FILTER_NC, NEURON_RT_INSPECT_EVENT_FILTER_TYPE, \
             NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC",
            "What --nc, --events and --max-events-per-nc are, where these are not given.",
        ),
        ("NO_COLOR", "No colours, whatever its value."),
    ],
    files: &[(CONTROL, "Control socket, whose group may use it.")],
};

/// Of `nrt-traced`.
const TRACED: Around = Around {
    environment: &[
        (
            "NRT_TRACED_KEY",
            "A setting, by its key in capitals: it overrides the configuration file.",
        ),
        (
            "NRT_TRACE_SOCKET, NRT_TRACE_PRODUCER_SOCKET",
            "The two sockets, as for the programs that connect to them.",
        ),
        (
            "RUST_LOG",
            "What the log holds, target by target, in place of log_level.",
        ),
        (
            "LISTEN_FDS, NOTIFY_SOCKET, WATCHDOG_USEC, JOURNAL_STREAM",
            "What the service manager says: sd_listen_fds(3), sd_notify(3), sd_watchdog_enabled(3), systemd.exec(5).",
        ),
    ],
    files: &[
        ("/etc/nrt-trace/nrt-traced.toml", "Configuration."),
        (CONTROL, "Control socket."),
        (
            "/run/nrt-trace/producer.sock",
            "Socket that programs attach to.",
        ),
    ],
};

impl Around {
    /// Of the program whose pages are in `section`.
    pub(super) fn of(section: &str) -> &'static Self {
        if section == "8" { &TRACED } else { &TRACECTL }
    }

    pub(super) fn render(&self, roff: &mut Roff) {
        for (title, terms) in [("ENVIRONMENT", self.environment), ("FILES", self.files)] {
            roff.control("SH", [title]);
            for (term, text) in terms {
                roff.control("TP", []);
                roff.text([italic(*term)]);
                roff.text([roman(*text)]);
            }
        }
    }
}
