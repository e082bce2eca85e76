//! The source tree as one finds it after a build: what `make install` is run in.
//!
//! Made of links into the workspace, so that nothing that a test does there reaches it, and with the programs of the test
//! run in the place of a release build.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::artifacts::artifacts;
use crate::host::Host;

/// What of the workspace is in the tree.
const LINKED: [&str; 6] = [
    "Cargo.toml",
    "Makefile",
    "client-lib",
    "examples",
    "proto",
    "systemd",
];

/// The name by which a program that is linked with the library looks for it.
///
/// # Panics
///
/// If the path has no name that is text, or the file with the C API version can't be read.
#[must_use]
pub fn soname(library: &Path) -> String {
    let version = artifacts().workspace.join("client-lib/capi/c-api-version");
    let version = fs::read_to_string(version).expect("the C API version");
    let name = library.file_name().and_then(|name| name.to_str());
    format!("{}.{}", name.expect("a file's name"), version.trim())
}

/// A tree in a host's folder.
#[derive(Debug)]
pub struct Checkout {
    root: PathBuf,
}

impl Checkout {
    /// Makes the host's folder such a tree.
    ///
    /// # Panics
    ///
    /// If there is one already.
    #[must_use]
    pub fn new(host: &Host) -> Self {
        let root = host.path("");
        let made = Self { root };
        made.link().expect("a tree of links");
        made
    }

    fn link(&self) -> io::Result<()> {
        let artifacts = artifacts();
        for name in LINKED {
            symlink(artifacts.workspace.join(name), self.root.join(name))?;
        }
        let built = self.built();
        fs::create_dir_all(&built)?;
        for file in [
            &artifacts.traced,
            &artifacts.tracectl,
            &artifacts.library,
            &artifacts.archive,
            &artifacts.prefixed,
            &artifacts.workload,
        ] {
            symlink(file, built.join(file.file_name().expect("a file")))?;
        }
        // As the build has it: a program that is linked in the tree looks for the library by this name.
        for library in [&artifacts.library, &artifacts.prefixed] {
            let name = library.file_name().expect("a file");
            symlink(name, built.join(soname(library)))?;
        }
        Ok(())
    }

    /// Where the programs are.
    #[must_use]
    pub fn built(&self) -> PathBuf {
        self.root.join("target/release")
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Lets `make` take what is built as it is, whoever runs it from this command on.
    pub fn prepare(&self, command: &mut Command) {
        command.current_dir(&self.root).env("CARGO", ":");
        // Flags of a make that started the tests are not meant for this one.
        command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    }
}
