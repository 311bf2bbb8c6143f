//! The guarded side of ticks and jobs, which keeps those that are done.

use clap::ValueEnum;
use resource::Fencing;
use serde::{Deserialize, Serialize};

use crate::primitive::Primitive;

/// The guarded side of ticks and jobs, as the flag `--record` takes it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Record {
    /// The resource, by its client.
    #[default]
    Resource,
    /// Tables of PostgreSQL, in the transaction of the worker's own row. The queue of jobs is a table, too.
    Postgres,
}

impl Record {
    /// Returns its name, as the flag `--record` takes it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether it is the default, which reports leave out.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns it as a further item of a title, such as `, record postgres`; nothing for the default, or if
    /// the title names it already, since there are no lock servers.
    pub(crate) fn note(self, has_lock: bool) -> String {
        if self.is_default() || !has_lock { String::new() } else { format!(", record {}", self.as_str()) }
    }

    /// Returns whether `primitive` needs lock servers beside it.
    pub fn needs_lock(self, primitive: Primitive) -> bool {
        self == Self::Resource || primitive != Primitive::Jobs
    }

    /// Returns whether `primitive` can be committed at it, with this fencing.
    ///
    /// # Errors
    ///
    /// The reason, if it can't.
    pub fn check(self, primitive: Primitive, fencing: Option<Fencing>) -> Result<(), String> {
        match (self, primitive, fencing) {
            (Self::Resource, ..) => Ok(()),
            (Self::Postgres, Primitive::Cron { .. } | Primitive::Jobs, Some(Fencing::Off)) => Err(
                "--fence off: a transaction on PostgreSQL always checks the token: leave it out, or give \
                     --record resource"
                    .to_owned(),
            ),
            (Self::Postgres, Primitive::Cron { .. } | Primitive::Jobs, _) => Ok(()),
            (Self::Postgres, ..) => Err(format!(
                "--record postgres: {primitive} writes to the resource: leave it out, or give --primitive \
                 cron or jobs"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_jobs_alone_are_committed_on_postgres() {
        let cron: Primitive = "cron:200ms".parse().unwrap();
        for primitive in [cron, Primitive::Jobs] {
            assert_eq!(Record::Postgres.check(primitive, Some(Fencing::On)), Ok(()));
            let error = Record::Postgres.check(primitive, Some(Fencing::Off)).unwrap_err();
            assert!(error.contains("--fence off"), "{error}");
        }
        let error = Record::Postgres.check(Primitive::Election, None).unwrap_err();
        assert!(error.contains("election"), "{error}");
        assert_eq!(Record::Resource.check(Primitive::Election, Some(Fencing::Off)), Ok(()));
    }

    #[test]
    fn a_queue_on_postgres_needs_no_lock() {
        let cron: Primitive = "cron".parse().unwrap();
        assert!(Record::Postgres.needs_lock(cron) && Record::Resource.needs_lock(Primitive::Jobs));
        assert!(!Record::Postgres.needs_lock(Primitive::Jobs));
    }
}
