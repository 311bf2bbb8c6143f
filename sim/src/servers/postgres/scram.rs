//! The server's side of a login by SCRAM-SHA-256 (RFC 5802 and 7677), without channel binding.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The name of the mechanism.
pub(super) const MECHANISM: &str = "SCRAM-SHA-256";
/// PostgreSQL's number of iterations.
const ITERATIONS: u32 = 4096;

/// What the server keeps of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verifier {
    salt: [u8; 16],
    stored_key: [u8; 32],
    server_key: [u8; 32],
}

/// A login after its first message.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// The channel binding that the last message must repeat.
    binding: String,
    nonce: String,
    /// The client's first message without its header, and the server's first message.
    auth_message: String,
}

/// The result of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The client knows the password. The text is the server's last message, which proves that it does, too.
    Right(String),
    Wrong,
}

/// A message of SCRAM is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Verifier {
    /// Makes the verifier of a password.
    pub(super) fn new(password: &str, salt: [u8; 16]) -> Self {
        // A password that SASLprep forbids is used as it is.
        let password = stringprep::saslprep(password).unwrap_or(password.into());
        let mut block = mac(password.as_bytes(), &[&salt, &[0, 0, 0, 1]]);
        let mut salted = block;
        for _ in 1..ITERATIONS {
            block = mac(password.as_bytes(), &[&block]);
            salted.iter_mut().zip(block).for_each(|(sum, byte)| *sum ^= byte);
        }
        let client_key = mac(&salted, &[b"Client Key"]);
        let stored_key = Sha256::digest(client_key).into();
        Self { salt, stored_key, server_key: mac(&salted, &[b"Server Key"]) }
    }

    /// Answers the client's first message. `nonce` is the server's part of the nonce.
    ///
    /// # Errors
    ///
    /// If the message is malformed, or asks for channel binding.
    pub(super) fn begin(&self, first: &str, nonce: &[u8]) -> Result<(Exchange, String), Malformed> {
        let header = first.match_indices(',').nth(1).ok_or(Malformed)?.0 + 1;
        let (header, bare) = first.split_at(header);
        if !matches!(header.as_bytes(), [b'n' | b'y', b',', ..]) {
            return Err(Malformed);
        }
        let client_nonce = field(bare, "r=").filter(|nonce| !nonce.is_empty()).ok_or(Malformed)?;
        let nonce = format!("{client_nonce}{}", STANDARD.encode(nonce));
        let answer = format!("r={nonce},s={},i={ITERATIONS}", STANDARD.encode(self.salt));
        let auth_message = format!("{bare},{answer}");
        Ok((Exchange { binding: STANDARD.encode(header), nonce, auth_message }, answer))
    }

    /// Checks the client's last message.
    ///
    /// # Errors
    ///
    /// If the message is malformed, or belongs to another login.
    pub(super) fn finish(&self, exchange: &Exchange, last: &str) -> Result<Proof, Malformed> {
        let (bare, proof) = last.rsplit_once(",p=").ok_or(Malformed)?;
        let is_of = |prefix, value: &str| field(bare, prefix) == Some(value);
        if !is_of("c=", &exchange.binding) || !is_of("r=", &exchange.nonce) {
            return Err(Malformed);
        }
        let proof: [u8; 32] =
            STANDARD.decode(proof).ok().and_then(|proof| proof.try_into().ok()).ok_or(Malformed)?;
        let message = format!("{},{bare}", exchange.auth_message);
        let mut client_key = mac(&self.stored_key, &[message.as_bytes()]);
        client_key.iter_mut().zip(proof).for_each(|(key, byte)| *key ^= byte);
        if Sha256::digest(client_key).as_slice() != self.stored_key {
            return Ok(Proof::Wrong);
        }
        Ok(Proof::Right(format!("v={}", STANDARD.encode(mac(&self.server_key, &[message.as_bytes()])))))
    }
}

/// Returns the value of the attribute with this prefix.
fn field<'a>(message: &'a str, prefix: &str) -> Option<&'a str> {
    message.split(',').find_map(|field| field.strip_prefix(prefix))
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes a key of any length: the error can't occur.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_example_of_the_standard_is_proved() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap().try_into().unwrap();
        let verifier = Verifier::new("pencil", salt);
        let (mut exchange, _) = verifier.begin("n,,n=user,r=rOprNGfwEbeRWgbNEkqO", b"").unwrap();
        exchange.nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_owned();
        exchange.auth_message =
            format!("n=user,r=rOprNGfwEbeRWgbNEkqO,r={},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", exchange.nonce);
        let last = format!("c=biws,r={},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", exchange.nonce);
        let proof = verifier.finish(&exchange, &last);
        assert_eq!(proof, Ok(Proof::Right("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=".to_owned())));
        let wrong = Verifier::new("pen", salt).finish(&exchange, &last);
        assert_eq!(wrong, Ok(Proof::Wrong));
    }
}
