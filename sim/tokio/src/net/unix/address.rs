//! The address of a Unix socket.

use std::ffi::OsStr;
use std::fmt;
use std::io;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::SocketAddr as StdSocketAddr;
use std::path::{Path, PathBuf};

/// The address of a Unix socket: a path, an abstract name, or none.
#[derive(Clone)]
pub struct SocketAddr(StdSocketAddr);

impl SocketAddr {
    /// Returns the address at `path`. A path that begins with a zero byte is an abstract name.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if the path is longer than 107 bytes, or has a zero byte in it.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(name) = path.as_os_str().as_bytes().strip_prefix(b"\0") {
            return StdSocketAddr::from_abstract_name(name).map(Self);
        }
        StdSocketAddr::from_pathname(path).map(Self)
    }

    /// Returns the address of a socket without one.
    pub(super) fn unnamed() -> Self {
        // An empty path stands for no name in an address.
        #[allow(clippy::expect_used, reason = "an empty path is neither too long nor has it a zero byte")]
        Self(StdSocketAddr::from_pathname("").expect("an address without a name"))
    }

    /// Returns the path, or the abstract name behind a zero byte.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if it has neither.
    pub(super) fn key(&self) -> io::Result<PathBuf> {
        if let Some(path) = self.as_pathname() {
            return Ok(path.to_owned());
        }
        #[cfg(target_os = "linux")]
        if let Some(name) = self.as_abstract_name() {
            return Ok(PathBuf::from(OsStr::from_bytes(&[b"\0", name].concat())));
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "the address has no name: give a path"))
    }

    /// Returns true if it has neither a path nor a name.
    pub fn is_unnamed(&self) -> bool {
        self.0.is_unnamed()
    }

    /// Returns its path.
    pub fn as_pathname(&self) -> Option<&Path> {
        self.0.as_pathname()
    }

    /// Returns its abstract name.
    #[cfg(target_os = "linux")]
    pub fn as_abstract_name(&self) -> Option<&[u8]> {
        self.0.as_abstract_name()
    }
}

impl fmt::Debug for SocketAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<StdSocketAddr> for SocketAddr {
    fn from(address: StdSocketAddr) -> Self {
        Self(address)
    }
}

impl From<SocketAddr> for StdSocketAddr {
    fn from(address: SocketAddr) -> Self {
        address.0
    }
}
