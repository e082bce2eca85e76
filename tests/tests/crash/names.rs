//! A thread stops while it interns a name, and another one interns the same.

use nrt_trace_tests::stepper::{Stepper, Stop, labels};

use crate::spec::Told;
use crate::world::{World, token};

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
