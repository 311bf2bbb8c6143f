//! `report`: writes the page of all experiments.

use std::path::PathBuf;

use clap::Args;
use real::experiments::Page;

use super::{Outcome, print};

/// The flags of `report`.
#[derive(Args)]
pub(crate) struct Report {
    /// The folder of the raw results, `experiment-N.json`.
    #[arg(long, value_name = "FOLDER", default_value = "real/results")]
    results: PathBuf,
    /// The page to write; its figures go into a folder beside it.
    #[arg(long, value_name = "FOLDER", default_value = "docs")]
    out: PathBuf,
    /// Writes nothing; exits with 1 if the page differs from the results.
    #[arg(long)]
    check: bool,
}

impl Report {
    pub(crate) fn run(self) -> Outcome {
        let Self { results, out, check } = self;
        if !results.is_dir() {
            let results = results.display();
            return Err(
                format!("{results} is not a folder: run this in the repository, or give --results").into()
            );
        }
        if !check {
            files::try_folder(&out)?;
        }
        let page = Page::of(&results)?;
        if !check {
            for file in page.write(&out)? {
                print(&format!("written: {}\n", file.display()))?;
            }
            return Ok(true);
        }
        let differing = page.differing(&out);
        for path in &differing {
            print(&format!("{} differs from the results: run `real report`\n", path.display()))?;
        }
        Ok(differing.is_empty())
    }
}
