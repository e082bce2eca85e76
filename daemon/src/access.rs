//! Who may use a socket.
//!
//! The socket's owner, group and mode decide, and the kernel checks them when somebody connects, supplementary groups
//! included. The daemon looks again at who it is: a mode that somebody changed by hand, a folder that was mounted
//! elsewhere, or a connection that was passed on gives nobody more than the configuration does.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The rule of one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    owner: u32,
    group: u32,
    mode: u32,
}

/// Write permission is what a connection takes.
const OWNER: u32 = 0o200;
const GROUP: u32 = 0o020;
const OTHERS: u32 = 0o002;

impl Access {
    /// The rule of the socket that was bound at `path` with this mode.
    pub(crate) fn of(path: &Path, mode: u32) -> std::io::Result<Self> {
        let meta = std::fs::symlink_metadata(path)?;
        Ok(Self {
            owner: meta.uid(),
            group: meta.gid(),
            mode,
        })
    }

    /// The rule of a socket that was handed over: what its file says, which its unit decided. Where no file can be seen,
    /// as with an abstract name, `mode` and `group` are those of the settings.
    pub(crate) fn adopted(path: Option<&Path>, mode: u32, group: Option<u32>) -> Self {
        match path.and_then(|path| std::fs::symlink_metadata(path).ok()) {
            Some(meta) if meta.file_type().is_socket() => Self {
                owner: meta.uid(),
                group: meta.gid(),
                mode: meta.mode() & 0o777,
            },
            _ => Self {
                owner: rustix::process::geteuid().as_raw(),
                group: group.unwrap_or_else(|| rustix::process::getegid().as_raw()),
                mode,
            },
        }
    }

    /// Whether a process of this user and group may use it.
    pub(crate) fn allows(&self, uid: u32, gid: u32, pid: Option<i32>) -> bool {
        let all = |bit| self.mode & bit != 0;
        if uid == 0 || all(OTHERS) {
            return true;
        }
        (uid == self.owner && all(OWNER))
            || (all(GROUP) && (gid == self.group || self.is_member(pid)))
    }

    /// Whether the process is in the group besides its own. Of one in another PID namespace nobody can tell: then what the
    /// kernel let through stands.
    fn is_member(&self, pid: Option<i32>) -> bool {
        let Some(pid) = pid else { return true };
        let status = procfs::process::Process::new(pid).and_then(|process| process.status());
        status.is_ok_and(|status| status.groups.contains(&self.group))
    }

    /// Who may, in words.
    pub(crate) fn who(&self) -> String {
        if self.mode & GROUP != 0 {
            format!("group {} and root may", self.group)
        } else if self.owner == 0 {
            "root may".to_owned()
        } else {
            format!("user {} and root may", self.owner)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_that_of_the_kernel() {
        let rule = |mode| Access {
            owner: 10,
            group: 20,
            mode,
        };
        // Itself is in none of these groups.
        let me = i32::try_from(std::process::id()).ok();
        let cases = [
            (0o660, [true, true, true, false]),
            (0o600, [true, true, false, false]),
            (0o666, [true; 4]),
            (0o060, [true, false, true, false]),
            (0o440, [true, false, false, false]),
        ];
        for (mode, expected) in cases {
            let got = [(0, 0), (10, 99), (99, 20), (99, 99)]
                .map(|(uid, gid)| rule(mode).allows(uid, gid, me));
            assert_eq!(got, expected, "{mode:o}");
        }
        assert!(rule(0o660).allows(99, 99, None), "the kernel knows better");
        assert_eq!(rule(0o660).who(), "group 20 and root may");
        assert_eq!(rule(0o600).who(), "user 10 and root may");
    }
}
