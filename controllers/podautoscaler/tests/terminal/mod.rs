//! The binary in a terminal: one that `script` makes, and as much of a screen as programs of today draw on.

use std::{
    io::{Read as _, Write as _},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use boatswain::Clock;

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Terminal {
    script: Child,
    output: Receiver<Vec<u8>>,
    /// All that was written.
    written: Vec<u8>,
    /// The terminal's device, and the process in it.
    device: String,
    pid: String,
}

impl Terminal {
    /// Runs the binary with `arguments` in a terminal of so many rows and columns.
    pub(crate) fn start(arguments: &str, rows: u16, columns: u16) -> Self {
        let binary = env!("CARGO_BIN_EXE_podautoscaler");
        let command =
            format!("stty rows {rows} cols {columns}; tty; echo $$; exec '{binary}' {arguments}");
        let mut script = Command::new("script")
            .args([
                "--quiet",
                "--return",
                "--flush",
                "--command",
                &command,
                "/dev/null",
            ])
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script, of util-linux");
        let mut out = script.stdout.take().expect("piped");
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut taken = vec![0; 4096];
            while let Ok(n @ 1..) = out.read(&mut taken) {
                if sender.send(taken[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        let mut terminal = Self {
            script,
            output,
            written: Vec::new(),
            device: String::new(),
            pid: String::new(),
        };
        while terminal.pid.is_empty() {
            assert!(terminal.read(), "it ended: {}", terminal.screen());
            let text = String::from_utf8_lossy(&terminal.written).into_owned();
            let mut lines = text
                .split_inclusive("\r\n")
                .filter(|line| line.ends_with('\n'));
            if let (Some(device), Some(pid)) = (lines.next(), lines.next()) {
                terminal.device = device.trim().to_owned();
                terminal.pid = pid.trim().to_owned();
            }
        }
        terminal
    }

    /// Waits for output; whether there was any.
    fn read(&mut self) -> bool {
        match self.output.recv_timeout(PATIENCE) {
            Ok(bytes) => self.written.extend(bytes),
            Err(mpsc::RecvTimeoutError::Disconnected) => return false,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("nothing new is written; the screen is\n{}", self.screen())
            }
        }
        true
    }

    /// Waits until all of `words` are on the screen.
    pub(crate) fn sees(&mut self, words: &[&str]) {
        let all = |screen: &str| words.iter().all(|word| screen.contains(word));
        self.waits(&format!("{words:?} never came"), all);
    }

    /// Waits until `word` is on the screen no more.
    pub(crate) fn loses(&mut self, word: &str) {
        self.waits(&format!("{word:?} never went"), |screen| {
            !screen.contains(word)
        });
    }

    fn waits(&mut self, complaint: &str, is_so: impl Fn(&str) -> bool) {
        let clock = Clock::system();
        let end = clock.now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return;
            }
            let more = clock.now() < end && self.read();
            assert!(more, "{complaint}; the screen was\n{screen}");
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        let typed = self.script.stdin.as_mut().expect("piped");
        typed.write_all(keys.as_bytes()).expect("typed");
        typed.flush().expect("typed");
    }

    pub(crate) fn size(&self, rows: u16, columns: u16) {
        let (rows, columns) = (rows.to_string(), columns.to_string());
        let set = Command::new("stty")
            .args(["-F", &self.device, "rows", &rows, "cols", &columns])
            .status();
        assert!(set.expect("stty").success());
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid]).status();
        assert!(sent.expect("kill").success());
    }

    /// Waits for the end, which must be an orderly one; the last of what was written.
    pub(crate) fn ends(mut self) -> String {
        while self.read() {}
        let code = self.script.wait().expect("ended").code();
        assert_eq!(code, Some(0), "the screen was\n{}", self.screen());
        let from = self.written.len().saturating_sub(200);
        String::from_utf8_lossy(&self.written[from..]).into_owned()
    }

    /// The terminal goes away, as with a lost connection; the binary must not outlive it.
    pub(crate) fn hangs_up(mut self) {
        self.script.kill().expect("killed");
        self.script.wait().expect("ended");
        let clock = Clock::system();
        let end = clock.now() + PATIENCE;
        let lives = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        while lives() {
            assert!(clock.now() < end, "it goes on without a terminal");
        }
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        let mut grid: Vec<Vec<char>> = Vec::new();
        let (mut row, mut column) = (0, 0);
        let written = String::from_utf8_lossy(&self.written);
        let mut rest = written.chars();
        while let Some(char) = rest.next() {
            match char {
                '\u{1b}' => {
                    if rest.next() != Some('[') {
                        continue;
                    }
                    let mut numbers = String::new();
                    let end = rest.by_ref().find(|c| {
                        numbers.push(*c);
                        c.is_ascii_alphabetic()
                    });
                    numbers.pop();
                    let mut numbers = numbers.split(';').map(|n| n.parse::<usize>().unwrap_or(1));
                    match end {
                        Some('H') => {
                            row = numbers.next().unwrap_or(1).max(1) - 1;
                            column = numbers.next().unwrap_or(1).max(1) - 1;
                        }
                        Some('J') => grid.clear(),
                        _ => {}
                    }
                }
                '\r' => column = 0,
                '\n' => row += 1,
                char => {
                    let lines = grid.len().max(row + 1);
                    grid.resize(lines, Vec::new());
                    let width = grid[row].len().max(column + 1);
                    grid[row].resize(width, ' ');
                    grid[row][column] = char;
                    column += 1;
                }
            }
        }
        let lines = grid
            .into_iter()
            .map(|line| line.into_iter().collect::<String>());
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
