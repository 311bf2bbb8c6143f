//! The names that a power loss keeps.

use std::path::Path;
use std::time::Duration;

use sim_host::Opening;

use super::Id;
use super::tree::{Body, ROOT, Tree};

const NEW: Opening =
    Opening { read: true, write: true, truncate: false, create: true, create_new: false, mode: 0o644 };

/// Returns the paths of all files and links below `/d`, in order.
fn names(tree: &Tree) -> Vec<String> {
    fn walk(tree: &Tree, path: &str, names: &mut Vec<String>) {
        for entry in tree.entries(Path::new(path)).unwrap() {
            let path = format!("{path}/{}", entry.name.to_string_lossy());
            match tree.nodes[&Id(entry.inode)].body {
                Body::Folder(_) => walk(tree, &path, names),
                Body::File(_) | Body::Link(_) => names.push(path),
            }
        }
    }
    let mut found = Vec::new();
    walk(tree, "/d", &mut found);
    found.sort();
    found
}

/// Returns a tree with the durable folder `/d`.
fn tree() -> Tree {
    let mut tree = Tree::new();
    tree.create_folder(Path::new("/d"), 0o755, Duration::ZERO).unwrap();
    tree.sync_names(ROOT, true);
    tree
}

fn create(tree: &mut Tree, path: &str) -> Id {
    tree.open(Path::new(path), NEW, Duration::ZERO).unwrap()
}

fn sync(tree: &mut Tree, path: &str) {
    let id = tree.look_up(Path::new(path), true).unwrap().id().unwrap();
    tree.sync_names(id, true);
}

/// Returns the names after each possible power loss, from the one that keeps nothing to the one that keeps
/// all.
fn after_losses(build: impl Fn(&mut Tree)) -> Vec<Vec<String>> {
    let built = || {
        let mut tree = tree();
        build(&mut tree);
        tree
    };
    let lose = |kept| {
        let mut tree = built();
        tree.close_all();
        tree.undo_from(kept);
        check_links(&tree);
        names(&tree)
    };
    (0..=built().changes.len()).map(lose).collect()
}

/// Checks that each node counts its names, and is freed without one.
fn check_links(tree: &Tree) {
    for (id, node) in &tree.nodes {
        let count = |node: &super::tree::Node| match &node.body {
            Body::Folder(entries) => entries.values().filter(|entry| *entry == id).count(),
            Body::File(_) | Body::Link(_) => 0,
        };
        let links: usize = tree.nodes.values().map(count).sum();
        assert_eq!(links as u64, node.links, "{id:?}");
        assert!(*id == ROOT || links > 0, "{id:?} is left");
    }
}

#[test]
fn a_synced_file_keeps_its_name() {
    let losses = after_losses(|tree| {
        create(tree, "/d/a");
        create(tree, "/d/b");
        sync(tree, "/d/b");
    });
    assert_eq!(losses, [vec!["/d/b"], vec!["/d/a", "/d/b"]]);
}

#[test]
fn a_rename_is_lost_whole_without_a_sync() {
    let losses = after_losses(|tree| {
        create(tree, "/d/new");
        create(tree, "/d/old");
        sync(tree, "/d");
        tree.rename(Path::new("/d/new"), Path::new("/d/old")).unwrap();
    });
    assert_eq!(losses, [vec!["/d/new", "/d/old"], vec!["/d/old"]]);
}

#[test]
fn a_synced_folder_keeps_the_names_in_it() {
    let losses = after_losses(|tree| {
        tree.create_folder(Path::new("/d/sub"), 0o755, Duration::ZERO).unwrap();
        create(tree, "/d/sub/a");
        create(tree, "/d/b");
        sync(tree, "/d/sub");
        tree.remove_file(Path::new("/d/sub/a")).unwrap();
    });
    assert_eq!(losses, [vec!["/d/sub/a"], vec!["/d/b", "/d/sub/a"], vec!["/d/b"]]);
}

#[test]
fn a_sync_keeps_the_earlier_changes_on_which_it_depends() {
    let losses = after_losses(|tree| {
        create(tree, "/d/a");
        tree.create_folder(Path::new("/d/sub"), 0o755, Duration::ZERO).unwrap();
        tree.rename(Path::new("/d/a"), Path::new("/d/sub/a")).unwrap();
        create(tree, "/d/lost");
        create(tree, "/d/a");
        sync(tree, "/d/a");
    });
    assert_eq!(losses[0], ["/d/a", "/d/sub/a"]);
}

#[test]
fn a_sync_of_data_keeps_the_creation_and_no_rename() {
    let losses = after_losses(|tree| {
        let id = create(tree, "/d/a");
        tree.rename(Path::new("/d/a"), Path::new("/d/b")).unwrap();
        tree.sync_names(id, false);
    });
    assert_eq!(losses, [["/d/a"], ["/d/b"]]);
}

#[test]
fn a_removed_file_is_freed_when_it_is_closed() {
    let mut tree = tree();
    let id = create(&mut tree, "/d/a");
    tree.remove_file(Path::new("/d/a")).unwrap();
    sync(&mut tree, "/d");
    assert!(tree.node(id).is_ok());
    tree.close(id);
    assert!(tree.node(id).is_err());
}
