//! Who comes by in an episode.

use super::{Content, Dice, EPISODE_S, Line, Request};

const BROWSERS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:136.0) Gecko/20100101 Firefox/136.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_7) AppleWebKit/605.1.15 Version/18.3 Safari/605.1.15",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/134.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_3 like Mac OS X) Version/18.3 Mobile/15E148 Safari/604.1",
];

const PAGES: [&str; 8] = [
    "/",
    "/harbour/tides",
    "/harbour/lock-times",
    "/news/new-sluice",
    "/guide/mooring",
    "/guide/night-passage",
    "/charts/estuary",
    "/about",
];

const ASSETS: [&str; 6] = [
    "/static/site.css",
    "/static/site.js",
    "/static/logo.svg",
    "/static/tide-table.json",
    "/static/photo.webp",
    "/static/font.woff2",
];

const HOSTS: [&str; 5] = [
    "reading-room.example.org",
    "office.example.com",
    "pilot.example.net",
    "harbour-cafe.example.org",
    "school.example.com",
];

/// Lines that no parser should accept, each with the second of the episode that it is written in.
pub(super) const GARBAGE: [(u64, &[u8]); 7] = [
    (312, b"203.0.113.99 - - \"\\x16\\x03\\x01\\x02\""),
    (1_501, b"192.0.2.44 - - [02/Mar/2026:09:25:01 +0000] \"GET /harbour/ti"),
    (2_900, b""),
    (3_720, b"198.51.100.20 - - [02/Mrz/2026:10:02:00 +0000] \"GET / HTTP/1.1\" 200 5120 \"-\" \"-\""),
    (4_333, b"worker 3: log rotated"),
    (5_610, b"192.0.2.81 - - [02/Mar/2026:10:33:30 +0000] \"GET /caf\xe9 HTTP/1.1\" 404 512 \"-\" \"-\""),
    (6_402, b"203.0.113.5 - - [02/Mar/2026:10:46:42] \"GET / HTTP/1.1\" 200 5120 \"-\" \"-\""),
];

/// All lines of two hours, in no order.
pub(super) fn episode(dice: &mut Dice) -> Vec<Line> {
    let mut lines = Vec::new();
    for reader in 0..230 {
        visit_all(dice, &mut lines, reader);
    }
    monitor(&mut lines);
    crawler(dice, &mut lines);
    retry_storm(dice, &mut lines);
    for (ended_s, bytes) in GARBAGE {
        lines.push(Line { ended_s, content: Content::Garbage(bytes) });
    }
    lines
}

fn push(lines: &mut Vec<Line>, latency_s: u64, request: Request) {
    // The last responses end with the episode, so that one episode's lines stay together.
    let ended_s = (request.began_s + latency_s).min(EPISODE_S - 1);
    if request.began_s < EPISODE_S {
        lines.push(Line { ended_s, content: Content::Request(request) });
    }
}

fn reader_address(dice: &mut Dice, reader: u64) -> String {
    match reader % 10 {
        0..=4 => format!("192.0.2.{}", dice.between(1, 254)),
        5 | 6 => format!("198.51.100.{}", dice.between(1, 254)),
        7 | 8 => format!("2001:db8:{:x}:{:x}::{:x}", reader, dice.between(0, 3), dice.between(1, 0xffff)),
        _ => match usize::try_from(reader / 10).ok().and_then(|at| HOSTS.get(at)) {
            Some(host) => (*host).to_owned(),
            None => format!("203.0.113.{}", dice.between(100, 254)),
        },
    }
}

/// A reader comes once to three times, and reads a few pages each time.
fn visit_all(dice: &mut Dice, lines: &mut Vec<Line>, reader: u64) {
    let client = reader_address(dice, reader);
    let agent = dice.pick(&BROWSERS);
    // Two throws for the time of day: more come in the middle than at the ends.
    let mut now_s = dice.below(3_600) + dice.below(3_000);
    for _ in 0..dice.between(1, 2) {
        for page in 0..dice.between(1, 4) {
            let referer = if page == 0 { "-" } else { "https://tides.example.org/" };
            open_page(dice, lines, &Page { now_s, client: &client, referer, agent });
            now_s += dice.between(14, 95);
        }
        now_s += dice.between(600, 2_400);
    }
}

