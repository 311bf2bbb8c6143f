//! The beginning of a connection: its first packets, the password, and the settings of its session.

use bytes::{Buf, Bytes};
use dlock_runtime::{probes, reached};
use sql::{SessionId, SqlError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::connection::{Connection, End, protocol};
use super::frontend::{Frame, Frontend, FrontendError, Opening, Phase, utf8};
use super::scram::{MECHANISM, Malformed, Proof, Verifier};
use crate::world::machine::Machine;

/// Codes of the messages of authentication.
const OK: i32 = 0;
const SASL: i32 = 10;
const SASL_CONTINUE: i32 = 11;
const SASL_FINAL: i32 = 12;

/// The major version of the protocol.
const VERSION: u32 = 3;

impl<M: Machine, S: AsyncRead + AsyncWrite + Unpin> Connection<'_, M, S> {
    /// Begins the session, or ends the connection.
    pub(super) async fn log_in(&mut self) -> Result<(), End> {
        let (version, parameters) = self.open().await?;
        let user = self.check(version, &parameters)?;
        self.user.clone_from(&user);
        self.begin()?;
        if let Some(verifier) = self.server.shared.options.password.clone() {
            self.authenticate(&verifier, &user).await?;
        }
        self.output.authentication(OK, &[]);
        let id = self.session()?;
        self.configure(id, &parameters)?;
        self.report_settings();
        self.output.parameter("in_hot_standby", "off");
        let secret = self.server.core().secret(id).unwrap_or_default();
        self.output.key(id.0.cast_unsigned(), secret);
        self.ready().await
    }

    /// Reads the first packets. Returns the version and the parameters of the session.
    async fn open(&mut self) -> Result<(u32, Vec<(String, String)>), End> {
        loop {
            match Opening::take(&mut self.input) {
                Ok(None) => self.read().await?,
                Ok(Some(Opening::Encryption)) => {
                    self.output.no_encryption();
                    self.send().await?;
                }
                Ok(Some(Opening::Cancel { process, secret })) => {
                    self.server.request_cancel(SessionId(process.cast_signed()), secret);
                    return Err(End::Left);
                }
                Ok(Some(Opening::Startup { version, parameters })) => return Ok((version, parameters)),
                Err(FrontendError::Length) => return Err(End::Left),
                Err(error) => return Err(End::Fatal(protocol(&error))),
            }
        }
    }

    /// Checks the first packet. Returns the user.
    fn check(&mut self, version: u32, parameters: &[(String, String)]) -> Result<String, End> {
        let (major, minor) = (version >> 16, version & 0xffff);
        if major != VERSION {
            let problem =
                format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
            return Err(End::Fatal(SqlError::new("0A000", problem)));
        }
        let extensions = parameters.iter().map(|(name, _)| name.as_str());
        let extensions: Vec<&str> = extensions.filter(|name| name.starts_with("_pq_.")).collect();
        if minor > 0 || !extensions.is_empty() {
            self.output.negotiate(&extensions);
        }
        let value = |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        if value("replication").is_some_and(|value| !matches!(value.as_str(), "false" | "off" | "no" | "0")) {
            return Err(End::Fatal(SqlError::unknown("replication connections")));
        }
        let missing = || SqlError::new("28000", "no PostgreSQL user name specified in startup packet");
        value("user").filter(|user| !user.is_empty()).cloned().ok_or_else(|| End::Fatal(missing()))
    }

    fn begin(&mut self) -> Result<(), End> {
        let server = self.server;
        let mut core = server.core();
        if core.sessions() >= server.shared.options.sessions_max {
            drop(core);
            reached!(server.machine(), too_many_sessions);
            return Err(End::Fatal(SqlError::new("53300", "sorry, too many clients already")));
        }
        let secret = |id| server.secret(id, "key").first_chunk().copied().map_or(0, u32::from_be_bytes);
        let (id, wake) = core.open(self.label, secret);
        drop(core);
        self.begin_session(id, wake);
        Ok(())
    }

    /// Sets what the server's configuration and the first packet say.
    fn configure(&mut self, id: SessionId, parameters: &[(String, String)]) -> Result<(), End> {
        let mut core = self.server.core();
        for (name, value) in &self.server.shared.options.settings {
            core.database.set(id, name, value).map_err(End::Fatal)?;
        }
        for (name, value) in parameters {
            match name.as_str() {
                "user" | "database" | "replication" => {}
                name if name.starts_with("_pq_.") => {}
                "options" => {
                    for (name, value) in options(value)? {
                        core.database.set(id, &name, &value).map_err(End::Fatal)?;
                    }
                }
                name => core.database.set(id, name, value).map_err(End::Fatal)?,
            }
        }
        Ok(())
    }

    /// Asks for the password.
    async fn authenticate(&mut self, verifier: &Verifier, user: &str) -> Result<(), End> {
        self.output.authentication(SASL, format!("{MECHANISM}\0\0").as_bytes());
        let first = initial(self.password().await?)?;
        let nonce = self.server.secret(self.session()?, "nonce");
        let first = utf8(&first).map_err(|_| malformed())?;
        let (exchange, challenge) = verifier.begin(first, &nonce[..18]).map_err(|Malformed| malformed())?;
        self.output.authentication(SASL_CONTINUE, challenge.as_bytes());
        let last = self.password().await?;
        let last = utf8(&last).map_err(|_| malformed())?;
        match verifier.finish(&exchange, last).map_err(|Malformed| malformed())? {
            Proof::Right(proof) => {
                self.output.authentication(SASL_FINAL, proof.as_bytes());
                Ok(())
            }
            Proof::Wrong => {
                reached!(self.server.machine(), password_wrong);
                let problem = format!("password authentication failed for user \"{user}\"");
                Err(End::Fatal(SqlError::new("28P01", problem)))
            }
        }
    }

    async fn password(&mut self) -> Result<Bytes, End> {
        self.send().await?;
        loop {
            match Frame::take(&mut self.input, Phase::Login) {
                Ok(None) => self.read().await?,
                Ok(Some(frame)) => match frame.read() {
                    Ok(Frontend::Password(bytes)) => return Ok(bytes),
                    _ => return Err(malformed()),
                },
                Err(FrontendError::Kind(kind)) => {
                    let problem = format!("expected SASL response, got message type {kind}");
                    return Err(End::Fatal(SqlError::new("08P01", problem)));
                }
                Err(_) => return Err(End::Left),
            }
        }
    }

    async fn read(&mut self) -> Result<(), End> {
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(End::Left),
            _ => Ok(()),
        }
    }
}

