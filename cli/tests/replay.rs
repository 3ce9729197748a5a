//! `tidegate replay` as a user meets it: inputs, outputs, complaints and exit statuses.

mod common;

use std::io::Read;
use std::process::Stdio;

use common::{gzip, json, line, pipe, replay, stderr, stdout, tidegate};

const BUCKET: [&str; 3] = ["-", "--limit", "bucket:1/s,1"];

#[test]
fn plain_and_gzip_input_give_one_result() {
    let text = [line("a", 1), line("a", 1), line("b", 3), line("a", 2)].concat();
    let plain = json(&BUCKET, text.as_bytes());
    assert_eq!((&plain["passed"], &plain["refused"]), (&3.into(), &1.into()));
    assert_eq!(json(&BUCKET, &gzip(text.as_bytes())), plain);
    let (first, second) = text.split_at(100); // in the middle of a line
    let members = [gzip(first.as_bytes()), gzip(second.as_bytes())].concat();
    assert_eq!(json(&BUCKET, &members), plain);
}

#[test]
fn lines_are_replayed_in_the_order_of_their_times() {
    // In the order of the lines the request at 5 s would come first, and the bucket be dry after it.
    let text = [line("a", 5), line("a", 3), line("a", 4)].concat();
    assert_eq!(json(&BUCKET, text.as_bytes())["passed"], 3);
}

#[test]
fn zones_and_fractions_decide() {
    let text = "\
a - - [02/Mar/2026:10:00:00.250 +0100] \"GET / HTTP/1.1\" 200 1
a - - [02/Mar/2026:09:00:01.249 +0000] \"GET / HTTP/1.1\" 200 1
a - - [02/Mar/2026:03:30:01.250 -0530] \"GET / HTTP/1.1\" 200 1
";
    let json = json(&BUCKET, text.as_bytes());
    assert_eq!((&json["passed"], &json["refused_by"]["limit"]), (&2.into(), &1.into()));
    let span = serde_json::json!({ "first_unix_s": 1_772_442_000.25, "last_unix_s": 1_772_442_001.25 });
    assert_eq!(json["span"], span);
}

#[test]
fn whole_seconds_are_whole_numbers() {
    let span = serde_json::json!({ "first_unix_s": 1_772_442_001, "last_unix_s": 1_772_442_009 });
    assert_eq!(json(&BUCKET, [line("a", 1), line("a", 9)].concat().as_bytes())["span"], span);
}

#[test]
fn one_prefix_is_one_client() {
    let text = [line("2001:db8::1", 1), line("2001:db8::2", 1), line("2001:db8:0:1::1", 1)].concat();
    let json = json(&BUCKET, text.as_bytes());
    assert_eq!((&json["clients"], &json["refused"]), (&2.into(), &1.into()));
    assert_eq!(json["top"][0]["client"], "2001:db8::/64");
}

#[test]
fn bad_lines_are_counted_and_named() {
    let long = "x".repeat(100_000);
    let mut text = format!("{}{long}\n\nnonsense\n", line("a", 1)).into_bytes();
    text.extend(b"a - - [02/Mar/2026:09:00:00 +0000] \"GET /\xff HTTP/1.1\" 200 17\n");
    text.extend(line("a", 9).bytes());
    let json = json(&BUCKET, &text);
    assert_eq!((&json["lines"], &json["skipped"], &json["passed"]), (&6.into(), &4.into(), &2.into()));
    let first: Vec<_> =
        json["skipped_first"].as_array().unwrap().iter().map(|skipped| skipped["line"].clone()).collect();
    assert_eq!(first, [2, 3, 4, 5]);
    let page = stdout(&replay(&BUCKET, &text));
    assert!(page.contains("line 2  longer than 64 KiB"), "{page}");
    assert!(page.contains("line 5  not UTF-8 at byte 41"), "{page}");
}

#[test]
fn a_gzip_file_cut_short_is_reported_and_what_came_before_counts() {
    let text: String = (0..2_000).map(|at| line(&format!("192.0.2.{}", at % 7), at)).collect();
    let whole = gzip(text.as_bytes());
    let output = replay(&BUCKET, &whole[..whole.len() - 9]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the gzip data ends early"), "{}", stderr(&output));
    assert!(stdout(&output).contains("read only in part"), "{}", stdout(&output));

    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    let output = replay(&["-", "--json"], &damaged);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the gzip data is damaged"), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["incomplete"].is_string());

    let output = replay(&BUCKET, &whole[..2]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let expected = "tidegate: cannot read standard input: the gzip data ends early; is the file cut short?\n";
    assert_eq!(stderr(&output), expected);
}

#[test]
fn what_cannot_be_opened_is_named() {
    let output = replay(&["no/such/access.log"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("tidegate: cannot read no/such/access.log: "), "{}", stderr(&output));
    let output = replay(&["."], b"");
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
}

#[test]
fn a_log_without_requests_is_an_error() {
    for empty in [&b""[..], &gzip(b"")] {
        let output = replay(&[&BUCKET[..], &["--json"]].concat(), empty);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stderr(&output), "tidegate: standard input: the log is empty\n");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&json["lines"], &json["span"]), (&0.into(), &serde_json::Value::Null));
    }
    let output = replay(&BUCKET, b"no log\nat all\n");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "tidegate: standard input: no line is a request of an access log\n");
    assert!(stdout(&output).contains("Skipped: 2 lines of 2"), "{}", stdout(&output));
}

