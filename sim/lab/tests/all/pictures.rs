//! Pictures of runs: the one that the README shows is up to date, and the command writes each form.

use std::path::Path;
use std::process::Command;

use lab::{Arm, Lab};
use sim::explore::pictured;

/// Set this variable to write the picture anew.
const UPDATE: &str = "UPDATE_PICTURES";

#[test]
fn the_picture_of_the_readme_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let schedule = lab::museum::load(&root.join("seeds/gc-pause.toml")).unwrap();
    let arms = [(Arm::Unfenced, "fencing off"), (Arm::Fenced, "fencing on")];
    let drawn = arms.map(|(arm, title)| pictured(&Lab::new(arm), &schedule, title).unwrap());
    let (svg, file) = (picture::svg(&drawn), root.join("docs/figures/gc-pause.svg"));
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&file, &svg).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept == svg, "{} is out of date: run this test with {UPDATE}=1, and look at it", file.display());
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.contains("](docs/figures/gc-pause.svg)"), "the README shows it");
}

#[test]
fn the_command_writes_each_form() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (html, svg) = (folder.join("forms.html"), folder.join("forms.svg"));
    for file in [&html, &svg] {
        let _ = std::fs::remove_file(file);
    }
    let output = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["replay", "seeds/gc-pause.toml", "--lanes", "--html"])
        .arg(&html)
        .arg("--svg")
        .arg(&svg)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let (html, svg) = (std::fs::read_to_string(html).unwrap(), std::fs::read_to_string(svg).unwrap());
    assert!(html.contains("stale_write") && html.contains("[[fault]]"));
    assert!(html.contains("EVALSHA"), "the page has the messages in words");
    assert!(svg.contains("first difference"), "both arms are side by side");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("✖ stale_write"), "{printed}");
    assert!(!printed.contains('\u{1b}'), "no colours where there is no terminal");
}
