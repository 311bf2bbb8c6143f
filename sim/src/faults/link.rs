//! A link between two processes, as schedule files write it.

use serde::{Deserialize, Serialize};

/// A link from one process to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "[String; 2]")]
pub struct Link {
    /// The sender of the segments.
    pub from: String,
    /// Their receiver.
    pub to: String,
}

impl Link {
    /// Creates the link from `from` to `to`.
    pub fn new(from: &str, to: &str) -> Self {
        Self { from: from.into(), to: to.into() }
    }

    /// Returns the link as text: `a → b`, or `a ↔ b` for `both` directions.
    pub fn arrow(&self, both: bool) -> String {
        format!("{} {} {}", self.from, if both { "↔" } else { "→" }, self.to)
    }
}

impl TryFrom<Vec<String>> for Link {
    type Error = &'static str;

    fn try_from(ends: Vec<String>) -> Result<Self, &'static str> {
        let [from, to] =
            <[String; 2]>::try_from(ends).map_err(|_| "a link has two ends: [\"from\", \"to\"]")?;
        Ok(Self { from, to })
    }
}

impl From<Link> for [String; 2] {
    fn from(link: Link) -> Self {
        [link.from, link.to]
    }
}
