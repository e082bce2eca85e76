//! From a connection to a welcomed producer.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nrt_trace_abi::host_stats::HostStatsAsk;
use nrt_trace_abi::message::{self, Hello, Message, Refuse, Welcome, refuse};
use nrt_trace_ring::step;
use nrt_trace_shm::control::ControlPage;
use nrt_trace_shm::strings::StringReader;
use nrt_trace_shm::{ShmError, socket};
use rustix::event::epoll::{self, EventFlags};
use zerocopy::IntoBytes;

use super::budget::NO_DESCRIPTORS;
use super::command::Command;
use super::producer::{Life, Link, Producer};
use super::{Registry, Source};
use crate::handshake::{self, KernelFacts, PeerProcess, ProcFolder, Refusal};
use crate::host::Member;
use crate::strings::ProducerNames;

/// Connections without a Hello at a time.
const MAX_VISITORS: usize = 256;
/// Time for a Hello.
const HELLO: Duration = Duration::from_secs(5);
/// Time for a command line to be read.
const COMMAND_LINE: Duration = Duration::from_millis(100);
/// Pause after descriptors ran out.
const DEAF: Duration = Duration::from_secs(1);
/// Connections taken in a row, and packets of a producer read in a row: then it is others' turn.
const IN_A_ROW: usize = 16;
/// Messages that no honest library sends, after which a connection is closed.
const MAX_STRIKES: u32 = 64;
/// How long a library keeps an armed segment without a daemon, s.
pub(super) const ORPHAN_KEEP_S: u32 = 600;

/// A connection that has not said Hello.
#[derive(Debug)]
pub(super) struct Visitor {
    socket: OwnedFd,
    process: PeerProcess,
    pub(super) until: Instant,
}

impl Registry {
    /// Takes the connections that wait.
    pub(super) fn accept(&mut self) {
        for _ in 0..IN_A_ROW {
            match socket::accept(&self.listener) {
                Ok(connection) => self.receive(connection),
                Err(ShmError::WouldBlock) => return,
                Err(error) => {
                    // Out of descriptors: the listener stays readable, and asking again at once would be a busy loop.
                    let text = format!("can't take producers for a second: {error}");
                    if self.refusals.note(NO_DESCRIPTORS, &text, Instant::now()) {
                        tracing::warn!("{text}");
                    }
                    let _ = epoll::delete(&self.epoll, &self.listener);
                    self.deaf_until = Some(Instant::now() + DEAF);
                    return;
                }
            }
        }
    }

    pub(super) fn listen_again(&mut self) {
        self.deaf_until = None;
        if let Err(errno) = epoll::add(
            &self.epoll,
            &self.listener,
            Source::Listener.data(),
            EventFlags::IN,
        ) {
            tracing::warn!("can't take producers for a second: {errno}");
            self.deaf_until = Some(Instant::now() + DEAF);
        }
    }

    fn receive(&mut self, connection: OwnedFd) {
        let Ok(process) = PeerProcess::of(&connection) else {
            return;
        };
        if self.visitors.len() == MAX_VISITORS {
            // The oldest gives way: an honest library says Hello at once, so whoever has been silent longest is none.
            self.visitors.pop_first();
        }
        let id = self.next.visitor;
        self.next.visitor += 1;
        if epoll::add(
            &self.epoll,
            &connection,
            Source::Visitor(id).data(),
            EventFlags::IN,
        )
        .is_ok()
        {
            let visitor = Visitor {
                socket: connection,
                process,
                until: Instant::now() + HELLO,
            };
            self.visitors.insert(id, visitor);
            step::at("greet:taken");
        }
    }

