//! Follows the guides `docs/service-on-trial.md` and `docs/test-your-own-lock.md` word for word: writes their
//! files and runs their commands in a folder beside a link to this checkout.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test; it runs the guide's commands")]

#[path = "support/shell.rs"]
mod shell;
#[path = "support/steps.rs"]
mod steps;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use shell::shell;
use steps::{Step, steps};

#[test]
fn a_crate_made_by_the_guide_convicts_the_naive_lock() {
    follow("test-your-own-lock.md");
}

#[test]
fn a_service_is_found_guilty_repaired_and_acquitted() {
    follow("service-on-trial.md");
}

/// Follows a page of `docs/`.
fn follow(page: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // Outside the checkout: cargo takes packages inside it for members of the workspace.
    let folder = std::env::temp_dir().join(format!("guide-{page}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    symlink(root, folder.join("locks")).unwrap();
    let (mut printed, mut builds) = (String::new(), 0);
    let steps = steps(&fs::read_to_string(root.join("docs").join(page)).unwrap());
    assert!(steps.len() >= 6, "the guide has lost its steps");
    for step in steps {
        match step {
            Step::File { path, text } => fs::write(folder.join(path), text).unwrap(),
            Step::Run { commands, fails } => {
                printed = run(&folder, &commands, fails);
                builds += printed.matches("Compiling fencepost-sim v").count();
            }
            Step::Shows(lines) => {
                for line in lines {
                    assert!(
                        printed.contains(&line),
                        "{line:?} was not printed:\n{}",
                        without_cargo(&printed)
                    );
                }
            }
        }
    }
    assert!(builds <= 1, "the simulator was built {builds} times: a reader waits minutes for each");
    fs::remove_dir_all(folder).unwrap();
}

/// Leaves out what cargo says of packages: hundreds of lines, behind which a log is cut before the reason.
fn without_cargo(printed: &str) -> String {
    let of_a_package = |line: &&str| {
        let word = line.split_whitespace().next();
        word.is_some_and(|word| {
            ["Adding", "Compiling", "Downloaded", "Downloading", "Locking"].contains(&word)
        })
    };
    printed.lines().filter(|line| !of_a_package(line)).collect::<Vec<_>>().join("\n")
}

/// Runs the commands in a shell and returns their output. With `fails`, they must fail.
fn run(folder: &Path, commands: &str, fails: bool) -> String {
    let output = shell(folder, commands).output().unwrap();
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(!output.status.success(), fails, "{commands}\n{}", without_cargo(&printed));
    printed
}
