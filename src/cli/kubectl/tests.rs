use super::*;

#[test]
fn file_name_chooses_the_program() {
    let rows = [
        ("cronjob-controller", Program::Controller),
        ("/usr/local/bin/kubectl-cronjob", Program::Plugin),
        ("kubectl_complete-cronjob", Program::Completer),
        ("kubectl-cronjobs", Program::Controller),
        ("", Program::Controller),
    ];
    for (argv0, want) in rows {
        assert_eq!(Program::of(OsStr::new(argv0)), want, "{argv0}");
    }
}

#[test]
fn command_moves_before_the_flags_in_front_of_it() {
    let rows = [
        ("next @daily", "next @daily"),
        ("-n shop explain nightly", "explain -n shop nightly"),
        ("-n next explain nightly", "explain -n next nightly"),
        ("-nshop --context=one explain nightly", "explain -nshop --context=one nightly"),
        ("--previous next @daily", "next --previous @daily"),
        ("--help explain", "explain --help"),
        ("--version explain", "--version explain"),
        ("-n explain", "-n explain"),
        ("-n shop", "-n shop"),
        ("--leader-elect=false next", "--leader-elect=false next"),
    ];
    for (typed, want) in rows {
        let mut words: Vec<&str> = typed.split(' ').collect();
        command_first(&mut words);
        assert_eq!(words.join(" "), want, "{typed}");
    }
}

#[test]
fn completions_have_kubectls_format() {
    let rows: Vec<(&str, &[&str], &str)> = vec![
        #[cfg(feature = "ui")]
        (
            "nothing typed",
            &[""],
            "next\nexplain\nlist\nui\ntrigger\nsuspend\nresume\nfreeze\nthaw\nbackfill\nmigrate\nshadow\ncheck\ncompletion\nman\n:4\n",
        ),
        ("the start of a command", &["ex"], "explain\n:4\n"),
        ("a flag", &["explain", "--con"], "--context\n--controller\n:4\n"),
        ("a flag of list", &["list", "--w"], "--watch\n:4\n"),
        ("a flag's value", &["explain", "--controller", "t"], "tutorial\n:4\n"),
        ("after flags before the command", &["-n", "shop", "explain", "--controller", "t"], "tutorial\n:4\n"),
        ("the second word of a command", &["migrate", ""], "check\nhandover\ntakeback\nskip-missed\n:4\n"),
        ("what a flag takes", &["backfill", "nightly", "--again", ""], "failed\n:4\n"),
        ("a short flag's value", &["next", "0 * * * *", "-o", ""], "table\njson\nyaml\n:4\n"),
        #[cfg(feature = "dev")]
        ("a file", &["check", "-f", "my"], ":0\n"),
        ("an argument", &["completion", "z"], "zsh\n:4\n"),
        ("what no command is", &["nothing", ""], ":4\n"),
    ];
    for (sentence, words, want) in rows {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(&*complete(&words).text(Vec::new()), want, "{sentence}");
    }
}

/// What is typed, in words and as words, and what is looked up.
type Lookup<'a> = (&'a str, &'a [&'a str], Option<(Source, TypedFlags)>);

#[test]
fn what_the_command_line_does_not_have_is_looked_up() {
    let shop = || TypedFlags { namespace: Some("shop".to_owned()), ..TypedFlags::default() };
    let other =
        || TypedFlags { context: Some("other".to_owned()), kubeconfig: Some("f".to_owned()), ..TypedFlags::default() };
    let tutorial = TypedFlags { controller: Some("tutorial".to_owned()), ..shop() };
    let rows: [Lookup<'_>; 10] = [
        ("a name", &["explain", "ni"], Some((Source::CronJobs, TypedFlags::default()))),
        ("a name in the place of a schedule", &["next", "-n", "shop", ""], Some((Source::CronJobs, shop()))),
        ("a name in a namespace", &["-n", "shop", "suspend", ""], Some((Source::CronJobs, shop()))),
        ("the same, written otherwise", &["trigger", "-nshop", ""], Some((Source::CronJobs, shop()))),
        ("of a kind", &["resume", "--namespace=shop", "--controller=tutorial", ""], Some((Source::CronJobs, tutorial))),
        (
            "a namespace of a context",
            &["list", "--context=other", "--kubeconfig", "f", "-n", ""],
            Some((Source::Namespaces, other())),
        ),
        ("a context", &["explain", "--context", ""], Some((Source::Contexts, TypedFlags::default()))),
        ("a zone", &["next", "@daily", "--time-zone", "Eu"], Some((Source::Zones, TypedFlags::default()))),
        ("a command", &["ex"], None),
        ("a flag", &["explain", "--n"], None),
    ];
    for (sentence, words, want) in rows {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(complete(&words).source, want, "{sentence}");
    }
    let found =
        complete(&["explain".to_owned(), "ni".to_owned()]).text(vec!["nightly".to_owned(), "hourly".to_owned()]);
    assert_eq!(&*found, "nightly\n:4\n");
}
