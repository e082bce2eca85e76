//! `make install` and `make uninstall`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nrt_trace_tests::checkout::{Checkout, soname};
use nrt_trace_tests::{Document, Ended, Host, run};

/// An installation under `root/` in a host's folder.
pub(crate) struct Installed {
    pub(crate) host: Host,
    checkout: Checkout,
}

impl Installed {
    pub(crate) fn new(more: &[&str]) -> Self {
        let host = Host::new();
        let checkout = Checkout::new(&host);
        let installed = Self { host, checkout };
        installed.make("install", more).ok();
        installed
    }

    fn make(&self, target: &str, more: &[&str]) -> Ended {
        let mut make = self.host.command("make");
        self.checkout.prepare(&mut make);
        make.arg(target)
            .arg(format!("DESTDIR={}", self.root().display()));
        make.args(more);
        run(make)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.host.path("root")
    }

    /// Paths of all files from the root on.
    fn files(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut folders = vec![self.root()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let inner = path.strip_prefix(self.root()).unwrap();
                    found.insert(inner.display().to_string());
                }
            }
        }
        found
    }
}

const LIBRARIES: [&str; 2] = ["libnrt_trace.so", "libnrt_trace_prefixed.so"];

/// The file itself: after the soname, the release without its first number.
fn real(library: &str) -> String {
    let (_, release) = env!("CARGO_PKG_VERSION").split_once('.').unwrap();
    format!("{}.{release}", soname(Path::new(library)))
}

/// File names in a folder of the workspace that end so.
fn shipped(folder: &Path, ends: &[&str]) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| ends.iter().any(|end| name.ends_with(end)))
        .collect()
}

#[test]
fn an_installation_has_everything_where_a_distribution_expects_it() {
    let installed = Installed::new(&["prefix=/usr"]);
    let files = installed.files();
    let mut expected: Vec<String> = [
        "usr/bin/nrt-traced",
        "usr/bin/nrt-tracectl",
        "usr/lib/libnrt_trace.a",
        "usr/lib/pkgconfig/nrt_trace.pc",
        "usr/share/man/man1/nrt-tracectl.1",
        "usr/share/man/man1/nrt-tracectl-record.1",
        "usr/share/man/man1/nrt-tracectl-host-start.1",
        "usr/share/man/man8/nrt-traced.8",
        "usr/share/bash-completion/completions/nrt-tracectl",
        "usr/share/bash-completion/completions/nrt-traced",
        "usr/share/zsh/site-functions/_nrt-tracectl",
        "usr/share/zsh/site-functions/_nrt-traced",
        "usr/share/fish/vendor_completions.d/nrt-tracectl.fish",
        "usr/share/fish/vendor_completions.d/nrt-traced.fish",
    ]
    .map(str::to_owned)
    .to_vec();
    for library in LIBRARIES {
        let (real, versioned) = (real(library), soname(Path::new(library)));
        let folder = installed.root().join("usr/lib");
        let leads = |link: &str| fs::read_link(folder.join(link)).unwrap();
        assert_eq!(leads(library), Path::new(&versioned));
        assert_eq!(leads(&versioned), Path::new(&real));
        assert!(folder.join(&real).symlink_metadata().unwrap().is_file());
        expected.extend([library, &versioned, &real].map(|name| format!("usr/lib/{name}")));
    }
    let sources = &nrt_trace_tests::artifacts().workspace;
    let systemd = sources.join("systemd");
    for (folder, ends, place) in [
        (
            systemd.clone(),
            &[".service", ".socket"][..],
            "usr/lib/systemd/system",
        ),
        (systemd.join("sysusers.d"), &[".conf"], "usr/lib/sysusers.d"),
        (systemd, &[".toml"], "usr/share/doc/nrt-trace"),
        (
            sources.join("client-lib/capi/include"),
            &[".h"],
            "usr/include",
        ),
        (
            sources.join("client-lib/capi/include/nrt"),
            &[".h", ".hpp"],
            "usr/include/nrt",
        ),
    ] {
        let names = shipped(&folder, ends);
        expected.extend(names.into_iter().map(|name| format!("{place}/{name}")));
    }
    for file in &expected {
        assert!(files.contains(file), "no {file} in {files:#?}");
        let mode = fs::metadata(installed.root().join(file)).unwrap();
        let executable =
            file.contains("/bin/") || file.contains("/libnrt_trace") && !file.ends_with(".a");
        let wanted = if executable { 0o755 } else { 0o644 };
        assert_eq!(mode.permissions().mode() & 0o7777, wanted, "{file}");
    }
    let page = |file: &str| {
        let pages = ["man1/nrt-tracectl-", "man8/nrt-traced-"];
        pages
            .iter()
            .any(|page| file.starts_with(&format!("usr/share/man/{page}")))
    };
    let others = files
        .iter()
        .filter(|file| !expected.contains(file) && !page(file));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new());
    let unit = fs::read_to_string(
        installed
            .root()
            .join("usr/lib/systemd/system/nrt-traced.service"),
    );
    assert!(unit.unwrap().contains("ExecStart=/usr/bin/nrt-traced"));
}

