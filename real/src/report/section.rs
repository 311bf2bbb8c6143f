//! What an experiment says of its findings.

use super::{Figure, Table};

/// What an experiment says of its findings, made from them.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// What the lab demands, and whether the findings show it.
    pub expectations: Vec<Expectation>,
    /// What else they show, a paragraph each. Words for numbers must come from the numbers.
    pub remarks: Vec<String>,
    /// Before and after.
    pub tables: Vec<Table>,
    /// Curves.
    pub figures: Vec<Figure>,
    /// Runs told event by event: heading and text. The page shows the first alone.
    pub stories: Vec<(String, String)>,
}

/// A sentence that the findings bear out, or do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The sentence, as it reads when it holds.
    pub claim: String,
    /// Whether it does.
    pub holds: bool,
}

impl Section {
    /// Adds a sentence and whether it holds.
    pub fn expect(&mut self, claim: impl Into<String>, holds: bool) {
        self.expectations.push(Expectation { claim: claim.into(), holds });
    }

    /// Whether all that the lab demands was found. What expects nothing is not as expected.
    pub fn as_expected(&self) -> bool {
        !self.expectations.is_empty() && self.expectations.iter().all(|expectation| expectation.holds)
    }
}

impl Expectation {
    /// The sentence, never without its denial where it does not hold.
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
