//! docs/tokio.md says what of tokio is simulated.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../examples/items/left_out.rs"]
mod left_out;
#[path = "../examples/items/methods.rs"]
mod methods;
#[path = "../examples/items/page.rs"]
mod page;
#[path = "../examples/items/parse.rs"]
mod parse;
#[path = "../examples/items/resolve.rs"]
mod resolve;

#[test]
fn the_page_is_up_to_date() {
    let kept = std::fs::read_to_string(page::path()).unwrap_or_default();
    let page = page::page();
    let differing = page.lines().zip(kept.lines()).find(|(new, old)| new != old);
    assert!(
        page == kept,
        "docs/tokio.md is out of date at {differing:?}: \
         run `cargo run -p fencepost-sim-tokio --example items`"
    );
}

#[test]
fn the_page_knows_each_state() {
    let page = page::page();
    let row = |item: &str| page.lines().find(|line| line.starts_with(item)).unwrap_or_default().to_owned();
    for (item, expected) in [
        ("| `TcpListener` ", "simulated"),
        ("| `JoinHandle` ", "real"),
        ("| `Command` ", "refused"),
        ("| `RuntimeMetrics` ", "`num_alive_tasks`"),
        ("| `AsyncFd` ", "refused"),
        ("| `select` ", "real"),
        ("| `File` ", "*refused*: `from_std`"),
        ("| `Builder` ", "`enable_all`"),
    ] {
        assert!(row(item).contains(expected), "{item}: {}", row(item));
    }
}
