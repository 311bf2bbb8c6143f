//! Follows the program of the README, the capture of docs/commands.md and the worker of docs/live.md word for
//! word, but for ports and folders.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, reason = "a test")]

#[path = "../../dlock/runtime/tests/support/certificates.rs"]
mod certificates;
#[path = "support/shell.rs"]
mod shell;
#[path = "support/steps.rs"]
mod steps;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use certificates::Authority;
use lab::Arm;
use lab::museum::{self, Museum};
use real::servers::{Persistence, Redis, Stage, TlsFiles};
use shell::shell;
use sim::trace::pcap::pcap;
use steps::{Step, steps};

/// The URL in the README's program.
const URL: &str = "redis://127.0.0.1:6379";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Returns the text of a page, whose path is relative to the checkout.
fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Creates an empty folder outside the checkout: cargo takes packages inside it for members of the workspace.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("readme-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs commands in a shell and returns their output. They must succeed.
fn run(folder: &Path, commands: &str) -> String {
    let mut shell = shell(folder, commands);
    // A build that compiles protobuf files fails, as on a machine without the compiler.
    shell.env("PROTOC", "/no/protobuf/compiler");
    let output = shell.output().unwrap();
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{commands}\n{printed}");
    printed
}

/// Follows the README's "Use the lock" with another URL, and variables for its commands.
fn use_the_lock(name: &str, url: &str, variables: &str) {
    let folder = folder(name);
    symlink(root(), folder.join("locks")).unwrap();
    let mut printed = String::new();
    let readme = page("README.md");
    let (_, section) = readme.split_once("## Use the lock").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let steps = steps(section);
    assert_eq!(steps.len(), 5, "the README has lost its steps");
    for step in steps {
        match step {
            Step::File { path, text } => {
                fs::write(folder.join(path), text.replace(URL, url)).unwrap();
            }
            Step::Run { commands, fails } => {
                assert!(!fails);
                printed = run(&folder, &format!("{variables}\n{commands}"));
            }
            Step::Shows(lines) => {
                for line in lines {
                    assert!(printed.contains(&line), "{line:?} was not printed:\n{printed}");
                }
            }
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_new_crate_takes_a_lock_without_a_protobuf_compiler() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    use_the_lock("orders", &format!("redis://{}", redis.address()), "");
}

/// The program is the README's; the system's roots are a file that has the server's issuer.
#[test]
fn a_new_crate_takes_a_lock_over_tls() {
    let stage = Stage::new().unwrap();
    let authority = Authority::new("an authority");
    let files = TlsFiles::write(&stage, "certificates", &authority.issue(&["127.0.0.1"]), None).unwrap();
    let (_redis, address, _) = Redis::start_secured(&stage, "redis", &files).unwrap();
    let roots = stage.subdirectory("roots").unwrap().join("roots.pem");
    fs::write(&roots, &authority.root).unwrap();
    let variables = format!("export SSL_CERT_FILE={}", roots.display());
    use_the_lock("secured", &format!("rediss://{address}"), &variables);
}

#[test]
fn the_first_example_of_the_crate_is_the_program_of_the_readme() {
    let library = fs::read_to_string(root().join("dlock/src/lib.rs")).unwrap();
    let (_, example) = library.split_once("//! ```no_run\n").unwrap();
    let (example, _) = example.split_once("//! ```\n").unwrap();
    let example: Vec<_> = example.lines().map(|line| line.trim_start_matches("//!").trim()).collect();
    let readme = page("README.md");
    let (_, program) = readme.split_once("```rust\nuse std::time::Duration;\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let program: Vec<_> = program.lines().map(str::trim).collect();
    assert_eq!(example[1..], program);
    assert!(readme.contains(URL));
}

/// The doc tests of `moving.rs` compile the code of the page, and run what needs no server.
#[test]
fn the_page_on_other_libraries_shows_code_of_doc_tests() {
    let source = fs::read_to_string(root().join("real/src/moving.rs")).unwrap();
    let comments: String = source.lines().map(|line| format!("{}\n", comment(line))).collect();
    let hidden = |line: &&str| !line.starts_with("# ");
    let compiled: Vec<Vec<&str>> =
        blocks(&comments).into_iter().map(|block| block.lines().skip(1).filter(hidden).collect()).collect();
    let page = page("docs/compare-libraries.md");
    let in_rust = blocks(&page).into_iter().filter_map(|block| block.strip_prefix("rust\n"));
    let shown: Vec<Vec<&str>> = in_rust.map(|block| block.lines().collect()).collect();
    assert!(shown.len() >= 7, "the page has lost its code");
    for block in &shown {
        assert!(compiled.contains(block), "moving.rs has no doc test of\n{}", block.join("\n"));
    }
    for block in &compiled {
        assert!(shown.contains(block), "the page does not show\n{}", block.join("\n"));
    }
}

/// Returns the text of a line of a module's comment.
fn comment(line: &str) -> &str {
    line.strip_prefix("//! ").unwrap_or_default()
}

/// Returns the blocks of code of a page, each with the words after its fence as its first line.
fn blocks(page: &str) -> Vec<&str> {
    page.split("```").skip(1).step_by(2).collect()
}

#[test]
fn a_test_of_a_lock_on_redis_is_built_without_a_protobuf_compiler() {
    let folder = folder("simulated");
    symlink(root(), folder.join("locks")).unwrap();
    run(&folder, "cargo new --quiet --lib transfers && mkdir transfers/tests && locks/tools/init transfers");
    let file = |name: &str, text: &str| fs::write(folder.join("transfers").join(name), text).unwrap();
    let dependency = "sim = { path = \"../locks/sim\", package = \"fencepost-sim\" }";
    let package = "[package]\nname = \"transfers\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    file("Cargo.toml", &format!("{package}\n[dev-dependencies]\n{dependency}\n"));
    file("tests/world.rs", "use sim::servers::redis::RedisHost;\n");
    fs::copy(root().join("Cargo.lock"), folder.join("transfers/Cargo.lock")).unwrap();
    run(&folder, "cd transfers && cargo check --tests");
    let tree = run(&folder, "cd transfers && cargo tree --prefix none -e normal,build,dev");
    for absent in ["etcd-client", "fencepost-picture", "maud", "clap", "indicatif", "protoc-bin-vendored"] {
        assert!(!tree.contains(absent), "{absent} is built for a lock on Redis:\n{tree}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn tshark_lists_a_capture_with_names() {
    let folder = folder("capture");
    let schedule = museum::load(&root().join("seeds/gc-pause.toml")).unwrap();
    for arm in [Arm::Unfenced, Arm::Fenced] {
        let mut world = sim::sim::build(&Museum::new(arm), &schedule).unwrap();
        let report = world.record_messages().run().unwrap();
        let file = folder.join(format!("run-{}.pcapng", arm.name()));
        fs::write(file, pcap(report.capture.as_ref().unwrap())).unwrap();
    }
    let commands = page("docs/commands.md");
    let (_, line) = commands.split_once("`tshark ").expect("the page lists a capture");
    let (arguments, _) = line.split_once('`').unwrap();
    let script = format!("{}/tools/", root().display());
    let packets = run(&folder, &format!("tshark {}", arguments.replace("tools/", &script)));
    assert!(packets.contains("redis-1"), "{packets}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_worker_writes_to_the_resource_that_was_started() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let live = page("docs/live.md");
    let (_, block) = live.split_once("A worker writes to a resource").expect("the page starts a resource");
    let block = block.split("```").nth(1).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let commands = block
        .replace("target/release/real", env!("CARGO_BIN_EXE_real"))
        .replace("6379", &redis.port().to_string())
        .replace("8080", &free.to_string());
    let printed = run(&folder("worker"), &commands);
    assert!(printed.contains("written; released"), "{printed}");
}
