//! One line of an access log.
//!
//! Reads the common log format and whatever extends it at the end, the combined format among them:
//!
//! ```text
//! client ident user [day/month/year:hour:minute:second zone] "request" status bytes …
//! ```
//!
//! A replay of one limit needs only the client and the time. The other fields are checked all the same: a line cut
//! short, or of another format, must be seen as such and not be counted against the wrong client.

use std::fmt;

use jiff::fmt::strtime::BrokenDownTime;
use winnow::Parser;
use winnow::error::EmptyError;
use winnow::token::{take_till, take_while};

/// The fields of a line that was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The address or host name of the client, never empty.
    pub client: &'a str,
    /// The user that the server knows, if one was logged.
    pub user: Option<&'a str>,
    /// When the request came, in nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
    /// What stands between the quotes, escapes and all.
    pub request: &'a str,
    /// The status, if one was logged.
    pub status: Option<u16>,
    /// The size of the response, if one was logged.
    pub bytes: Option<u64>,
    /// Whatever follows: in the combined format ` "referer" "user agent"`.
    pub rest: &'a str,
}

/// Why a line was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineError {
    /// Nothing stands in it.
    Empty,
    /// It is longer than a reader is willing to hold.
    TooLong,
    /// Its bytes are not UTF-8; the number is that of the first wrong byte, counted from 0.
    NotUtf8(usize),
    /// A field is missing or is not what belongs in its place.
    Field(Field),
    /// The time cannot be read, or lies outside the range that a replay can hold.
    Time(Box<str>),
    /// There are more distinct clients than can be numbered.
    TooManyClients,
    /// A line of a CSV file has so many fields, and its header so many.
    Columns(u64, u64),
    /// It is no JSON object.
    Json(Box<str>),
    /// Nothing stands where a part of a request comes from.
    Missing(Box<str>),
    /// What stands there cannot be read as this part of a request.
    Value(&'static str, Box<str>),
}

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The three fields before the time.
    Head,
    /// What stands where the client belongs, with the client behind it.
    BeforeClient,
    /// The brackets around the time.
    Brackets,
    /// The quoted request.
    Request,
    /// The status.
    Status,
    /// The size of the response.
    Bytes,
}

impl LineError {
    /// What lines with the same fault have in common.
    pub fn kind(&self) -> &'static str {
        match self {
            LineError::Empty => "empty",
            LineError::TooLong => "longer than 64 KiB",
            LineError::NotUtf8(_) => "not UTF-8",
            LineError::Field(Field::Head) => "other than client, identity and user before the time",
            LineError::Field(Field::BeforeClient) => {
                "a field before the client, a virtual host perhaps; cut -d' ' -f2- drops it"
            }
            LineError::Field(Field::Brackets) => "no time in brackets",
            LineError::Field(Field::Request) => "no request in quotes after the time",
            LineError::Field(Field::Status) => "no status of three digits after the request",
            LineError::Field(Field::Bytes) => "no size after the status",
            LineError::Time(_) => "bad time",
            LineError::TooManyClients => "too many distinct clients",
            LineError::Columns(..) => "more or fewer fields than the header",
            LineError::Json(_) => "no JSON object",
            LineError::Missing(_) => "a field is missing",
            LineError::Value("cost", _) => "bad cost",
            LineError::Value("authenticated", _) => "bad word for whether the caller is authenticated",
            LineError::Value(..) => "bad type of an entity",
        }
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::NotUtf8(at) => write!(f, "not UTF-8 at byte {at}"),
            LineError::Time(why) => write!(f, "bad time {why}"),
            LineError::Columns(found, header) => write!(f, "{found} fields; the header has {header}"),
            LineError::Json(why) => write!(f, "no JSON object: {why}"),
            LineError::Missing(what) => write!(f, "no \"{what}\""),
            LineError::Value(field, why) => write!(f, "bad {field} {why}"),
            _ => f.write_str(self.kind()),
        }
    }
}

impl std::error::Error for LineError {}

/// Reads one line, given without its line break.
///
/// # Errors
///
/// When it is no line of an access log; the error names the first field that does not fit.
pub fn parse(line: &[u8]) -> Result<Entry<'_>, LineError> {
    let text = std::str::from_utf8(line).map_err(|error| LineError::NotUtf8(error.valid_up_to()))?;
    if text.trim_ascii().is_empty() {
        return Err(LineError::Empty);
    }
    let mut rest = text;
    let (client, user) = head(&mut rest)?;
    let time = expect(&mut rest, ("[", take_till(1.., ']'), "] "), Field::Brackets)?.1;
    // The shape of the rest is looked at before the time is worked out: it is cheaper, and a line of
    // another format is told as such.
    let request = quoted(&mut rest)?;
    let status = status(&mut rest)?;
    let bytes = bytes(&mut rest)?;
    let at_unix_ns = unix_ns(time)?;
    let user = Some(user).filter(|user| *user != "-");
    Ok(Entry { client, user, at_unix_ns, request, status, bytes, rest })
}

fn expect<'a, T>(
    rest: &mut &'a str,
    mut parser: impl Parser<&'a str, T, EmptyError>,
    field: Field,
) -> Result<T, LineError> {
    parser.parse_next(rest).map_err(|EmptyError| LineError::Field(field))
}

