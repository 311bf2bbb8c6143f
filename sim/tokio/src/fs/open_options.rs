//! The options under which a file is opened.

use std::io;
use std::path::Path;

use sim_host::Opening;

use super::background::call;
use super::cursor::Cursor;
use crate::host;

/// The bits that a new file or folder has not, as with the umask 022.
const MASK: u32 = 0o022;

/// The options under which a file is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    how: Opening,
    append: bool,
    /// The call that is not simulated.
    refused: Option<&'static str>,
}

/// Returns the permission bits of a new file or folder.
pub(super) fn masked(mode: u32) -> u32 {
    mode & !MASK
}

/// Defines options that are on or off.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident => $($field:ident).+;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, $name: bool) -> &mut Self {
            self.$($field).+ = $name;
            self
        }
    )*};
}

impl OpenOptions {
    /// Returns options with none set.
    pub fn new() -> Self {
        let (read, write, truncate, create, create_new) = (false, false, false, false, false);
        let how = Opening { read, write, truncate, create, create_new, mode: masked(0o666) };
        Self { how, append: false, refused: None }
    }

    flags! {
        /// The file can be read.
        read => how.read;
        /// The file can be written.
        write => how.write;
        /// Each write is at the end of the file.
        append => append;
        /// An existing file is emptied.
        truncate => how.truncate;
        /// The file is created if it does not exist.
        create => how.create;
        /// The file must not exist, and is created.
        create_new => how.create_new;
    }

    /// Sets the permission bits of a file that is created, but for the bits 022.
    #[cfg(unix)]
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.how.mode = masked(mode);
        self
    }

    /// Sets flags of the operating system. [`OpenOptions::open`] refuses all but 0.
    #[cfg(unix)]
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        self.refused = (flags != 0).then_some("tokio::fs::OpenOptions::custom_flags");
        self
    }

    /// Opens the file at `path`, at its beginning.
    ///
    /// # Errors
    ///
    /// As for the same call on Linux.
    pub(super) async fn open_cursor(&self, path: &Path) -> io::Result<Cursor> {
        if let Some(refused) = self.refused {
            return Err(host::refused(refused, super::INSTEAD));
        }
        let (path, how, appends) = (path.to_owned(), self.opening()?, self.append);
        let open = call(move |files| files.open(&path, how)).await?;
        Ok(Cursor::new(open, appends))
    }

    /// Returns the options for the host.
    ///
    /// # Errors
    ///
    /// If they contradict each other, as in the standard library.
    pub(super) fn opening(&self) -> io::Result<Opening> {
        let Opening { read, write, truncate, create, create_new, .. } = self.how;
        let writes = write || self.append;
        let creates = create || create_new;
        let is_valid =
            (writes || read && !truncate && !creates) && (create_new || !(self.append && truncate));
        if !is_valid {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "invalid combination of options"));
        }
        Ok(Opening { write: writes, ..self.how })
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl From<std::fs::OpenOptions> for OpenOptions {
    /// Returns options that [`OpenOptions::open`] refuses: those of the standard library can't be read.
    fn from(_: std::fs::OpenOptions) -> Self {
        Self { refused: Some("tokio::fs::OpenOptions from std::fs::OpenOptions"), ..Self::new() }
    }
}
