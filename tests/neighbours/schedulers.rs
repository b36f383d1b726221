//! Defects of other schedulers: each row of the table in docs/testing.md says what happens here, and names a
//! test that exists. They run with all others.

use std::path::Path;

use testkit::repository;

/// The defects that the table has, in its order; those of Temporal by number alone.
const DEFECTS: [&str; 8] = ["11555", "11161", "11162", "11165", "11163", "11311", "11081", "controller-runtime 3496"];

/// Every line of the Rust files below a directory.
fn lines(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lines(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(std::fs::read_to_string(path).unwrap().lines().map(|line| line.trim().to_owned()));
        }
    }
}

#[test]
fn every_defect_of_another_scheduler_has_tests_that_exist() {
    let page = std::fs::read_to_string(repository().join("docs/testing.md")).unwrap();
    let (_, section) = page.split_once("\n## Defects of other schedulers\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows: Vec<Vec<&str>> =
        section.lines().filter(|line| line.starts_with("| ")).skip(2).map(|row| row.split(" | ").collect()).collect();
    assert_eq!(rows.len(), DEFECTS.len());
    let mut code = Vec::new();
    lines(&repository().join("src"), &mut code);
    for (row, defect) in rows.iter().zip(DEFECTS) {
        let [what, here, tests] = row.as_slice() else { panic!("{row:?}") };
        assert!(what.starts_with(&format!("| {defect}: ")) && !here.is_empty(), "{what}");
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{defect}");
        for name in names {
            let head = format!("fn {name}()");
            let at =
                code.iter().position(|line| line.split("async ").last().is_some_and(|line| line.starts_with(&head)));
            let at = at.unwrap_or_else(|| panic!("{defect}: no test {name}"));
            let attributes = code[..at].iter().rev().take_while(|line| line.starts_with("#["));
            assert!(attributes.filter(|line| line.contains("test")).count() > 0, "{name} is no test");
        }
    }
}
