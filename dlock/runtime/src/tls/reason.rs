//! The reason of a refused handshake, in words that say what to do.

use std::io;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};

/// Replaces the text of an error of rustls, if there is a better one. Other errors stay as they are.
pub(super) fn explained(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match cause.and_then(explain) {
        Some(text) => io::Error::new(error.kind(), text),
        None => error,
    }
}

/// As [`explained`], for a handshake.
pub(super) fn of_handshake(error: io::Error) -> io::Error {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error.kind() {
        // Which one is luck: a server that closes with bytes unread resets the connection, and its answer may
        // be lost.
        UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe => {
            let text = "it closed the connection in the handshake: does this port speak TLS?";
            io::Error::new(error.kind(), text)
        }
        _ => explained(error),
    }
}

fn explain(error: &Error) -> Option<String> {
    match error {
        Error::InvalidCertificate(reason) => certificate(reason),
        Error::AlertReceived(alert) => refusal(*alert),
        Error::InvalidMessage(_) => {
            Some(format!("the answer is no TLS ({error}): does this port speak TLS?"))
        }
        _ => None,
    }
}

/// Explains why the certificate of the other side is refused.
fn certificate(reason: &CertificateError) -> Option<String> {
    Some(match reason {
        CertificateError::Expired => "its certificate has expired".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            let ago = seconds(*time).saturating_sub(seconds(*not_after));
            format!("its certificate has expired, {ago} s ago by this clock")
        }
        CertificateError::NotValidYet => "its certificate is not valid yet".to_owned(),
        CertificateError::NotValidYetContext { time, not_before } => {
            let left = seconds(*not_before).saturating_sub(seconds(*time));
            format!("its certificate is not valid yet, for {left} s more by this clock")
        }
        CertificateError::UnknownIssuer => {
            "its certificate is of an unknown issuer: add the issuer to the roots".to_owned()
        }
        CertificateError::NotValidForName => "its certificate is for another name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "its certificate is for another name than `{}`: for {}; connect by that name, or give it as the \
             server name",
            expected.to_str(),
            presented.join(", ")
        ),
        CertificateError::Revoked => "its certificate is revoked".to_owned(),
        _ => return None,
    })
}

fn seconds(time: UnixTime) -> u64 {
    time.as_secs()
}

/// Explains why the other side refuses this one.
fn refusal(alert: AlertDescription) -> Option<String> {
    Some(match alert {
        AlertDescription::CertificateRequired => {
            "it demands a certificate of the client: give an identity".to_owned()
        }
        AlertDescription::CertificateExpired => {
            "it refuses the certificate of the client: expired".to_owned()
        }
        AlertDescription::UnknownCA => {
            "it refuses the certificate of the client: its issuer is unknown there".to_owned()
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied => {
            format!("it refuses the certificate of the client ({alert:?})")
        }
        AlertDescription::NoApplicationProtocol => {
            "it does not speak the protocol of this client on that port".to_owned()
        }
        // Servers of TLS 1.2 send it also if a certificate is missing.
        AlertDescription::HandshakeFailure => {
            "it refuses the handshake: it may demand a certificate of the client, or other ciphers".to_owned()
        }
        _ => return None,
    })
}
