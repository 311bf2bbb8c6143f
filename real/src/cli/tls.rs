//! The flags of access: files with certificates and bearer tokens.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use dlock::TokioRuntime;
use dlock::tls::{Identity, TlsAcceptor, TlsConnector, TlsOptions, TlsServerOptions};
use resource::bearer::BearerToken;
use resource::client::Client;

use super::guards;

/// The access of a client to the resource: its bearer token and its certificates.
#[derive(Args)]
pub(crate) struct ResourceAccess {
    /// The file with the bearer token for the resource.
    #[arg(long, env = "DLOCK_RESOURCE_TOKEN_FILE", value_name = "FILE")]
    resource_token_file: Option<PathBuf>,
    /// The certificates to trust with an https resource, as PEM; by default those of the system.
    #[arg(long, env = "DLOCK_TLS_ROOTS", value_name = "FILE")]
    tls_roots: Option<PathBuf>,
    /// The certificate to show to an https resource that asks for one, as PEM.
    #[arg(long, env = "DLOCK_TLS_CERTIFICATE", value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The private key of that certificate, as PEM.
    #[arg(long, env = "DLOCK_TLS_KEY", value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
}

/// The certificates of a client of the lock servers.
#[derive(Args)]
pub(crate) struct ServersTls {
    /// The certificates to trust with lock servers over TLS, as PEM; by default those of the system.
    #[arg(long, env = "DLOCK_SERVERS_TLS_ROOTS", value_name = "FILE")]
    servers_tls_roots: Option<PathBuf>,
    /// The certificate to show to lock servers that ask for one, as PEM.
    #[arg(long, env = "DLOCK_SERVERS_TLS_CERTIFICATE", value_name = "FILE", requires = "servers_tls_key")]
    servers_tls_certificate: Option<PathBuf>,
    /// The private key of that certificate, as PEM.
    #[arg(long, env = "DLOCK_SERVERS_TLS_KEY", value_name = "FILE", requires = "servers_tls_certificate")]
    servers_tls_key: Option<PathBuf>,
}

/// The certificates of a server.
#[derive(Args)]
pub(crate) struct ServerTls {
    /// Serves over TLS with this certificate and those of its issuers, as PEM.
    #[arg(long, env = "DLOCK_TLS_CERTIFICATE", value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The private key of that certificate, as PEM.
    #[arg(long, env = "DLOCK_TLS_KEY", value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Serves only clients with a certificate of one of these issuers, as PEM.
    #[arg(long, env = "DLOCK_TLS_CLIENTS", value_name = "FILE", requires = "tls_certificate")]
    tls_clients: Option<PathBuf>,
}

impl ServersTls {
    /// Reads the files into `tls`; `None` is that of servers without TLS, for which no file may be given.
    pub(crate) fn read(&self, tls: Option<&mut TlsOptions>) -> Result<(), Box<dyn Error>> {
        let (roots, certificate) = (&self.servers_tls_roots, &self.servers_tls_certificate);
        let Some(tls) = tls else {
            return match roots.as_ref().or(certificate.as_ref()) {
                None => Ok(()),
                Some(_) => {
                    Err("the lock servers are without TLS: write a URL such as rediss://host:6379 to \
                                --servers, or leave the files of --servers-tls-… out"
                        .into())
                }
            };
        };
        tls.roots = roots.as_deref().map(read).transpose()?;
        tls.identity = identity(certificate.as_deref(), self.servers_tls_key.as_deref())?;
        Ok(())
    }
}

impl ResourceAccess {
    /// Reads the bearer token, if there is one.
    pub(crate) fn token(&self) -> Result<Option<BearerToken>, Box<dyn Error>> {
        self.resource_token_file.as_deref().map(guards::token).transpose()
    }

    /// Returns a client of the resource at `address`.
    pub(crate) fn client(
        &self,
        runtime: TokioRuntime,
        address: &str,
    ) -> Result<Client<TokioRuntime>, Box<dyn Error>> {
        let client = match self.resource(address)? {
            (address, None) => Client::new(runtime, &address),
            (address, Some(tls)) => Client::over_tls(runtime, &address, tls),
        };
        Ok(match self.token()? {
            None => client,
            Some(token) => client.with_bearer(token),
        })
    }

    /// Returns the address of a resource, `host:port`, and the way to connect over TLS if it is written
    /// `https://host:port`.
    pub(crate) fn resource(&self, resource: &str) -> Result<(String, Option<TlsConnector>), Box<dyn Error>> {
        let Some(address) = resource.strip_prefix("https://") else {
            let given = [&self.tls_roots, &self.tls_certificate].into_iter().flatten().next();
            return match given {
                None => Ok((resource.strip_prefix("http://").unwrap_or(resource).to_owned(), None)),
                Some(_) => {
                    Err(format!("{resource} is without TLS: write https://host:port, or leave the files out")
                        .into())
                }
            };
        };
        let mut options = TlsOptions::default();
        options.roots = self.tls_roots.as_deref().map(read).transpose()?;
        options.identity = identity(self.tls_certificate.as_deref(), self.tls_key.as_deref())?;
        Ok((address.trim_end_matches('/').to_owned(), Some(TlsConnector::new(&options)?)))
    }
}

impl ServerTls {
    /// Returns the way to accept connections over TLS, if there is a certificate.
    pub(crate) fn acceptor(&self) -> Result<Option<TlsAcceptor>, Box<dyn Error>> {
        let Some(identity) = identity(self.tls_certificate.as_deref(), self.tls_key.as_deref())? else {
            return Ok(None);
        };
        let mut options = TlsServerOptions::new(identity);
        options.client_roots = self.tls_clients.as_deref().map(read).transpose()?;
        Ok(Some(TlsAcceptor::new(&options)?))
    }
}

fn identity(certificates: Option<&Path>, key: Option<&Path>) -> Result<Option<Identity>, Box<dyn Error>> {
    match (certificates, key) {
        (Some(certificates), Some(key)) => {
            Ok(Some(Identity { certificates: read(certificates)?, key: read(key)? }))
        }
        _ => Ok(None),
    }
}

fn read(path: &Path) -> Result<String, Box<dyn Error>> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}
