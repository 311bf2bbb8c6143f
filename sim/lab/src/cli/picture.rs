//! `--html`, `--svg` and `--lanes`: the picture of a run, in files and in the terminal.

use std::error::Error;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use files::Parents;
use picture::Picture;
use sim::Sim;

use super::{print, written};

/// The forms of the picture to write.
#[derive(clap::Args)]
pub(crate) struct Pictures {
    /// Draws the run as a page of HTML, in this file. It needs no network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Draws the run as SVG, in this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Prints the run as lanes, in at most 100 columns.
    #[arg(long)]
    lanes: bool,
}

impl Pictures {
    /// Returns true if a picture is to be written.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.html.is_some() || self.svg.is_some() || self.lanes
    }

    /// Returns the files that [`Pictures::write`] writes.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.html.iter().chain(&self.svg).cloned().collect()
    }

    /// Makes a run record the messages that the picture shows.
    pub(crate) fn prepare(&self, sim: &mut Sim) {
        if self.is_wanted() {
            sim.record_messages();
        }
    }

    /// Writes one picture, or two side by side, with the schedule that they have in common.
    pub(crate) fn write(
        &self,
        pictures: &[Picture],
        name: &str,
        schedule: &str,
    ) -> Result<(), Box<dyn Error>> {
        if let Some(file) = &self.html {
            write(file, &picture::page(pictures, Some(&picture::Schedule::new(name, schedule))))?;
        }
        if let Some(file) = &self.svg {
            write(file, &picture::svg(pictures))?;
        }
        if self.lanes {
            let has_colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            for picture in pictures {
                print(&format!("\n{}\n{}", picture.title, picture::terminal(picture, has_colours)))?;
            }
        }
        Ok(())
    }
}

fn write(file: &Path, text: &str) -> Result<(), files::Error> {
    files::write(file, text)?;
    written(file);
    Ok(())
}

/// Checks before the work that these files can be written, and that none of them is the file `input`.
pub(crate) fn try_files(outputs: &[PathBuf], input: Option<&Path>) -> Result<(), files::Error> {
    let outputs: Vec<&Path> = outputs.iter().map(PathBuf::as_path).collect();
    let inputs: Vec<&Path> = input.into_iter().collect();
    files::try_outputs(&outputs, &inputs, Parents::Exist)
}
