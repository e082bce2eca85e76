//! A whole daemon: its parts put together, and taken apart again in order.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::{Config, Current};
use crate::drain::fetch::Machine;
use crate::host::{CPrograms, HostMonitor, HostThread, Members};
use crate::listen::{Listening, SocketFiles, Sockets, StartError};
use crate::memory::Memory;
use crate::registry::command::{Command, Handle};
use crate::registry::{Parts, Registry};
use crate::rpc::{Control, Server};
use crate::run::error::RunError;
use crate::state::FromManager;
use crate::strings::{NameBudgets, Names};

/// A trace collector that can be started. Several may run in one process, each with sockets of its own.
#[derive(Debug)]
pub struct Daemon;

/// A running trace collector. Dropping it shuts it down.
#[derive(Debug)]
pub struct Running {
    config: Arc<Config>,
    current: Current,
    handle: Handle,
    ended: watch::Receiver<bool>,
    // In the order of their end: the registry with its clock and memory, the server, then the names are free.
    host: HostThread,
    server: Option<Server>,
    registry: Option<JoinHandle<()>>,
    files: Option<SocketFiles>,
}

impl Daemon {
    /// Starts a daemon; when this returns, both sockets answer. It owns its threads: the caller needs no runtime.
    ///
    /// # Errors
    /// [`StartError`]: bad settings, a live daemon at a socket, something else in its place, no room.
    pub fn start(config: Config) -> Result<Running, StartError> {
        Self::start_with(config, FromManager::default())
    }

    /// As [`Daemon::start`], with what the service manager handed over.
    pub(crate) fn start_with(
        mut config: Config,
        mut manager: FromManager,
    ) -> Result<Running, StartError> {
        config.validate()?;
        let listening = Listening::take(&mut manager.handed)?;
        let adopted = listening.names();
        listening.place(&mut config);
        let config = Arc::new(config);
        let current = Current::new(config.clone());
        let Sockets {
            control,
            control_access,
            producer,
            producer_access,
            metrics,
            files,
        } = Sockets::open(&config, listening)?;
        let failed = |what| move |source| StartError::System { what, source };
        let handle = Handle::new().map_err(|errno| failed("make an eventfd")(errno.into()))?;
        let (died, ended) = watch::channel(false);
        let died = || Death(died.clone());
        let machine = Arc::new(machine(&config));
        let members = Members::default();
        let host = HostThread::start(
            config.host.clone(),
            machine.instance_id.clone(),
            members.clone(),
        )?;
        let monitor = host.monitor();
        let registry = Registry::new(Parts {
            config: config.clone(),
            handle: handle.clone(),
            clock: Clock::start()?,
            memory: Memory::start(config.budgets.memory_bytes, config.allocate, handle.clone())?,
            names: Arc::new(Names::new(NameBudgets {
                total: config.budgets.names_bytes,
                per_uid: config.budgets.names_bytes_per_uid,
            })),
            machine,
            members,
            c_programs: CPrograms::new(monitor.clone()),
            listener: producer,
            access: producer_access,
            manager,
        })?;
        let death = died();
        let registry = std::thread::Builder::new()
            .name("nrt-registry".to_owned())
            .spawn(move || {
                registry.run();
                drop(death);
            })
            .map_err(failed("start the registry thread"))?;
        // From here on an error drops `running`, which ends what was begun.
        let mut running = Running {
            config: config.clone(),
            current: current.clone(),
            handle: handle.clone(),
            ended,
            host,
            server: None,
            registry: Some(registry),
            files: Some(files),
        };
        running.server = Some(Server::start(
            Control::new(current, handle, monitor),
            control_access,
            control,
            metrics,
            died(),
        )?);
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            control = %running.config.control_socket.display(),
            producers = %running.config.producer_socket.display(),
            ?adopted,
            "listening"
        );
        Ok(running)
    }
}

impl Running {
    /// Path of the control socket.
    #[must_use]
    pub fn control_socket(&self) -> &Path {
        &self.config.control_socket
    }

    /// Path of the producer socket.
    #[must_use]
    pub fn producer_socket(&self) -> &Path {
        &self.config.producer_socket
    }

    /// The registry thread's door.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The host monitor's door.
    pub(crate) fn monitor(&self) -> HostMonitor {
        self.host.monitor()
    }

    /// Goes on with other settings, of those that can change while it runs.
    pub(crate) fn reconfigure(&self, config: &Config) -> Result<(), RunError> {
        let config = Config {
            // The sockets are where they are, whatever file, environment and flags say.
            control_socket: self.config.control_socket.clone(),
            producer_socket: self.config.producer_socket.clone(),
            ..config.clone()
        };
        let config = Arc::new(config);
        self.handle.send(Command::Reload(config.clone()))?;
        self.host.monitor().configure(config.host.clone());
        self.current.set(config);
        Ok(())
    }

    /// Ends the daemon: gates are closed, open calls are cut off after a moment, the sockets are removed. Takes about
    /// a second at most.
    pub fn shutdown(self) {
        drop(self);
    }

    /// Waits until the daemon has ended by itself, which it does only when a part of it failed.
    pub async fn ended(&mut self) {
        // An error means that all senders are gone, which is an end too.
        drop(self.ended.wait_for(|ended| *ended).await);
    }

    /// Waits as [`Running::ended`], blocking, then cleans up.
    pub fn wait(mut self) {
        if let Some(registry) = self.registry.take() {
            drop(registry.join());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.end();
        if let Some(registry) = self.registry.take() {
            // A panic of the thread was told when it happened.
            drop(registry.join());
        }
        drop(self.server.take());
        drop(self.files.take());
    }
}

/// Says when it is dropped, in whatever way its thread ended, that the daemon is one no more.
struct Death(watch::Sender<bool>);

impl Drop for Death {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

/// Which machine this is.
fn machine(config: &Config) -> Machine {
    let host_name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let tag = || std::fs::read_to_string("/sys/class/dmi/id/board_asset_tag").ok();
    let cloud = || {
        tag()
            .map(|tag| tag.trim().to_owned())
            .filter(|tag| tag.starts_with("i-"))
    };
    let instance_id = config
        .instance_id
        .clone()
        .or_else(cloud)
        .unwrap_or_else(|| host_name.clone());
    Machine {
        host_name,
        instance_id,
    }
}