struct Page<'a> {
    now_s: u64,
    client: &'a str,
    referer: &'static str,
    agent: &'static str,
}

/// A page brings what it is made of; a few are picture galleries, and bring a lot at once.
fn open_page(dice: &mut Dice, lines: &mut Vec<Line>, page: &Page<'_>) {
    let gallery = dice.chance(4);
    let parts = if gallery { dice.between(11, 18) } else { dice.between(0, 5) };
    for part in 0..=parts {
        let path = match part {
            0 if gallery => "/gallery/spring-tide".to_owned(),
            0 => dice.pick(&PAGES).to_owned(),
            _ if gallery => format!("/gallery/spring-tide/{part}.webp"),
            _ => dice.pick(&ASSETS).to_owned(),
        };
        let request = Request {
            began_s: page.now_s + part.div_ceil(8),
            client: page.client.to_owned(),
            path,
            status: if dice.chance(12) { 304 } else { 200 },
            bytes: dice.between(800, 60_000),
            referer: page.referer,
            agent: page.agent,
        };
        let latency_s = dice.below(2);
        push(lines, latency_s, request);
    }
}

/// A health check every 30 s: what no limit should ever touch.
fn monitor(lines: &mut Vec<Line>) {
    for round in 0..EPISODE_S / 30 {
        let request = Request {
            began_s: round * 30,
            client: "monitor.example.net".to_owned(),
            path: "/health".to_owned(),
            status: 200,
            bytes: 2,
            referer: "-",
            agent: "watch/2.1",
        };
        push(lines, 0, request);
    }
}

/// Never fast enough for a burst limit, and over any sustain limit in the end.
fn crawler(dice: &mut Dice, lines: &mut Vec<Line>) {
    let mut now_s = 420;
    while now_s < 6_600 {
        let request = Request {
            began_s: now_s,
            client: "203.0.113.66".to_owned(),
            path: format!("/archive/{}", dice.between(1, 4_000)),
            status: 200,
            bytes: dice.between(2_000, 9_000),
            referer: "-",
            agent: "Periwinkle/0.9 (+https://crawler.example.com/about)",
        };
        let latency_s = dice.below(3);
        push(lines, latency_s, request);
        now_s += dice.between(5, 11);
    }
}

/// A gateway asks every 40 s or so, until an update makes every device behind it ask at once and retry
/// what fails. It takes eight minutes to die down.
fn retry_storm(dice: &mut Dice, lines: &mut Vec<Line>) {
    const BEGIN_S: u64 = 3_480;
    const END_S: u64 = BEGIN_S + 480;
    let mut now_s = dice.below(40);
    while now_s < EPISODE_S {
        let storming = (BEGIN_S..END_S).contains(&now_s);
        let requests = match now_s.saturating_sub(BEGIN_S) {
            _ if !storming => 1,
            0..=20 => dice.between(1, 2),
            21..=180 => dice.between(2, 5),
            181..=330 => dice.between(1, 3),
            _ => dice.between(0, 1),
        };
        for _ in 0..requests {
            let request = Request {
                began_s: now_s,
                client: "203.0.113.17".to_owned(),
                path: "/api/v2/sync".to_owned(),
                status: if storming && dice.chance(70) { 503 } else { 200 },
                bytes: dice.between(90, 700),
                referer: "-",
                agent: "tide-gauge-fleet/4.0.1",
            };
            let latency_s = dice.below(3);
            push(lines, latency_s, request);
        }
        now_s += if storming { 1 } else { dice.between(30, 50) };
    }
}