#[test]
fn uninstalling_leaves_nothing() {
    let place = ["prefix=/opt/nrt", "mandir=/opt/nrt/manual"];
    let installed = Installed::new(&place);
    let unit = "opt/nrt/lib/systemd/system/nrt-traced.service";
    let unit = fs::read_to_string(installed.root().join(unit)).unwrap();
    assert!(unit.contains("ExecStart=/opt/nrt/bin/nrt-traced"), "{unit}");
    // Once more over what is there, as an upgrade does, also over a release whose library was one file.
    let libraries = installed.root().join("opt/nrt/lib");
    for library in LIBRARIES {
        let later = format!("{}.999.0", soname(Path::new(library)));
        fs::write(libraries.join(&later), "").unwrap();
        fs::remove_file(libraries.join(library)).unwrap();
        fs::write(libraries.join(library), "").unwrap();
        installed.make("install", &place).ok();
        assert!(!libraries.join(&later).exists());
        assert!(libraries.join(library).is_symlink());
    }
    // What others put there stays.
    let other = installed.root().join("opt/nrt/include/other.h");
    fs::write(&other, "").unwrap();
    installed.make("uninstall", &place).ok();
    assert_eq!(
        installed.files().into_iter().collect::<Vec<_>>(),
        ["opt/nrt/include/other.h"]
    );
    assert!(!installed.root().join("opt/nrt/include/nrt").exists());
    // Nothing there is no failure either.
    installed.make("uninstall", &place).ok();
}

/// As a package's build does it: the compiler gets what pkg-config says, and nothing else.
#[test]
fn a_c_program_is_built_and_traced_with_what_was_installed() {
    let installed = Installed::new(&["prefix=/usr"]);
    let (host, root) = (&installed.host, installed.root());
    let mut pkg_config = host.command("pkg-config");
    pkg_config.args(["--cflags", "--libs", "nrt_trace"]);
    pkg_config.env("PKG_CONFIG_LIBDIR", root.join("usr/lib/pkgconfig"));
    pkg_config.env("PKG_CONFIG_SYSROOT_DIR", &root);
    pkg_config.env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1");
    pkg_config.env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
    let flags = run(pkg_config).ok().text();
    assert!(
        flags.contains(&format!("-I{}", root.join("usr/include").display())),
        "{flags}"
    );
    let mut compiler = host.command("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Werror", "-pthread", "-o", "step"]);
    compiler
        .arg("examples/c/train_step.c")
        .args(flags.split_whitespace());
    compiler.arg("-lm");
    run(compiler).ok();
    let mut readelf = host.command("readelf");
    readelf.args(["-dW", "step"]);
    let dynamic = run(readelf).ok().text();
    let library = soname(Path::new(LIBRARIES[0]));
    let needed = dynamic
        .lines()
        .any(|line| line.contains("(NEEDED)") && line.ends_with(&format!("[{library}]")));
    assert!(needed, "{dynamic}");
    // A machine that only runs programs needs no name but that one.
    fs::remove_file(root.join("usr/lib").join(LIBRARIES[0])).unwrap();

    let mut record = host.command(root.join("usr/bin/nrt-tracectl"));
    record.args(["record", "-o", "t.json", "--", "./step", "3", "10", "8"]);
    record.env("LD_LIBRARY_PATH", root.join("usr/lib"));
    run(record).ok();
    assert!(!Document::read(&host.path("t.json")).events.is_empty());
}
