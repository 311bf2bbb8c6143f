//! An open file.

use std::fmt;
use std::fs::File as StdFile;
use std::io::{self, SeekFrom};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use real_tokio::sync::Mutex;

use super::background::run;
use super::cursor::{Cursor, Refused};
use super::file_state::State;
use super::metadata::{Metadata, Permissions};
use super::open_options::OpenOptions;
use super::times::FileTimes;
use crate::host;
use crate::io::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

/// An open file of the process's machine.
///
/// As with tokio, a write returns before the file has changed: `flush` waits for it. Only [`File::sync_all`]
/// and [`File::sync_data`] make data durable.
pub struct File {
    cursor: Arc<Cursor>,
    state: Mutex<State>,
}

impl File {
    fn new(cursor: Arc<Cursor>) -> Self {
        Self { cursor, state: Mutex::new(State::new()) }
    }

    /// Opens a file for reading, or a folder in order to sync it.
    ///
    /// # Errors
    ///
    /// If there is nothing at `path`.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::options().read(true).open(path).await
    }

    /// Creates or empties a file for writing.
    ///
    /// # Errors
    ///
    /// If `path` is no place for a file.
    pub async fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::options().write(true).create(true).truncate(true).open(path).await
    }

    /// Creates a file for reading and writing.
    ///
    /// # Errors
    ///
    /// If there is something at `path`.
    pub async fn create_new<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        Self::options().read(true).write(true).create_new(true).open(path).await
    }

    /// Returns options with none set.
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Refuses a real file: the run ends with an error that names the line. Returns a file on which every
    /// call is refused.
    pub fn from_std(_: StdFile) -> Self {
        // Code outside of a simulated process may hand a file to one, whose calls are then refused.
        if sim_host::process().is_some() {
            let _ = host::refused("tokio::fs::File of a real file", super::INSTEAD);
        }
        Self::new(Arc::new(Cursor::new(Arc::new(Refused), false)))
    }

    /// Makes the data of the file durable, and its names; of a folder the names in it.
    ///
    /// # Errors
    ///
    /// If the process is dead.
    pub async fn sync_all(&self) -> io::Result<()> {
        self.call(|cursor| cursor.open().sync(true)).await
    }

    /// Makes the data of the file durable, and the name under which it was created.
    ///
    /// # Errors
    ///
    /// As [`File::sync_all`].
    pub async fn sync_data(&self) -> io::Result<()> {
        self.call(|cursor| cursor.open().sync(false)).await
    }

    /// Shortens the file, or extends it with zeros.
    ///
    /// # Errors
    ///
    /// If it was not opened for writing.
    pub async fn set_len(&self, size: u64) -> io::Result<()> {
        self.state.lock().await.set_len(&self.cursor, size).await
    }

    /// Describes the file.
    ///
    /// # Errors
    ///
    /// As [`File::sync_all`].
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let cursor = Arc::clone(&self.cursor);
        run(|machine| async move { machine.call(|_| cursor.open().metadata().map(Metadata)).await }).await
    }

    /// Returns a handle of the same file, with the same position.
    ///
    /// # Errors
    ///
    /// As [`File::sync_all`].
    pub async fn try_clone(&self) -> io::Result<Self> {
        self.call(|_| Ok(())).await?;
        let mut state = State::new();
        state.set_length_max(self.state.lock().await.length_max());
        Ok(Self { cursor: Arc::clone(&self.cursor), state: Mutex::new(state) })
    }

    /// Refuses the conversion.
    ///
    /// # Panics
    ///
    /// Always: the run ends with an error that names the line.
    pub async fn into_std(self) -> StdFile {
        panic!("{}", host::refused("tokio::fs::File::into_std", super::INSTEAD))
    }

    /// Refuses the conversion.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    #[allow(clippy::result_large_err, reason = "tokio's own")]
    pub fn try_into_std(self) -> Result<StdFile, Self> {
        // The error ends the run.
        let _ = host::refused("tokio::fs::File::try_into_std", super::INSTEAD);
        Err(self)
    }

    /// Sets the permissions.
    ///
    /// # Errors
    ///
    /// As [`File::sync_all`].
    pub async fn set_permissions(&self, perm: impl Into<Permissions>) -> io::Result<()> {
        let mode = perm.into().0;
        self.call(move |cursor| cursor.open().set_mode(mode)).await
    }

    /// Sets the times of the last reading and of the last change.
    ///
    /// # Errors
    ///
    /// If one is before the Unix epoch.
    pub async fn set_times(&self, times: FileTimes) -> io::Result<()> {
        let (accessed, modified) = times.since_epoch()?;
        self.call(move |cursor| cursor.open().set_times(accessed, modified)).await
    }

    /// Sets the time of the last change.
    ///
    /// # Errors
    ///
    /// As [`File::set_times`].
    pub async fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.set_times(FileTimes::new().set_modified(time)).await
    }

    /// Sets the largest number of bytes for one operation.
    ///
    /// # Panics
    ///
    /// If it is 0, as tokio's own.
    #[track_caller]
    pub fn set_max_buf_size(&mut self, max_buf_size: usize) {
        assert!(max_buf_size > 0, "`max_buf_size` must be greater than 0");
        self.state.get_mut().set_length_max(max_buf_size);
    }

    /// Returns the largest number of bytes for one operation.
    pub fn max_buf_size(&self) -> usize {
        self.state.try_lock().map_or_else(|_| State::new().length_max(), |state| state.length_max())
    }

    /// Makes a call after the operation that runs.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Cursor) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.state.lock().await.ended().await?;
        let cursor = Arc::clone(&self.cursor);
        run(|machine| async move { machine.call(|_| call(&cursor)).await }).await
    }
}

