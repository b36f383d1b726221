//! A Markdown parser for what these tests need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// One Markdown file.
pub struct Page {
    /// Relative to the repository's root.
    pub path: PathBuf,
    pub text: String,
}

/// A fenced block of code.
pub struct Block {
    /// The number of its opening line, counted from 1.
    pub line: usize,
    /// The text after the opening fence.
    pub language: String,
    /// The text of the HTML comment on the line above, if there is one.
    pub mark: Option<String>,
    pub body: String,
}

/// Every Markdown file that git tracks, or would track once it is added.
pub fn pages() -> Vec<Page> {
    // The advisories below .ci are RustSec's.
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md", ":!.ci"];
    let listed = Command::new("git").args(args).current_dir(root()).output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    let names: Vec<PathBuf> = if listed.status.success() {
        names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect()
    } else {
        // In an export without git's data: the main pages.
        ["README.md", "ARCHITECTURE.md"].map(PathBuf::from).into()
    };
    let read = |path: PathBuf| Some(Page { text: fs::read_to_string(root().join(&path)).ok()?, path });
    names.into_iter().filter_map(read).collect()
}

impl Page {
    /// A page that may be the target of a link, by its path from the root.
    pub fn open(path: &Path) -> Self {
        Self { path: path.to_owned(), text: fs::read_to_string(root().join(path)).unwrap() }
    }

    /// The lines outside fenced blocks, with their numbers.
    pub fn prose(&self) -> Vec<(usize, &str)> {
        let mut fence = None;
        let mut lines = Vec::new();
        for (index, line) in self.text.lines().enumerate() {
            match (fence_of(line), fence) {
                (Some(opened), None) => fence = Some(opened),
                (Some(closed), Some(opened)) if closed == opened => fence = None,
                (None, None) => lines.push((index + 1, line)),
                _ => {}
            }
        }
        lines
    }

    /// The same with code spans blanked; a code span may continue on the next line of a paragraph.
    pub fn words(&self) -> Vec<(usize, String)> {
        let mut is_code = false;
        let mut blanked = |line: &str| -> String {
            let is_paragraph = !line.trim().is_empty() && !line.starts_with(['|', '#', '-']);
            is_code &= is_paragraph;
            let mut kept = String::new();
            for c in line.chars() {
                is_code ^= c == '`';
                kept.push(if is_code || c == '`' { ' ' } else { c });
            }
            kept
        };
        self.prose().into_iter().map(|(number, line)| (number, blanked(line))).collect()
    }

    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let (mut is_open, mut above) = (false, "");
        for (index, line) in self.text.lines().enumerate() {
            if fence_of(line).is_some() {
                if !is_open {
                    let mark = above.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
                    let language = line.trim().trim_start_matches('`').to_owned();
                    let mark = mark.map(|mark| mark.trim().to_owned());
                    blocks.push(Block { line: index + 1, language, mark, body: String::new() });
                }
                is_open = !is_open;
            } else if is_open {
                let body = &mut blocks.last_mut().unwrap().body;
                body.push_str(line);
                body.push('\n');
            }
            above = line;
        }
        blocks
    }

    /// The anchors that GitHub and mdBook give the headings, repeated ones with a number.
    pub fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for (_, line) in self.prose() {
            let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) else { continue };
            let Some(heading) = heading.strip_prefix(' ') else { continue };
            let slug = slug(heading);
            let again = anchors.iter().filter(|anchor| **anchor == slug).count();
            anchors.push(if again == 0 { slug } else { format!("{slug}-{again}") });
        }
        anchors
    }

    /// The targets of links and images, with the numbers of their lines. Code spans are left out.
    pub fn links(&self) -> Vec<(usize, String)> {
        let mut links = Vec::new();
        for (number, line) in self.words() {
            for (at, _) in line.match_indices("](") {
                let target = line[at + 2..].split([')', ' ']).next().unwrap();
                links.push((number, target.to_owned()));
            }
            // A definition: `[name]: target`.
            if let Some((name, target)) = line.split_once("]: ").filter(|_| line.starts_with('[')) {
                let target = target.split_whitespace().next().filter(|_| !name.contains("]("));
                links.extend(target.map(|target| (number, target.to_owned())));
            }
        }
        links
    }
}

fn fence_of(line: &str) -> Option<usize> {
    let line = line.trim_start();
    line.starts_with("```").then(|| line.len() - line.trim_start_matches('`').len())
}

fn slug(heading: &str) -> String {
    // A link in a heading counts as its text.
    let mut text = heading.trim().to_owned();
    while let Some((before, rest)) = text.clone().split_once("](") {
        let after = rest.split_once(')').map_or("", |(_, after)| after);
        text = format!("{}{after}", before.replacen('[', "", 1));
    }
    let kept = text.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
}

#[test]
fn markdown_parses_as_on_github() {
    let text = "# A `b` [c](d.md), e\n\n## A\n## A\n<!-- test: dev -->\n```sh\n# no heading\n[x](y)\n```\n[z](#a) `[no](link) and\n\
                [no](more)` [y](e.md)\n[n]: q.md\n";
    let page = Page { path: "x.md".into(), text: text.to_owned() };
    assert_eq!(page.anchors(), ["a-b-c-e", "a", "a-1"]);
    let links: Vec<String> = page.links().into_iter().map(|(_, target)| target).collect();
    assert_eq!(links, ["d.md", "#a", "e.md", "q.md"]);
    let block = &page.blocks()[0];
    assert_eq!((block.line, &*block.language, block.mark.as_deref()), (6, "sh", Some("test: dev")));
    assert_eq!(block.body, "# no heading\n[x](y)\n");
}
