//! A root directory as in a Pod's container: the image's files, and what a kubelet adds.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::fixture::account::{NAME, SYSTEM_NAMESPACE};

use super::archive::Image;
use super::dns;

/// The API server's name inside a cluster; its certificate is valid for it.
pub const SERVER: &str = "kubernetes.default.svc";

const ACCOUNT_FILES: &str = "var/run/secrets/kubernetes.io/serviceaccount";

/// How the controller in the Pod connects to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `KUBERNETES_SERVICE_HOST` and the service account's files.
    ServiceAccount,
    /// A kubeconfig with a name in /etc/hosts.
    Hosts,
    /// A kubeconfig with a name that the DNS server in /etc/resolv.conf resolves, as a kubelet writes it.
    Dns,
}

/// The service account's credentials, and the address of the API server.
pub struct Account {
    token: String,
    authority: Vec<u8>,
    port: u16,
}

impl Account {
    /// Reads them from a kubeconfig of the fixture.
    pub fn read(kubeconfig: &Path) -> Self {
        let config: Value = serde_json::from_slice(&fs::read(kubeconfig).unwrap()).unwrap();
        let cluster = &config["clusters"][0]["cluster"];
        let server = cluster["server"].as_str().unwrap();
        Self {
            token: config["users"][0]["user"]["token"].as_str().unwrap().to_owned(),
            authority: fs::read(cluster["certificate-authority"].as_str().unwrap()).unwrap(),
            port: server.rsplit(':').next().unwrap().parse().unwrap(),
        }
    }
}

/// A root to run the image in.
pub struct Pod {
    root: TempDir,
    user: String,
    entrypoint: String,
    args: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Pod {
    pub fn new(image: &Image, account: &Account, way: Way) -> Self {
        let mut pod = Self {
            root: tempfile::tempdir().unwrap(),
            user: image.user().to_owned(),
            entrypoint: image.entrypoint().to_owned(),
            args: Vec::new(),
            environment: vec![("TZ", "UTC".to_owned())],
        };
        // Only root can read it so far; all users may read a container's root.
        open(pod.root.path());
        image.unpack(pod.root.path());
        pod.make_random_devices();
        match way {
            Way::ServiceAccount => pod.mount_account(account),
            Way::Hosts => {
                pod.write("etc/hosts", format!("127.0.0.1 {SERVER}\n").as_bytes());
                pod.write_kubeconfig(account);
            }
            Way::Dns => {
                let search = "search default.svc.cluster.local svc.cluster.local cluster.local";
                let text = format!("{search}\nnameserver {}\noptions ndots:5\n", dns::ADDRESS.0);
                pod.write("etc/resolv.conf", text.as_bytes());
                pod.write_kubeconfig(account);
            }
        }
        pod
    }

    /// The controller as the manifests start it, but on a loopback port of its own.
    pub fn command(&self, port: u16) -> Command {
        let mut command = Command::new("chroot");
        command
            .env_clear()
            // The path of chroot.
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(self.environment.iter().cloned())
            .arg(format!("--userspec={}", self.user))
            .arg("--groups=")
            .arg(self.root.path())
            .arg(&self.entrypoint)
            .args(&self.args)
            .arg(format!("--leader-elect-resource-name={NAME}"))
            .arg(format!("--leader-elect-resource-namespace={SYSTEM_NAMESPACE}"))
            .arg(format!("--secure-port={port}"))
            .args(["--bind-address=127.0.0.1", "--logging-format=json", "-v=2"]);
        command
    }

    /// The devices in every container's /dev. A static binary reads random numbers from them, since it has no dynamic
    /// linker to tell it whether the C library has getrandom(2).
    fn make_random_devices(&self) {
        let directory = self.root.path().join("dev");
        fs::create_dir(&directory).unwrap();
        open(&directory);
        for (name, minor) in [("random", "8"), ("urandom", "9")] {
            let made =
                Command::new("mknod").arg("--mode=666").arg(directory.join(name)).args(["c", "1", minor]).status();
            assert!(made.unwrap().success(), "mknod {name}");
        }
    }

    fn mount_account(&mut self, account: &Account) {
        self.write(&format!("{ACCOUNT_FILES}/token"), account.token.as_bytes());
        self.write(&format!("{ACCOUNT_FILES}/ca.crt"), &account.authority);
        self.write(&format!("{ACCOUNT_FILES}/namespace"), SYSTEM_NAMESPACE.as_bytes());
        self.environment.push(("KUBERNETES_SERVICE_HOST", "127.0.0.1".to_owned()));
        self.environment.push(("KUBERNETES_SERVICE_PORT", account.port.to_string()));
    }

    fn write_kubeconfig(&mut self, account: &Account) {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": {
                "server": format!("https://{SERVER}:{}", account.port),
                "certificate-authority": "/etc/cronjob-controller/ca.crt",
            }}],
            "users": [{"name": "account", "user": {"token": account.token}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "account"}}],
            "current-context": "here",
        });
        self.write("etc/cronjob-controller/ca.crt", &account.authority);
        self.write("etc/cronjob-controller/kubeconfig", config.to_string().as_bytes());
        self.args.push("--kubeconfig=/etc/cronjob-controller/kubeconfig".to_owned());
    }

    /// Writes a file that all users can read.
    fn write(&self, path: &str, content: &[u8]) {
        let mut directory = self.root.path().to_owned();
        for part in Path::new(path).parent().unwrap() {
            directory.push(part);
            fs::create_dir_all(&directory).unwrap();
            open(&directory);
        }
        let file = self.root.path().join(path);
        fs::write(&file, content).unwrap();
        open(&file);
    }
}

/// Lets all users read a file or a directory, whatever the umask.
fn open(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