#[cfg(unix)]
#[test]
fn a_log_on_standard_input_that_nobody_asked_for_is_noted() {
    let note = "tidegate: LOG is missing, so this is the bundled sample
  (tidegate replay - reads standard input)\n";
    let sample = stdout(&replay(&[], b""));
    let piped = pipe(&[], line("a", 1).as_bytes());
    assert_eq!((piped.status.code(), stderr(&piped).as_str()), (Some(0), note));
    assert_eq!(stdout(&piped), sample);
    let file = std::fs::File::open(env!("CARGO_BIN_EXE_tidegate")).unwrap();
    assert_eq!(stderr(&tidegate().arg("replay").stdin(file).output().unwrap()), note);
    assert_eq!(stderr(&replay(&[], b"")), "");
    assert_eq!(stderr(&pipe(&["-"], line("a", 1).as_bytes())), "");
}

#[test]
fn free_refusals_of_buckets_and_sliding_windows_are_noted() {
    let with = replay(&["--limit", "bucket:1/s,5", "--free-refusals"], b"");
    assert_eq!(stderr(&with), "tidegate: --free-refusals changes nothing for a bucket\n");
    let without = replay(&["--limit", "bucket:1/s,5"], b"");
    assert_eq!((stdout(&with), ""), (stdout(&without), stderr(&without).as_str()));
    assert_eq!(stderr(&replay(&["--limit", "window:20/m", "--free-refusals"], b"")), "");
    let sliding = replay(&["--limit", "sliding:20/m", "--free-refusals"], b"");
    assert_eq!(stderr(&sliding), "tidegate: --free-refusals changes nothing for a sliding window\n");
    assert_eq!(stdout(&sliding), stdout(&replay(&["--limit", "sliding:20/m"], b"")));
}

#[test]
fn a_misspelt_limit_gets_a_caret() {
    let output = replay(&["--limit", "burst-sustain:30/15s;100/300s"], b"");
    assert_eq!(output.status.code(), Some(2));
    let expected = "expected a comma and the sustain window, as in burst-sustain:30/15s,100/300s

  burst-sustain:30/15s;100/300s
                      ^ here
";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn a_limit_that_cannot_be_built_is_refused_before_reading() {
    for limit in ["burst-sustain:30/15s,100/301s", "bucket:1/s,18446744073709551615"] {
        let output = replay(&["no/such/access.log", "--limit", limit], b"");
        assert_eq!(output.status.code(), Some(2), "{limit}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(&format!("invalid value '{limit}' for '--limit <LIMIT>': ")),
            "{}",
            stderr(&output)
        );
    }
    let output = replay(&["--max-keys", "0"], b"");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn too_little_room_is_reported_by_itself() {
    let text: String = (0..100).map(|client| line(&format!("192.0.2.{client}"), 1)).collect();
    let args = ["-", "--limit", "bucket:1/h,1", "--max-keys", "1"];
    let json = json(&args, text.as_bytes());
    let full = json["refused_by"]["full"].as_u64().unwrap();
    assert!(full > 0, "{json}");
    assert_eq!(json["refused"], full);
    let page = stdout(&replay(&args, text.as_bytes()));
    assert!(page.contains("--max-keys leaves some of the clients no room"), "{page}");
}

#[test]
fn one_seed_gives_one_result() {
    for align in ["clock", "per-key", "first-request"] {
        let args = ["--align", align, "--seed", "7"];
        assert_eq!(stdout(&replay(&args, b"")), stdout(&replay(&args, b"")), "{align}");
    }
    let refused = |seed: &str| json(&["--align", "per-key", "--seed", seed], b"")["refused_by"].clone();
    assert_ne!(refused("1"), refused("2"), "phases come from the seed");
}

#[test]
fn free_refusals_let_more_pass() {
    let counted = json(&[], b"")["passed"].as_u64().unwrap();
    let free = json(&["--free-refusals"], b"")["passed"].as_u64().unwrap();
    assert!(free > counted, "{free} {counted}");
}

#[test]
fn colours_go_where_they_are_wanted() {
    let colour = "\u{1b}[";
    assert!(!stdout(&replay(&[], b"")).contains(colour));
    assert!(!stdout(&replay(&["--color", "never"], b"")).contains(colour));
    let coloured = stdout(&replay(&["--color", "always"], b""));
    assert!(coloured.contains(colour));
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), stdout(&replay(&[], b"")));
}

#[test]
fn the_width_is_that_of_columns() {
    for columns in [40, 60, 80, 120] {
        let output = tidegate().arg("replay").env("COLUMNS", columns.to_string()).output().unwrap();
        let page = stdout(&output);
        let widest = page.lines().map(|line| line.chars().count()).max().unwrap();
        // Times are round, so that a chart may leave a part of the width unused.
        assert!((columns * 3 / 4..=columns).contains(&widest), "{widest} of {columns}:\n{page}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    // Much more than a pipe holds, to a reader that is gone.
    let mut child = tidegate()
        .args(["sample-log", "--episodes", "20"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn without_a_command_there_is_help() {
    let output = tidegate().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("replay"), "{}", stderr(&output));
    let output = tidegate().args(["replay", "--help"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    for part in ["Examples:", "Exit status:", "burst-sustain:30/15s,100/300s", "refused_by"] {
        assert!(stdout(&output).contains(part), "{part}");
    }
}

#[test]
fn the_help_tells_every_field_of_the_json() {
    fn names(value: &serde_json::Value, into: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    into.push(name.clone());
                    names(value, into);
                }
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| names(value, into)),
            _ => {}
        }
    }
    let help = stdout(&tidegate().args(["replay", "--help"]).output().unwrap());
    let (_, help) = help.split_once("JSON:").unwrap();
    let words: Vec<&str> = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let mut fields = Vec::new();
    names(&json(&[], b""), &mut fields);
    assert!(fields.len() > 20);
    for field in fields {
        assert!(words.contains(&field.as_str()), "{field}");
    }
}
