//! Which fields of a log make which parts of a request: `--map`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::log::records::{ACCESS_FIELDS, Format, Record};

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// When it came.
    Time,
    /// The name of the API, service or route.
    Api,
    /// The title's id.
    Title,
    /// The namespace's id.
    Namespace,
    /// The caller's id.
    User,
    /// What the caller is; a title player account unless told.
    CallerType,
    /// The id of whom the call is about.
    Target,
    /// What that is.
    TargetType,
    /// The client's address.
    ClientIp,
    /// Whether the caller has proved who it is; who has a user has, unless told.
    Authenticated,
    /// What it costs, by its own account.
    Cost,
    /// An attribute by name.
    Attribute(String),
}

/// All parts but attributes, with their names.
const PARTS: [(&str, Part); 11] = [
    ("time", Part::Time),
    ("api", Part::Api),
    ("title", Part::Title),
    ("namespace", Part::Namespace),
    ("user", Part::User),
    ("caller_type", Part::CallerType),
    ("target", Part::Target),
    ("target_type", Part::TargetType),
    ("client_ip", Part::ClientIp),
    ("authenticated", Part::Authenticated),
    ("cost", Part::Cost),
];

/// What begins the name of an attribute.
const ATTRIBUTE: &str = "attribute:";

/// Where the time of an entry stands if nobody says it.
const TIME_FIELDS: [&str; 6] = ["time", "timestamp", "Timestamp", "TIMESTAMP", "@timestamp", "ts"];

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Attribute(name) => write!(f, "{ATTRIBUTE}{name}"),
            part => f.write_str(PARTS.iter().find(|(_, known)| known == part).map_or("", |(name, _)| name)),
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Part::named(text, |_| true)
    }
}

impl Part {
    /// The part of this name, of those that may be asked for.
    ///
    /// # Errors
    /// The name that comes nearest, and all that there are.
    pub(crate) fn named(text: &str, may_be: impl Fn(&Part) -> bool) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix(ATTRIBUTE).filter(|name| !name.is_empty()) {
            return Ok(Part::Attribute(name.to_owned()));
        }
        let parts: Vec<_> = PARTS.iter().filter(|(_, part)| may_be(part)).collect();
        if let Some((_, part)) = parts.iter().find(|(name, _)| *name == text) {
            return Ok(part.clone());
        }
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        let known = format!("Known: {}, {ATTRIBUTE}NAME", names.join(", "));
        Err(match nearest(text, names.into_iter()) {
            Some(name) => format!("\"{text}\" is no part of a request; did you mean \"{name}\"? {known}"),
            None => format!("\"{text}\" is no part of a request. {known}"),
        })
    }
}

/// The spelling that comes nearest, if one is near.
pub(crate) fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let rated = known.map(|name| (strsim::jaro_winkler(&text.to_lowercase(), &name.to_lowercase()), name));
    rated
        .filter(|(score, _)| *score > 0.8)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

/// Where a part comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// A field of the log.
    Field(String),
    /// The first of these fields that an entry has.
    FirstOf(&'static [&'static str]),
    /// The same for every entry.
    Constant(String),
}

/// One `--map`: a part, and what it comes from. Several of them are a sum, which only a cost can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapArg {
    part: Part,
    text: String,
    origins: Vec<Origin>,
}

impl MapArg {
    /// What it makes up.
    pub fn part(&self) -> &Part {
        &self.part
    }
}

impl FromStr for MapArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const SHAPE: &str = "it must be like api=path, user='everybody' or cost=input+output";
        let (part, source) = text.split_once('=').ok_or_else(|| format!("no =; {SHAPE}"))?;
        let part: Part = part.trim().parse()?;
        let source = source.trim();
        let pieces: Vec<&str> = match part {
            Part::Cost if unquoted(source).is_none() => source.split('+').map(str::trim).collect(),
            _ => vec![source],
        };
        if pieces.contains(&"") {
            return Err(format!("nothing that {part} comes from; {SHAPE}"));
        }
        let origin = |piece: &&str| match unquoted(piece) {
            Some(constant) => Origin::Constant(constant.to_owned()),
            None => Origin::Field((*piece).to_owned()),
        };
        let origins: Vec<Origin> = pieces.iter().map(origin).collect();
        Ok(Self { part, text: text.to_owned(), origins })
    }
}

