//! `tidegate replay --svg` and `--png` as a user meets them, and the picture of the docs.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::path::{Path, PathBuf};

use common::{gzip, line, replay, stderr, stdout};

/// A file of the test's own.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// What is drawn with these arguments.
fn drawn(name: &str, args: &[&str], input: &[u8]) -> String {
    let path = scratch(name);
    let output = replay(&[args, &["--svg", path.to_str().unwrap()]].concat(), input);
    assert_eq!(stderr(&output), "");
    assert_eq!(stdout(&output), stdout(&replay(args, input)), "a drawing changes no report");
    std::fs::read_to_string(path).unwrap()
}

fn texts(drawing: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(drawing).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.filter_map(|node| node.text()).map(|text| text.trim().to_owned()).collect()
}

/// `ci/plots.sh` draws it again; so does `TIDEGATE_WRITE_GOLDEN=1 cargo test -p tidegate-cli --test replay_drawing`.
#[test]
fn the_picture_of_the_docs_is_that_of_the_bundled_sample() {
    let drawing = drawn("bundled.svg", &[], b"");
    assert!(drawing.len() < 200_000, "{}", drawing.len());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/replay.svg");
    if !path.parent().unwrap().is_dir() {
        println!("skipped: no docs beside the command's sources");
        return;
    }
    if std::env::var_os("TIDEGATE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &drawing).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == drawing, "docs/replay.svg is of another code; run ci/plots.sh");
}

#[test]
fn the_sentences_of_a_drawing_stand_in_the_report_and_in_json() {
    let drawing = texts(&drawn("sentences.svg", &[], b""));
    let page = stdout(&replay(&[], b""));
    let json = common::json(&[], b"");
    let headroom = json["headroom"].as_array().unwrap();
    assert_eq!(headroom.len(), 2);
    for part in headroom {
        let sentence = part["sentence"].as_str().unwrap();
        assert!(page.contains(&format!("  {sentence}\n")), "{page}");
        assert!(drawing.iter().any(|text| text == sentence), "{drawing:?}");
    }
}

/// One client asks three times in ten seconds, where two pass; another one once.
#[test]
fn headroom_by_hand() {
    let log = [line("a", 1), line("a", 2), line("a", 3), line("b", 4)].concat();
    for (limit, of, median, peak, sentence) in [
        ("window:2/10s", "limit", 50, 150, "the busiest of 2 clients asked for 150 % of its limit"),
        // Refused requests take nothing out of a bucket.
        ("bucket:1/h,2", "bucket", 50, 100, "the busiest of 2 clients used 100 % of its bucket"),
        ("sliding:4/10s", "limit", 25, 75, "the busiest of 2 clients used 75 % of its limit"),
    ] {
        let json = common::json(&["-", "--limit", limit], log.as_bytes());
        let expected = serde_json::json!([{
            "of": of, "keys": 2, "p50_percent": median, "p99_percent": peak, "p999_percent": peak,
            "peak_percent": peak, "sentence": sentence,
        }]);
        assert_eq!(json["headroom"], expected, "{limit}");
    }
}

#[test]
fn logs_of_a_second_and_of_years_are_drawn() {
    let second = texts(&drawn("second.svg", &["-"], line("a", 1).as_bytes()));
    assert!(second.contains(&"09:00:01".to_owned()), "{second:?}");
    assert!(second.contains(&"No client was refused.".to_owned()), "{second:?}");
    let at = |year: u32| format!("a - - [02/Mar/{year}:09:00:00 +0000] \"GET / HTTP/1.1\" 200 17\n");
    let years: String = (2020..2027).map(at).collect();
    let years = texts(&drawn("years.svg", &["-"], &gzip(years.as_bytes())));
    assert!(years.iter().any(|text| text.ends_with(" 2023") && text.len() == 8), "{years:?}");
}

#[test]
fn a_policy_is_drawn_by_rule() {
    let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/site.toml");
    if !site.is_file() {
        println!("skipped: no docs beside the command's sources");
        return;
    }
    let site = site.to_str().unwrap();
    let texts = texts(&drawn("site.svg", &["--policy", site], b""));
    for text in
        ["sync", "pages", "218 passed, 881 refused", "5,195 passed, 383 would be refused", "requests in 30 s"]
    {
        assert!(texts.contains(&text.to_owned()), "{text}: {texts:?}");
    }
    let output = replay(&["--policy", site, "--compare", site, "--svg", "a.svg"], b"");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_drawing_that_cannot_be_kept_is_told_before_the_log_is_read() {
    let output = replay(&["no/such.log", "--svg", "no/such/folder/a.svg"], b"");
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.starts_with("tidegate: cannot write no/such/folder/a.svg: "), "{told}");
}

#[cfg(feature = "png")]
#[test]
fn pixels_have_the_width_of_the_drawing_twice() {
    let path = scratch("pixels.png");
    let args = ["--png", path.to_str().unwrap()];
    assert!(replay(&args, b"").status.success());
    let file = std::fs::read(&path).unwrap();
    assert_eq!(file[..8], *b"\x89PNG\r\n\x1a\n");
    assert_eq!(file[16..20], 1_600_u32.to_be_bytes());
    let output = replay(&[&args[..], &["--svg", args[1]]].concat(), b"");
    assert!(stderr(&output).contains("--svg and --png name the same file"), "{}", stderr(&output));
}
