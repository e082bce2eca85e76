use proptest::prelude::*;

use super::*;

fn types(terms: &[&str]) -> TypeSet {
    parse_types(terms).unwrap()
}

fn message(terms: &[&str]) -> String {
    parse_types(terms).unwrap_err().to_string()
}

#[test]
fn no_term_selects_everything() {
    assert_eq!(types(&[]), TypeSet::ALL);
    assert_eq!(TypeSet::ALL.len(), 46);
}

#[test]
fn both_spellings_select_the_same_type() {
    for event in EventType::ALL {
        for name in event.aliases().iter().chain([&event.name()]) {
            assert_eq!(types(&[name]), TypeSet::EMPTY.with(event), "{name}");
        }
    }
}

#[test]
fn groups_are_the_two_categories() {
    assert_eq!(types(&["hardware"]).bits(), 0x70021C0);
    assert_eq!(types(&["software", "hardware"]), TypeSet::ALL);
    assert_eq!(types(&["software"]).len(), 39);
}

#[test]
fn a_caret_takes_out_of_what_was_selected_wherever_it_stands() {
    let expected = TypeSet::HARDWARE.without(TypeSet::EMPTY.with(EventType::CcExec));
    assert_eq!(types(&["hardware", "^cc_running"]), expected);
    assert_eq!(types(&["^cc_running", "hardware"]), expected);
    assert_eq!(
        types(&["hardware,^cc_running"]),
        expected,
        "as one value of an environment variable"
    );
    assert_eq!(types(&[" hardware , ^ cc_exec "]), expected);
}

#[test]
fn carets_alone_take_out_of_everything() {
    assert_eq!(types(&["^generic"]).len(), 45);
    assert_eq!(types(&["^hardware"]), TypeSet::SOFTWARE);
}

#[test]
fn selecting_nothing_is_an_error() {
    assert!(
        message(&["cc_running", "^hardware"]).contains("`cc_running,^hardware` selects nothing")
    );
    assert!(matches!(
        parse_types(&["^hardware,^software"]),
        Err(FilterError::NothingSelected { .. })
    ));
}

#[test]
fn an_unknown_name_is_named_with_what_is_allowed() {
    let error = message(&["hardware", "^cc_runing"]);
    assert!(
        error.starts_with("unknown event `^cc_runing` (did you mean `cc_running`?)"),
        "{error}"
    );
    for allowed in ["hardware, software", "nrt_load", "hostcc_wait", "after a ^"] {
        assert!(error.contains(allowed), "{error}");
    }
    assert!(!error.contains('\n'));
    assert!(!message(&["zzzzzzzzzz"]).contains("did you mean"));
    for term in ["^", "^^generic", "Generic", "GENERIC", "1"] {
        assert!(
            matches!(parse_types(&[term]), Err(FilterError::UnknownEvent { .. })),
            "{term}"
        );
    }
}

#[test]
fn empty_terms_are_errors() {
    for list in ["", " ", "generic,", ",generic", "generic,,hardware"] {
        assert!(
            matches!(
                parse_types(&[list]),
                Err(FilterError::EmptyTerm { cores: false, .. })
            ),
            "{list:?}"
        );
    }
    for list in ["", "1,", ",", "1,,2"] {
        assert!(
            matches!(
                parse_nc_list(list),
                Err(FilterError::EmptyTerm { cores: true, .. })
            ),
            "{list:?}"
        );
    }
}

#[test]
fn core_lists_keep_their_order_and_name_each_core_once() {
    assert_eq!(parse_nc_list("0-3,8"), Ok(vec![0, 1, 2, 3, 8]));
    assert_eq!(parse_nc_list("8, 2-4 ,3,255"), Ok(vec![8, 2, 3, 4, 255]));
    assert_eq!(parse_nc_list("7-7"), Ok(vec![7]));
    assert_eq!(parse_nc_list("0-255").map(|v| v.len()), Ok(256));
}

#[test]
fn a_bad_core_is_named_with_what_is_allowed() {
    for (list, problem) in [
        ("1,x", CoreProblem::NotANumber),
        ("-1", CoreProblem::NotANumber),
        ("1-", CoreProblem::NotANumber),
        ("1-2-3", CoreProblem::NotANumber),
        ("+1", CoreProblem::NotANumber),
        ("0x1", CoreProblem::NotANumber),
        ("256", CoreProblem::TooLarge),
        ("0-256", CoreProblem::TooLarge),
        ("99999999999999999999", CoreProblem::TooLarge),
        ("3-1", CoreProblem::Reversed),
    ] {
        match parse_nc_list(list) {
            Err(FilterError::BadCore { problem: p, .. }) => assert_eq!(p, problem, "{list}"),
            other => panic!("{list}: {other:?}"),
        }
    }
    let error = parse_nc_list("1,9-300").unwrap_err().to_string();
    assert_eq!(
        error,
        "`9-300` in the NeuronCore list `1,9-300` is above 255; allowed are indices 0 to 255 and ranges of them, as in 0-3,8"
    );
}

proptest! {
    #[test]
    fn any_text_gives_a_filter_or_a_one_line_error(text in "\\PC{0,80}") {
        if let Ok(set) = parse_types(&[&text]) {
            prop_assert!(!set.is_empty());
        }
        if let Ok(cores) = parse_nc_list(&text) {
            prop_assert!(!cores.is_empty() && cores.iter().all(|c| *c < 256));
        }
    }
}
