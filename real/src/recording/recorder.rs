//! The `tracing` layer that writes the events of this process as JSON lines.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use history::{EventName, Nanos, Record};
use serde::Serialize;
use tracing::{Event, Metadata, Subscriber, subscriber::Interest};
use tracing_subscriber::layer::{Context, Layer};

use crate::clock::{machine_time, wall_unix_micros};

thread_local! {
    static SPEAKER: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Attributes the events of this thread to the process `name`. Each contender of a worker has a thread.
pub fn speak_as(name: &str) {
    SPEAKER.set(Some(name.into()));
}

/// A `tracing` layer that writes each event of the vocabulary as one line of JSON: its time, its process and
/// its fields.
///
/// Each line is written by one system call before the emitter continues: a killed process leaves all of its
/// events, and its lines are in the order of their times.
pub struct Recorder {
    process: Arc<str>,
    output: Arc<Mutex<Output>>,
}

/// The handle that [`Recorder::open`] returns, to check for errors.
pub struct Recording(Arc<Mutex<Output>>);

struct Output {
    to: Box<dyn Write + Send>,
    failure: Option<io::Error>,
}

#[derive(Serialize)]
struct Line<'a> {
    at: Nanos,
    wall_unix_micros: u64,
    process: &'a str,
    #[serde(flatten)]
    record: &'a Record,
}

impl Recorder {
    /// Makes the file at `path` the history of this process, named `process`; `-` is the standard output. The
    /// caller chooses the threads whose events it receives: [`crate::logs::install`] makes it all.
    ///
    /// # Errors
    ///
    /// An error of the file, or an error if it has content, such as the history of an earlier process.
    pub fn open(process: &str, path: &Path) -> io::Result<(Self, Recording)> {
        let to: Box<dyn Write + Send> =
            if path.as_os_str() == "-" { Box::new(io::stdout()) } else { Box::new(open(path)?) };
        let output = Arc::new(Mutex::new(Output { to, failure: None }));
        Ok((Self { process: process.into(), output: Arc::clone(&output) }, Recording(output)))
    }

    /// Returns true if the call site is an event of the vocabulary.
    pub fn wants(metadata: &Metadata<'_>) -> bool {
        !metadata.is_span() && EventName::ALL.iter().any(|event| event.target() == metadata.target())
    }

    fn write(&self, process: &str, record: &Record) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that lines are in the order of their times.
        let line = Line { at: machine_time(), wall_unix_micros: wall_unix_micros(), process, record };
        let written = serde_json::to_vec(&line).map_err(io::Error::from).and_then(|mut bytes| {
            bytes.push(b'\n');
            output.to.write_all(&bytes)
        });
        if let Err(error) = written {
            output.failure.get_or_insert(error);
        }
    }
}

impl Recording {
    /// Returns why the history is incomplete, if it is. Call it at the end of the run.
    pub fn failure(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failure.take()
    }
}

/// Opens an empty file, or a device or pipe, and tries whether it can be written.
fn open(path: &Path) -> io::Result<File> {
    let mut file = File::options().create(true).append(true).open(path)?;
    let there = file.metadata()?;
    if there.len() > 0 && there.is_file() {
        let problem =
            "it has content, such as the history of an earlier run: delete it, or name another file";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
    }
    if !there.file_type().is_fifo() {
        // Readers skip an empty line.
        file.write_all(b"\n")?;
    }
    if there.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

impl<S: Subscriber> Layer<S> for Recorder {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if Self::wants(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        Self::wants(metadata)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut record = Record::default();
        event.record(&mut record);
        let speaker = SPEAKER.with_borrow(Clone::clone);
        self.write(speaker.as_deref().unwrap_or(&self.process), &record);
    }
}
