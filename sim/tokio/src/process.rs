//! `tokio::process`: a simulated process starts no real programs. The types exist so that code with them
//! compiles; only the call that makes a value is ever reached, and it is refused.

#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "tokio's own are async and return results; here nothing can call them"
)]

use std::convert::Infallible;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::{Command as StdCommand, ExitStatus, Output, Stdio};
use std::task::{Context, Poll};

use crate::host;
use crate::io::{AsyncRead, AsyncWrite, ReadBuf};

const INSTEAD: &str = "add the program as a process of the world (Sim::process, Sim::service)";

/// A program that is refused.
#[derive(Debug)]
pub struct Command(Infallible);

/// A program that runs, which no simulated process has.
#[derive(Debug)]
pub struct Child {
    /// Its standard input.
    pub stdin: Option<ChildStdin>,
    /// Its standard output.
    pub stdout: Option<ChildStdout>,
    /// Its standard error.
    pub stderr: Option<ChildStderr>,
    refused: Infallible,
}

/// The standard input of a program, which no simulated process has.
#[derive(Debug)]
pub struct ChildStdin(Infallible);

/// The standard output of a program, which no simulated process has.
#[derive(Debug)]
pub struct ChildStdout(Infallible);

/// The standard error of a program, which no simulated process has.
#[derive(Debug)]
pub struct ChildStderr(Infallible);

impl Command {
    /// Refuses to start a program.
    ///
    /// # Panics
    ///
    /// Always: the run ends with an error that names the line.
    pub fn new<S: AsRef<OsStr>>(program: S) -> Self {
        let error = host::refused("tokio::process::Command", INSTEAD);
        panic!("{:?}: {error}", program.as_ref())
    }

    /// Can't be called: there is no such command.
    pub fn as_std(&self) -> &StdCommand {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn as_std_mut(&mut self) -> &mut StdCommand {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn into_std(self) -> StdCommand {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn arg<S: AsRef<OsStr>>(&mut self, _: S) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&mut self, _: I) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn env<K: AsRef<OsStr>, V: AsRef<OsStr>>(&mut self, _: K, _: V) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn envs<I: IntoIterator<Item = (K, V)>, K: AsRef<OsStr>, V: AsRef<OsStr>>(
        &mut self,
        _: I,
    ) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn env_remove<K: AsRef<OsStr>>(&mut self, _: K) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn env_clear(&mut self) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn current_dir<P: AsRef<Path>>(&mut self, _: P) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn stdin<T: Into<Stdio>>(&mut self, _: T) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn stdout<T: Into<Stdio>>(&mut self, _: T) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn stderr<T: Into<Stdio>>(&mut self, _: T) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn kill_on_drop(&mut self, _: bool) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn get_kill_on_drop(&self) -> bool {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn spawn(&mut self) -> io::Result<Child> {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + use<> {
        let never = self.0;
        async move { match never {} }
    }

    /// Can't be called: there is no such command.
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + use<> {
        let never = self.0;
        async move { match never {} }
    }
}

#[cfg(unix)]
impl Command {
    /// Can't be called: there is no such command.
    pub fn uid(&mut self, _: u32) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn gid(&mut self, _: u32) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn arg0<S: AsRef<OsStr>>(&mut self, _: S) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    pub fn process_group(&mut self, _: i32) -> &mut Self {
        match self.0 {}
    }

    /// Can't be called: there is no such command.
    ///
    /// # Safety
    ///
    /// Always safe.
    #[allow(unsafe_code, reason = "tokio's own is unsafe, since its function runs after a fork")]
    pub unsafe fn pre_exec<F>(&mut self, _: F) -> &mut Self
    where
        F: FnMut() -> io::Result<()> + Send + Sync + 'static,
    {
        match self.0 {}
    }
}

impl From<StdCommand> for Command {
    /// Refuses to start a program, as [`Command::new`] does.
    fn from(command: StdCommand) -> Self {
        Self::new(command.get_program())
    }
}

impl Child {
    /// Can't be called: there is no such program.
    pub fn id(&self) -> Option<u32> {
        match self.refused {}
    }

    /// Can't be called: there is no such program.
    pub fn start_kill(&mut self) -> io::Result<()> {
        match self.refused {}
    }

    /// Can't be called: there is no such program.
    pub async fn kill(&mut self) -> io::Result<()> {
        match self.refused {}
    }

    /// Can't be called: there is no such program.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self.refused {}
    }

    /// Can't be called: there is no such program.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self.refused {}
    }

    /// Can't be called: there is no such program.
    pub async fn wait_with_output(self) -> io::Result<Output> {
        match self.refused {}
    }
}

impl ChildStdin {
    /// Refuses a stream of a real program.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn from_std(_: std::process::ChildStdin) -> io::Result<Self> {
        Err(host::refused("tokio::process::ChildStdin::from_std", INSTEAD))
    }

    /// Can't be called: there is no such stream.
    #[cfg(unix)]
    pub fn into_owned_fd(self) -> io::Result<std::os::fd::OwnedFd> {
        match self.0 {}
    }
}

impl ChildStdout {
    /// Refuses a stream of a real program.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn from_std(_: std::process::ChildStdout) -> io::Result<Self> {
        Err(host::refused("tokio::process::ChildStdout::from_std", INSTEAD))
    }

    /// Can't be called: there is no such stream.
    #[cfg(unix)]
    pub fn into_owned_fd(self) -> io::Result<std::os::fd::OwnedFd> {
        match self.0 {}
    }
}

impl ChildStderr {
    /// Refuses a stream of a real program.
    ///
    /// # Errors
    ///
    /// Always: the run ends with an error that names the line.
    pub fn from_std(_: std::process::ChildStderr) -> io::Result<Self> {
        Err(host::refused("tokio::process::ChildStderr::from_std", INSTEAD))
    }

    /// Can't be called: there is no such stream.
    #[cfg(unix)]
    pub fn into_owned_fd(self) -> io::Result<std::os::fd::OwnedFd> {
        match self.0 {}
    }
}

/// Implements the traits of a stream without values.
macro_rules! streams {
    ($($stream:ident),*) => {$(
        impl TryFrom<$stream> for Stdio {
            type Error = io::Error;

            fn try_from(stream: $stream) -> io::Result<Self> {
                match stream.0 {}
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $stream {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                match self.0 {}
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsFd for $stream {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                match self.0 {}
            }
        }
    )*};
}

streams!(ChildStdin, ChildStdout, ChildStderr);

/// Implements reading from a stream without values.
macro_rules! read {
    ($($stream:ident),*) => {$(
        impl AsyncRead for $stream {
            fn poll_read(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
                _: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                match self.0 {}
            }
        }
    )*};
}

read!(ChildStdout, ChildStderr);

impl AsyncWrite for ChildStdin {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match self.0 {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}
