//! The pages about the museum are those of the results that are kept, and the results those of the exhibits.

use std::path::Path;
use std::process::Command;

#[test]
fn the_pages_and_the_results_are_those_of_the_exhibits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let check = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["museum", "--check"])
        .current_dir(root)
        .output()
        .unwrap();
    let (said, failed) = (String::from_utf8_lossy(&check.stdout), String::from_utf8_lossy(&check.stderr));
    assert_eq!(check.status.code(), Some(0), "{said}{failed}");
}
