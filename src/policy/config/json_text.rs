//! JSON (RFC 8259) into values with their places. It stops at the first thing that is no JSON: what follows a missing
//! quote or bracket would be guesswork.

use std::collections::HashSet;

use super::node::{Entry, Node, Value, quoted};
use super::toml_text::{Fault, Parsed};

/// How deep lists and tables may nest.
const DEPTH_MAX: usize = 64;

/// What could be read, if all of it could, and what could not.
pub(super) fn parse(text: &str) -> Parsed {
    let mut parser = Parser { text, at: 0, twice: Vec::new() };
    let read = parser.document();
    let mut faults = parser.twice;
    let node = read.map_err(|fault| faults.push(fault)).ok();
    Parsed { node, faults, lost_from: None }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Names that a table has twice.
    twice: Vec<Fault>,
}

type Step<T> = Result<T, Fault>;

impl Parser<'_> {
    fn document(&mut self) -> Step<Node> {
        let node = self.node(0)?;
        self.skip_space();
        if self.at < self.text.len() { Err(self.wanted("the end of the text")) } else { Ok(node) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The fault that something else stands here.
    fn wanted(&self, what: &str) -> Fault {
        let found = match self.text[self.at..].chars().next() {
            Some(found) => quoted(&found.to_string()),
            None => "the end of the text".to_owned(),
        };
        (self.at, format!("expected {what}, found {found}"))
    }

    fn node(&mut self, depth: usize) -> Step<Node> {
        self.skip_space();
        let at = self.at;
        if depth > DEPTH_MAX {
            return Err((at, format!("more than {DEPTH_MAX} lists and tables in each other")));
        }
        let value = match self.peek() {
            Some(b'{') => self.table(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { at, value })
    }

    fn word(&mut self) -> Step<Value> {
        let words = [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("null", Value::Other("null".to_owned())),
        ];
        for (word, value) in words {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wanted("a value"))
    }

    fn table(&mut self, depth: usize) -> Step<Value> {
        self.at += 1;
        let mut entries = Vec::new();
        let mut names = HashSet::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Value::Table(entries));
        }
        loop {
            self.skip_space();
            let at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.wanted("a name in double quotes"));
            }
            let name = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.wanted("a colon"));
            }
            let node = self.node(depth + 1)?;
            if names.insert(name.clone()) {
                entries.push(Entry { name, at, node });
            } else {
                self.twice.push((at, format!("{} stands in this table already", quoted(&name))));
            }
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Table(entries));
            }
            if !self.take(b',') {
                return Err(self.wanted("a comma or }"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Step<Value> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.node(depth + 1)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::List(items));
            }
            if !self.take(b',') {
                return Err(self.wanted("a comma or ]"));
            }
        }
    }

    fn digits(&mut self) -> Step<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.wanted("a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Step<Value> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        let written = &self.text[start..self.at];
        Ok(match written.parse() {
            Ok(whole) => Value::Whole(whole),
            Err(_) => Value::Number(written.to_owned()),
        })
    }

    fn string(&mut self) -> Step<String> {
        self.at += 1;
        let mut made = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            made.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(made);
                }
                Some(b'\\') => made.push(self.escape()?),
                _ => return Err(self.wanted("a double quote at the end of the text in quotes")),
            }
        }
    }

    fn escape(&mut self) -> Step<char> {
        let start = self.at;
        self.at += 1;
        let Some(kind) = self.peek() else { return Err(self.wanted("a character")) };
        let plain = match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode(start);
            }
            _ => return Err((start, "an escape that JSON does not have".to_owned())),
        };
        self.at += 1;
        Ok(plain)
    }

    /// What follows `\u`: one unit of UTF-16, or the first of two.
    fn unicode(&mut self, start: usize) -> Step<char> {
        let first = self.hex()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            units.push(self.hex()?);
        }
        let mut made = char::decode_utf16(units);
        match (made.next(), made.next()) {
            (Some(Ok(character)), None) => Ok(character),
            _ => Err((start, "half a character of UTF-16".to_owned())),
        }
    }

    fn hex(&mut self) -> Step<u16> {
        let digits = self.text.get(self.at..self.at + 4);
        match digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            Some(digits) => {
                self.at += 4;
                Ok(u16::from_str_radix(digits, 16).unwrap_or_default())
            }
            None => Err(self.wanted("four hexadecimal digits")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> String {
        match parse(text) {
            Parsed { node: Some(Node { value: Value::Text(made), .. }), faults, .. } if faults.is_empty() => {
                made
            }
            other => panic!("{text}: {:?}", other.faults),
        }
    }

    fn fault(text: &str) -> Fault {
        let mut faults = parse(text).faults;
        assert_eq!(faults.len(), 1, "{text}: {faults:?}");
        faults.remove(0)
    }

    #[test]
    fn escapes_are_those_of_the_rfc() {
        assert_eq!(texts(r#""a\"\\\/\b\f\n\r\tä\u00e4\ud83d\ude00""#), "a\"\\/\u{8}\u{c}\n\r\tää😀");
        for half in [r#""\ud83d""#, r#""\ud83dx""#, r#""\ude00""#, r#""\ud83d\u0041""#] {
            assert_eq!(fault(half).1, "half a character of UTF-16", "{half}");
        }
        assert_eq!(fault(r#""\x""#), (1, "an escape that JSON does not have".to_owned()));
        assert_eq!(fault(r#""\u00€1""#).0, 3);
    }

    #[test]
    fn what_is_no_json_is_told_with_its_byte() {
        let cases = [
            ("", 0, "expected a value, found the end of the text"),
            ("{\"a\": 1,}", 8, "expected a name in double quotes, found \"}\""),
            ("{\"a\" 1}", 5, "expected a colon, found \"1\""),
            ("[1 2]", 3, "expected a comma or ], found \"2\""),
            ("[01]", 2, "expected a comma or ], found \"1\""),
            ("{} x", 3, "expected the end of the text, found \"x\""),
            ("\"a\nb\"", 2, "expected a double quote at the end of the text in quotes, found \"\\n\""),
            ("{\"a\":1,\"a\":2}", 7, "\"a\" stands in this table already"),
            ("-", 1, "expected a digit, found the end of the text"),
        ];
        for (text, at, says) in cases {
            assert_eq!(fault(text), (at, says.to_owned()), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(fault(&deep).1, "more than 64 lists and tables in each other");
    }

    #[test]
    fn numbers_are_whole_or_as_written() {
        let number = |text: &str| parse(text).node.map(|node| node.value);
        assert_eq!(number("18446744073709551615"), Some(Value::Whole(u64::MAX)));
        for odd in ["18446744073709551616", "-1", "1.5", "1e3", "-0"] {
            assert_eq!(number(odd), Some(Value::Number(odd.to_owned())), "{odd}");
        }
    }
}
