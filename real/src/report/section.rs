//! What an experiment says of its findings.

use std::fmt::Write as _;

use super::{Figure, Table, WIDTH};
use crate::experiments::Chapter;

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

impl Chapter {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (heading, story) in &self.section.stories {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{heading}\n{story}");
        }
        let heading = format!("Experiment {}: {}", self.number, self.title);
        let _ = writeln!(text, "{heading}\n{}", "─".repeat(heading.chars().count()));
        text += &wrapped(self.question, "", "");
        for table in &self.section.tables {
            let _ = write!(text, "\n{}{}", wrapped(&table.caption, "", ""), table.text());
        }
        text.push('\n');
        for remark in &self.section.remarks {
            text += &wrapped(remark, "", "");
        }
        for expectation in &self.section.expectations {
            let mark = if expectation.holds { "+ " } else { "! " };
            text += &wrapped(&expectation.sentence(), mark, "  ");
        }
        text += if self.section.as_expected() { "As expected.\n" } else { "NOT AS EXPECTED.\n" };
        text
    }
}

/// Lines of at most 80 columns.
fn wrapped(text: &str, first: &str, next: &str) -> String {
    let options = textwrap::Options::new(WIDTH).initial_indent(first).subsequent_indent(next);
    textwrap::fill(text, options) + "\n"
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

    #[test]
    fn lines_end_at_80_columns() {
        let text = wrapped(&"word ".repeat(40), "+ ", "  ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")), "{text}");
    }
}
