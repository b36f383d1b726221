#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use super::*;

fn parse(args: &[&str]) -> Result<Invocation, UsageError> {
    super::parse(["cronjob-controller"].iter().chain(args).map(Into::into))
}

#[test]
fn definitions_are_printed_or_written_into_files() {
    let rows: [(&[&str], Option<&str>); 2] = [(&[], None), (&["--output_dir", "d"], Some("d"))];
    for (args, want) in rows {
        assert_eq!(parse(args), Ok(Invocation::Crd(want.map(PathBuf::from))), "{args:?}");
    }
    assert!(matches!(parse(&["--help"]), Ok(Invocation::Help(text)) if text.contains("--output-dir")));
    let error = parse(&["--controllers=*"]).unwrap_err().to_string();
    assert_eq!(error, "--controllers is not a flag; --help lists all flags");
}