impl OpenOptions {
    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// As for the same call on Linux.
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let cursor = self.open_cursor(path.as_ref()).await?;
        Ok(File::new(Arc::new(cursor)))
    }
}

impl AsyncRead for File {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.state.get_mut().poll_read(&this.cursor, cx, out)
    }
}

impl AsyncSeek for File {
    fn start_seek(self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        let this = self.get_mut();
        this.state.get_mut().start_seek(&this.cursor, to)
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.get_mut().state.get_mut().poll_complete(cx)
    }
}

impl AsyncWrite for File {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.state.get_mut().poll_write(&this.cursor, cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().state.get_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl From<StdFile> for File {
    fn from(file: StdFile) -> Self {
        Self::from_std(file)
    }
}

#[cfg(unix)]
impl From<std::os::fd::OwnedFd> for File {
    fn from(descriptor: std::os::fd::OwnedFd) -> Self {
        Self::from_std(descriptor.into())
    }
}

#[cfg(unix)]
impl std::os::fd::AsRawFd for File {
    /// Refuses: a simulated file has no descriptor. The run ends with an error that names the line.
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        let _ = host::refused("tokio::fs::File::as_raw_fd", super::INSTEAD);
        -1
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for File {
    /// Refuses: a simulated file has no descriptor. The run ends with an error that names the line.
    ///
    /// # Panics
    ///
    /// Always.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        panic!("{}", host::refused("tokio::fs::File::as_fd", super::INSTEAD))
    }
}

#[cfg(unix)]
#[allow(unsafe_code, reason = "the trait is unsafe, since its caller gives the descriptor away")]
impl std::os::fd::FromRawFd for File {
    /// Returns a file on which every call is refused, as [`File::from_std`] does.
    unsafe fn from_raw_fd(descriptor: std::os::fd::RawFd) -> Self {
        // SAFETY: the caller gives the descriptor away.
        Self::from_std(unsafe { StdFile::from_raw_fd(descriptor) })
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("tokio::fs::File").finish_non_exhaustive()
    }
}
