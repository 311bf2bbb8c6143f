//! Reads the configuration of an experiment: its committed file or another one, overridden by flags.

use std::fs;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::ExperimentError;
use crate::lab::LabError;

/// The configuration to use, and the changes to it.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// A file to use instead of the committed one.
    pub file: Option<PathBuf>,
    /// Fields and values that replace those of the file. Of several values for one field, the last counts.
    pub changes: Vec<(String, Value)>,
}

/// Reads it strictly: an unknown field, or a value of the wrong type, is an error that names the line.
pub(super) fn load<C: DeserializeOwned>(
    number: u32,
    committed: &str,
    settings: &Settings,
) -> Result<C, ExperimentError> {
    let (name, text) = match &settings.file {
        None => (format!("real/experiments/{number}.toml"), committed.to_owned()),
        Some(path) => {
            let help = "give --config a file like those in real/experiments/";
            let read = fs::read_to_string(path);
            let text = read.map_err(|source| LabError::File { path: path.clone(), source, help })?;
            (path.display().to_string(), text)
        }
    };
    let wrong = |name: &str| {
        let name = name.to_owned();
        move |source| ExperimentError::Configuration { name, source: Box::new(source) }
    };
    // Parse the file alone first: only then do errors name its lines.
    let unchanged = toml::from_str::<C>(&text).map_err(wrong(&name))?;
    if settings.changes.is_empty() {
        return Ok(unchanged);
    }
    let mut table: Table = text.parse().map_err(wrong(&name))?;
    table.extend(settings.changes.iter().cloned());
    table.try_into().map_err(wrong(&format!("the flags of experiment {number}")))
}

#[cfg(test)]
mod tests {
    use history::Span;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Two {
        ttl: Span,
        rounds: u64,
    }

    const FILE: &str = "ttl = \"2s\"\nrounds = 3\n";

    fn with(file: &str, changes: &[(&str, Value)]) -> Result<Two, String> {
        let changes = changes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        load(7, file, &Settings { file: None, changes }).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_replace_what_the_file_says() {
        let two = with(FILE, &[("ttl", Value::from("500ms"))]).unwrap();
        assert_eq!((two.ttl.to_string().as_str(), two.rounds), ("500ms", 3));
    }

    #[test]
    fn an_unknown_field_is_an_error_with_its_line() {
        let error = with("ttl = \"2s\"\nrounds = 3\nround = 4\n", &[]).unwrap_err();
        assert!(error.contains("real/experiments/7.toml") && error.contains("line 3"), "{error}");
        assert!(error.contains("unknown field `round`"), "{error}");
        let error = with("ttl = \"2\"\nrounds = 3\n", &[]).unwrap_err();
        assert!(error.contains("line 1") && error.contains("write a number and a unit"), "{error}");
        let error = with("ttl = \"2s\"\n", &[]).unwrap_err();
        assert!(error.contains("missing field `rounds`"), "{error}");
    }

    #[test]
    fn a_flag_the_experiment_does_not_have_is_an_error() {
        let error = with(FILE, &[("pause", Value::from("5s"))]).unwrap_err();
        assert!(error.contains("the flags of experiment 7: unknown field `pause`"), "{error}");
    }
}
