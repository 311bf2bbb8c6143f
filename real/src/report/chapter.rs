//! An experiment's results as text for a terminal, and as Markdown.

use std::fmt::Write as _;

use super::{Section, WIDTH};

/// An experiment's results, as the report and the terminal show them.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// The experiment.
    pub number: u32,
    /// Its title.
    pub title: &'static str,
    /// Its question.
    pub question: &'static str,
    /// The introduction to the findings, as Markdown.
    pub background: &'static str,
    /// The command that repeats it.
    pub command: String,
    /// Its configuration, as TOML.
    pub configuration: String,
    /// A description of the machine.
    pub machine: String,
    /// The versions of servers and clients, and the commit.
    pub software: String,
    /// The findings.
    pub section: Section,
}

impl Chapter {
    /// Renders the chapter for a terminal.
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

    /// Renders the chapter in Markdown.
    pub fn markdown(&self) -> String {
        let Self { number, title, question, background, command, configuration, machine, software, section } =
            self;
        let mut text = format!("\n## {number}. {title}\n\n{question}\n\n```\n{command}\n```\n\n");
        if !background.is_empty() {
            text += &format!("{}\n\n", background.trim());
        }
        // Writing to a String can't fail.
        for expectation in &section.expectations {
            let mark = if expectation.holds { "✓" } else { "✗" };
            let _ = writeln!(text, "- {mark} {}", expectation.sentence());
        }
        for remark in &section.remarks {
            let _ = write!(text, "\n{remark}\n");
        }
        for table in &section.tables {
            let _ = write!(text, "\n{}\n\n{}", table.caption, table.markdown());
        }
        for figure in &section.figures {
            let _ = write!(text, "\n![{}]({})\n\n{}\n", figure.name, figure.file(), figure.caption);
        }
        if let Some((heading, story)) = section.stories.first() {
            let _ = write!(text, "\n{}:\n\n```\n{}\n```\n", heading.trim(), story.trim_end());
        }
        let _ = write!(
            text,
            "\n<details><summary>Configuration and \
             machine</summary>\n\n```toml\n{configuration}```\n\n{machine}. {software}.\n\n</details>\n"
        );
        text
    }
}

/// Wraps text at 80 columns.
fn wrapped(text: &str, first: &str, next: &str) -> String {
    let options = textwrap::Options::new(WIDTH).initial_indent(first).subsequent_indent(next);
    textwrap::fill(text, options) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_80_columns() {
        let text = wrapped(&"word ".repeat(40), "+ ", "  ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")), "{text}");
    }
}
