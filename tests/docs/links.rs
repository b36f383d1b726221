//! Links between the documents.

use std::path::{Component, Path, PathBuf};

use crate::markdown::{Page, pages, root};
use crate::report;

/// `a/b/../c` as `a/c`; `None` if it leaves the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => out.push(part),
            Component::ParentDir if out.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(out)
}

/// The error in a link on a page, if there is one.
fn fault(page: &Page, target: &str) -> Option<String> {
    if ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => Some(page.path.clone()),
        file => normal(&page.path.parent().unwrap().join(file)),
    };
    let Some(path) = path else { return Some("outside the repository".to_owned()) };
    if !root().join(&path).exists() {
        return Some("no such file".to_owned());
    }
    if !anchor.is_empty() && !Page::open(&path).anchors().iter().any(|known| known == anchor) {
        return Some("no such heading".to_owned());
    }
    None
}

#[test]
fn every_relative_link_and_anchor_has_a_target() {
    let pages = pages();
    assert!(pages.len() > 15, "{} pages", pages.len());
    let mut violations = Vec::new();
    for page in &pages {
        for (line, target) in page.links() {
            if let Some(fault) = fault(page, &target) {
                violations.push(format!("{}:{line}: {target}: {fault}", page.path.display()));
            }
        }
    }
    report("links that lead nowhere", &violations);
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let summary = Page::open(Path::new("docs/SUMMARY.md"));
    let listed: Vec<PathBuf> = summary.links().iter().map(|(_, target)| Path::new("docs").join(target)).collect();
    let missing = pages()
        .into_iter()
        .map(|page| page.path)
        .filter(|path| path.starts_with("docs") && !path.ends_with("SUMMARY.md") && !listed.contains(path));
    report("not in docs/SUMMARY.md", &missing.map(|path| path.display().to_string()).collect::<Vec<_>>());
}

/// The book contains only `docs/`, so a link out of it has to be to the repository.
#[test]
fn links_out_of_the_book_lead_to_the_documents_at_the_root() {
    let known = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "charts/cronjob-controller/README.md",
    ];
    let mut violations = Vec::new();
    for page in pages().iter().filter(|page| page.path.starts_with("docs")) {
        for (line, target) in page.links() {
            let file = target.split('#').next().unwrap_or_default();
            let path = normal(&page.path.parent().unwrap().join(file)).unwrap_or_default();
            let is_inside = target.contains("://") || file.is_empty() || path.starts_with("docs");
            if !is_inside && !known.iter().any(|name| path == Path::new(name)) {
                violations.push(format!("{}:{line}: {target}", page.path.display()));
            }
        }
    }
    report("links from the book into the sources: name the file in code font instead", &violations);
}
