//! A recorded run is the same run.

use lab::Arm;

use super::recorded;
use crate::support::case;

#[test]
fn recording_messages_changes_no_run() {
    let cases = ["gc-pause", "gc-pause-redlock", "etcd-minority", "zookeeper-minority", "sigkill-holder"];
    for name in cases.into_iter().chain(["delayed-write", "failover-lost-lock", "majority-crash"]) {
        let (plain, recorded) = (case(name).run(Arm::Fenced), recorded(name, Arm::Fenced));
        assert_eq!(recorded.hash, plain.hash, "{name}");
        assert_eq!((recorded.simulated, recorded.commands), (plain.simulated, plain.commands), "{name}");
        assert!(plain.messages.is_empty() && plain.capture.is_none(), "{name}: recorded without being asked");
        assert!(!recorded.messages.is_empty(), "{name}: nothing recorded");
    }
}
