//! The servers whose commands can be simulated.

/// A version of Redis or Valkey.
///
/// The newer ones have the commands of Redis 7.0, those for compare-and-set and compare-and-delete, those for
/// the expiries of hash fields (HEXPIRE and its like, HSETEX, HGETEX, HGETDEL), and MSETEX, after the source
/// of Redis 8.4.0 and Valkey 9.1.2. In all else they are Redis 7.0, but for two differences of Valkey: MULTI
/// and WATCH in a transaction abort it, and the reply to an unknown script is shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Redis 7.0.
    #[default]
    Redis7,
    /// Redis 8.4: `SET` takes `IFEQ`, `IFNE`, `IFDEQ` and `IFDNE`, and there are `DELEX` and `DIGEST`.
    Redis84,
    /// Valkey 9: `SET` takes `IFEQ`, and there is `DELIFEQ`.
    Valkey9,
}

impl Version {
    /// Returns the number of the version, as HELLO tells it.
    pub(crate) fn number(self) -> &'static str {
        match self {
            Self::Redis7 => "7.0.15",
            Self::Redis84 => "8.4.0",
            Self::Valkey9 => "9.1.2",
        }
    }

    /// Returns the name of the server, as HELLO tells it.
    pub(crate) fn server(self) -> &'static str {
        match self {
            Self::Redis7 | Self::Redis84 => "redis",
            Self::Valkey9 => "valkey",
        }
    }

    /// Returns the version of Redis, as INFO tells it. Valkey calls itself Redis 7.2.4 there.
    pub(crate) fn redis_number(self) -> &'static str {
        match self {
            Self::Redis7 | Self::Redis84 => self.number(),
            Self::Valkey9 => "7.2.4",
        }
    }
}
