//! Draws the steps of scripts.

use dlock_zookeeper::wire::Request;
use proptest::collection::vec;
use proptest::prelude::{Just, prop_oneof};
use proptest::sample::select;
use proptest::strategy::Strategy;

use super::ask::{Ask, TOP, asks, created, requests};

/// The number of a script's clients, each with at most one connection.
pub(crate) const CLIENTS: usize = 3;
/// A session timeout that one wait outlasts, in milliseconds.
pub(crate) const SHORT: i32 = 1500;
/// A session timeout that outlasts all waits, in milliseconds.
pub(crate) const LONG: i32 = 30_000;

/// One step of a script.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// A client opens a connection, and closes the one it had.
    Connect {
        client: usize,
        login: Login,
        timeout: i32,
    },
    Ask {
        client: usize,
        ask: Ask,
    },
    /// Several requests are sent at once, before the first answer.
    Burst {
        client: usize,
        requests: Vec<Request>,
    },
    /// A client's connection breaks.
    Cut(usize),
    Wait,
}

/// The login of a client that connects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Login {
    /// Opens a session.
    New,
    /// The same, in the form of clients before 3.4.
    Old,
    /// Resumes its latest session.
    Again,
    /// Resumes the session of the next client, with the right password.
    Take,
    /// The same, with a wrong password.
    Steal,
    /// The same, with a password of another length.
    Short,
    /// Names a session that never existed.
    Unknown,
    /// Opens a session, and claims to have seen this many transactions since the script's beginning.
    Seen(i64),
    /// Opens a session and closes it at once, so that it can request timeouts too short to keep.
    Brief,
    /// No login: bytes that a server answers in plain text, or not at all.
    Text(&'static str),
}

/// Draws the first steps of a script, so that cases that need several steps occur in every run.
pub(crate) fn beginnings() -> impl Strategy<Value = Vec<Op>> {
    let connect = |client| Op::Connect { client, login: Login::New, timeout: LONG };
    let ask = |client, ask| Op::Ask { client, ask };
    let top = ask(1, created(TOP, false, false));
    let plain = vec![connect(0), connect(1), top.clone()];
    let nodes =
        [created("/r/a", false, false), created("/r/b", true, false), created("/r/a/c", false, false)];
    let tree = [plain.clone(), nodes.map(|node| ask(0, node)).to_vec()].concat();
    let entry = |client| ask(client, created("/r/s-", true, true));
    let first = "/r/s-0000000000".to_owned();
    let watch = ask(1, Ask::Plain(Request::Exists { path: first, watch: true }));
    let queue = [plain.clone(), vec![entry(0), entry(1), watch.clone()]].concat();
    let short = Op::Connect { client: 0, login: Login::New, timeout: SHORT };
    let children = Request::Children { path: TOP.to_owned(), watch: true, with_stat: true };
    let children = ask(1, Ask::Plain(children));
    let again = Op::Connect { client: 0, login: Login::Again, timeout: LONG };
    let runs_out =
        vec![short, connect(1), top, entry(0), entry(1), watch, children, Op::Cut(0), Op::Wait, again];
    // A long session that is resumed with a short timeout.
    let mut shortened = runs_out.clone();
    let shorter = Op::Connect { client: 0, login: Login::Again, timeout: SHORT };
    shortened.splice(0..1, [connect(0), shorter]);
    prop_oneof![
        30 => Just(plain),
        90 => Just(tree),
        45 => Just(queue),
        1 => Just(shortened),
        1 => Just(runs_out),
        1 => Just(Vec::new()),
    ]
}

/// Draws any step but a wait.
pub(crate) fn ops() -> impl Strategy<Value = Op> {
    let clients = || prop_oneof![5 => Just(0), 5 => Just(1), 1 => Just(2)];
    let timeouts = prop_oneof![9 => Just(LONG), 2 => Just(SHORT), 1 => select(&[7_200_000, i32::MAX][..])];
    let brief = select(&[0, -1, i32::MIN, 50, 150][..]);
    prop_oneof![
        60 => (clients(), asks()).prop_map(|(client, ask)| Op::Ask { client, ask }),
        4 => (clients(), vec(requests(), 2..6)).prop_map(|(client, requests)| Op::Burst { client, requests }),
        6 => (clients(), logins(), timeouts)
            .prop_map(|(client, login, timeout)| Op::Connect { client, login, timeout }),
        1 => (clients(), brief)
            .prop_map(|(client, timeout)| Op::Connect { client, login: Login::Brief, timeout }),
        1 => clients().prop_map(Op::Cut),
    ]
}

fn logins() -> impl Strategy<Value = Login> {
    prop_oneof![
        4 => Just(Login::New),
        1 => Just(Login::Old),
        6 => Just(Login::Again),
        2 => Just(Login::Take),
        1 => Just(Login::Steal),
        1 => Just(Login::Short),
        1 => Just(Login::Unknown),
        1 => select(&[0, 2, 3, 4, 5, 6, 1_000_000][..]).prop_map(Login::Seen),
        1 => select(&["ruok", "isro", "rude", "\0\0\0\x04\0\0\0\0"][..]).prop_map(Login::Text),
    ]
}
