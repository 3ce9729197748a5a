//! The entries of a log as named fields: access logs, CSV with a header line, JSON Lines.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::path::Path;

use serde_json::{Map, Value};

use super::csv::each_csv;
use super::line::{self, Entry, LineError, quoted};
use super::read::{Broken, each_line};

/// How entries are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// The common or combined format of web servers
    Access,
    /// A header line, then lines of fields with commas between
    Csv,
    /// A JSON object in each line
    Jsonl,
}

impl Format {
    /// What the name of a file says, or else its beginning: a brace begins JSON. What is neither is an access log.
    ///
    /// # Errors
    ///
    /// When the beginning cannot be read.
    pub fn detect(path: Option<&Path>, input: &mut impl BufRead) -> io::Result<Self> {
        let name = path.and_then(Path::file_name).map(|name| name.to_string_lossy().to_lowercase());
        let name = name.as_deref().unwrap_or("");
        let name = name.strip_suffix(".gz").unwrap_or(name);
        if name.ends_with(".csv") {
            return Ok(Self::Csv);
        }
        let begins_with_brace = input.fill_buf()?.trim_ascii_start().first() == Some(&b'{');
        let is_json = begins_with_brace || name.ends_with(".jsonl") || name.ends_with(".ndjson");
        Ok(if is_json { Self::Jsonl } else { Self::Access })
    }

    /// As messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Access => "an access log",
            Self::Csv => "CSV",
            Self::Jsonl => "JSON Lines",
        }
    }
}

/// One entry.
pub trait Record {
    /// What stands in this field; `None` where the entry has none, or nothing stands in it.
    fn get(&self, field: &str) -> Option<Cow<'_, str>>;

    /// The time, where the format has it in a place of its own.
    fn at_unix_ns(&self) -> Option<u64> {
        None
    }

    /// The names of the fields that it has.
    fn fields(&self) -> Vec<String>;
}

/// What is told of the whole input.
#[derive(Debug, Default)]
pub struct Input {
    /// Lines; of CSV, entries.
    pub lines: u64,
    /// Where reading stopped before the end, if it did, and why.
    pub broken: Broken,
}

/// Gives every entry to `each`, with the number of its line from 1, and what is none with what is wrong with it; `tick` is
/// told the lines so far.
pub fn each_record(
    input: impl BufRead,
    format: Format,
    tick: impl FnMut(u64),
    mut each: impl FnMut(u64, Result<&dyn Record, LineError>),
) -> Input {
    let (lines, broken) = match format {
        Format::Access => each_line(input, tick, |number, line| match line.and_then(line::parse) {
            Ok(entry) => each(number, Ok(&AccessRecord::new(entry))),
            Err(error) => each(number, Err(error)),
        }),
        Format::Jsonl => each_line(input, tick, |number, line| match line.and_then(object) {
            Ok(object) => each(number, Ok(&JsonRecord(object))),
            Err(error) => each(number, Err(error)),
        }),
        Format::Csv => each_csv(input, tick, each),
    };
    Input { lines, broken }
}

/// The fields of an access log, in the order in which messages list them.
pub const ACCESS_FIELDS: [&str; 11] = [
    "client",
    "user",
    "request",
    "method",
    "path",
    "query",
    "protocol",
    "status",
    "bytes",
    "referer",
    "user_agent",
];

struct AccessRecord<'a> {
    entry: Entry<'a>,
    method: &'a str,
    path: &'a str,
    query: &'a str,
    protocol: &'a str,
    referer: &'a str,
    user_agent: &'a str,
}

impl<'a> AccessRecord<'a> {
    fn new(entry: Entry<'a>) -> Self {
        let mut words = entry.request.split(' ');
        let (method, target, protocol) = match (words.next(), words.next(), words.next(), words.next()) {
            (Some(method), Some(target), protocol, None) => (method, target, protocol.unwrap_or("")),
            // What somebody sent who speaks no HTTP.
            _ => ("", "", ""),
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut rest = entry.rest;
        let mut next = || {
            rest = rest.strip_prefix(' ').unwrap_or(rest);
            quoted(&mut rest).unwrap_or("")
        };
        let (referer, user_agent) = (next(), next());
        Self { entry, method, path, query, protocol, referer, user_agent }
    }
}

impl Record for AccessRecord<'_> {
    fn get(&self, field: &str) -> Option<Cow<'_, str>> {
        let text = match field {
            "client" => self.entry.client,
            "user" => self.entry.user?,
            "request" => self.entry.request,
            "method" => self.method,
            "path" => self.path,
            "query" => self.query,
            "protocol" => self.protocol,
            "status" => return self.entry.status.map(|status| status.to_string().into()),
            "bytes" => return Some(self.entry.bytes.unwrap_or(0).to_string().into()),
            "referer" => self.referer,
            "user_agent" => self.user_agent,
            _ => return None,
        };
        Some(text).filter(|text| !matches!(*text, "" | "-")).map(Cow::Borrowed)
    }

    fn at_unix_ns(&self) -> Option<u64> {
        Some(self.entry.at_unix_ns)
    }

    fn fields(&self) -> Vec<String> {
        ACCESS_FIELDS.map(str::to_owned).to_vec()
    }
}

