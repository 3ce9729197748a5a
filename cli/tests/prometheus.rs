//! `tidegate serve` as Prometheus meets it, and what `docs/` shows of that. What needs Prometheus is skipped, with a note, where
//! there is none.

#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod served;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use served::{Folder, PATIENCE, Server, page};

/// Somebody who is told, and does not listen.
const WEBHOOKS: &str = r#"
[[endpoint]]
name = "ada"
url = "https://127.0.0.1:1/limits"
allow_networks = ["127.0.0.0/8"]
secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
"#;

/// A rule of each kind of window, and one that only watches.
const RULES: &str = r#"
[[rule]]
name = "three"
key = "user"
limit = { rate = "1/m", burst = 3 }

[[rule]]
name = "both"
key = "client_ip"
limit = { burst = "100/15s", sustain = "300/5m" }

[[rule]]
name = "watched"
key = "user"
limit = { sliding = "2/1h" }
shadow = true
"#;

/// A server that has decided a few requests: of six of one user three were refused.
async fn server() -> Server {
    let folder = Folder::new();
    let webhooks = folder.0.join("webhooks.toml");
    std::fs::write(&webhooks, WEBHOOKS).unwrap();
    let server = Server::start(RULES, &["--webhooks", webhooks.to_str().unwrap()]);
    for _ in 0..6 {
        server.check(r#"{"api": "x", "user": "ada", "client_ip": "192.0.2.7"}"#).await;
    }
    server.get("/auth/x").await;
    server
}

fn is_there(program: &str) -> bool {
    let is_there =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_there {
        println!("skipped: there is no {program} here");
    }
    is_there
}

/// The names of series in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = text.match_indices("tidegate_").map(|(at, _)| at);
    let starts = starts.filter(|&at| !text[..at].ends_with(is_part));
    starts.map(|at| text[at..].chars().take_while(|c| is_part(*c)).collect()).collect()
}

/// The names of series that a server tells.
async fn told(server: &Server) -> BTreeSet<String> {
    let text = server.get("/metrics").await.body;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(['{', ' ']).next().unwrap().to_owned()).collect()
}

/// The panels of the dashboard, and all of its questions.
fn dashboard() -> (Value, Vec<String>) {
    let dashboard: Value = serde_json::from_str(&page("docs/grafana/tidegate.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let questions = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    (dashboard, questions)
}

/// What the page on the server shows for `prometheus.yml`.
fn configuration(server: SocketAddr) -> String {
    let page = page("docs/serve.md");
    let shown = page.split_once("```yaml\nscrape_configs:").unwrap().1.split_once("```").unwrap().0;
    assert!(shown.contains("127.0.0.1:8181") && shown.contains("scrape_interval: 15s"), "{shown}");
    let shown = shown.replace("127.0.0.1:8181", &server.to_string()).replace("15s", "1s");
    format!("scrape_configs:{shown}")
}

#[tokio::test]
async fn the_dashboard_asks_for_series_that_there_are() {
    let told = told(&server().await).await;
    let (dashboard, questions) = dashboard();
    let asked: BTreeSet<String> = questions.iter().flat_map(|question| names(question)).collect();
    for name in &asked {
        assert!(told.contains(name), "there is no {name}");
    }
    let variables = names(&dashboard["templating"].to_string());
    assert!(variables.is_subset(&told), "{variables:?}");
    // Nothing that is told is nowhere to be seen.
    let unseen: Vec<&String> =
        told.iter().filter(|name| !asked.contains(*name) && !variables.contains(*name)).collect();
    assert_eq!(unseen, ["tidegate_uptime_seconds"]);
    assert_eq!(dashboard["__inputs"][0]["name"], "DS_PROMETHEUS");
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut places = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert_eq!(panel["datasource"]["uid"], "${DS_PROMETHEUS}", "{title}");
        let place = &panel["gridPos"];
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|name| place[name].as_u64().unwrap());
        assert!(x + w <= 24, "{title}");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(places.insert(cell), "{title} lies over another panel");
        }
    }
}

#[tokio::test]
async fn the_page_names_every_series() {
    let told = told(&server().await).await;
    let page = page("docs/serve.md");
    let rows: String = page.lines().filter(|line| line.starts_with("| `tidegate_")).collect();
    assert_eq!(names(&rows), told);
}

#[tokio::test]
async fn promtool_finds_no_fault() {
    if !is_there("promtool") {
        return;
    }
    let server = server().await;
    let check = |what: &str, text: String| {
        let mut child = Command::new("promtool")
            .args(["check", what])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    assert_eq!(check("metrics", server.get("/metrics").await.body), (true, String::new()));
    // That it would say something.
    let (is_good, says) = check("metrics", "# HELP a_ms A\n# TYPE a_ms counter\na_ms 1\n".to_owned());
    assert!(!is_good && says.contains("should have \"_total\" suffix"), "{says}");
}

/// A Prometheus of its own; it ends with this.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    folder: Folder,
}

impl Prometheus {
    fn start(configuration: &str) -> Self {
        let folder = Folder::new();
        let file = folder.0.join("prometheus.yml");
        std::fs::write(&file, configuration).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let log = std::fs::File::create(folder.0.join("log")).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.0.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, address, folder }
    }

    /// What it knows; nothing if it does not answer yet.
    fn ask(&self, question: &str) -> Option<Vec<Value>> {
        let quoted: String = question.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /api/v1/query?query={quoted} HTTP/1.0\r\nhost: prometheus\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let json: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        assert!(json["status"] == "success" || json["errorType"] == "unavailable", "{question}: {json}");
        json["data"]["result"].as_array().cloned()
    }

    /// The number that a question comes to.
    fn number(&self, question: &str) -> Option<f64> {
        let result = self.ask(question)?;
        result.first()?["value"][1].as_str()?.parse().ok()
    }

    async fn wait_for(&self, question: &str, number: f64) {
        let start = Instant::now();
        while self.number(question) != Some(number) {
            assert!(start.elapsed() < 3 * PATIENCE, "{question} is {:?}", self.ask(question));
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(self.folder.0.join("log")).unwrap_or_default());
        }
    }
}

#[tokio::test]
async fn prometheus_reads_what_was_counted() {
    if !is_there("prometheus") {
        return;
    }
    let server = server().await;
    let prometheus = Prometheus::start(&configuration(server.address));
    prometheus.wait_for("up{job=\"tidegate\"}", 1.0).await;
    prometheus.wait_for("tidegate_refusals_total{rule=\"three\", limit=\"0\", window=\"bucket\"}", 3.0).await;
    prometheus.wait_for("sum(tidegate_refusals_total)", 3.0).await;
    prometheus.wait_for("tidegate_shadow_refusals_total{rule=\"watched\"}", 4.0).await;
    prometheus.wait_for("sum(tidegate_checks_total)", 7.0).await;
    server.check(r#"{"api": "x", "user": "ada"}"#).await;
    prometheus.wait_for("tidegate_refusals_total{rule=\"three\"}", 4.0).await;
    // Two scrapes are there, so each question of the dashboard has an answer; a share of nothing is none.
    for question in dashboard().1 {
        let asked = [("$__rate_interval", "1m"), ("$__range", "1m"), ("$job", ".*"), ("$instance", ".*")];
        let asked = asked.into_iter().fold(question, |question, (from, to)| question.replace(from, to));
        let answer = prometheus.ask(&asked).unwrap();
        assert!(!answer.is_empty(), "{asked}");
    }
}
