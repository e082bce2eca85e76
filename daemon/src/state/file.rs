//! The file of the record.
//!
//! `"NRTSTATE"`, version, length and SipHash of what follows, then the record. It is written beside its place and renamed
//! into it, so that a reader finds the old or the new one. Nothing is synced to a disk: what it describes is memory.

use std::fs::{File, OpenOptions};
use std::hash::Hasher;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use prost::Message;
use siphasher::sip::SipHasher13;

use super::State;

/// File name inside the state's folder.
const NAME: &str = "nrt-traced.state";
const MAGIC: &[u8; 8] = b"NRTSTATE";
/// Version of the record's layout.
const VERSION: u64 = 1;
const HEADER: usize = 32;
/// Larger ones are none of ours.
const MAX_BYTES: u64 = 256 << 20;

/// The place of the record.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    /// Whether the last write failed: then it was said.
    failing: bool,
}

/// What an earlier daemon left.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// A whole record.
    State(Box<State>),
    /// Something else, which was put aside there, or could not be.
    Aside {
        /// What was wrong with it.
        why: String,
        /// Where it is now.
        place: Option<PathBuf>,
    },
}

impl StateFile {
    /// The record in `folder`.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self {
            path: folder.join(NAME),
            failing: false,
        }
    }

    /// Reads what an earlier daemon left. What is torn, foreign, or of another version is moved out of the way.
    pub(crate) fn load(&self) -> Found {
        let why = match self.read() {
            Ok(None) => return Found::Nothing,
            Ok(Some(bytes)) => match parse(&bytes) {
                Ok(state) => return Found::State(Box::new(state)),
                Err(why) => why,
            },
            Err(error) => error.to_string(),
        };
        let place = (0..100)
            .map(|number| self.path.with_extension(format!("aside-{number}")))
            .find(|place| !place.exists())
            .filter(|place| std::fs::rename(&self.path, place).is_ok());
        Found::Aside { why, place }
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let file = match open(OpenOptions::new().read(true), &self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Writes the record. A failure is said once, until one succeeds.
    pub(crate) fn save(&mut self, state: &State) {
        let result = self.write(state);
        if let Err(error) = &result
            && !self.failing
        {
            tracing::warn!(
                path = %self.path.display(),
                "can't write down what is captured, and could not go on after a restart: {error}"
            );
        }
        if result.is_err() {
            // What it says is not true any more: a next daemon would tell events twice, and begin runs that had ended.
            self.remove();
        }
        self.failing = result.is_err();
    }

    fn write(&self, state: &State) -> io::Result<()> {
        let body = state.encode_to_vec();
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend_from_slice(MAGIC);
        for word in [VERSION, body.len() as u64, hash(&body)] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&body);
        let beside = self.path.with_extension("state.new");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        open(options, &beside)?.write_all(&bytes)?;
        std::fs::rename(&beside, &self.path)
    }

    /// Takes the record away: there is nothing to go on with.
    pub(crate) fn remove(&self) {
        // What is not there need not be removed; what can't be is found to be of no use by the next daemon.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Follows no link, and waits for nothing: the folder may be one that others can write to.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = options.custom_flags(flags).open(path)?;
    // A pipe would have to be waited for.
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no file"))
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.finish()
}

fn parse(bytes: &[u8]) -> Result<State, String> {
    let (header, body) = bytes
        .split_first_chunk::<HEADER>()
        .ok_or("it is cut short")?;
    let word = |at: usize| {
        let word = header[at..].first_chunk().copied();
        u64::from_le_bytes(word.unwrap_or_default())
    };
    if header[..8] != *MAGIC {
        return Err("it is no record of this daemon's".to_owned());
    }
    if word(8) != VERSION {
        return Err(format!("it is of version {}, ours is {VERSION}", word(8)));
    }
    if word(16) != body.len() as u64 || word(24) != hash(body) {
        return Err("it is torn".to_owned());
    }
    State::decode(body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            boot_id: "this".to_owned(),
            next_producer: 7,
            ..State::default()
        }
    }

    #[test]
    fn what_is_written_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = StateFile::in_folder(folder.path());
        assert_eq!(file.load(), Found::Nothing);
        file.save(&state());
        file.save(&State {
            next_producer: 8,
            ..state()
        });
        let Found::State(found) = file.load() else {
            panic!("it is whole");
        };
        assert_eq!((found.next_producer, found.boot_id.as_str()), (8, "this"));
        file.remove();
        assert_eq!(file.load(), Found::Nothing);
    }

    /// Cut anywhere, changed anywhere, of another version, somebody else's: never taken, never lost.
    #[test]
    fn anything_else_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = StateFile::in_folder(folder.path());
        file.save(&state());
        let good = std::fs::read(&file.path).unwrap();
        let mut bad: Vec<Vec<u8>> = (0..good.len()).map(|len| good[..len].to_vec()).collect();
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 0x20;
            bad.push(changed);
        }
        bad.push([good.clone(), vec![0]].concat());
        for bytes in bad {
            std::fs::write(&file.path, &bytes).unwrap();
            let Found::Aside { place, .. } = file.load() else {
                panic!("{bytes:?}");
            };
            let place = place.unwrap();
            assert_eq!(std::fs::read(&place).unwrap(), bytes, "kept for a look");
            assert_eq!(file.load(), Found::Nothing);
            std::fs::remove_file(place).unwrap();
        }
    }

    /// Events that were committed since would be told again, and a run that was stopped would begin anew.
    #[test]
    fn a_record_that_is_out_of_date_does_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = StateFile::in_folder(folder.path());
        file.save(&state());
        std::fs::create_dir(file.path.with_extension("state.new")).unwrap();
        file.save(&state());
        assert_eq!(file.load(), Found::Nothing);
    }

    #[test]
    fn a_pipe_in_its_place_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::in_folder(folder.path());
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &file.path,
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
        assert!(matches!(file.load(), Found::Aside { place: Some(_), .. }));
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = StateFile::in_folder(folder.path());
        let other = folder.path().join("other");
        std::fs::write(&other, "precious").unwrap();
        std::os::unix::fs::symlink(&other, file.path.with_extension("state.new")).unwrap();
        file.save(&state());
        assert!(file.failing);
        std::os::unix::fs::symlink(&other, &file.path).unwrap();
        assert!(matches!(file.load(), Found::Aside { .. }));
        assert_eq!(std::fs::read(&other).unwrap(), b"precious");
    }
}
