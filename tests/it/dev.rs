//! `cronwheel dev` as a process: a client with its kubeconfig observes a complete Job, and the process removes all its
//! files.

mod kubectl;
mod options;
mod page;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Output, Stdio},
    sync::mpsc,
    time::Duration,
};

use futures::StreamExt as _;
use http::{HeaderValue, header::USER_AGENT};
use jiff::SignedDuration;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::watcher,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::time::timeout;

/// The limit of every wait. Nothing takes this long, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);

/// The lifetime of a process that no test stops. It covers several waits.
const LIFE: &str = "20m";

/// A working directory that is removed after the test.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("cronwheel-dev-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.0.join("cronwheel-dev.kubeconfig")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronwheel"));
        command
            .arg("dev")
            .args(["--log-level", "warn"])
            .args(arguments)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if !arguments.contains(&"--for") {
            command.args(["--for", LIFE]);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stderr(Stdio::piped()).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = fs::remove_dir_all(&self.0);
    }
}

pub(super) struct Dev {
    process: Child,
    output: BufReader<ChildStdout>,
    page: SocketAddr,
    address: SocketAddr,
}

impl Dev {
    /// Starts the process, and waits until it prints its addresses.
    pub(super) fn start(folder: &Folder, arguments: &[&str]) -> Dev {
        let mut process = folder.command(arguments).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut address = |name: &str| {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            let address = line.strip_prefix(name).unwrap_or_else(|| panic!("{line:?}"));
            address.trim().trim_start_matches("http://").parse().expect(&line)
        };
        Dev {
            page: address("page"),
            address: address("API server"),
            process,
            output,
        }
    }

