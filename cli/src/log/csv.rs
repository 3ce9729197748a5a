//! CSV with a header line, as RFC 4180 describes it.

use std::borrow::Cow;
use std::io::BufRead;

use csv_core::ReadRecordResult;

use super::line::LineError;
use super::read::{Broken, LINE_BYTES_MAX, each_line};
use super::records::Record;

/// How much room a buffer gets when it is full.
const ROOM: usize = 256;

/// Puts lines together to records: a field in quotes may hold line breaks.
struct Splitter {
    core: csv_core::Reader,
    /// The fields of the record, one after the other, without quotes.
    output: Vec<u8>,
    output_len: usize,
    /// Where each field ends.
    ends: Vec<usize>,
    ends_len: usize,
    /// The number of the record's first line, if it has begun, and how many bytes its lines have so far.
    begun: Option<(u64, usize)>,
}

impl Splitter {
    fn new() -> Self {
        let core = csv_core::Reader::new();
        Self { core, output: Vec::new(), output_len: 0, ends: Vec::new(), ends_len: 0, begun: None }
    }

    /// Makes room for the next record, whatever became of this one. The number of its first line.
    fn begin(&mut self) -> u64 {
        self.core.reset();
        (self.output_len, self.ends_len) = (0, 0);
        self.begun.take().map_or(0, |(number, _)| number)
    }

    /// Adds a part of the input; nothing is its end. Whether the record is complete.
    fn feed(&mut self, mut part: &[u8]) -> bool {
        let is_end = part.is_empty();
        loop {
            let (output, ends) = (&mut self.output[self.output_len..], &mut self.ends[self.ends_len..]);
            let (result, read, written, ended) = self.core.read_record(part, output, ends);
            part = &part[read..];
            self.output_len += written;
            self.ends_len += ended;
            match result {
                ReadRecordResult::OutputFull => self.output.resize(self.output.len() * 2 + ROOM, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2 + ROOM, 0),
                ReadRecordResult::InputEmpty if is_end => {} // once more: then it ends
                ReadRecordResult::InputEmpty => return false,
                ReadRecordResult::Record | ReadRecordResult::End => return true,
            }
        }
    }

    /// Adds a line. The number of the record's first line if the record is complete, or if it never will be.
    fn line(&mut self, number: u64, line: Result<&[u8], LineError>) -> Option<Result<(), LineError>> {
        let line = match line {
            Ok([]) if self.begun.is_none() => return None,
            Ok(line) => line,
            Err(error) => {
                self.begun.get_or_insert((number, 0));
                return Some(Err(error));
            }
        };
        let (_, bytes) = self.begun.get_or_insert((number, 0));
        *bytes += line.len();
        // A quote that nobody closes must not swallow the rest of the log.
        if *bytes > LINE_BYTES_MAX {
            return Some(Err(LineError::TooLong));
        }
        // The line break that was taken off tells where the record ends; an empty part would be the end of all.
        let is_complete = (!line.is_empty() && self.feed(line)) || self.feed(b"\n");
        is_complete.then_some(Ok(()))
    }

    /// The record, if it is text.
    fn text(&self) -> Result<&str, LineError> {
        let output = &self.output[..self.output_len];
        std::str::from_utf8(output).map_err(|error| LineError::NotUtf8(error.valid_up_to()))
    }

    fn ends(&self) -> &[usize] {
        &self.ends[..self.ends_len]
    }
}

struct CsvRecord<'a> {
    header: &'a [String],
    text: &'a str,
    ends: &'a [usize],
}

impl<'a> CsvRecord<'a> {
    fn field(&self, at: usize) -> Option<&'a str> {
        let start = if at == 0 { 0 } else { *self.ends.get(at - 1)? };
        self.text.get(start..*self.ends.get(at)?)
    }
}

impl Record for CsvRecord<'_> {
    fn get(&self, field: &str) -> Option<Cow<'_, str>> {
        let at = self.header.iter().position(|name| name == field)?;
        self.field(at).filter(|text| !text.is_empty()).map(Cow::Borrowed)
    }

    fn fields(&self) -> Vec<String> {
        self.header.to_vec()
    }
}