    /// A visitor's first packet.
    pub(super) fn hear_visitor(&mut self, id: u64) {
        let Some(visitor) = self.visitors.get(&id) else {
            return;
        };
        let mut packet = [0; message::MAX_BYTES + 1];
        let received = socket::receive(&visitor.socket, &mut packet);
        if let Ok(asked) = &received
            && asked.fds.is_empty()
            && message::parse::<HostStatsAsk>(&packet[..asked.bytes]).is_ok()
            && self.check_access(visitor.process.peer).is_ok()
        {
            // No producer, but a question of a process for the host monitor.
            if let Some(visitor) = self.visitors.remove(&id) {
                self.c_programs.answer(visitor.socket, visitor.process.peer);
            }
            return;
        }
        let mut handed = Vec::new();
        let judged = match received {
            Err(ShmError::WouldBlock) => return,
            Ok(received) if received.bytes == 0 => {
                self.visitors.remove(&id);
                return;
            }
            Ok(received) => {
                handed = received.fds;
                handshake::judge(&packet[..received.bytes], handed.len())
            }
            Err(error) => Err(Refusal {
                code: refuse::PROTOCOL,
                cause: "protocol",
                reason: error.to_string(),
            }),
        };
        let Some(visitor) = self.visitors.remove(&id) else {
            return;
        };
        let peer = visitor.process.peer;
        let judged = judged.and_then(|hello| {
            self.check_access(peer)?;
            self.check_attach(peer.uid, &visitor.socket)?;
            Ok(hello)
        });
        match judged {
            Ok(hello) => {
                step::at("greet:heard");
                self.attach(visitor, &hello, handed);
            }
            Err(refusal) => self.refuse(&visitor, &refusal),
        }
    }

    fn refuse(&mut self, visitor: &Visitor, refusal: &Refusal) {
        self.counts.refused += 1;
        // Whoever connects again and again does not fill the log.
        if (self.refusals).note(refusal.cause, &refusal.reason, Instant::now()) {
            let peer = visitor.process.peer;
            tracing::warn!(
                pid = peer.pid,
                uid = peer.uid,
                refused = self.counts.refused,
                "refused to attach a process: {}",
                refusal.reason
            );
        }
        // Best effort: the peer sees the connection close in any case.
        let message = Refuse::new(refusal.code, &refusal.reason);
        drop(socket::send(&visitor.socket, message.as_bytes(), &[]));
    }

    fn attach(&mut self, visitor: Visitor, hello: &Hello, handed: Vec<OwnedFd>) {
        let peer = visitor.process.peer;
        let folder = match (peer.pid, &visitor.process.pidfd) {
            (Some(pid), Some(pidfd)) => ProcFolder::open(pid, pidfd),
            _ => None,
        };
        let facts = folder
            .as_ref()
            .map_or_else(KernelFacts::default, ProcFolder::facts);
        let returning = self.owner_of(&handed, &peer, facts.start_ticks);
        if returning.is_none() {
            self.replaces_away(&peer, facts.start_ticks);
        }
        let id = returning.unwrap_or(self.next.producer);
        let shared = ControlPage::create(id).and_then(|page| {
            Ok((
                page,
                StringReader::create(self.config.budgets.string_table_bytes)?,
            ))
        });
        let ((page, page_fd), (strings, strings_fd)) = match shared {
            Ok(shared) => shared,
            Err(error) => {
                let refusal = Refusal {
                    code: refuse::BUDGET,
                    cause: "system",
                    reason: error.to_string(),
                };
                return self.refuse(&visitor, &refusal);
            }
        };
        step::at("greet:made");
        let Visitor {
            socket,
            process: PeerProcess { peer, pidfd },
            ..
        } = visitor;
        let (page, names) = (
            Arc::new(page),
            Arc::new(ProducerNames::new(peer.uid, strings)),
        );
        let mut producer = Producer::new(id, hello, peer, facts, page.clone(), names);

        let watched = epoll::modify(
            &self.epoll,
            &socket,
            Source::Connection(id).data(),
            EventFlags::IN,
        )
        .and_then(|()| {
            pidfd.as_ref().map_or(Ok(()), |pidfd| {
                epoll::add(
                    &self.epoll,
                    pidfd,
                    Source::Process(id).data(),
                    EventFlags::IN,
                )
            })
        });
        if let Err(errno) = watched {
            tracing::warn!(pid = peer.pid, "can't watch a process: {errno}");
            return;
        }
        self.note_table(
            &mut producer,
            &strings_fd,
            self.config.budgets.string_table_bytes,
        );
        if let Some(earlier) = self.producers.remove(&id) {
            producer.came_back(&earlier);
            self.keep_tables_of(earlier, &mut producer);
        } else {
            self.next.producer += 1;
        }
        producer.pidfd = pidfd;
        producer.socket = Some(socket);
        producer.page_files = Some([page_fd, strings_fd]);
        self.clock.add(id, page);
        if let Some(pid) = peer.pid {
            self.members.add(Member {
                producer_id: id,
                pid,
                started: folder.as_ref().and_then(ProcFolder::started),
                name: producer.name().to_owned(),
            });
        }
        let handle = self.handle.clone();
        let reading = folder.is_some_and(|folder| {
            // When the door is full, the line comes too late: the producer is welcomed without it.
            self.command_lines.read(folder, move |line| {
                drop(handle.send(Command::Introduce(id, line)));
            })
        });
        producer.life = Life::Introducing {
            until: Instant::now() + COMMAND_LINE,
        };
        self.producers.insert(id, producer);
        if returning.is_some() {
            self.take_back(id, hello, handed);
        }
        self.changed = true;
        if !reading {
            self.introduced(id, None);
        }
    }

