//! The tree of nodes, and the operations of transactions on it.

use std::collections::{BTreeMap, BTreeSet};

use dlock_zookeeper::Stat;
use dlock_zookeeper::wire::code;

/// Why an operation was refused: one of [`code`].
pub(crate) type Refusal = i32;

/// The node with the configuration of the ensemble, which clients may only read.
const CONFIG: &str = "/zookeeper/config";

/// The nodes at one moment. A clone is a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    nodes: BTreeMap<String, Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    data: Vec<u8>,
    /// The session of an ephemeral node, or 0.
    owner: i64,
    czxid: i64,
    mzxid: i64,
    pzxid: i64,
    ctime: i64,
    mtime: i64,
    version: i32,
    aversion: i32,
    /// The number of children ever created, up to [`i32::MAX`]. It is the number of the next sequential
    /// child.
    creations: i32,
    children: BTreeSet<String>,
}

/// The number and time of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) zxid: i64,
    /// The leader's wall clock: milliseconds since the Unix epoch.
    pub(crate) millis: i64,
}

impl Default for Tree {
    /// Creates the nodes of a new ensemble.
    fn default() -> Self {
        let mut tree = Self { nodes: BTreeMap::new() };
        for (path, children) in [
            ("/", &["zookeeper"][..]),
            ("/zookeeper", &["config", "quota"]),
            (CONFIG, &[]),
            ("/zookeeper/quota", &[]),
        ] {
            let children = children.iter().map(|&name| name.to_owned()).collect();
            let aversion = if path == CONFIG { -1 } else { 0 };
            tree.nodes.insert(path.to_owned(), Node { children, aversion, ..Node::default() });
        }
        tree
    }
}

impl Tree {
    pub(crate) fn stat(&self, path: &str) -> Result<Stat, Refusal> {
        self.node(path).map(Node::stat)
    }

    pub(crate) fn data(&self, path: &str) -> Result<(Vec<u8>, Stat), Refusal> {
        self.node(path).map(|node| (node.data.clone(), node.stat()))
    }

    pub(crate) fn children(&self, path: &str) -> Result<(Vec<String>, Stat), Refusal> {
        self.node(path).map(|node| (node.children.iter().cloned().collect(), node.stat()))
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the paths of a session's ephemeral nodes.
    pub(crate) fn ephemerals(&self, owner: i64) -> Vec<String> {
        let owned = self.nodes.iter().filter(|(_, node)| owner != 0 && node.owner == owner);
        owned.map(|(path, _)| path.clone()).collect()
    }

    /// Creates a node and returns its path, which differs from `path` if it is sequential.
    ///
    /// The checks come in the order in which the real server makes them.
    pub(crate) fn create(
        &mut self,
        path: &str,
        data: Vec<u8>,
        owner: i64,
        sequential: bool,
        stamp: Stamp,
    ) -> Result<String, Refusal> {
        let (parent, _) = split(path)?;
        let creations = self.node(parent)?.creations;
        check_right(parent)?;
        let path = if sequential { format!("{path}{creations:010}") } else { path.to_owned() };
        check_path(&path)?;
        if self.nodes.contains_key(&path) {
            return Err(code::NODE_EXISTS);
        }
        let above = self.nodes.get_mut(real(parent)).ok_or(code::NO_NODE)?;
        if above.owner != 0 {
            return Err(code::NO_CHILDREN_FOR_EPHEMERALS);
        }
        above.count_creation(stamp.zxid);
        above.children.insert(name(&path).to_owned());
        let (zxid, millis) = (stamp.zxid, stamp.millis);
        let node = Node {
            data,
            owner,
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: millis,
            mtime: millis,
            ..Node::default()
        };
        self.nodes.insert(path.clone(), node);
        Ok(path)
    }

    /// Deletes a node and returns its data.
    pub(crate) fn delete(&mut self, path: &str, version: i32, stamp: Stamp) -> Result<Vec<u8>, Refusal> {
        let (parent, name) = split(path)?;
        if is_special(path) {
            return Err(code::BAD_ARGUMENTS);
        }
        self.node(parent)?;
        check_right(parent)?;
        let node = self.node(path)?;
        check_version(node, version)?;
        if !node.children.is_empty() {
            return Err(code::NOT_EMPTY);
        }
        if let Some(above) = self.nodes.get_mut(real(parent)) {
            above.children.remove(name);
            above.pzxid = stamp.zxid;
        }
        self.nodes.remove(path).map(|node| node.data).ok_or(code::NO_NODE)
    }

    pub(crate) fn set_data(
        &mut self,
        path: &str,
        data: Vec<u8>,
        version: i32,
        stamp: Stamp,
    ) -> Result<Stat, Refusal> {
        check_path(path)?;
        let node = self.nodes.get_mut(path).ok_or(code::NO_NODE)?;
        check_right(path)?;
        check_version(node, version)?;
        node.data = data;
        node.version += 1;
        node.mzxid = stamp.zxid;
        node.mtime = stamp.millis;
        Ok(node.stat())
    }

    /// Sets the number of children that a node has had. Returns false if there is no such node.
    pub(crate) fn age(&mut self, path: &str, creations: i32) -> bool {
        let node = self.nodes.get_mut(path);
        node.map(|node| node.creations = creations).is_some()
    }

    fn node(&self, path: &str) -> Result<&Node, Refusal> {
        self.nodes.get(real(path)).ok_or(code::NO_NODE)
    }
}

impl Node {
    /// Increments the child counter; it saturates. The real one takes over the counter and the transaction
    /// only if the counter is greater than before, so at its maximum all sequential children get the same
    /// number.
    ///
    /// Source: `DataTree.createNode`.
    fn count_creation(&mut self, zxid: i64) {
        if let Some(count) = self.creations.checked_add(1) {
            (self.creations, self.pzxid) = (count, zxid);
        }
    }

