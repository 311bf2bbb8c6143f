//! The fates of a message: it arrives, a cut link holds it, or it is lost.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use history::{Fate, Message, Nanos};
use sim::faults::{Crash, Cut, Delay, Pause, Reset};
use sim::world::stream::SimStream;
use sim::{Control, Sim};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MS: Duration = Duration::from_millis(1);

/// Runs a script in a world of two processes with a connection from `a` to `b`; a segment takes 2 ms. Returns
/// the messages of the run, which are lines.
async fn connect(control: &Control) -> (SimStream, SimStream) {
    let mut listener = control.process("b").listen(7000).unwrap();
    let opened = control.process("a").connect("b:7000").await.unwrap();
    (opened, listener.accept().await.0)
}

fn messages<F: Future<Output = ()>>(script: impl FnOnce(Control) -> F + Send) -> Vec<Message> {
    let mut sim = Sim::new(1);
    sim.latency(2 * MS, 2 * MS).empty_process("a").empty_process("b");
    let (report, ()) = sim.record_messages().run_script(script).unwrap();
    report.messages
}

/// Returns the words of each message, with its sending and its fate in milliseconds.
fn shown(messages: &[Message]) -> Vec<String> {
    let millis = |at: Nanos| at.0 / 1_000_000;
    let shown = messages.iter().map(|message| {
        let fate = match message.fate {
            Fate::Arrived { at, held: false } => format!("arrived at {}", millis(at)),
            Fate::Arrived { at, held: true } => format!("held until {}", millis(at)),
            Fate::Held => "held".to_owned(),
            Fate::Lost { at } => format!("lost at {}", millis(at)),
        };
        format!("{} {} → {}: {}, {fate}", millis(message.sent), message.from, message.to, message.words)
    });
    shown.collect()
}

#[test]
fn a_message_arrives_after_the_latency() {
    let messages = messages(|control| async move {
        let (mut a, mut b) = connect(&control).await;
        a.write_all(b"ask\n").await.unwrap();
        assert_eq!(b.read_u8().await.unwrap(), b'a');
        b.write_all(b"answer\n").await.unwrap();
        assert_eq!(a.read_u8().await.unwrap(), b'a');
    });
    assert_eq!(shown(&messages), ["4 a → b: ask, arrived at 6", "6 b → a: answer, arrived at 8"]);
    assert_eq!((messages[0].is_reply, messages[1].is_reply), (false, true));
    assert_eq!((messages[0].connection, &messages[0].bytes[..]), (0, &b"ask\n"[..]));
}

#[test]
fn a_cut_link_holds_messages_until_it_heals() {
    let messages = messages(|control| async move {
        let (mut a, mut b) = connect(&control).await;
        let cut = control.strike(Cut::between("a", "b"));
        a.write_all(b"one\n").await.unwrap();
        control.sleep_until(10 * MS).await;
        a.write_all(b"two\n").await.unwrap();
        control.sleep_until(20 * MS).await;
        cut.heal();
        control.sleep_until(30 * MS).await;
        control.strike(Cut::between("a", "b"));
        b.write_all(b"three\n").await.unwrap();
        control.sleep_until(40 * MS).await;
        drop(a);
    });
    let expected =
        ["4 a → b: one, held until 22", "10 a → b: two, held until 22", "30 b → a: three, lost at 40"];
    assert_eq!(shown(&messages), expected);
}

#[test]
fn a_message_that_a_cut_holds_to_the_end_is_held() {
    let messages = messages(|control| async move {
        let (mut a, _b) = connect(&control).await;
        control.strike(Cut::between("a", "b"));
        a.write_all(b"one\n").await.unwrap();
        control.sleep(MS).await;
        // Neither end is closed before the end of the run.
        std::mem::forget((a, _b));
    });
    assert_eq!(shown(&messages), ["4 a → b: one, held"]);
}

#[test]
fn a_reset_loses_messages_in_flight() {
    let messages = messages(|control| async move {
        let (mut a, mut b) = connect(&control).await;
        a.write_all(b"one\n").await.unwrap();
        control.sleep_until(7 * MS).await;
        a.write_all(b"two\n").await.unwrap();
        b.write_all(b"three\n").await.unwrap();
        control.sleep_until(8 * MS).await;
        control.strike(Reset::between("a", "b"));
        control.sleep_until(20 * MS).await;
    });
    let expected = ["4 a → b: one, arrived at 6", "7 a → b: two, lost at 8", "7 b → a: three, lost at 8"];
    assert_eq!(shown(&messages), expected);
}

#[test]
fn a_message_to_a_dead_process_is_lost_on_arrival() {
    let messages = messages(|control| async move {
        let (mut a, b) = connect(&control).await;
        control.sleep_until(10 * MS).await;
        a.write_all(b"one\n").await.unwrap();
        control.sleep_until(11 * MS).await;
        control.strike(Crash { power_loss: true, ..Crash::of("b") });
        a.write_all(b"two\n").await.unwrap();
        control.sleep_until(20 * MS).await;
        drop(b);
    });
    assert_eq!(shown(&messages), ["10 a → b: one, lost at 12", "11 a → b: two, lost at 13"]);
}

#[test]
fn a_message_to_a_paused_process_arrives() {
    let messages = messages(|control| async move {
        let (mut a, _b) = connect(&control).await;
        control.strike(Pause::of("b"));
        a.write_all(b"one\n").await.unwrap();
        control.sleep_until(20 * MS).await;
    });
    assert_eq!(shown(&messages), ["4 a → b: one, arrived at 6"]);
}

#[test]
fn a_connection_that_a_cut_link_holds_is_a_message() {
    let messages = messages(|control| async move {
        let _listener = control.process("b").listen(7000).unwrap();
        let cut = control.strike(Cut::between("a", "b"));
        let process = control.process("a");
        let opened = process.connect("b:7000");
        let heals = async {
            control.sleep_until(50 * MS).await;
            cut.heal();
        };
        let (opened, ()) = tokio::join!(opened, heals);
        opened.unwrap();
    });
    assert_eq!(shown(&messages), ["0 a → b: opens a connection, held until 52"]);
}

#[test]
fn a_connection_whose_opener_gives_up_is_a_lost_message() {
    let messages = messages(|control| async move {
        let _listener = control.process("b").listen(7000).unwrap();
        control.strike(Cut::between("a", "b"));
        let process = control.process("a");
        let (opens, gives_up) = (pin!(process.connect("b:7000")), pin!(control.sleep_until(30 * MS)));
        assert!(matches!(select(opens, gives_up).await, Either::Right(_)), "the link is cut");
    });
    assert_eq!(shown(&messages), ["0 a → b: opens a connection, lost at 30"]);
}

#[test]
fn a_slowed_link_shows_the_opening_of_a_connection() {
    let messages = messages(|control| async move {
        let _listener = control.process("b").listen(7000).unwrap();
        control.strike(Delay::one_way("a", "b", "300ms".parse().unwrap()));
        control.process("a").connect("b:7000").await.unwrap();
    });
    assert_eq!(shown(&messages), ["0 a → b: opens a connection, arrived at 302"]);
}

#[test]
fn a_reply_that_meets_a_reset_is_a_lost_message() {
    let messages = messages(|control| async move {
        let (mut a, mut b) = connect(&control).await;
        a.write_all(b"ask\n").await.unwrap();
        assert_eq!(b.read_u8().await.unwrap(), b'a');
        control.strike(Reset::between("a", "b"));
        assert!(b.write_all(b"answer\n").await.is_err());
    });
    assert_eq!(shown(&messages), ["4 a → b: ask, arrived at 6", "6 b → a: answer, lost at 6"]);
}
