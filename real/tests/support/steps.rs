//! The steps of a document that a test follows word for word: blocks of code, each after a comment that names
//! its kind.

/// A step of a document.
pub(crate) enum Step {
    File {
        path: String,
        text: String,
    },
    Run {
        commands: String,
        fails: bool,
    },
    /// Lines that the last command must have printed.
    Shows(Vec<String>),
}

/// Returns the steps of a document.
pub(crate) fn steps(document: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(mark) = line.strip_prefix("<!-- ").and_then(|mark| mark.strip_suffix(" -->")) else {
            continue;
        };
        assert!(lines.next().is_some_and(|fence| fence.starts_with("```")), "{mark}: no block follows");
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text = block.join("\n") + "\n";
        steps.push(match mark.split_once(": ") {
            Some(("file", path)) => Step::File { path: path.to_owned(), text },
            Some(("run", "fails")) => Step::Run { commands: text, fails: true },
            None if mark == "run" => Step::Run { commands: text, fails: false },
            None if mark == "shows" => Step::Shows(block.into_iter().map(str::to_owned).collect()),
            _ => panic!("unknown mark {mark:?}"),
        });
    }
    steps
}