/// Returns the data of the first message of SASL: it names the mechanism before.
fn initial(mut message: Bytes) -> Result<Bytes, End> {
    let end = message.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
    let mechanism = message.split_to(end);
    if mechanism != MECHANISM {
        let problem = "client selected an invalid SASL authentication mechanism";
        return Err(End::Fatal(SqlError::new("08P01", problem)));
    }
    message.advance(1);
    if message.len() < 4 || usize::try_from(message.get_u32()) != Ok(message.len()) {
        return Err(malformed());
    }
    Ok(message)
}

fn malformed() -> End {
    End::Fatal(SqlError::new("08P01", "malformed SCRAM message"))
}

/// Reads the command-line options of a session: `-c name=value` or `--name=value`, separated by spaces, which
/// a backslash keeps.
fn options(text: &str) -> Result<Vec<(String, String)>, End> {
    let mut words = vec![String::new()];
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            '\\' => words.last_mut().into_iter().for_each(|word| word.extend(chars.next())),
            next if next.is_whitespace() => words.push(String::new()),
            next => words.last_mut().into_iter().for_each(|word| word.push(next)),
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let assigned = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") => words.next(),
            rest => rest.map(str::to_owned),
        };
        let setting = assigned.as_deref().and_then(|assigned| assigned.split_once('='));
        let Some((name, value)) = setting else {
            let problem = format!("invalid command-line argument for server process: {word}");
            return Err(End::Fatal(SqlError::new("42601", problem)));
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

probes! {
    /// A client was refused, since the server had as many sessions as it allows.
    reached too_many_sessions;
    /// A client had a wrong password.
    reached password_wrong;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_settings() {
        let read = |text: &str| options(text).ok();
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read(r"-c lock_timeout=5s --search-path=a\ b"),
            Some(vec![setting("lock_timeout", "5s"), setting("search_path", "a b")])
        );
        assert_eq!(read("-x"), None);
    }
}
