//! Connects to a bucket of S3, or of a server that speaks its protocol.

use std::sync::Arc;
use std::time::Duration;

use dlock::TokioRuntime;
use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, RetryConfig};
use resource::store::{BucketStore, CheckError};
use tokio::runtime::Handle;

/// Timeout for one request to the bucket.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A bucket and its server.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// The URL of the server; `None` is that of AWS, of the region in `AWS_REGION`.
    pub url: Option<String>,
    /// The name of the bucket.
    pub name: String,
    /// The folder in the bucket that contains the resources.
    pub prefix: String,
}

/// Why no store is available in this bucket. No error contains the URL's user or a credential.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The URL contains a user or a password.
    #[error(
        "the URL of the bucket contains credentials; give them in the variables AWS_ACCESS_KEY_ID and \
         AWS_SECRET_ACCESS_KEY"
    )]
    Credentials,
    /// The URL is invalid.
    #[error("`{0}` is not the URL of a server; give http://host:port or https://host")]
    Url(String),
    /// The client can't be built from the options and the environment.
    #[error("no client for the bucket {bucket}: {source}; check the variables AWS_*")]
    Client {
        /// The bucket.
        bucket: String,
        /// The error.
        source: object_store::Error,
    },
    /// The bucket fails, or does not keep the conditions of puts.
    #[error("the bucket {bucket}: {source}")]
    Check {
        /// The bucket.
        bucket: String,
        /// The error.
        source: CheckError,
    },
}

impl Bucket {
    /// Connects with the credentials of the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    /// `AWS_SESSION_TOKEN`, or the role of the machine), and checks that the bucket keeps the conditions of
    /// puts.
    ///
    /// # Errors
    ///
    /// [`BucketError`] says what to do.
    pub async fn connect(&self) -> Result<BucketStore, BucketError> {
        // Another part of the program may have chosen a provider: any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let timeouts =
            ClientOptions::new().with_timeout(REQUEST_TIMEOUT).with_connect_timeout(CONNECT_TIMEOUT);
        // The store sends puts again itself: a retry of an applied put would fail its condition.
        let retries = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&self.name)
            .with_client_options(timeouts)
            .with_retry(retries);
        if let Some(url) = &self.url {
            check_url(url)?;
            builder = builder.with_endpoint(url).with_allow_http(url.starts_with("http://"));
        }
        let bucket = self.name.clone();
        let client =
            builder.build().map_err(|source| BucketError::Client { bucket: bucket.clone(), source })?;
        let store = BucketStore::new(Arc::new(client), &self.prefix, &TokioRuntime::new(Handle::current()));
        match store.check_conditional_puts().await {
            Ok(()) => Ok(store),
            Err(source) => Err(BucketError::Check { bucket, source }),
        }
    }
}

fn check_url(url: &str) -> Result<(), BucketError> {
    if url.contains('@') {
        return Err(BucketError::Credentials);
    }
    let host = ["http://", "https://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    match host {
        Some(host) if !host.is_empty() && !host.contains(char::is_whitespace) => Ok(()),
        _ => Err(BucketError::Url(url.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_credentials_is_not_repeated() {
        let error = check_url("http://key:secret@127.0.0.1:9000").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"));
        assert!(matches!(check_url("127.0.0.1:9000"), Err(BucketError::Url(_))));
        assert!(matches!(check_url("https://"), Err(BucketError::Url(_))));
        assert!(check_url("http://127.0.0.1:9000").is_ok());
    }
}
