//! The section of an experiment in the report.

use super::{Figure, Table};

/// The section of an experiment, made from its findings.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The expectations, and whether the findings meet them.
    pub expectations: Vec<Expectation>,
    /// Further observations, a paragraph each. Statements about numbers must be computed from them.
    pub remarks: Vec<String>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Runs as text, event by event: heading and text. The page shows only the first.
    pub stories: Vec<(String, String)>,
}

/// An expected finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The claim, as it reads if it holds.
    pub claim: String,
    /// True if it holds.
    pub holds: bool,
}

impl Section {
    /// Adds a claim and whether it holds.
    pub fn expect(&mut self, claim: impl Into<String>, holds: bool) {
        self.expectations.push(Expectation { claim: claim.into(), holds });
    }

    /// Returns whether all expectations hold. A section without expectations is not as expected.
    pub fn as_expected(&self) -> bool {
        !self.expectations.is_empty() && self.expectations.iter().all(|expectation| expectation.holds)
    }
}

impl Expectation {
    /// Returns the claim, prefixed by a denial if it does not hold.
    pub fn sentence(&self) -> String {
        if self.holds {
            self.claim.clone()
        } else {
            format!("NOT AS EXPECTED, this does not hold: {}", self.claim)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_that_does_not_hold_is_denied() {
        let mut section = Section::default();
        assert!(!section.as_expected(), "nothing was shown");
        section.expect("the lock is free", true);
        assert!(section.as_expected());
        section.expect("nobody waits", false);
        assert!(!section.as_expected());
        let sentences: Vec<_> = section.expectations.iter().map(Expectation::sentence).collect();
        assert_eq!(sentences, ["the lock is free", "NOT AS EXPECTED, this does not hold: nobody waits"]);
    }
}
