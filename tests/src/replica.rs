//! The program under test as a process of its own, which can be killed, stopped and woken.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{Space, World, eventually};

/// How many users there are for replicas: `replica-1` and so on, each with all rights, so that the server's record tells whose each request was.
pub(crate) const REPLICAS: usize = 4;

/// How replicas of the PodAutoscaler, or of another program, are started in one namespace, with their leases in it.
///
/// The lease is short, so that tests are quick; how fast the machine is may decide who leads, and must not decide whether a test passes.
pub struct Program {
    binary: PathBuf,
    kubeconfigs: Vec<PathBuf>,
    namespace: String,
    /// What stands before the program on its command line.
    prefix: Vec<String>,
    /// The program's command that is a replica; one that has no commands is one by itself.
    command: Option<&'static str>,
    arguments: Vec<String>,
    /// Flags with the terms of the lease.
    terms: &'static [&'static str],
}

/// So short that tests are quick.
const QUICK: &[&str] = &[
    "--lease-duration=3s",
    "--renew-deadline=2s",
    "--retry-period=500ms",
];

impl Program {
    /// The program in the file `binary`.
    pub fn new(binary: impl Into<PathBuf>, world: &World, space: &Space) -> Self {
        Self {
            binary: binary.into(),
            kubeconfigs: (1..=REPLICAS)
                .map(|n| world.replica_kubeconfig(n))
                .collect(),
            namespace: space.name.clone(),
            prefix: Vec::new(),
            command: Some("run"),
            arguments: Vec::new(),
            terms: QUICK,
        }
    }

    /// Of a program that has no commands.
    #[must_use]
    pub fn without_command(mut self) -> Self {
        self.command = None;
        self
    }

    /// With a lease that lasts as long as it does for users.
    #[must_use]
    pub fn with_usual_terms(mut self) -> Self {
        self.terms = &[];
        self
    }

    /// With these words before the program's own on the command line.
    #[must_use]
    pub fn under(mut self, words: &[&str]) -> Self {
        self.prefix = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// With more flags.
    #[must_use]
    pub fn with(mut self, flags: &[&str]) -> Self {
        self.arguments
            .extend(flags.iter().map(|&flag| flag.to_owned()));
        self
    }

    /// A process that works as the user `replica-<number>`, numbers from 1, which is also what its identity begins with.
    pub fn start(&self, number: usize) -> Replica {
        let mut words = self.prefix.iter().map(String::as_str);
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        };
        let user = format!("replica-{number}");
        command
            .args(self.command)
            .arg("--kubeconfig")
            .arg(&self.kubeconfigs[number - 1])
            .args(["--namespace", &self.namespace])
            .args(["--leader-elect", "--lease-namespace", &self.namespace])
            .args(self.terms)
            .args(&self.arguments)
            .env("HOSTNAME", &user)
            .env_remove("RUST_LOG");
        Replica::spawn(command, user)
    }
}

/// A running program whose log is kept; it is killed when dropped.
pub struct Replica {
    child: Child,
    user: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Replica {
    /// Runs `command` and keeps what it writes on standard error.
    pub fn spawn(mut command: Command, user: impl Into<String>) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let log = Arc::<Mutex<Vec<String>>>::default();
        let kept = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                lock(&kept).push(line);
            }
        });
        Self {
            child,
            user: user.into(),
            log,
        }
    }

    /// The user it works as.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    pub fn log(&self) -> Vec<String> {
        lock(&self.log).clone()
    }

    /// How many of its lines hold all of `parts`.
    pub fn lines(&self, parts: &[&str]) -> usize {
        let log = lock(&self.log);
        let holds = |line: &&String| parts.iter().all(|part| line.contains(part));
        log.iter().filter(holds).count()
    }

    /// Waits until more than `seen` of its lines hold all of `parts`, and returns how many do.
    pub async fn says(&self, parts: &[&str], seen: usize) -> usize {
        let what = format!("{} says {parts:?} more than {seen} times", self.user);
        eventually(&what, async || {
            let lines = self.lines(parts);
            if lines > seen {
                Ok(lines)
            } else {
                Err(self.log())
            }
        })
        .await
    }

    /// Stands still from here on, with everything it is at, as a virtual machine that is moved.
    pub fn stop(&self) {
        self.signal("-STOP");
    }

    /// Goes on where it stood still.
    pub fn wake(&self) {
        self.signal("-CONT");
    }

    /// Asks for an orderly end.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(
            sent.expect("kill can be run").success(),
            "kill {signal} {id}"
        );
    }

    /// Ends it without warning.
    pub fn kill(mut self) {
        self.end();
    }

    /// Waits for its end by itself: how it ended, and what it logged.
    pub async fn ends(mut self) -> (ExitStatus, Vec<String>) {
        let what = format!("{} ends", self.user);
        let log = self.log.clone();
        let child = Mutex::new(&mut self.child);
        let status = eventually(&what, async || match lock(&child).try_wait() {
            Ok(Some(status)) => Ok(status),
            still => Err((still, lock(&log).clone())),
        })
        .await;
        (status, self.log())
    }

    fn end(&mut self) {
        // it may have ended by itself
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kubeconfig of the user `replica-<number>` in `folder`.
pub(crate) fn kubeconfig(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("replica-{number}.kubeconfig"))
}
