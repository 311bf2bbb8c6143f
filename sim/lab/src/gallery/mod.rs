//! The gallery: a static site of all kept schedules. An index that a person can scan, a page for each
//! schedule, the comparison with a run behind each number, and the debate on Redlock as a guided tour.
//!
//! Its pages need no other file and no network, so that it works from disk and from any static host.

mod comparison;
mod exhibit;
mod index;
mod tour;

use std::path::Path;

use picture::Link;
use sim::{RunError, Schedule};

use self::exhibit::Exhibit;
use crate::Options;
use crate::corpus::{self, CorpusError};

/// The gallery to make.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The folder with the schedules, and with those of the museum in its folder `museum`.
    pub seeds: &'a Path,
    /// The folder for the site. Files of the same names are replaced.
    pub out: &'a Path,
    /// The number of schedules in each row of the comparison.
    pub schedules: u64,
    /// The number of threads.
    pub threads: usize,
}

/// The reason why a gallery can't be made.
#[derive(Debug, thiserror::Error)]
pub enum GalleryError {
    /// The schedules can't be loaded.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// A schedule can't be run.
    #[error("{schedule}: {source}")]
    Run {
        /// The schedule.
        schedule: String,
        /// The cause.
        source: Box<RunError>,
    },
    /// A page can't be written.
    #[error(transparent)]
    Write(#[from] files::Error),
}

/// Makes the gallery. Calls `length` once with the number of steps, and `done` after each. Returns the number
/// of pages.
///
/// # Errors
///
/// [`GalleryError`] for the first schedule that can't be loaded or run, and the first page that can't be
/// written.
pub fn gallery(plan: &Plan<'_>, length: impl Fn(u64), done: impl Fn() + Sync) -> Result<u64, GalleryError> {
    let corpus = corpus::load(plan.seeds)?;
    let museum = corpus::load(&plan.seeds.join("museum"))?;
    length((corpus.len() + museum.len()) as u64 + comparison::steps(plan.schedules));
    let mut site = Site { out: plan.out, pages: 0 };
    let show = |site: &mut Site<'_>, folder: &str, name: &str, schedule: &Schedule<Options>| {
        let exhibit = Exhibit::of(folder, name, schedule, &stops(folder, name))?;
        site.write(&exhibit.address(), &exhibit.page)?;
        done();
        Ok::<_, GalleryError>(exhibit)
    };
    let mut exhibits = Vec::new();
    for (folder, schedules) in [("seeds", &corpus), ("museum", &museum)] {
        for (name, schedule) in schedules {
            exhibits.push(show(&mut site, folder, name, schedule)?);
        }
    }
    comparison::write(plan, &mut site, &done)?;
    site.write("tour.html", &tour::page(&exhibits))?;
    site.write("index.html", &index::page(&exhibits))?;
    Ok(site.pages)
}

/// Returns the links above the page of a schedule: to the site's own pages, and along the tour.
fn stops(folder: &str, name: &str) -> Vec<Link> {
    let mut links = site_links("../");
    let order = tour::order();
    let Some(here) = order.iter().position(|stop| folder == "seeds" && *stop == name) else { return links };
    if let Some(before) = here.checked_sub(1).and_then(|before| order.get(before)) {
        links.push(Link::new(format!("{before}.html"), format!("← {before}")));
    }
    if let Some(after) = order.get(here + 1) {
        links.push(Link::new(format!("{after}.html"), format!("{after} →")));
    }
    links
}

/// Returns the links to the site's own pages, from a page in a folder to which `root` leads back.
fn site_links(root: &str) -> Vec<Link> {
    [("index.html", "Gallery"), ("tour.html", "The debate on Redlock"), ("comparison.html", "Comparison")]
        .map(|(page, words)| Link::new(format!("{root}{page}"), words))
        .to_vec()
}

/// The site while it is written.
struct Site<'a> {
    out: &'a Path,
    pages: u64,
}

impl Site<'_> {
    fn write(&mut self, address: &str, page: &str) -> Result<(), GalleryError> {
        let file = self.out.join(address);
        if let Some(folder) = file.parent() {
            files::create_folder(folder)?;
        }
        files::write(&file, page)?;
        self.pages += 1;
        Ok(())
    }
}
