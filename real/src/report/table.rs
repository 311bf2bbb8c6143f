//! Tables for a terminal and in Markdown.

use std::fmt::Write as _;

/// A table. Columns of numbers are right-aligned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Its caption, as a sentence.
    pub caption: String,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(caption: impl Into<String>, headings: &[&str]) -> Self {
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        Self { caption: caption.into(), headings, rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty; cells beyond the headings are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl ToString>) {
        let mut row: Vec<_> = cells.into_iter().map(|cell| cell.to_string()).collect();
        row.resize(self.headings.len(), String::new());
        self.rows.push(row);
    }

    /// Renders it for a terminal.
    pub fn text(&self) -> String {
        let columns: Vec<_> =
            (0..self.headings.len()).map(|column| (self.width(column), self.is_numeric(column))).collect();
        let mut text = String::new();
        for row in [&self.headings].into_iter().chain(&self.rows) {
            let cells = row.iter().zip(&columns).map(|(cell, &(width, numeric))| match numeric {
                true => format!("{cell:>width$}"),
                false => format!("{cell:width$}"),
            });
            // Writing to a String can't fail.
            let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        text
    }

    /// Renders it in Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells = cells.iter().map(|cell| cell.replace('|', "\\|"));
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let rules =
            (0..self.headings.len()).map(|column| if self.is_numeric(column) { "---:|" } else { "---|" });
        let rows = self.rows.iter().map(|row| line(row)).collect::<String>();
        format!("{}|{}\n{rows}", line(&self.headings), rules.collect::<String>())
    }

    fn width(&self, column: usize) -> usize {
        let cells = [&self.headings].into_iter().chain(&self.rows).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    }

    fn is_numeric(&self, column: usize) -> bool {
        let is_number = |cell: &str| cell.starts_with(|first: char| first.is_ascii_digit() || first == '−');
        self.rows.iter().all(|row| row[column].is_empty() || row[column] == "–" || is_number(&row[column]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("Both.", &["system", "ms"]);
        table.row(["redis", "7"]);
        table.row(["zookeeper", "1200"]);
        table
    }

    #[test]
    fn a_table_on_a_terminal() {
        assert_eq!(table().text(), "system       ms\nredis         7\nzookeeper  1200\n");
    }

    #[test]
    fn a_table_in_markdown() {
        let mut table = table();
        table.row(["a|b"]);
        let wanted = "| system | ms |\n|---|---:|\n| redis | 7 |\n| zookeeper | 1200 |\n| a\\|b |  |\n";
        assert_eq!(table.markdown(), wanted);
    }
}
