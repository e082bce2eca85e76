use super::*;

const UNITS: Units = Units {
    page_bytes: 65_536,
    ticks_per_s: 100,
};

fn stat(name: &str, state: char) -> String {
    format!(
        "7 ({name}) {state} 1 7 7 0 -1 4194304 10 0 1 0 150 50 0 0 20 0 3 0 4242 1000 25 18446744073709551615 1 1\n"
    )
}

#[test]
fn a_name_may_hold_anything() {
    for name in ["x", "a b) R 9 (", ")))", "1 2 3"] {
        let text = stat(name, 'S');
        let read = parse_stat(text.as_bytes(), &mut Bad::default()).unwrap();
        assert_eq!(
            (read.cpu_ticks, read.threads),
            (Some(200), Some(3)),
            "{name}"
        );
        assert_eq!(start_of(text.as_bytes()), Some(4242), "{name}");
    }
}

#[test]
fn p03_half_a_file_and_a_zombie_are_the_end_of_a_process() {
    let text = stat("trainer", 'R');
    // With a part of the field behind the last that is wanted, those are whole.
    let enough = text.find("4242").unwrap() + 1;
    for end in 0..text.len() {
        let mut bad = Bad::default();
        let read = parse_stat(&text.as_bytes()[..end], &mut bad);
        assert_eq!(read.is_some(), end >= enough, "{}", &text[..end]);
        let _any = (
            start_of(&text.as_bytes()[..end]),
            parse_statm(&text.as_bytes()[..end], UNITS, &mut bad),
        );
    }
    for state in ['Z', 'X'] {
        let text = stat("x", state);
        assert_eq!(parse_stat(text.as_bytes(), &mut Bad::default()), None);
    }
}

#[test]
fn p02_a_bad_field_of_a_process_loses_that_field() {
    let text = stat("x", 'S').replace(" 150 ", " -150 ");
    let mut bad = Bad::default();
    let read = parse_stat(text.as_bytes(), &mut bad).unwrap();
    assert_eq!((read.cpu_ticks, read.threads, bad.0), (None, Some(3), 1));
    assert_eq!(parse_statm(b"nonsense", UNITS, &mut bad), (None, None));
    assert_eq!(bad.0, 2);
}

#[test]
fn p10_memory_is_counted_in_the_kernels_pages() {
    let read = parse_statm(b"1000 25 7 1 0 30 0\n", UNITS, &mut Bad::default());
    assert_eq!(read, (Some(65_536_000), Some(25 * 65_536)));
    assert_eq!(Units::of_this_kernel().page_bytes, procfs::page_size());
}

#[test]
fn p10_no_size_of_a_page_stands_in_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/host");
    let sources = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut seen = 0;
    for path in sources.filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&(1 << 12).to_string()), "{}", path.display());
        seen += 1;
    }
    assert!(seen > 5);
}

#[test]
fn switches_stand_at_the_end_or_nowhere() {
    let text = format!(
        "{}voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n",
        "x:\t1\n".repeat(60)
    );
    let mut bad = Bad::default();
    assert_eq!(
        parse_switches(text.as_bytes(), &mut bad),
        (Some(12), Some(3))
    );
    assert_eq!(parse_switches(b"Name:\tx\n", &mut bad), (None, None));
    assert_eq!(bad.0, 0);
    assert_eq!(
        parse_switches(b"voluntary_ctxt_switches:\n", &mut bad),
        (None, None)
    );
    assert_eq!(bad.0, 1);
}

#[test]
fn a_number_that_is_anothers_by_now_is_not_sampled() {
    let mut buffer = Buffer::new();
    let pid = i32::try_from(std::process::id()).unwrap();
    let started = start_of(&std::fs::read("/proc/self/stat").unwrap());
    let member = |started| Member {
        producer_id: 1,
        pid,
        started,
        name: String::new(),
    };
    let root = Path::new("/proc");
    let mut cgroups = Cgroups::new(Path::new("/sys/fs/cgroup"));
    for started in [started, None] {
        let mut process = Process::open(root, &member(started), &mut buffer).unwrap();
        let usage = process
            .read(
                Units::of_this_kernel(),
                &mut cgroups,
                &mut buffer,
                &mut Bad::default(),
            )
            .unwrap();
        assert!(
            usage.rss_bytes > Some(0) && usage.vm_size_bytes >= usage.rss_bytes,
            "{usage:?}"
        );
        assert!(
            usage.threads >= Some(1) && usage.voluntary.is_some(),
            "{usage:?}"
        );
    }
    let other = started.map(|ticks| ticks + 1);
    assert!(Process::open(root, &member(other), &mut buffer).is_none());
}