/// Gives every record below the header to `each`, with the number of its first line; empty lines are none. How many there
/// were, and where reading stopped.
pub(super) fn each_csv(
    input: impl BufRead,
    tick: impl FnMut(u64),
    mut each: impl FnMut(u64, Result<&dyn Record, LineError>),
) -> (u64, Broken) {
    let mut splitter = Splitter::new();
    let mut header = None;
    let mut records = 0;
    let mut complete = |splitter: &mut Splitter, whole: Result<(), LineError>| {
        let record = whole.and_then(|()| splitter.text());
        let ends = splitter.ends();
        let told: Result<CsvRecord<'_>, LineError> = match (&header, record) {
            (None, record) => {
                let named = CsvRecord { header: &[], text: record.unwrap_or(""), ends };
                let names = (0..ends.len()).map(|at| named.field(at).unwrap_or("").trim().to_owned());
                header = Some(names.collect::<Vec<String>>());
                splitter.begin();
                return;
            }
            (Some(header), Ok(_)) if ends.len() != header.len() => {
                Err(LineError::Columns(ends.len() as u64, header.len() as u64))
            }
            (Some(header), record) => record.map(|text| CsvRecord { header, text, ends }),
        };
        records += 1;
        let number = splitter.begun.map_or(0, |(number, _)| number);
        match told {
            Ok(record) => each(number, Ok(&record)),
            Err(error) => each(number, Err(error)),
        }
        splitter.begin();
    };
    let (_, broken) = each_line(input, tick, |number, line| {
        if let Some(whole) = splitter.line(number, line) {
            complete(&mut splitter, whole);
        }
    });
    if splitter.begun.is_some() && broken.is_none() {
        splitter.feed(&[]);
        complete(&mut splitter, Ok(()));
    }
    (records, broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first field of each record with its line; `!` and the error of what is none.
    fn read(text: &str) -> Vec<String> {
        let mut told = Vec::new();
        let (records, broken) = each_csv(
            text.as_bytes(),
            |_| (),
            |number, record| match record {
                Ok(record) => told.push(format!("{number} {}", record.get("a").unwrap_or("-".into()))),
                Err(error) => told.push(format!("{number} !{error}")),
            },
        );
        assert_eq!((records, broken.is_none()), (told.len() as u64, true));
        told
    }

    #[test]
    fn quotes_hold_commas_quotes_and_line_breaks() {
        let text = "b,a\n1,\"x,\"\"y\"\"\n\nz\"\n2,5\" pipe\r\n\r\n3,\"\"\n4,\"q\"";
        assert_eq!(read(text), ["2 x,\"y\"\n\nz", "5 5\" pipe", "7 -", "8 q"]);
    }

    #[test]
    fn many_fields_and_long_ones_are_whole() {
        let names: Vec<String> = (0..2_000).map(|at| format!("n{at}")).collect();
        let text = format!("{},a\n{}{}\n", names.join(","), ",".repeat(2_000), "x".repeat(40_000));
        assert_eq!(read(&text), [format!("2 {}", "x".repeat(40_000))]);
    }

    #[test]
    fn a_quote_that_nobody_closes_costs_no_more_than_it_must() {
        let swallowed = "1\n".repeat(LINE_BYTES_MAX + 1);
        let told = read(&format!("a\n1\n\"{swallowed}2\n"));
        assert_eq!(told[..2], ["2 1", "3 !longer than 64 KiB"]);
        assert_eq!(told.last().unwrap().split(' ').nth(1), Some("2"));
        assert_eq!(read("a\n1\n\"2\n3"), ["2 1", "3 2\n3\n"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_and_passed_over() {
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        assert_eq!(read(&format!("a\n1\n{long}\n2\n")), ["2 1", "3 !longer than 64 KiB", "4 2"]);
        assert!(read("").is_empty() && read("a\n").is_empty());
    }
}
