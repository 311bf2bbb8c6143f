//! The table as a page, beside the schedules that it links to.

use std::fmt::Write;

use super::row::{Hunted, Row};

const TITLE: &str = "# The search on the museum's mistakes\n\n";

const HEAD: &str = "\
Each row: so many searches with different seeds for
[one mistake](../../docs/museum.md) on one system, with fencing on. Schedules: the median number until the
mistake was found; a search that did not find it counts with all that it ran. Seconds: of all searches of the
row. Faults: those in the schedule of the file, which is the first one that was found, shrunk. Uniform:
searches by the uniform strategy alone, of at most as many schedules each.

| number | mistake | seen in | system | found | schedules | seconds | faults | uniform found | schedules | file |
|---|---|---|---|---|---|---|---|---|---|---|
";

/// Returns the page of the rows. Each hunt ran at most `cap` schedules.
pub(super) fn page(rows: &[Row], cap: u64) -> String {
    let hunts = rows.first().map_or(0, |row| row.hunted.hunts);
    let uniform = rows.iter().find_map(|row| row.uniform.as_ref()).map_or(0, |hunted| hunted.hunts);
    let command = format!("museum --hunts {hunts} --cap {cap} --uniform {uniform}");
    let mut text = format!("{TITLE}Written by `{command}`. {HEAD}");
    for row in rows {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{}", line(row));
    }
    text
}

fn line(row: &Row) -> String {
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    let uniform = |cell: fn(&Hunted) -> String| or_dash(row.uniform.as_ref().map(cell));
    format!(
        "| {} | `{}` | {} | {} | {} | {} | {:.1} | {} | {} | {} | {} |",
        row.mutant.number(),
        row.mutant,
        row.mutant.source(),
        row.system,
        row.hunted.share(),
        row.hunted.median,
        row.seconds,
        or_dash(row.shrunk.as_ref().map(|shrunk| shrunk.faults.to_string())),
        uniform(Hunted::share),
        uniform(|hunted| hunted.median.to_string()),
        or_dash(row.shrunk.as_ref().map(|shrunk| format!("[{0}]({0})", shrunk.file))),
    )
}
