//! The length and the vocabulary of the documents.

use std::path::Path;

use crate::markdown::{Page, pages, root};
use crate::report;

/// Words that hide the actor, or that are not standard terms.
const AVOIDED: [&str; 7] = ["nobody", "somebody", "whoever", "whichever comes", "the house", "room", "rooms"];

#[test]
fn readme_and_architecture_keep_their_maximum_lengths() {
    for (path, most) in [("README.md", 180), ("ARCHITECTURE.md", 250)] {
        let lines = Page::open(Path::new(path)).text.lines().count();
        assert!(lines <= most, "{path} has {lines} lines; {most} are the limit");
    }
}

#[test]
fn documents_name_the_actor_and_use_standard_terms() {
    let mut violations = Vec::new();
    for page in pages() {
        for (number, line) in page.words() {
            let words = format!(" {} ", line.to_lowercase()).replace(|c: char| !c.is_alphanumeric(), " ");
            let found = AVOIDED.iter().filter(|word| words.contains(&format!(" {word} ")));
            violations.extend(found.map(|word| format!("{}:{number}: {word}", page.path.display())));
        }
    }
    report("words to avoid", &violations);
}

#[test]
fn every_module_of_the_architecture_exists() {
    let page = Page::open(Path::new("ARCHITECTURE.md"));
    let (_, table) = page.text.split_once("## Layout and modules").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.map(|row| row.split(" | ").next().unwrap());
    let (mut violations, mut seen) = (Vec::new(), 0);
    for cell in cells {
        let (place, names) = match cell.split_once("`: ") {
            Some((place, names)) => (format!("{place}/src"), names.to_owned()),
            None if cell.starts_with("crates/") => (cell.trim_end_matches('`').to_owned(), String::new()),
            None => ("src".to_owned(), format!("`{cell}")),
        };
        // The crates are split off one at a time.
        if !root().join(&place).exists() && place.starts_with("crates/") && !root().join("crates").exists() {
            continue;
        }
        let names = names.split('`').skip(1).step_by(2).map(|name| name.replace("::", "/"));
        for path in names.map(|name| format!("{place}/{name}")).chain([place.clone()]) {
            seen += 1;
            if !root().join(&path).is_dir() && !root().join(format!("{path}.rs")).exists() {
                violations.push(path);
            }
        }
    }
    assert!(seen > 40, "{seen} modules");
    report("modules of ARCHITECTURE.md that are not there", &violations);
}