    fn stat(&self) -> Stat {
        let children = number(self.children.len());
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            // It counts creations, and is shown as creations plus deletions: `DataNode.copyStat`.
            cversion: self.creations.wrapping_mul(2).wrapping_sub(children),
            aversion: self.aversion,
            ephemeral_owner: self.owner,
            data_length: number(self.data.len()),
            num_children: children,
            pzxid: self.pzxid,
        }
    }
}

/// Returns the path of the parent.
pub(crate) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Returns the path of the parent, and the node's name. The empty path means the root, too.
fn split(path: &str) -> Result<(&str, &str), Refusal> {
    path.rsplit_once('/').filter(|_| !path.contains('\0')).ok_or(code::BAD_ARGUMENTS)
}

/// Returns the path under which a node is stored.
fn real(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// Source: `DataTree.isSpecialPath`.
fn is_special(path: &str) -> bool {
    matches!(path, "/" | "/zookeeper" | "/zookeeper/quota" | CONFIG)
}

/// Refuses changes of the configuration node and of nodes below it.
fn check_right(path: &str) -> Result<(), Refusal> {
    if path == CONFIG { Err(code::NO_AUTH) } else { Ok(()) }
}

fn number(size: usize) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

fn check_version(node: &Node, version: i32) -> Result<(), Refusal> {
    if version == -1 || version == node.version { Ok(()) } else { Err(code::BAD_VERSION) }
}

/// Source: `PathUtils.validatePath`.
fn check_path(path: &str) -> Result<(), Refusal> {
    let Some(rest) = path.strip_prefix('/') else { return Err(code::BAD_ARGUMENTS) };
    let bad_part = |part: &str| matches!(part, "" | "." | "..");
    let good = path == "/" || !rest.split('/').any(bad_part) && path.chars().all(is_allowed);
    if good { Ok(()) } else { Err(code::BAD_ARGUMENTS) }
}

/// Java checks UTF-16: characters of two units and those of the private area are refused.
fn is_allowed(character: char) -> bool {
    !matches!(character, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in a live 3.8.0 whose `DataTree` was brought to that state.
    #[test]
    fn the_child_counter_saturates() {
        let mut tree = Tree::default();
        let create = |tree: &mut Tree, path: &str, zxid| {
            tree.create(path, Vec::new(), 0, path.ends_with('-'), Stamp { zxid, millis: 0 })
        };
        create(&mut tree, "/q", 1).unwrap();
        assert!(tree.age("/q", i32::MAX - 1));
        assert_eq!(create(&mut tree, "/q/a-", 2).as_deref(), Ok("/q/a-2147483646"));
        assert_eq!(create(&mut tree, "/q/a-", 3).as_deref(), Ok("/q/a-2147483647"));
        assert_eq!(create(&mut tree, "/q/b-", 4).as_deref(), Ok("/q/b-2147483647"));
        assert_eq!(create(&mut tree, "/q/b-", 5), Err(code::NODE_EXISTS));
        let stat = tree.stat("/q").unwrap();
        assert_eq!((stat.cversion, stat.num_children, stat.pzxid), (-5, 3, 2));
    }
}
