//! Files are written whole or not at all, and trials leave nothing behind.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use files::{
    Draft, Parents, create_folder, is_same, keep, put_aside, try_folder, try_outputs, write, write_new,
};
use tempfile::TempDir;

/// A folder with a file `old`, and the path of another file in it.
fn folder() -> (TempDir, PathBuf, PathBuf) {
    let folder = TempDir::new().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    fs::write(&old, "as it was").unwrap();
    (folder, old, new)
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_file_is_replaced_and_nothing_else_is_left() {
    let (folder, old, new) = folder();
    write(&old, "as it is").unwrap();
    write(&new, "first").unwrap();
    assert_eq!((read(&old).as_str(), read(&new).as_str()), ("as it is", "first"));
    assert_eq!(names(folder.path()), ["new", "old"]);
}

#[test]
fn a_draft_that_is_dropped_leaves_the_old_file() {
    let (folder, old, _) = folder();
    let mut draft = Draft::begin(&old).unwrap();
    draft.write_all(b"half of i").unwrap();
    draft.flush().unwrap();
    assert_eq!(names(folder.path()).len(), 2);
    drop(draft);
    assert_eq!(read(&old), "as it was");
    assert_eq!(names(folder.path()), ["old"]);
}

/// A shared memory file system has files like any other.
#[cfg(target_os = "linux")]
#[test]
fn a_file_in_shared_memory_is_replaced_whole() {
    let folder = TempDir::new_in("/dev/shm").unwrap();
    let path = folder.path().join("file");
    write(&path, "a long content").unwrap();
    write(&path, "short").unwrap();
    assert_eq!(read(&path), "short");
}

#[cfg(unix)]
#[test]
fn permissions_are_those_of_other_files() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, old, new) = folder();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let usual = mode(&old);
    write(&new, "").unwrap();
    assert_eq!(mode(&new), usual);
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
    write(&old, "").unwrap();
    assert_eq!(mode(&old), 0o640);
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_stays_and_its_file_is_replaced() {
    let (folder, old, new) = folder();
    std::os::unix::fs::symlink("old", &new).unwrap();
    write(&new, "as it is").unwrap();
    assert_eq!(read(&old), "as it is");
    assert!(new.symlink_metadata().unwrap().is_symlink());
    assert_eq!(names(folder.path()), ["new", "old"]);
}

#[cfg(unix)]
#[test]
fn a_device_is_written_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let null = Path::new("/dev/null");
    try_outputs(&[null, null], &[], Parents::Exist).unwrap();
    write(null, "gone").unwrap();
    assert!(fs::metadata(null).unwrap().file_type().is_char_device());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_says_so() {
    let error = write(Path::new("/dev/full"), "lost").unwrap_err().to_string();
    assert!(error.contains("/dev/full") && error.contains("free some space"), "{error}");
}

#[test]
fn a_new_file_replaces_none() {
    let (folder, old, new) = folder();
    assert!(!write_new(&old, "as it is").unwrap());
    assert!(write_new(&new, "first").unwrap());
    assert_eq!((read(&old).as_str(), read(&new).as_str()), ("as it was", "first"));
    let draft = Draft::begin(&new).unwrap();
    drop(draft.commit_new(&old).unwrap().expect("the file is there"));
    assert_eq!(read(&old), "as it was");
    assert_eq!(names(folder.path()), ["new", "old"]);
}

#[test]
fn different_contents_of_a_name_are_kept_side_by_side() {
    let folder = TempDir::new().unwrap();
    let below = folder.path().join("below");
    let keep = |content: &str| keep(&below, "seed", "toml", content).unwrap();
    assert_eq!(keep("one"), below.join("seed.toml"));
    assert_eq!(keep("two"), below.join("seed-2.toml"));
    assert_eq!(keep("one"), below.join("seed.toml"));
    assert_eq!(keep("two"), below.join("seed-2.toml"));
    assert_eq!(names(&below), ["seed-2.toml", "seed.toml"]);
}

#[test]
fn of_many_threads_that_keep_a_name_each_has_a_file() {
    let folder = TempDir::new().unwrap();
    let kept = |number: u32| keep(folder.path(), "seed", "toml", number.to_string()).unwrap();
    let mut paths: Vec<PathBuf> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || kept(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 8);
    let mut contents: Vec<String> = paths.iter().map(|path| read(path)).collect();
    contents.sort();
    assert_eq!(contents, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn a_trial_leaves_nothing_and_names_the_place() {
    let (folder, old, new) = folder();
    let deep = folder.path().join("a/b/c");
    try_outputs(&[&old, &new], &[], Parents::Exist).unwrap();
    try_outputs(&[&deep], &[], Parents::Created).unwrap();
    for folder in [&new, &deep, Path::new("")] {
        try_folder(folder).unwrap();
    }
    assert_eq!((names(folder.path()), read(&old).as_str()), (vec!["old".to_owned()], "as it was"));

    let error = try_outputs(&[&deep], &[], Parents::Exist).unwrap_err().to_string();
    assert!(error.contains("a/b/c: ") && error.contains("choose a place in a folder that exists"), "{error}");
    assert!(!error.contains(".new-"), "{error}");
    for below in [old.clone(), old.join("below")] {
        let error = try_folder(&below).unwrap_err().to_string();
        assert!(error.contains("old") && error.to_lowercase().contains("not a directory"), "{error}");
    }
    let error = try_outputs(&[folder.path()], &[], Parents::Exist).unwrap_err().to_string();
    assert!(error.contains("it is a folder: name a file"), "{error}");
}

#[cfg(unix)]
#[test]
fn one_file_is_known_by_all_its_names() {
    let (folder, old, new) = folder();
    let (soft, hard) = (folder.path().join("soft"), folder.path().join("hard"));
    std::os::unix::fs::symlink(&old, &soft).unwrap();
    fs::hard_link(&old, &hard).unwrap();
    let detour = folder.path().join("./old");
    for name in [&old, &soft, &hard, &detour] {
        assert!(is_same(&old, name), "{}", name.display());
        let error = try_outputs(&[name], &[&new, &old], Parents::Exist).unwrap_err().to_string();
        assert!(error.contains("the same file as the input"), "{error}");
    }
    assert!(!is_same(&old, &new));
    // Neither exists yet.
    let error = try_outputs(&[&new, &folder.path().join("./new")], &[], Parents::Exist).unwrap_err();
    assert!(error.to_string().contains("they are the same file"), "{error}");
}

#[test]
fn folders_of_earlier_runs_are_kept() {
    let parent = TempDir::new().unwrap();
    let run = parent.path().join("run");
    assert_eq!(put_aside(&run).unwrap(), None);
    fs::create_dir(&run).unwrap();
    assert_eq!(put_aside(&run).unwrap(), None, "it is empty");
    for (content, aside) in [("first", "run.earlier"), ("second", "run-2.earlier")] {
        create_folder(&run).unwrap();
        write(&run.join("plan.json"), content).unwrap();
        assert_eq!(put_aside(&run).unwrap(), Some(parent.path().join(aside)));
    }
    assert_eq!(names(parent.path()), ["run-2.earlier", "run.earlier"]);
    assert_eq!(read(&parent.path().join("run.earlier/plan.json")), "first");
    assert_eq!(read(&parent.path().join("run-2.earlier/plan.json")), "second");
    let file = parent.path().join("run");
    write(&file, "").unwrap();
    assert!(put_aside(&file).is_err(), "a file is no folder");
}
