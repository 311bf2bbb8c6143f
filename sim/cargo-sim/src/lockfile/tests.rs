use std::panic::{AssertUnwindSafe, catch_unwind};

use tempfile::TempDir;

use super::*;

const USER: &str = "version = 4\n\n[[package]]\nname = \"user\"\n";
const REPLACED: &str = "version = 4\n\n[[package]]\nname = \"fencepost-real-tokio\"\n";

struct Workspace {
    root: TempDir,
    state: TempDir,
}

impl Workspace {
    fn new() -> Self {
        let workspace = Self { root: TempDir::new().unwrap(), state: TempDir::new().unwrap() };
        workspace.write(USER);
        workspace
    }

    fn lock_file(&self) -> LockFile {
        LockFile::new(self.root.path(), self.state.path())
    }

    fn write(&self, content: &str) {
        fs::write(self.root.path().join("Cargo.lock"), content).unwrap();
    }

    fn content(&self) -> String {
        fs::read_to_string(self.root.path().join("Cargo.lock")).unwrap()
    }

    /// Leaves the state of a call that was killed when Cargo.lock had this content.
    fn interrupt(&self, content: &str) {
        std::mem::forget(self.lock_file().exchange().unwrap());
        self.write(content);
    }
}

#[test]
fn panic_restores() {
    let workspace = Workspace::new();
    let lock_file = workspace.lock_file();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _exchanged = lock_file.exchange().unwrap();
        workspace.write(REPLACED);
        panic!("expected");
    }));
    assert!(panicked.is_err());
    assert_eq!(workspace.content(), USER);
    assert!(!lock_file.saved.exists());
}

#[test]
fn recovery_restores_replaced_and_torn_files() {
    for content in [REPLACED, "", &USER[..30], "version = 4\n\n[[pack"] {
        let workspace = Workspace::new();
        workspace.interrupt(content);
        workspace.lock_file().recover().unwrap();
        assert_eq!(workspace.content(), USER, "{content}");
        assert!(!workspace.lock_file().saved.exists());
    }
}

#[test]
fn recovery_keeps_a_file_that_the_user_has_changed() {
    let workspace = Workspace::new();
    let changed = USER.replace("user", "changed");
    workspace.interrupt(&changed);
    workspace.lock_file().recover().unwrap();
    assert_eq!(workspace.content(), changed);
    assert_eq!(fs::read_to_string(workspace.state.path().join("Cargo.lock.before")).unwrap(), USER);
    workspace.lock_file().recover().unwrap();
    assert_eq!(workspace.content(), changed);
}

#[test]
fn kept_file_is_used_for_the_same_origin_alone() {
    let workspace = Workspace::new();
    let lock_file = workspace.lock_file();
    let exchanged = lock_file.exchange().unwrap();
    assert!(!exchanged.is_known());
    workspace.write(REPLACED);
    exchanged.finish().unwrap();
    assert_eq!(workspace.content(), USER);

    let exchanged = lock_file.exchange().unwrap();
    assert!(exchanged.is_known());
    assert_eq!(workspace.content(), REPLACED);
    exchanged.finish().unwrap();

    workspace.write(&USER.replace("user", "changed"));
    let exchanged = lock_file.exchange().unwrap();
    assert!(!exchanged.is_known());
    assert_eq!(workspace.content(), USER.replace("user", "changed"));
}
