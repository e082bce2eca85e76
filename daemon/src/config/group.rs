//! Groups by name.

/// The group that may control a daemon when nothing else is said.
const CONTROL_GROUP: &str = "nrt-trace";

/// The number of [`CONTROL_GROUP`], if this machine has that group and the daemon may give its socket to it.
pub(super) fn default_control_group() -> Option<u32> {
    let may = rustix::process::geteuid().is_root();
    id_of(CONTROL_GROUP).filter(|_| may)
}

/// The number of a group of `/etc/group`; one that another service knows has to be given by its number.
pub(super) fn id_of(name: &str) -> Option<u32> {
    find(&std::fs::read_to_string("/etc/group").ok()?, name)
}

/// Looks a name up in the text of a group file: `name:password:number:members`.
fn find(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_as_it_stands() {
        let file = "root:x:0:\nnrt-trace:x:977:ann,bob\nbroken\nnrt:x:12x:\n";
        assert_eq!(find(file, "nrt-trace"), Some(977));
        for none in ["nrt", "broken", "x", "ann", ""] {
            assert_eq!(find(file, none), None, "{none}");
        }
    }
}
