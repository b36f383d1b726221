#![allow(clippy::unwrap_used)]

use super::*;

fn parse(args: &[&str]) -> Result<Request, UsageError> {
    super::parse(["cronjob-controller"].iter().chain(args).map(Into::into))
}

fn config(args: &[&str]) -> DevConfig {
    match parse(args).unwrap() {
        Request::Run(config) => *config,
        Request::Help(text) => panic!("{text}"),
    }
}

#[test]
fn without_flags_the_samples_run_on_a_free_port() {
    let want = DevConfig {
        filenames: Vec::new(),
        port: 0,
        kubeconfig: None,
        job_duration: Duration::from_secs(3),
        job_failure_rate: 0.0,
        data_dir: None,
        at: None,
        speed: 1,
        controller: true,
        controllers: vec![ControllerKind::CronJob],
        verbosity: 0,
        logging_format: LogFormat::Text,
    };
    assert_eq!(config(&[]), want);
}

#[test]
#[allow(clippy::type_complexity)]
fn flags_are_read_as_go_programs_read_them() {
    let rows: [(&str, &[&str], fn(&DevConfig) -> bool); 9] = [
        ("files by repetition and by comma", &["-f", "a,b", "--filename=c", "-f=d"], |c| {
            c.filenames == ["a", "b", "c", "d"].map(PathBuf::from)
        }),
        ("a hexadecimal port", &["--port", "0x1F90"], |c| c.port == 8080),
        ("an underscore for a dash", &["--job_duration=1m30s"], |c| c.job_duration.as_secs() == 90),
        ("no duration at all", &["--job-duration=0"], |c| c.job_duration.is_zero()),
        ("a rate", &["--job-failure-rate", ".25"], |c| (c.job_failure_rate - 0.25).abs() < f64::EPSILON),
        ("the API alone", &["--controller=false"], |c| !c.controller),
        ("other controllers", &["--controllers=tutorial", "--controllers=*,-apiexample"], |c| {
            c.controllers == [ControllerKind::CronJob, ControllerKind::Tutorial]
        }),
        ("another time", &["--at=2027-03-27T23:00:00+01:00", "--speed=600"], |c| {
            c.at == "2027-03-27T22:00:00Z".parse().ok() && c.speed == 600
        }),
        ("paths", &["--data-dir=d", "--kubeconfig", "k"], |c| {
            c.data_dir == Some("d".into()) && c.kubeconfig == Some("k".into())
        }),
    ];
    for (sentence, args, holds) in rows {
        let config = config(args);
        assert!(holds(&config), "{sentence}: {config:?}");
    }
}

#[test]
fn a_wrong_command_line_is_one_sentence_per_fault() {
    let rows: [(&str, &[&str], &[&str]); 7] = [
        (
            "a time that is none, and a speed",
            &["--at=noon", "--speed=0"],
            &[
                "--at: noon is not allowed; use a time such as 2027-03-27T22:00:00Z",
                "--speed: 0 is not allowed; use a whole number from 1 to 3600",
            ],
        ),
        (
            "a state whose time would go back",
            &["--data-dir=d", "--speed=2"],
            &["--data-dir: d is not allowed; use a cluster without --at and --speed, whose time goes on after a \
                 restart"],
        ),
        (
            "a port that is none",
            &["--port=70000"],
            &["--port: 70000 is not allowed; use a port from 1 to 65535, or 0 for a free one"],
        ),
        (
            "several at once",
            &["--job-duration=-1s", "--job-failure-rate=2", "--controller=maybe"],
            &[
                "--job-duration: -1s is not allowed; use a duration such as 3s, 1m30s or 0",
                "--job-failure-rate: 2 is not allowed; use a number from 0 to 1, such as 0.2",
                "--controller: maybe is not allowed; use true or false",
            ],
        ),
        ("a slip", &["--job-durations=1s"], &["--job-durations is not a flag; did you mean --job-duration?"]),
        ("a missing value", &["--port"], &["--port needs a value, as in --port=..."]),
        (
            "no file between two commas",
            &["-f", "a,,b"],
            &["--filename: \"\" is not allowed; use the path of a file or of a directory"],
        ),
    ];
    for (sentence, args, want) in rows {
        assert_eq!(parse(args).unwrap_err().sentences(), want, "{sentence}");
    }
}

#[test]
fn help_lists_the_annotations() {
    let Request::Help(text) = parse(&["--help"]).unwrap() else { panic!("no help") };
    assert!(text.contains("cronjob-controller.dev/outcome") && text.contains("--data-dir"), "{text}");
}