/// The client and the user; the identity is stepped over.
fn head<'a>(rest: &mut &'a str) -> Result<(&'a str, &'a str), LineError> {
    let word = || (take_till(1.., ' '), ' ');
    let (client, _) = expect(rest, word(), Field::Head)?;
    let (identity, _) = expect(rest, word(), Field::Head)?;
    if rest.starts_with('[') {
        return Err(LineError::Field(Field::Head)); // two fields only
    }
    // A user may hold spaces: it ends where the time begins. A lone `-` stands for no user, and with
    // more behind it the line has a field too many (a virtual host in front, say): taken for a client,
    // that host would be charged with everybody's requests.
    let user = expect(rest, take_till(1.., '['), Field::Brackets)?;
    if rest.is_empty() {
        return Err(LineError::Field(Field::Brackets));
    }
    match user.strip_suffix(' ') {
        Some(user) if !user.starts_with("- ") => Ok((client, user)),
        // Hardly any server looks up identities: what stands in that place is the client, moved by one.
        Some(_) if identity != "-" => Err(LineError::Field(Field::BeforeClient)),
        _ => Err(LineError::Field(Field::Head)),
    }
}

/// A text in quotes, in which a backslash takes the meaning from what follows it.
pub(super) fn quoted<'a>(rest: &mut &'a str) -> Result<&'a str, LineError> {
    expect(rest, '"', Field::Request)?;
    let text = *rest;
    let mut from = 0;
    loop {
        let found = text.as_bytes()[from..].iter().position(|byte| matches!(byte, b'"' | b'\\'));
        let at = from + found.ok_or(LineError::Field(Field::Request))?;
        if text.as_bytes()[at] == b'"' {
            *rest = &text[at + 1..];
            return Ok(&text[..at]);
        }
        // Steps over the escaped byte. When it begins a longer character, the bytes that follow are
        // neither quote nor backslash, so nothing is cut in two.
        from = (at + 2).min(text.len());
    }
}

fn status(rest: &mut &str) -> Result<Option<u16>, LineError> {
    expect(rest, ' ', Field::Status)?;
    if rest.starts_with("- ") {
        *rest = &rest[1..];
        return Ok(None);
    }
    let digits = expect(rest, take_while(3..=3, |c: char| c.is_ascii_digit()), Field::Status)?;
    digits.parse().map(Some).map_err(|_| LineError::Field(Field::Status))
}

fn bytes(rest: &mut &str) -> Result<Option<u64>, LineError> {
    let field = Field::Bytes;
    expect(rest, ' ', field)?;
    let word = expect(rest, take_till(1.., ' '), field)?;
    if word == "-" {
        return Ok(None);
    }
    if !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(LineError::Field(field));
    }
    word.parse().map(Some).map_err(|_| LineError::Field(field))
}

/// What nanoseconds in 64 bits can tell, as people write it.
pub(super) const RANGE: &str = "must lie between 1970 and July 2554";

pub(super) fn unix_ns(time: &str) -> Result<u64, LineError> {
    let bad = |why: &str| LineError::Time(found(time, why));
    let timestamp = BrokenDownTime::parse("%d/%b/%Y:%H:%M:%S%.f %z", time)
        .and_then(|time| time.to_timestamp())
        .map_err(|_| bad(fault(time)))?;
    u64::try_from(timestamp.as_nanosecond()).map_err(|_| bad(RANGE))
}

/// What was found, cut short, and what is wrong with it.
pub(crate) fn found(text: &str, why: &str) -> Box<str> {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("\"{}\": {why}", crate::key::printable(&shown)).into()
}

/// What is wrong with a time that could not be read. The library that reads times tells it in terms of
/// its own format directives, which nobody has seen who only has a log.
fn fault(time: &str) -> &'static str {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    const SHAPE: &str = "time is not day/Mon/year:hh:mm:ss zone";
    let (local, zone) = match time.split_once(' ') {
        Some((local, zone)) => (local, Some(zone)),
        None => (time, None),
    };
    let parts: Vec<&str> = local.split(['/', ':']).collect();
    let [day, month, year, hour, minute, second] = parts[..] else {
        return SHAPE;
    };
    let number = |text: &str| text.parse::<u32>().ok();
    let whole_second = second.split('.').next().unwrap_or(second);
    let numbers = [day, year, hour, minute, whole_second].map(number);
    let [Some(day), Some(year), Some(hour), Some(minute), Some(second)] = numbers else {
        return SHAPE;
    };
    let month = month.to_ascii_lowercase();
    let Some(month) = (1_u8..).zip(MONTHS).find_map(|(number, name)| (name == month).then_some(number))
    else {
        return "no such month (Jan to Dec)";
    };
    let days = match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=days).contains(&day) {
        return "no such day";
    }
    if hour > 23 || minute > 59 || second > 60 {
        return "no such time of day";
    }
    let Some(zone) = zone else {
        return "no zone, as in +0000";
    };
    let digits = zone.strip_prefix(['+', '-']).unwrap_or("");
    if digits.len() != 4 || number(digits).is_none() {
        return "zone is not like +0000";
    }
    if year > 9_999 { RANGE } else { SHAPE }
}

#[cfg(test)]
mod tests;
