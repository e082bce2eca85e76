// For the build scripts of both shared libraries: the name that the loader looks for, and the link of that name in the
// build tree.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The C API version; docs/versions.md says what makes it another one. The Makefile reads it too.
const C_API_VERSION: &str = include_str!("c-api-version");

/// What a program that is linked with the library asks the loader for: `libNAME.so.N`.
fn soname(library: &str) -> String {
    format!("{library}.{}", C_API_VERSION.trim())
}

/// Makes the links from the soname to the library, which cargo has under its plain name only: without them no program
/// that is linked with it in the build tree would start. `make install` makes its own.
fn link_in_build_tree(library: &str) {
    let link = soname(library);
    for folder in build_folders() {
        let link = folder.join(&link);
        if let Err(error) = link_to(library, &link) {
            println!(
                "cargo::warning={}: {error}: programs linked with {library} here won't find it",
                link.display()
            );
        }
    }
}

/// Where cargo puts the library: the profile's folder and, for the tests, the one of dependencies.
fn build_folders() -> Vec<PathBuf> {
    // …/PROFILE/build/PACKAGE-HASH/out
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let build = out.ancestors().find(|folder| folder.ends_with("build"));
    let Some(profile) = build.and_then(Path::parent) else {
        println!("cargo::warning=no profile's folder above {}", out.display());
        return Vec::new();
    };
    let mut folders = vec![profile.to_owned(), profile.join("deps")];
    folders.retain(|folder| folder.is_dir());
    folders
}

/// The library need not be there yet.
fn link_to(library: &str, link: &Path) -> io::Result<()> {
    if fs::read_link(link).is_ok_and(|there| there == Path::new(library)) {
        return Ok(());
    }
    match fs::remove_file(link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(library, link)
}
