//! The files that a server over TLS reads.

use std::fs;
use std::path::{Path, PathBuf};

use dlock::tls::Identity;

use super::error::ServerError;
use super::guard::Stage;

/// The certificate of a server, and the issuers of its clients, as files of a stage.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate and those of its issuers, as PEM.
    pub(super) certificates: PathBuf,
    /// The private key, as PEM.
    pub(super) key: PathBuf,
    /// All of them in one file.
    pub(super) both: PathBuf,
    /// The issuers of the clients' certificates, if clients must have one.
    pub(super) client_roots: Option<PathBuf>,
}

impl TlsFiles {
    /// Writes the files into the directory `name` of the stage. With `client_roots` (PEM) the server demands
    /// a certificate of each client.
    ///
    /// # Errors
    ///
    /// [`ServerError::Directory`] if a file can't be written.
    pub fn write(
        stage: &Stage,
        name: &str,
        identity: &Identity,
        client_roots: Option<&str>,
    ) -> Result<Self, ServerError> {
        let directory = stage.subdirectory(name)?;
        let file = |name: &str, text: &str| write(&directory, name, text);
        Ok(Self {
            certificates: file("server.pem", &identity.certificates)?,
            key: file("server.key", &identity.key)?,
            both: file("server-both.pem", &format!("{}{}", identity.key, identity.certificates))?,
            client_roots: client_roots.map(|roots| file("clients.pem", roots)).transpose()?,
        })
    }
}

fn write(directory: &Path, name: &str, text: &str) -> Result<PathBuf, ServerError> {
    let path = directory.join(name);
    match fs::write(&path, text) {
        Ok(()) => Ok(path),
        Err(source) => Err(ServerError::Directory { path, source }),
    }
}
