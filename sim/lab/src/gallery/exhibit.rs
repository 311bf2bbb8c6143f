//! A schedule of the gallery: its page, and what the index shows of it.

use history::VerdictKind;
use maud::{Markup, html};
use picture::{Link, Picture};
use sim::Schedule;
use sim::explore::pictured;

use super::GalleryError;
use crate::museum::Museum;
use crate::{Arm, Options};

/// A schedule, run and drawn.
pub(super) struct Exhibit {
    /// The folder of its page: `seeds` or `museum`.
    pub(super) folder: String,
    pub(super) name: String,
    pub(super) about: String,
    /// The lock system.
    pub(super) system: &'static str,
    /// The mistake that it has, if any.
    pub(super) mutant: Option<String>,
    pub(super) runs: Vec<Shown>,
    pub(super) page: String,
}

/// A run of an exhibit, for the index.
pub(super) struct Shown {
    /// `fencing off` or `fencing on`.
    title: &'static str,
    verdicts: Vec<VerdictKind>,
    thumbnail: Markup,
}

impl Exhibit {
    /// Runs the schedule in its arms, and draws its page with links to other pages.
    pub(super) fn of(
        folder: &str,
        name: &str,
        schedule: &Schedule<Options>,
        links: &[Link],
    ) -> Result<Self, GalleryError> {
        let failed = |source| GalleryError::Run { schedule: name.to_owned(), source: Box::new(source) };
        let arms = Arm::of(&schedule.expect);
        let pictures = arms
            .map(|arm| pictured(&Museum::new(arm), schedule, title(arm)).map(|drawn| (arm, drawn)))
            .collect::<Result<Vec<(Arm, Picture)>, _>>()
            .map_err(failed)?;
        let runs = pictures.iter().map(|(arm, picture)| Shown::of(*arm, picture)).collect();
        let pictures: Vec<Picture> = pictures.into_iter().map(|(_, picture)| picture).collect();
        let text = schedule.to_toml();
        Ok(Self {
            folder: folder.to_owned(),
            name: name.to_owned(),
            about: schedule.about.clone(),
            system: schedule.options.system.name(),
            mutant: schedule.options.mutant.clone(),
            runs,
            page: picture::page_of_site(&pictures, Some(&picture::Schedule::new(name, &text)), links),
        })
    }

    /// Returns the address of its page, from the root of the site.
    pub(super) fn address(&self) -> String {
        format!("{}/{}.html", self.folder, self.name)
    }

    /// Returns the small pictures of its runs, each with its verdicts.
    pub(super) fn small_pictures(&self) -> Markup {
        html! {
            div.arms {
                @for run in &self.runs {
                    div {
                        b { (run.title) }
                        (run.thumbnail)
                        div.chips {
                            @if run.verdicts.is_empty() { span.chip.none { "✔ no verdict" } }
                            @for verdict in &run.verdicts { span.chip { "✖ " (verdict) } }
                        }
                    }
                }
            }
        }
    }
}

impl Shown {
    fn of(arm: Arm, picture: &Picture) -> Self {
        let mut verdicts: Vec<VerdictKind> =
            picture.violations.iter().map(|violation| violation.kind).collect();
        verdicts.sort_unstable();
        verdicts.dedup();
        Self { title: title(arm), verdicts, thumbnail: picture::thumbnail(picture) }
    }
}

/// Returns the title of the run in an arm.
pub(super) const fn title(arm: Arm) -> &'static str {
    match arm {
        Arm::Unfenced => "fencing off",
        Arm::Fenced => "fencing on",
    }
}
