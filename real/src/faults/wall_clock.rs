//! The wall clock of one server, which can be set while the server runs.
//!
//! A small C library (`wall_clock.c`) is preloaded into the server and adds an offset to the time of day. The
//! offset is a number in a file mapped by both processes. The library is compiled into the stage, and removed
//! with it.
//!
//! It affects programs that ask the C library for the time: Redis, Java. etcd asks the kernel directly and is
//! not affected. The monotonic clock is unchanged, as when a machine's time is set.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};

use super::error::FaultError;
use crate::servers::Stage;

const SOURCE: &str = include_str!("wall_clock.c");

/// The offset of a server's wall clock from the machine's.
#[derive(Debug)]
pub struct WallClock {
    library: PathBuf,
    path: PathBuf,
    file: File,
    offset_nanos: AtomicI64,
}

impl WallClock {
    /// Creates a clock with the machine's time, for the server `name`.
    ///
    /// # Errors
    ///
    /// [`FaultError::Missing`] if there is no C compiler.
    pub fn new(stage: &Stage, name: &str) -> Result<Self, FaultError> {
        let directory = stage.subdirectory("wall-clocks")?;
        let path = directory.join(name);
        let failed = |source| FaultError::File { path: path.clone(), source };
        let file = File::options().create(true).truncate(true).write(true).open(&path).map_err(failed)?;
        let library = directory.join(format!("{name}.so"));
        build(&library)?;
        let clock = Self { library, path: path.clone(), file, offset_nanos: AtomicI64::new(0) };
        clock.write(0).map_err(failed)?;
        Ok(clock)
    }

    /// Returns the environment variables that make a process use this clock.
    pub fn environment(&self) -> [(OsString, OsString); 2] {
        [
            ("LD_PRELOAD".into(), self.library.clone().into()),
            ("DLOCK_WALL_CLOCK".into(), self.path.clone().into()),
        ]
    }

    /// Steps it forward by `by_ms` milliseconds, or back if negative. The process sees it the next time it
    /// reads the clock.
    ///
    /// # Errors
    ///
    /// [`FaultError::File`].
    pub fn step(&self, by_ms: i64) -> Result<(), FaultError> {
        let by = by_ms.saturating_mul(1_000_000);
        let offset = self.offset_nanos.load(Ordering::SeqCst).saturating_add(by);
        self.write(offset).map_err(|source| FaultError::File { path: self.path.clone(), source })?;
        self.offset_nanos.store(offset, Ordering::SeqCst);
        Ok(())
    }

    fn write(&self, nanos: i64) -> io::Result<()> {
        self.file.write_all_at(&nanos.to_ne_bytes(), 0)
    }
}

fn build(library: &std::path::Path) -> Result<(), FaultError> {
    let source = library.with_extension("c");
    fs::write(&source, SOURCE).map_err(|error| FaultError::File { path: source.clone(), source: error })?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(library).arg(&source).arg("-ldl");
    let output = compiler.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            FaultError::Missing { what: "steps of a wall clock", program: "cc", package: "gcc libc6-dev" }
        }
        _ => FaultError::Failed { command: "cc".to_owned(), words: error.to_string() },
    })?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(FaultError::Failed { command: "cc -shared".to_owned(), words })
}
