//! Names on request: merged from all producers, in pages, with what their tables refuse left out.

use nrt_trace_abi::layout::strings::MAX_STRING_BYTES;
use nrt_trace_model::strings::get_id;
use nrt_trace_proto::v1::{GetStringsRequest, GetStringsResponse};
use tonic::{Code, Status};

use crate::support::{Fake, Host, refused};

fn ask(host: &mut Host, request: GetStringsRequest) -> Result<GetStringsResponse, Status> {
    let client = &mut host.client;
    client
        .runtime
        .block_on(client.rpc.get_strings(request))
        .map(tonic::Response::into_inner)
}

fn listed(host: &mut Host) -> Vec<String> {
    let (mut texts, mut from) = (Vec::new(), 0);
    loop {
        let page = ask(host, GetStringsRequest { from, id: vec![] }).unwrap();
        let bytes: usize = page.entries.iter().map(|entry| entry.text.len()).sum();
        assert!(bytes <= 1 << 20, "{bytes} bytes in a page");
        for entry in page.entries {
            assert_eq!(entry.id, get_id(entry.text.as_bytes()));
            texts.push(entry.text);
        }
        if page.next >= page.total {
            return texts;
        }
        assert!(page.next > from, "a page that is not the last has names");
        from = page.next;
    }
}

#[test]
fn names_of_all_processes_are_one_list_without_a_run_and_after_their_end() {
    let mut host = Host::new();
    assert!(listed(&mut host).is_empty());
    let (first, second) = (Fake::attach(&host, "a"), Fake::attach(&host, "b"));
    first.intern("model.neff");
    first.intern("");
    second.intern("日本語");
    second.intern("model.neff");
    let mut names = listed(&mut host);
    names.sort();
    assert_eq!(names, ["", "model.neff", "日本語"]);
    first.detach();
    second.intern("late");
    let mut names = listed(&mut host);
    names.sort();
    assert_eq!(names, ["", "late", "model.neff", "日本語"]);
}

#[test]
fn what_is_no_name_is_not_listed_and_the_first_of_an_id_stays() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "liar");
    fake.intern("honest");
    fake.intern_as(get_id(b"honest"), b"another text under the same id");
    fake.intern_as(get_id(b"\xFF"), b"\xFF");
    fake.intern_as(5, b"no hash of mine");
    assert_eq!(listed(&mut host), ["honest"]);
}

#[test]
fn ids_are_looked_up_and_unknown_ones_left_out() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "a");
    let (one, two) = (fake.intern("one"), fake.intern("two"));
    let request = GetStringsRequest {
        from: 77,
        id: vec![two, 4, 0, one],
    };
    let reply = ask(&mut host, request).unwrap();
    let texts: Vec<_> = reply
        .entries
        .iter()
        .map(|entry| entry.text.as_str())
        .collect();
    assert_eq!((texts, reply.next, reply.total), (vec!["two", "one"], 2, 2));
    let many = GetStringsRequest {
        from: 0,
        id: vec![1; 4097],
    };
    refused(ask(&mut host, many), Code::InvalidArgument, "at most 4096");
}

#[test]
fn the_longest_names_come_in_pages() {
    let mut host = Host::with(|config| config.budgets.string_table_bytes = 4 << 20);
    let fake = Fake::attach(&host, "long");
    let longest = |n: usize| format!("{n:05}{}", "x".repeat(MAX_STRING_BYTES - 5));
    for n in 0..40 {
        fake.intern(&longest(n));
    }
    let names = listed(&mut host);
    assert!(names.into_iter().eq((0..40).map(longest)));
    let beyond = GetStringsRequest {
        from: u64::MAX,
        id: vec![],
    };
    let page = ask(&mut host, beyond).unwrap();
    assert_eq!((page.entries.len(), page.next, page.total), (0, 40, 40));
}
