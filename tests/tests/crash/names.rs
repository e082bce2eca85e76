//! A thread stops while it interns a name, and another one interns the same.

use nrt_trace_proto::v1::ProducerState;
use nrt_trace_tests::control::Control;
use nrt_trace_tests::stepper::{Stepper, Stop, labels};
use nrt_trace_tests::wait::until;
use rustix::process::{Pid, Signal, kill_process};

use crate::spec::Told;
use crate::world::{World, host, token};

/// Slots of the rings.
const CAP: u64 = 4;

/// The second one waits for nobody, and its next event is not there before the name. The first one is stopped with its entry in
/// the process's own table, and with that in the daemon's.
#[test]
fn who_interns_a_name_second_finds_it_told() {
    let mut world = World::new();
    for label in labels().iter().filter(|label| label.starts_with("name:")) {
        for pass in [1, 2] {
            let test = "who_interns_a_name_second_finds_it_told";
            let _told = Told::of_test(test, &format!("{label} {pass}"));
            let token = token();
            world.control.start(&token, CAP, 0);
            let mut stepper = Stepper::start(&world.host, &token, None);
            stepper.until_armed();
            let name = format!("{token}-name");
            stepper.trap("0", label, pass, Stop::Thread);
            stepper.order_into_trap(&format!("intern 0 {name}"), label, Stop::Thread);
            stepper.expect(&format!("intern 1 {name}"), "done");
            stepper.emit(1, 1);
            assert!(world.control.fetch(&token).names().contains(&*name));
            stepper.release(0, label, Stop::Thread);
            let _ended = stepper.end();
        }
    }
}

/// The next daemon has the rings as soon as it is greeted, and the names when the library has told them to it: in that moment
/// events can be fetched whose names follow. They do follow, by the same ids.
#[test]
fn names_follow_events_where_a_daemon_takes_over() {
    let (mut host, config) = host();
    let config = config.each_ref().map(String::as_str);
    host.start_daemon(&config);
    let mut control = Control::connect(&host);
    control.start("again", CAP, 0);
    let mut stepper = Stepper::start(&host, "again", None);
    stepper.until_armed();
    stepper.expect("intern 1 early", "done");
    stepper.emit(1, 1);
    stepper.trap("bg", "attach:names", 1, Stop::Thread);
    let pid = Pid::from_raw(host.daemon_pid().cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(host.wait_daemon(), None);
    stepper.emit(1, 1);
    host.start_daemon(&config);
    let mut control = Control::connect(&host);
    stepper.expect("parked bg", "parked attach:names");
    control.until_state("again", stepper.pid(), &[ProducerState::Capturing]);
    stepper.emit(1, 1);

    let fetched = control.fetch("again");
    assert_eq!(fetched.ring(stepper.pid()).events.len(), 3);
    assert!(!fetched.names().contains("early"), "it is not told yet");
    stepper.expect("release bg", "ok");
    until("a name to be told", || {
        let names = control.fetch("again");
        names.names().contains("early").then_some(())
    });
    let _ended = stepper.end();
}
