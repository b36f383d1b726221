//! The findings in the formats of other programs.
//!
//! Guarantees: a finding about several objects is shown at the first of them. Text of a manifest cannot begin a command of
//! GitHub's. Pure.

use serde_json::{Value, json};

use super::{CheckReport, Code, Finding};
use crate::options::PROGRAM;
use crate::terminal::{PlainText, plain};

/// Workflow commands of GitHub Actions, which show each finding at its line of a pull request. Matches
/// [GitHub's description](https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands).
pub(super) fn github(report: &CheckReport) -> PlainText {
    let text = |text: &str| plain(text).replace('%', "%25");
    // A line break in the name of a file is part of the name. In a message it would begin a line of the log.
    let property = |value: &str| {
        let escapes = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C")];
        plain(&escapes.iter().fold(value.to_owned(), |value, (from, to)| value.replace(from, to)))
    };
    let line = |finding: &Finding| {
        let Finding { file, line, code, severity, .. } = finding;
        let (file, title) = (property(file), property(&format!("{PROGRAM} check: {code}")));
        format!("::{severity} file={file},line={line},title={title}::{}\n", text(&finding.sentence()))
    };
    PlainText::trusted(report.findings.iter().map(line).collect())
}

/// One run in the Static Analysis Results Interchange Format, version 2.1.0 (OASIS).
pub(super) fn sarif(report: &CheckReport) -> PlainText {
    let rules: Vec<Value> = Code::ALL
        .into_iter()
        .map(|code| json!({"id": code.to_string(), "shortDescription": {"text": code.summary()}}))
        .collect();
    let result = |finding: &Finding| {
        json!({
            "ruleId": finding.code.to_string(),
            "level": finding.severity.to_string(),
            "message": {"text": finding.sentence()},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": uri(&finding.file)},
                "region": {"startLine": finding.line},
            }}],
        })
    };
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": PROGRAM, "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "results": report.findings.iter().map(result).collect::<Vec<_>>(),
        }],
    });
    PlainText::json(&document, false)
}

/// A path as a relative reference; an absolute path as a file URI.
fn uri(path: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(byte);
    let encoded: String =
        path.bytes().map(|b| if is_plain(&b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect();
    if path.starts_with('/') { format!("file://{encoded}") } else { encoded }
}
