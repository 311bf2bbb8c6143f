//! Release and renewal by the commands of newer servers: found out for each connection, scripts elsewhere.

#![cfg(feature = "redis")]

use crate::support::redis::{acquire, holder, lock_with, releases, world};
use crate::support::server::Fault;
use crate::support::{key, ms};
use dlock::{Released, Runtime};

const NAMES: [&str; 2] = ["DELEX", "DELIFEQ"];

#[test]
fn the_first_script_finds_out_and_later_calls_are_commands() {
    for name in NAMES {
        let (world, server, lock) = world();
        server.own_commands(Some(name));
        let handle = acquire(&world, &lock);
        for _ in 0..3 {
            world.pass(ms(1500));
            world.run(handle.renew()).unwrap();
        }
        assert!(holder(&server).is_some(), "renewed by the command, too");
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        assert_eq!(holder(&server), None);
        assert_eq!(world.run(acquire(&world, &lock).release()).unwrap(), Released::Done);
        let verbs = format!("EVAL EVAL SET SET {name} PUBLISH EVALSHA {name} PUBLISH");
        assert_eq!(server.take_verbs(), verbs, "one call each, and the message with the release");
        assert_eq!(server.published(), [key().freed_channel(), key().freed_channel()]);
    }
}

#[test]
fn a_release_finds_out_as_a_renewal_does() {
    for name in NAMES {
        let (world, server, lock) = world();
        server.own_commands(Some(name));
        world.run(acquire(&world, &lock).release()).unwrap();
        let handle = acquire(&world, &lock);
        world.run(handle.renew()).unwrap();
        assert_eq!(server.take_verbs(), "EVAL EVAL EVALSHA SET");
    }
}

#[test]
fn without_called_waiters_a_release_sends_no_message() {
    let (world, server, lock) = lock_with(|options| options.waiting = dlock::redis::Waiting::Polled);
    server.own_commands(Some("DELEX"));
    for _ in 0..2 {
        assert_eq!(world.run(acquire(&world, &lock).release()).unwrap(), Released::Done);
    }
    assert_eq!(server.take_verbs(), "EVAL EVAL EVALSHA DELEX");
}

#[test]
fn an_expired_owner_changes_nothing_by_a_command() {
    for name in NAMES {
        let (world, server, lock) = world();
        server.own_commands(Some(name));
        let first = acquire(&world, &lock);
        world.run(first.renew()).unwrap();
        world.pass(ms(2100));
        assert_eq!(holder(&server), None);
        // A command must not acquire an expired lease again.
        assert!(world.run(first.renew()).is_err());
        assert_eq!(holder(&server), None);
        let second = acquire(&world, &lock);
        assert_eq!(world.run(first.release()).unwrap(), Released::NotOwner);
        assert_eq!(holder(&server).as_deref(), Some(second.owner().as_str()));
    }
}

#[test]
fn a_new_connection_finds_out_for_itself() {
    for (before, after, verbs) in [
        (Some("DELEX"), None, "EVAL EVAL EVALSHA EVALSHA"),
        (None, Some("DELEX"), "EVAL SET SET DELEX PUBLISH"),
        (Some("DELEX"), Some("DELIFEQ"), "EVAL SET SET DELIFEQ PUBLISH"),
    ] {
        let (world, server, lock) = world();
        server.own_commands(before);
        let handle = acquire(&world, &lock);
        world.run(handle.renew()).unwrap();
        world.run(handle.renew()).unwrap();
        world.run(handle.release()).unwrap();
        // The next connection leads to another server. The cleanup's release is the first script there.
        server.own_commands(after);
        server.faults([Fault::Reset]);
        assert!(world.run(lock.try_acquire(&key())).is_err());
        world.pass(ms(3000));
        assert_eq!(server.connections(), 2);
        server.take_verbs();
        let handle = acquire(&world, &lock);
        world.run(handle.renew()).unwrap();
        world.run(handle.renew()).unwrap();
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        assert_eq!(holder(&server), None);
        assert_eq!(server.take_verbs(), verbs, "{before:?} to {after:?}");
        assert_eq!(server.connections(), 2);
    }
}

/// An older server behind the same connection (a proxy), a right that was withdrawn, a server out of memory.
#[test]
fn a_refused_command_is_done_by_the_script_from_then_on() {
    for error in [
        "ERR unknown command 'DELEX', with args beginning with: ",
        "ERR syntax error",
        "NOPERM User app has no permissions to run the 'set' command",
        "OOM command not allowed when used memory > 'maxmemory'.",
    ] {
        let (world, server, lock) = world();
        server.own_commands(Some("DELEX"));
        let handle = acquire(&world, &lock);
        world.run(handle.renew()).unwrap();
        server.faults([Fault::Error(error)]);
        world.pass(ms(1500));
        world.run(handle.renew()).unwrap();
        world.pass(ms(1500));
        assert!(holder(&server).is_some(), "{error}: renewed by the script");
        world.run(handle.renew()).unwrap();
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        assert_eq!(holder(&server), None);
        assert_eq!(server.take_verbs(), "EVAL EVAL SET EVALSHA EVALSHA EVAL", "{error}");
    }
}

#[test]
fn a_refused_delete_is_done_by_the_script() {
    for error in
        ["ERR unknown command 'DELEX'", "NOPERM User app has no permissions to run the 'delex' command"]
    {
        let (world, server, lock) = world();
        server.own_commands(Some("DELEX"));
        let handle = acquire(&world, &lock);
        world.run(handle.renew()).unwrap();
        server.faults([Fault::Error(error)]);
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        assert_eq!(holder(&server), None);
        assert_eq!(releases(&server), 1);
        assert_eq!(server.take_verbs(), "EVAL EVAL DELEX PUBLISH EVAL");
    }
}

#[test]
fn a_server_without_the_commands_is_asked_once_per_connection() {
    let (world, server, lock) = world();
    let handle = acquire(&world, &lock);
    world.run(handle.renew()).unwrap();
    // The commands would be used if the next script asked again.
    server.own_commands(Some("DELEX"));
    for _ in 0..3 {
        world.run(handle.renew()).unwrap();
    }
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
    assert_eq!(server.take_verbs(), "EVAL EVAL EVALSHA EVALSHA EVALSHA EVAL");
}

#[test]
fn a_lost_answer_to_a_command_is_repeated() {
    for fault in [Fault::LoseAnswer, Fault::Reset] {
        let (world, server, lock) = world();
        server.own_commands(Some("DELIFEQ"));
        let handle = acquire(&world, &lock);
        world.run(handle.renew()).unwrap();
        server.faults([fault]);
        let start = world.now();
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        assert!(world.now() > start);
        assert_eq!(holder(&server), None);
        assert_eq!(server.connections(), 2);
    }
}