/// What stands between quotes of one kind.
fn unquoted(text: &str) -> Option<&str> {
    ['"', '\''].iter().find_map(|&quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

/// Which fields make which parts.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Those of the command line stand first.
    parts: Vec<(Part, Vec<Origin>)>,
    asked_parts: usize,
    /// What the command line asked for: the argument, and a field that the log must have.
    asked: Vec<(String, String)>,
}

impl Mapping {
    /// What the command line says, and where it says nothing, what a log of this format has; of `attributes`, which are
    /// all that anybody asks for.
    ///
    /// # Errors
    ///
    /// When two arguments are about one part, or an access log has no such field.
    pub fn new(args: &[MapArg], format: Format, attributes: &[String]) -> Result<Self, String> {
        let mut parts = Vec::<(Part, Vec<Origin>)>::new();
        let mut asked = Vec::new();
        for arg in args {
            if parts.iter().any(|(part, _)| *part == arg.part) {
                return Err(format!("--map {}: {} is mapped twice", arg.text, arg.part));
            }
            if format == Format::Access && arg.part == Part::Time {
                return Err(format!("--map {}: the time of an access log is the one in brackets", arg.text));
            }
            for origin in &arg.origins {
                if let Origin::Field(field) = origin {
                    asked.push((arg.text.clone(), field.clone()));
                }
            }
            parts.push((arg.part.clone(), arg.origins.clone()));
        }
        let asked_parts = parts.len();
        let named = PARTS.into_iter().map(|(_, part)| part);
        for part in named.chain(attributes.iter().cloned().map(Part::Attribute)) {
            if parts.iter().any(|(known, _)| *known == part) {
                continue;
            }
            if let Some(origin) = by_itself(&part, format) {
                parts.push((part, vec![origin]));
            }
        }
        let mapping = Self { parts, asked_parts, asked };
        if format == Format::Access {
            let known = ACCESS_FIELDS.map(str::to_owned);
            mapping.check(|field| ACCESS_FIELDS.contains(&field), &known)?;
        }
        Ok(mapping)
    }

    /// Whether what the command line asked for is there, of a log that has fields of these names.
    ///
    /// # Errors
    ///
    /// The first argument that asks for what is not there, and what is.
    pub fn check(&self, is_known: impl Fn(&str) -> bool, known: &[String]) -> Result<(), String> {
        let Some((arg, field)) = self.asked.iter().find(|(_, field)| !is_known(field)) else {
            return Ok(());
        };
        let meant = nearest(field, known.iter().map(String::as_str));
        let meant = meant.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or(".".to_owned());
        let known = crate::key::printable(&known.join(", "));
        Err(format!("--map {arg}: the log has no field \"{field}\"{meant} Known: {known}"))
    }

    /// Whether the command line says where this part comes from.
    pub fn is_asked(&self, part: &Part) -> bool {
        self.parts[..self.asked_parts].iter().any(|(known, _)| known == part)
    }

    /// The fields that the command line asked for.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().map(|(_, field)| field.as_str())
    }

    /// What makes up a part: the text or number of each piece of it, `Err` with the name of a field that is missing.
    /// `None` where nothing is mapped to it.
    pub fn pieces<'a>(
        &'a self,
        part: &Part,
        record: &'a dyn Record,
    ) -> Option<impl Iterator<Item = Result<Cow<'a, str>, &'a str>>> {
        let (_, origins) = self.parts.iter().find(|(known, _)| known == part)?;
        Some(origins.iter().map(|origin| {
            match origin {
                Origin::Constant(text) => Ok(Cow::Borrowed(text.as_str())),
                Origin::Field(field) => record.get(field).ok_or(field.as_str()),
                Origin::FirstOf(fields) => fields
                    .iter()
                    .find_map(|field| record.get(field))
                    .ok_or_else(|| fields.first().copied().unwrap_or("")),
            }
        }))
    }

    /// The text of a part that is no sum, if the entry has it.
    pub fn text<'a>(&'a self, part: &Part, record: &'a dyn Record) -> Option<Cow<'a, str>> {
        self.pieces(part, record)?.next()?.ok()
    }
}

/// Where a part comes from in a log of this format if nobody says it.
fn by_itself(part: &Part, format: Format) -> Option<Origin> {
    let name = match part {
        Part::Attribute(name) => name.clone(),
        part => part.to_string(),
    };
    let field = match (format, part) {
        (Format::Access, Part::Api) => "path",
        (Format::Access, Part::ClientIp) => "client",
        (Format::Access, Part::User) => "user",
        (Format::Access, Part::Attribute(_)) if ACCESS_FIELDS.contains(&&*name) => &name,
        (Format::Access, _) => return None,
        (_, Part::Time) => return Some(Origin::FirstOf(&TIME_FIELDS)),
        _ => &name,
    };
    Some(Origin::Field(field.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str, expected: &str) {
        let error = text.parse::<MapArg>().unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }

    #[test]
    fn parts_have_the_names_they_are_known_by() {
        for (name, part) in PARTS {
            assert_eq!((name.parse(), part.to_string()), (Ok(part.clone()), name.to_owned()));
        }
        assert_eq!("attribute:x".parse(), Ok(Part::Attribute("x".to_owned())));
    }

    #[test]
    fn what_is_no_mapping_is_told() {
        fails("titel=x", "\"titel\" is no part of a request; did you mean \"title\"? Known: time, api, ");
        fails("zzz=x", "\"zzz\" is no part of a request. Known: time, api, ");
        fails("attribute:=x", "\"attribute:\" is no part of a request");
        fails("api", "no =; it must be like api=path");
        fails("api=", "nothing that api comes from");
        fails("cost=a+", "nothing that cost comes from");
    }

    #[test]
    fn only_a_cost_is_a_sum() {
        let origins = |text: &str| text.parse::<MapArg>().unwrap().origins;
        let field = |name: &str| Origin::Field(name.to_owned());
        assert_eq!(origins("api=a+b"), [field("a+b")]);
        assert_eq!(origins("cost=a + b"), [field("a"), field("b")]);
        assert_eq!(origins("cost=a+'10'"), [field("a"), Origin::Constant("10".to_owned())]);
        assert_eq!(origins("user=\"x=y\""), [Origin::Constant("x=y".to_owned())]);
    }

    #[test]
    fn one_part_has_one_source() {
        let args = ["api=path", "api=query"].map(|text| text.parse().unwrap());
        let error = Mapping::new(&args, Format::Access, &[]).unwrap_err();
        assert_eq!(error, "--map api=query: api is mapped twice");
        let error = Mapping::new(&["time=path".parse().unwrap()], Format::Access, &[]).unwrap_err();
        assert!(error.contains("the one in brackets"), "{error}");
        let error = Mapping::new(&["user=usr".parse().unwrap()], Format::Access, &[]).unwrap_err();
        assert_eq!(
            error,
            "--map user=usr: the log has no field \"usr\"; did you mean \"user\"? Known: client, user, request, method, path, \
             query, protocol, status, bytes, referer, user_agent"
        );
    }
}
