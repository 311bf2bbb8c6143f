//! `gallery`: writes the site of all kept schedules.

use std::path::PathBuf;

use lab::gallery::{Plan, gallery};

use super::explore::cores;
use super::progress::Progress;
use super::stopwatch::Stopwatch;
use super::{Outcome, print};

/// The flags of `gallery`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder for the site. Pages of the same names are replaced.
    #[arg(long)]
    out: PathBuf,
    /// The folder with the schedules.
    #[arg(long, default_value = "seeds")]
    seeds: PathBuf,
    /// The number of schedules for each row of the comparison.
    #[arg(long, default_value_t = 300)]
    schedules: u64,
    /// The number of threads for the comparison; by default one for each core.
    #[arg(long, value_parser = super::explore::threads())]
    threads: Option<usize>,
}

/// Writes the site.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.schedules == 0 {
        return Err("--schedules is 0: give at least 1".into());
    }
    files::try_folder(&arguments.out)?;
    let began = Stopwatch::start();
    let progress = Progress::new(0, "schedules");
    let plan = Plan {
        seeds: &arguments.seeds,
        out: &arguments.out,
        schedules: arguments.schedules,
        threads: cores(arguments.threads),
    };
    let pages = gallery(&plan, |length| progress.set_length(length), || progress.inc())?;
    progress.finish();
    let (out, index) = (arguments.out.display(), arguments.out.join("index.html"));
    let seconds = began.elapsed().as_secs_f64();
    print(&format!("{pages} pages written into {out} in {seconds:.1} s; open {}\n", index.display()))?;
    Ok(true)
}
