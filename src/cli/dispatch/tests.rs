use super::*;

/// A process in a Pod, or outside.
struct InCluster(bool);

impl Environment for InCluster {
    fn pod_namespace(&self) -> Option<String> {
        None
    }

    fn is_in_cluster(&self) -> bool {
        self.0
    }
}

fn kind(args: &[&str]) -> &'static str {
    match parse(args, &InCluster(true)) {
        Ok(Invocation::Run(_)) => "run",
        #[cfg(feature = "dev")]
        Ok(Invocation::Dev(_)) => "dev",
        #[cfg(feature = "ui")]
        Ok(Invocation::Ui(_)) => "ui",
        Ok(Invocation::Shadow(_)) => "shadow",
        Ok(Invocation::Crd(_)) => "crd",
        Ok(Invocation::Cli(_)) => "cli",
        Ok(Invocation::Help(_)) => "help",
        Ok(Invocation::Version(_)) => "version",
        Err(_) => "error",
    }
}

#[test]
fn first_argument_and_file_name_choose_the_command() {
    let rows: [(&[&str], &str); 14] = [
        (&["cronjob-controller"], "run"),
        (&["cronjob-controller", "shadow", "--for=1h"], "shadow"),
        (&["kubectl-cronjob", "shadow"], "shadow"),
        (&["cronjob-controller", "--version"], "version"),
        (&["cronjob-controller", "crd"], "crd"),
        (&["cronjob-controller", "next", "@daily"], "cli"),
        (&["cronjob-controller", "help"], "help"),
        (&["cronjob-controller", "help", "crd"], "help"),
        (&["kubectl-cronjob", "help", "next"], "help"),
        (&["kubectl-cronjob", "-n", "shop", "explain", "nightly"], "cli"),
        (&["cronjob-controller", "--v=1", "crd"], "error"),
        (&["kubectl-cronjob", "next", "@daily"], "cli"),
        (&["kubectl-cronjob", "crd"], "error"),
        (&["kubectl_complete-cronjob", "next"], "help"),
    ];
    for (args, want) in rows {
        assert_eq!(kind(args), want, "{args:?}");
    }
}

#[test]
fn wrong_first_word_gets_advice() {
    let sentence = |args: &[&str], in_cluster| match parse(args, &InCluster(in_cluster)) {
        Err(error) => error.to_string(),
        Ok(other) => format!("{other:?}"),
    };
    let rows: [(&str, &[&str], &str); 5] = [
        ("nothing, outside a Pod", &["cronjob-controller"], NO_CLUSTER),
        ("a slip", &["cronjob-controller", "nxet"], "nxet is not a command; did you mean next?"),
        (
            "nothing like it",
            &["cronjob-controller", "a.yaml"],
            "a.yaml is not a command; cronjob-controller --help lists them",
        ),
        ("a slip of the plugin's", &["kubectl-cronjob", "explian"], "explian is not a command; did you mean explain?"),
        (
            "the controller's, of the plugin",
            &["kubectl-cronjob", "crd"],
            "crd is a command of cronjob-controller, and not of kubectl cronjob",
        ),
    ];
    for (name, args, want) in rows {
        assert_eq!(sentence(args, false), want, "{name}");
    }
}

#[cfg(feature = "dev")]
#[test]
fn the_subcommands_of_the_api_server_are_read() {
    assert_eq!(kind(&["cronjob-controller", "dev"]), "dev");
    assert_eq!(kind(&["kubectl-cronjob", "dev"]), "error");
    assert_eq!(kind(&["cronjob-controller", "check", "-f", "a.yaml"]), "cli");
}

#[cfg(feature = "ui")]
#[test]
fn page_is_a_command_of_the_program_and_of_the_plugin() {
    assert_eq!(kind(&["cronjob-controller", "ui", "-f", "a.yaml"]), "ui");
    assert_eq!(kind(&["kubectl-cronjob", "-n", "shop", "ui"]), "ui");
    assert_eq!(kind(&["kubectl-cronjob", "ui", "--port=70000"]), "error");
    assert_eq!(kind(&["kubectl-cronjob", "ui", "-A", "-n", "shop"]), "error");
}

#[cfg(not(feature = "dev"))]
#[test]
fn subcommands_without_the_api_server_say_what_they_need() {
    let error = parse(["cronjob-controller", "dev"], &InCluster(false)).map_err(|error| error.to_string());
    assert_eq!(error, Err("dev is not in this build; it needs the cargo feature dev".to_owned()));
}