    /// The command line was read, or takes too long: the producer is welcomed.
    pub(super) fn introduced(&mut self, id: u32, line: Option<Vec<String>>) {
        let Some(producer) = self.producers.get_mut(&id) else {
            return;
        };
        if let Some(line) = line {
            producer.set_command_line(line);
        }
        if !matches!(producer.life, Life::Introducing { .. }) {
            return;
        }
        producer.life = Life::Attached;
        self.counts.attached += 1;
        if self.talk.may(Instant::now()) {
            tracing::info!(
                producer = id,
                pid = producer.pid(),
                uid = producer.uid,
                name = producer.name(),
                "attached"
            );
        }
        let run_follows = if self.goes_on(id) {
            Welcome::RUN_GOES_ON
        } else {
            u32::from(self.will_be_armed(id))
        };
        let welcome = Welcome {
            header: Welcome::header(),
            producer_id: id,
            run_follows,
            orphan_keep_s: ORPHAN_KEEP_S,
            reserved: 0,
            string_bytes: self.config.budgets.string_table_bytes,
        };
        let Some(producer) = self.producers.get_mut(&id) else {
            return;
        };
        let Some(files) = producer.page_files.take() else {
            return;
        };
        if producer.send_pair(&welcome, files) == Link::Down {
            return self.connection_lost(id);
        }
        step::at("greet:sent");
        self.reconcile(id);
        self.complete_rings(id);
    }

    /// A producer's packets.
    pub(super) fn hear_producer(&mut self, id: u32) {
        for _ in 0..IN_A_ROW {
            let Some(producer) = self.producers.get_mut(&id) else {
                return;
            };
            let Some(socket) = &producer.socket else {
                return;
            };
            let mut packet = [0; message::MAX_BYTES + 1];
            let received = match socket::receive(socket, &mut packet) {
                Err(ShmError::WouldBlock) => return,
                Ok(received) if received.bytes == 0 => return self.connection_lost(id),
                Ok(received) if received.fds.is_empty() => received,
                Ok(_) => return self.protocol_broken(id, "a message with descriptors"),
                Err(ShmError::PacketTooLong) => {
                    return self.protocol_broken(id, "a packet longer than any message");
                }
                Err(_) => return self.connection_lost(id),
            };
            let packet = &packet[..received.bytes];
            let understood = match message::kind_of(packet) {
                Ok(message::Armed::KIND) => {
                    message::parse(packet).map(|message| self.armed(id, &message))
                }
                Ok(message::Disarmed::KIND) => {
                    message::parse(packet).map(|message| self.disarmed(id, &message))
                }
                Ok(message::StartOwn::KIND) => message::parse(packet).map(|message| {
                    self.start_own(id, &message);
                    true
                }),
                Ok(message::StopOwn::KIND) => message::parse(packet).map(|message| {
                    self.stop_own(id, &message);
                    true
                }),
                Ok(kind) => Err(message::BadMessage::Kind { kind }),
                Err(bad) => Err(bad),
            };
            match understood {
                Err(bad) => return self.protocol_broken(id, &bad.to_string()),
                Ok(true) => {}
                Ok(false) => {
                    let Some(producer) = self.producers.get_mut(&id) else {
                        return;
                    };
                    producer.strikes += 1;
                    if producer.strikes > MAX_STRIKES {
                        return self.protocol_broken(id, "answers that nobody asked for");
                    }
                }
            }
        }
    }

    /// Closes the connection of a producer that does not keep to the protocol.
    fn protocol_broken(&mut self, id: u32, what: &str) {
        if let Some(producer) = self.producers.get(&id) {
            tracing::warn!(
                producer = id,
                pid = producer.pid(),
                "closing a connection: {what}"
            );
        }
        self.connection_lost(id);
    }
}