fn object(line: &[u8]) -> Result<Map<String, Value>, LineError> {
    let text = std::str::from_utf8(line).map_err(|error| LineError::NotUtf8(error.valid_up_to()))?;
    if text.trim_ascii().is_empty() {
        return Err(LineError::Empty);
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(LineError::Json("another kind of value".into())),
        // The reader's own line number is always 1 here.
        Err(error) => {
            let why = error.to_string();
            let why = why.split(" at line ").next().unwrap_or(&why);
            Err(LineError::Json(format!("{why} at byte {}", error.column()).into()))
        }
    }
}

struct JsonRecord(Map<String, Value>);

impl JsonRecord {
    /// By its whole name, or by names with dots between through objects in objects.
    fn find(&self, field: &str) -> Option<&Value> {
        if let Some(value) = self.0.get(field) {
            return Some(value);
        }
        let mut names = field.split('.');
        let first = self.0.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    }
}

impl Record for JsonRecord {
    fn get(&self, field: &str) -> Option<Cow<'_, str>> {
        match self.find(field)? {
            Value::Null | Value::Array(_) | Value::Object(_) => None,
            Value::String(text) => Some(Cow::Borrowed(text.as_str())).filter(|text| !text.is_empty()),
            other => Some(other.to_string().into()),
        }
    }

    fn fields(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The fields asked for of each entry, `!` and the error for what is none.
    fn read(text: &str, format: Format, fields: &[&str]) -> Vec<String> {
        let mut told = Vec::new();
        each_record(
            text.as_bytes(),
            format,
            |_| (),
            |number, record| {
                let shown = match record {
                    Ok(record) => {
                        fields.iter().map(|field| record.get(field).unwrap_or("-".into())).collect::<Vec<_>>()
                    }
                    Err(error) => vec![format!("!{error}").into()],
                };
                told.push(format!("{number} {}", shown.join("|")));
            },
        );
        told
    }

    #[test]
    fn fields_of_access_logs() {
        let text = r#"192.0.2.1 - Ada L [02/Mar/2026:09:00:00 +0000] "GET /a?b=1?c HTTP/1.1" 200 17 "-" "say \"hi\""
192.0.2.1 - - [02/Mar/2026:09:00:00 +0000] "GET /a" - -
192.0.2.1 - - [02/Mar/2026:09:00:00 +0000] "no HTTP at all" 400 0 "cut
"#;
        let told = read(text, Format::Access, &ACCESS_FIELDS);
        assert_eq!(
            told,
            [
                r#"1 192.0.2.1|Ada L|GET /a?b=1?c HTTP/1.1|GET|/a|b=1?c|HTTP/1.1|200|17|-|say \"hi\""#,
                "2 192.0.2.1|-|GET /a|GET|/a|-|-|-|0|-|-",
                "3 192.0.2.1|-|no HTTP at all|-|-|-|-|400|0|-|-",
            ]
        );
    }

    #[test]
    fn fields_of_json_lines() {
        let text = "{\"a\": 1, \"b\": {\"c\": \"x\", \"d\": null}, \"b.e\": true, \"f\": 1.5, \"g\": []}\n\n[1]\n{\"a\": }\n";
        let told = read(text, Format::Jsonl, &["a", "b", "b.c", "b.d", "b.e", "f", "g", "a.x"]);
        assert_eq!(
            told,
            [
                "1 1|-|x|-|true|1.5|-|-",
                "2 !empty",
                "3 !no JSON object: another kind of value",
                "4 !no JSON object: expected value at byte 7",
            ]
        );
    }

    #[test]
    fn fields_of_csv() {
        let text = "\u{feff}a, b ,c\r\n1,\"x\ny\",\r\n1,2\r\n\r\n\"q\"\"q\",\"2,3\",z";
        let told = read(text, Format::Csv, &["a", "b", "c", "d"]);
        assert_eq!(told, ["2 1|x\ny|-|-", "4 !2 fields; the header has 3", "6 q\"q|2,3|z|-"]);
        assert!(read("", Format::Csv, &[]).is_empty());
    }

    #[test]
    fn formats_are_told_by_name_or_beginning() {
        let detect = |name: Option<&str>, text: &str| {
            Format::detect(name.map(Path::new), &mut text.as_bytes()).unwrap()
        };
        assert_eq!(detect(Some("x/LOG.CSV.gz"), ""), Format::Csv);
        assert_eq!(detect(Some("a.ndjson"), ""), Format::Jsonl);
        assert_eq!(detect(Some("a.log"), " {"), Format::Jsonl);
        assert_eq!(detect(None, "192.0.2.1 - -"), Format::Access);
    }

    proptest! {
        /// Strangers write logs: whatever stands in one, every line is an entry or told.
        #[test]
        fn no_input_stops_a_reader(text in proptest::collection::vec(prop_oneof![
            any::<u8>(),
            proptest::sample::select(b"\",\n\r{}[]:1a \xff".to_vec()),
        ], 0..400)) {
            for format in [Format::Access, Format::Csv, Format::Jsonl] {
                let mut told = 0;
                let input = each_record(&*text, format, |_| (), |_, record| {
                    told += 1;
                    if let Ok(record) = record {
                        for field in record.fields() {
                            record.get(&field);
                        }
                    }
                });
                prop_assert!(input.broken.is_none());
                prop_assert_eq!(input.lines, told);
            }
        }
    }
}
