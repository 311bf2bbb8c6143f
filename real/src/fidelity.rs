//! The long comparisons of the simulated servers with live ones, as the page of fidelity lists them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::lab::{LabError, Machine, Software, keep};
use crate::report::Table;

/// Why the table can't be made.
#[derive(Debug, thiserror::Error)]
pub enum FidelityError {
    /// A file can't be read.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file is no result of a comparison.
    #[error("{}: no result of `cargo test --test fidelity` with RESULTS: {source}", .path.display())]
    Result {
        /// The file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
}

/// A comparison in which all answers agreed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The name of the test that compared.
    pub name: String,
    /// The number of scripts that were judged.
    pub scripts: u32,
    /// The number of further scripts, for whose times the machine was too slow.
    pub late: u32,
    /// The seed from which the scripts were drawn.
    pub seed: u64,
    /// The machine.
    pub machine: Machine,
    /// The versions of the servers, and the commit.
    pub software: Software,
}

impl Comparison {
    /// Writes it to a file of its name in `folder`, for the page.
    ///
    /// # Errors
    ///
    /// [`LabError::Output`].
    pub fn keep(&self, folder: &Path) -> Result<(), LabError> {
        keep(self, &folder.join(format!("{}.json", self.name)))
    }
}

/// Makes the table of the comparisons in `folder`; `None` if there is no folder.
///
/// # Errors
///
/// [`FidelityError`].
pub fn table(folder: &Path) -> Result<Option<String>, FidelityError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FidelityError::File { path, source }
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(failed(folder))?,
    };
    let mut comparisons = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(failed(folder))?.path();
        let text = fs::read_to_string(&path).map_err(failed(&path))?;
        let comparison: Comparison =
            serde_json::from_str(&text).map_err(|source| FidelityError::Result { path, source })?;
        comparisons.insert(comparison.name.clone(), comparison);
    }
    let mut table = Table::new("", &["test", "scripts", "too late to judge", "seed", "commit"]);
    for Comparison { name, scripts, late, seed, software, .. } in comparisons.values() {
        let commit = &software.commit;
        table.row([format!("`{name}`"), grouped(*scripts), grouped(*late), seed.to_string(), commit.clone()]);
    }
    Ok(Some(table.markdown()))
}

/// Writes a number with a comma after its thousands.
fn grouped(number: u32) -> String {
    match (number / 1000, number % 1000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{},{rest:03}", grouped(thousands)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, FidelityError, grouped, table};
    use crate::lab::{Machine, Software};
    use crate::servers::Stage;

    #[test]
    fn a_number_has_commas() {
        assert_eq!(
            [7, 999, 1000, 20_000, 1_002_003].map(grouped),
            ["7", "999", "1,000", "20,000", "1,002,003"]
        );
    }

    #[test]
    fn the_table_has_each_comparison_by_name_and_refuses_other_files() {
        let stage = Stage::new().unwrap();
        let folder = stage.directory().join("fidelity");
        assert!(table(&folder).unwrap().is_none());
        let (machine, software) = (Machine::this(), Software::this());
        for (name, late) in [("redis_monitors", 12), ("redis", 1234)] {
            let (machine, software) = (machine.clone(), software.clone());
            let name = name.to_owned();
            let comparison = Comparison { name, scripts: 20_000, late, seed: 3, machine, software };
            comparison.keep(&folder).unwrap();
        }
        let text = table(&folder).unwrap().unwrap();
        let rows: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert!(rows[0].starts_with("| `redis` | 20,000 | 1,234 | 3 |"), "{text}");
        assert!(rows[1].starts_with("| `redis_monitors` | 20,000 | 12 | 3 |"), "{text}");
        std::fs::write(folder.join("other.json"), "{}").unwrap();
        assert!(matches!(table(&folder), Err(FidelityError::Result { .. })));
    }
}
