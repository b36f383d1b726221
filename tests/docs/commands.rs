//! The commands inside sentences: this program takes the arguments of its own, and what others name in this repository exists.

use std::fs;

use cronjob_controller::cli::dispatch;
use cronjob_controller::options::Environment;
use regex::Regex;

use crate::blocks::held;
use crate::markdown::{Page, root};
use crate::report;

struct InPod;

impl Environment for InPod {
    fn pod_namespace(&self) -> Option<String> {
        Some("somewhere".to_owned())
    }
}

/// The code in the sentences of a page, with the number of its line; a line break in it is a space.
fn spans(page: &Page) -> Vec<(usize, String)> {
    let mut text = String::new();
    let mut starts = Vec::new();
    let mut last = 0;
    for (number, line) in page.prose() {
        // Code ends with its paragraph.
        let is_apart = number != last + 1 || line.trim().is_empty() || line.starts_with(['|', '#']);
        text.push_str(if is_apart { "\n\n" } else { " " });
        starts.push((text.len(), number));
        text.push_str(line.trim());
        last = number;
    }
    let code = Regex::new("`([^`\n]+)`").unwrap();
    let line_of = |at: usize| starts.iter().rev().find(|(start, _)| *start <= at).map_or(0, |(_, number)| *number);
    code.captures_iter(&text).map(|found| (line_of(found.get(1).unwrap().start()), found[1].to_owned())).collect()
}

/// A command line as a shell splits it, up to a pipe.
fn words(line: &str) -> Vec<String> {
    let word = Regex::new(r#"(?:'[^']*'|"[^"]*"|[^\s'"])+"#).unwrap();
    // A reader's values are in capitals.
    let value = |word: String| match word.as_str() {
        "SHELL" => "bash".to_owned(),
        _ if word.chars().all(|c| c.is_ascii_uppercase()) => word.to_lowercase(),
        _ => word,
    };
    let words = word.find_iter(line).map(|found| value(found.as_str().replace(['\'', '"'], "")));
    words.take_while(|word| word != "|").collect()
}

/// Why the program refuses a command line; a sentence may name a command without what it needs.
fn refusal(words: &[String]) -> Option<String> {
    let error = dispatch::parse(words.iter().cloned(), &InPod).err()?;
    error.sentences().iter().find(|sentence| !sentence.contains(" is missing;")).cloned()
}

/// What is wrong with a command; `None` if nothing is, or it is another program's.
fn fault(line: &str) -> Option<String> {
    let words = words(line);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        // Only the name, or a pattern.
        _ if line.contains('…') => None,
        ["cronjob-controller"] | ["kubectl", "cronjob"] => None,
        ["cronjob-controller", ..] => refusal(&words),
        ["kubectl", "cronjob", ..] => refusal(&[&["kubectl-cronjob".to_owned()], &words[2..]].concat()),
        ["make", rest @ ..] => {
            let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
            let is_target = |target: &str| makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
            let is_path = |target: &str| target.contains(['/', '$']);
            let of = |word: &&&str| !word.contains('=') && !word.starts_with('-') && !is_path(word);
            rest.iter().filter(of).find(|word| !is_target(word)).map(|word| format!("no target {word}"))
        }
        ["kubectl", rest @ ..] => {
            let directory = rest.windows(2).find(|pair| pair[0] == "-k").map(|pair| pair[1])?;
            let is_there = root().join(directory).join("kustomization.yaml").exists();
            (directory != "-k" && !is_there).then(|| format!("{directory} cannot be applied"))
        }
        _ => None,
    }
}

#[test]
fn commands_in_sentences_have_arguments_that_exist() {
    let (mut violations, mut seen) = (Vec::new(), 0);
    for page in held() {
        for (number, line) in spans(&page) {
            seen +=
                usize::from(["cronjob-controller ", "kubectl ", "make "].iter().any(|start| line.starts_with(start)));
            violations.extend(fault(&line).map(|fault| format!("{}:{number}: {line}: {fault}", page.path.display())));
        }
    }
    assert!(seen > 100, "{seen} commands");
    report("commands in sentences", &violations);
}

#[test]
fn command_with_a_wrong_argument_is_found() {
    let rows = [
        ("cronjob-controller next hello --count 3", false),
        ("cronjob-controller next --cuont 3", true),
        ("cronjob-controller nxt", true),
        ("kubectl cronjob ui -A --port 41733", false),
        ("kubectl cronjob ui -A --prot 41733", true),
        ("kubectl get pods -A -o yaml | cronjob-controller check -f -", false),
        ("kubectl apply -k manifests/policies", false),
        ("kubectl apply -k manifests/policy", true),
        ("make install-test", false),
        ("make instal-test", true),
        ("make deploy OVERLAY=instead IMAGE=x", false),
    ];
    for (line, is_wrong) in rows {
        assert_eq!(fault(line).is_some(), is_wrong, "{line}: {:?}", fault(line));
    }
}