    async fn client(&self, folder: &Folder) -> Client {
        let kubeconfig = Kubeconfig::read_from(folder.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), format!("http://{}/", self.address));
        Client::try_from(config).unwrap()
    }

    /// Ends the process with a signal. Returns the rest of its output.
    pub(super) fn end(mut self, signal: Signal) -> Vec<String> {
        let id = Pid::from_raw(self.process.id().cast_signed()).unwrap();
        kill_process(id, signal).unwrap();
        let lines: Vec<String> = self.output.by_ref().lines().map(Result::unwrap).collect();
        let status = self.process.wait().unwrap();
        assert!(status.success(), "{status}: {lines:?}");
        lines
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // The process may have exited already.
        let _killed = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// Checks the last line of the output: the duration, and the counts of runs.
#[track_caller]
fn check_totals(line: &str) {
    let (_, rest) = line.split_once("cronwheel dev ran for ").expect(line);
    let (up, runs) = rest.split_once(": runs ").expect(line);
    up.replace(' ', "").parse::<SignedDuration>().expect(line);
    let counts: Vec<&str> = runs.split(", ").collect();
    let has = |position: usize, name: &str| {
        counts[position]
            .strip_suffix(name)
            .is_some_and(|n| n.parse::<u64>().is_ok())
    };
    assert!(has(0, " started") && has(counts.len() - 2, " missed"), "{line}");
    assert_eq!(counts.last(), Some(&"0 doubled"), "{line}");
}

fn ticking() -> CronJob {
    let template = json!({
        "metadata": {"annotations": {"run-for": "1s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "tick", "image": "tick"}]},
    });
    let cron_job = json!({
        "metadata": {"name": "tick"},
        "spec": {"schedule": "@every 1s", "jobTemplate": {"spec": {"template": template}}},
    });
    serde_json::from_value(cron_job).unwrap()
}

fn is_complete(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Complete" && condition.status == "True")
}

async fn wait_for_complete_job(client: &Client, namespace: &str) -> Job {
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let events = watcher(jobs, watcher::Config::default());
    let mut complete = Box::pin(events.filter_map(async |event| match event.unwrap() {
        watcher::Event::Apply(job) | watcher::Event::InitApply(job) => is_complete(&job).then_some(job),
        watcher::Event::Init | watcher::Event::InitDone | watcher::Event::Delete(_) => None,
    }));
    let found = timeout(PATIENCE, complete.next()).await.expect("a Job that completes");
    found.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_runs_a_cron_job_and_cleans_up_on_sigint() {
    let folder = Folder::new("life");
    let dev = Dev::start(&folder, &["--port", "0"]);
    let address = dev.address;
    let mode = fs::metadata(folder.kubeconfig()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let client = dev.client(&folder).await;
    let cron_jobs: Api<CronJob> = Api::default_namespaced(client.clone());
    cron_jobs.create(&PostParams::default(), &ticking()).await.unwrap();
    let job = wait_for_complete_job(&client, "default").await;
    assert_eq!(job.metadata.owner_references.unwrap()[0].name, "tick");
    let page = dev.page;
    let lines = dev.end(Signal::INT);
    let create = "  kubectl --kubeconfig cronwheel-dev.kubeconfig create cronjob hello --image=busybox --schedule='* * * * *' \
                  -- echo hello";
    assert!(lines.iter().any(|line| line == create), "{lines:?}");
    check_totals(lines.last().unwrap());
    for address in [address, page] {
        assert!(TcpStream::connect(address).is_err(), "the port {address} is still open");
    }
    assert!(!folder.kubeconfig().exists());
}

/// The client has the user agent of cronwheel commands such as `explain`.
#[tokio::test(flavor = "multi_thread")]
async fn faults_do_not_affect_other_clients() {
    let folder = Folder::new("faults");
    let dev = Dev::start(&folder, &["--port", "0", "--faults", "--cronjobs", "20"]);
    let kubeconfig = Kubeconfig::read_from(folder.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    config.headers = vec![(USER_AGENT, HeaderValue::from_static("cronwheel/0.1.0"))];
    let cron_jobs: Api<CronJob> = Api::all(Client::try_from(config).unwrap());
    for _ in 0..200 {
        cron_jobs.list(&ListParams::default()).await.unwrap();
    }
    let text = page::text(dev.page).await;
    assert!(page::figure(&text, "in all") > 0, "{text}");
    let lines = dev.end(Signal::INT);
    let (runs, faults) = lines.last().unwrap().split_once("; ").unwrap();
    check_totals(runs);
    assert!(faults.contains(" fault"), "{faults}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cronjobs_flag_creates_that_many_cron_jobs() {
    let folder = Folder::new("filled");
    let dev = Dev::start(&folder, &["--port", "0", "--cronjobs", "40", "--seed", "3"]);
    let client = dev.client(&folder).await;
    let cron_jobs: Api<CronJob> = Api::all(client.clone());
    let events = watcher(cron_jobs, watcher::Config::default());
    let seen = events.filter(|event| {
        let is_one = matches!(event, Ok(watcher::Event::Apply(_) | watcher::Event::InitApply(_)));
        std::future::ready(is_one)
    });
    let n_seen = timeout(PATIENCE, seen.take(40).count()).await.expect("forty CronJobs");
    assert_eq!(n_seen, 40);
    dev.end(Signal::TERM);
}

#[test]
fn sigquit_and_sighup_remove_the_kubeconfig() {
    for signal in [Signal::QUIT, Signal::HUP] {
        let folder = Folder::new("signals");
        let dev = Dev::start(&folder, &["--port", "0"]);
        dev.end(signal);
        assert!(!folder.kubeconfig().exists(), "{signal:?}");
    }
}

/// `script` provides the terminal.
#[test]
fn stopped_terminal_does_not_block_shutdown() {
    const CTRL_S: u8 = 0x13;
    let folder = Folder::new("held");
    let dev = format!(
        "echo $$ > pid; exec {} dev --port 0 --cronjobs 100 --log-level trace --for {LIFE}",
        env!("CARGO_BIN_EXE_cronwheel")
    );
    let mut terminal = Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", &dev, "/dev/null"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut keys, mut shown) = (terminal.stdin.take().unwrap(), terminal.stdout.take().unwrap());
    let (written_in, written) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(n_bytes @ 1..) = shown.read(&mut chunk) {
            let _ = written_in.send(n_bytes);
        }
    });
    // The process writes its log until the terminal is stopped.
    for _ in 0..2 {
        written.recv_timeout(PATIENCE).expect("lines");
    }
    keys.write_all(&[CTRL_S]).unwrap();
    let is_held = (0..100).any(|_| written.recv_timeout(Duration::from_secs(3)).is_err());
    assert!(is_held, "the terminal ignores Ctrl-S");
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (ended_in, ended) = mpsc::channel();
    let waiter = std::thread::spawn(move || ended_in.send(terminal.wait().unwrap()));
    let Ok(status) = ended.recv_timeout(PATIENCE) else {
        let _ = kill_process(pid, Signal::KILL);
        panic!("the process does not exit");
    };
    assert!(status.success(), "{status}");
    assert!(!folder.kubeconfig().exists());
    waiter.join().unwrap().unwrap();
    reader.join().unwrap();
}

#[test]
fn dev_exits_after_the_duration_of_the_for_flag() {
    let folder = Folder::new("time");
    let output = folder.run(&["--port", "0", "--for", "1s"]);
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    check_totals(stdout.lines().last().unwrap());
    assert!(!folder.kubeconfig().exists());
}

#[test]
fn startup_errors_name_the_flag_to_change() {
    #[track_caller]
    fn check(folder: &Folder, arguments: &[&str], expected: &[&str]) {
        let output = folder.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        for part in expected {
            assert!(stderr.contains(part), "{arguments:?}: {part} is not in {stderr}");
        }
    }
    let folder = Folder::new("way");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = taken.local_addr().unwrap().port().to_string();
    check(
        &folder,
        &["--port", &port],
        &[&format!("--port {port}"), "give another port"],
    );
    check(
        &folder,
        &["--port", "0", "--page-port", &port],
        &[&format!("--page-port {port}"), "give another port"],
    );
    check(
        &folder,
        &["--port", "0", "--listen", &address],
        &[&format!("--listen {address}"), "free port"],
    );
    fs::write(folder.kubeconfig(), "apiVersion: v1\n").unwrap();
    check(
        &folder,
        &["--port", "0"],
        &["--kubeconfig cronwheel-dev.kubeconfig", "give another file"],
    );
    assert_eq!(fs::read_to_string(folder.kubeconfig()).unwrap(), "apiVersion: v1\n");
    fs::remove_file(folder.kubeconfig()).unwrap();
    fs::create_dir(folder.kubeconfig()).unwrap();
    check(
        &folder,
        &["--port", "0"],
        &["--kubeconfig cronwheel-dev.kubeconfig", "give another file"],
    );
    check(&folder, &["--for", "0s"], &["--for", "from 1s"]);
    check(&folder, &["--cronjobs", "1000001"], &["--cronjobs", "1000000"]);
}
