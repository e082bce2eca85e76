use super::*;

fn cores(text: &str) -> (Cores, u64) {
    let mut bad = Bad::default();
    let cores = parse(text.as_bytes(), &mut bad);
    (cores, bad.0)
}

fn one(line: &str) -> Times {
    let (cores, _) = cores(line);
    assert_eq!(cores.len(), 1, "{line}");
    cores[&0]
}

fn between(before: &str, now: &str) -> Shares {
    Shares::between(&one(before), &one(now))
}

fn near(value: Option<f32>, expected: f32) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 0.01)
}

#[test]
fn p01_a_core_is_what_its_label_says() {
    let text =
        "cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu2 1 2 3 4\ncpu8 1 2 3 4\nintr 5\nctxt 1\n";
    let (cores, bad) = cores(text);
    assert_eq!(cores.keys().copied().collect::<Vec<_>>(), [0, 2, 8]);
    assert_eq!(bad, 0);
}

#[test]
fn p01_a_core_that_came_back_with_new_counters_gives_no_spike() {
    let shares = between(
        "cpu0 90000 0 90000 900000 5000 0 0 0 0 0",
        "cpu0 90001 0 90001 40 3 0 0 0 0 0",
    );
    assert_eq!(
        (shares.util, shares.parts[3], shares.parts[4]),
        (None, None, None)
    );
}

#[test]
fn p02_one_bad_field_loses_that_field() {
    let text = "cpu0 1 2 3 4 18446744073709551615 6 7 8 9 10\ncpu1 1 -2 3 4 5 6 7 8\ncpu2 1 2 3 4 x 6 7 8\n\
                cpu3 1234567890123456789012 2 3 4 5 6 7 8\ncpu4 7 7 7 7";
    let (cores, bad) = cores(text);
    assert_eq!(cores.len(), 5);
    assert_eq!(bad, 4);
    assert_eq!(cores[&0].0[4..6], [None, Some(6)]);
    assert_eq!(cores[&4].0[3], Some(7), "without a newline at the end");
    let after = parse(b"cpu2 11 2 3 14 x 6 7 8\n", &mut Bad::default());
    let shares = Shares::between(&cores[&2], &after[&2]);
    assert!(
        near(shares.util, 50.0) && near(shares.parts[3], 50.0),
        "{shares:?}"
    );
    assert_eq!(shares.parts[4], None);
}

#[test]
fn p02_nothing_and_a_line_without_an_end_are_no_cores() {
    for text in [
        "",
        "\n\n",
        "cpu",
        "cpu\n",
        "cpu  \n",
        "nonsense",
        "cpux 1 2 3 4",
    ] {
        assert_eq!(cores(text).0.len(), 0, "{text:?}");
    }
    let long = format!(
        "cpu0 1 2 3 4 {}\nintr {}\n",
        "5 ".repeat(300_000),
        "1 ".repeat(400_000)
    );
    assert_eq!(cores(&long).0.len(), 1);
}

#[test]
fn p04_missing_columns_count_nothing_and_extra_ones_are_ignored() {
    for columns in [4, 7, 8, 10, 12] {
        let line = |busy: u64, idle: u64| {
            let mut numbers = vec![busy, 0, 0, idle, 0, 0, 0, 0, 0, 0, 999, 999];
            numbers.truncate(columns);
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!("cpu0 {}", numbers.join(" "))
        };
        let shares = between(&line(100, 100), &line(125, 175));
        assert!(
            near(shares.util, 25.0) && near(shares.parts[0], 25.0),
            "{columns}: {shares:?}"
        );
        assert_eq!(
            shares.parts[7].is_some(),
            columns >= 8,
            "{columns}: {shares:?}"
        );
        assert_eq!(
            shares.guest.is_some(),
            columns >= 10,
            "{columns}: {shares:?}"
        );
    }
    let (cores, _) = cores("cpu\ncpu0\ncpu1 1 2 3\ncpu2 1 2 3 4\n");
    assert_eq!(cores.keys().copied().collect::<Vec<_>>(), [2]);
}

/// The sequence of the case, tick by tick.
#[test]
fn p06_counters_that_go_backwards_give_no_impossible_share() {
    let sequence = [
        "cpu0 100 0 50 1000 30 0 0 0 0 0",
        "cpu0 150 0 60 1040 27 0 0 0 0 0",
        "cpu0 160 0 60 1039 27 0 0 0 0 0",
        "cpu0 170 0 60 1129 27 0 0 18446744073709551611 0 0",
        "cpu0 170 0 60 1129 27 0 0 18446744073709551611 0 0",
        "cpu0 170 0 60 1129 27 0 0 18446744073709551611 0 0",
        "cpu0 0 0 0 0 0 0 0 0 0 0",
        "cpu0 0 0 0 0 0 0 0 0 0 0",
    ];
    let shares: Vec<Shares> = sequence
        .windows(2)
        .map(|pair| between(pair[0], pair[1]))
        .collect();
    for shares in &shares {
        let all = shares
            .parts
            .iter()
            .chain([&shares.util, &shares.guest])
            .flatten();
        all.for_each(|share| assert!((0.0..=100.0).contains(share), "{shares:?}"));
        let sum: f32 = shares.parts.iter().flatten().sum();
        assert!(sum <= 100.01, "{shares:?}");
    }
    assert!(
        near(shares[0].util, 60.0) && near(shares[0].parts[4], 0.0),
        "{:?}",
        shares[0]
    );
    assert!(near(shares[2].util, 10.0), "{:?}", shares[2]);
    assert_eq!(shares[2].parts[7], None, "steal is not known");
    for still in [3, 4, 6] {
        assert_eq!(shares[still], Shares::default(), "no time passed");
    }
    assert_eq!(shares[5].util, None, "all counters began anew");
}

#[test]
fn p07_guest_time_is_not_counted_twice() {
    let shares = between("cpu0 0 0 0 0 0 0 0 0 0 0", "cpu0 100 0 0 100 0 0 0 0 80 0");
    assert!(
        near(shares.util, 50.0) && near(shares.parts[0], 50.0),
        "{shares:?}"
    );
    assert!(near(shares.guest, 40.0), "{shares:?}");
}

#[test]
fn stolen_and_waiting_time_is_in_the_shares_but_not_in_util() {
    let shares = between("cpu0 0 0 0 0 0 0 0 0", "cpu0 20 10 10 40 10 4 6 100");
    assert!(near(shares.util, 50.0), "{shares:?}");
    let expected = [10.0, 5.0, 5.0, 20.0, 5.0, 2.0, 3.0, 50.0];
    for (share, expected) in shares.parts.iter().zip(expected) {
        assert!(near(*share, expected), "{shares:?}");
    }
}

#[test]
fn a_machine_of_512_cores_is_read_whole() {
    let text: String = (0..512)
        .map(|i| format!("cpu{i} 1 2 3 4 5 6 7 8 9 10\n"))
        .collect();
    let (cores, bad) = cores(&text);
    assert_eq!((cores.len(), bad), (512, 0));
}
