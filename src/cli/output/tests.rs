use super::*;

#[derive(Serialize)]
struct Lines(Vec<&'static str>);

impl Report for Lines {
    fn lines(&self) -> Vec<String> {
        self.0.iter().map(|line| (*line).to_owned()).collect()
    }
}

/// A line, and how a terminal of forty characters shows it.
type Row = (&'static str, &'static str, &'static [&'static str]);

#[test]
fn lines_fit_the_terminal_and_a_command_stays_whole() {
    let rows: [Row; 9] = [
        ("a short line", "It waits.", &["It waits."]),
        (
            "a sentence",
            "It runs on schedule and waits for the next run, which is tomorrow.",
            &["It runs on schedule and waits for the", "    next run, which is tomorrow."],
        ),
        (
            "columns",
            "Next run:       Mon 2026-11-23 03:00:00 +01:00, in 16h00m",
            &["Next run:       Mon 2026-11-23 03:00:00", "                +01:00, in 16h00m"],
        ),
        (
            "columns of which the last is narrow",
            "Sun 2026-03-29 02:00:00   -   skipped: the clocks go from 02:00 to 03:00",
            &["Sun 2026-03-29 02:00:00 - skipped: the", "    clocks go from 02:00 to 03:00"],
        ),
        (
            "a line that is further in",
            "  FailedCreate, 1h00m ago: Error creating job: quota",
            &["  FailedCreate, 1h00m ago: Error", "      creating job: quota"],
        ),
        (
            "a command of kubectl",
            "  kubectl logs -n shop nightly-29917560-abcde -c main --previous",
            &["  kubectl logs -n shop nightly-29917560-abcde -c main --previous"],
        ),
        (
            "a command of this program",
            "  cronjob-controller trigger -n shop nightly --context=production",
            &["  cronjob-controller trigger -n shop nightly --context=production"],
        ),
        (
            "a sentence that begins with a program",
            "kubectl is what the other commands of this page begin with",
            &["kubectl is what the other commands of", "    this page begin with"],
        ),
        (
            "a text of an object",
            "Error: \u{1b}[2J\u{1b}[2J\u{1b}[2J\u{1b}[2J\u{1b}[2J and more",
            &["Error:", "    \\x1b[2J\\x1b[2J\\x1b[2J\\x1b[2J\\x1b[2J", "    and more"],
        ),
    ];
    let screen = Some(Screen { width: 40, colour: true });
    for (sentence, line, want) in rows {
        let report = Lines(vec![line]);
        let shown = fitting(&report, Format::Table, screen);
        assert_eq!(shown.lines().collect::<Vec<_>>(), want, "{sentence}");
        assert_eq!(fitting(&report, Format::Table, None), render(&report, Format::Table), "{sentence}");
        assert_eq!(fitting(&report, Format::Json, screen), render(&report, Format::Json), "{sentence}");
    }
}
