//! A whole log as requests in memory: 24 bytes each, and everything that tells requests apart once.

use std::collections::{BTreeSet, HashMap};
use std::io::BufRead;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use tidegate::policy::{Cost, Entity, EntityType, KeyPart, Request, Rules};

use super::mapping::{Mapping, Part};
use crate::log::line::{LineError, found};
use crate::log::read::Skips;
use crate::log::records::{Format, Input, Record, each_record};
use crate::log::time;

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
    /// What it costs, by its own account.
    pub cost: u64,
    /// All else: an index into [`Requests::shapes`].
    pub shape: u32,
}

/// All of a request but its time and cost.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    api: Box<str>,
    title: Option<Box<str>>,
    namespace: Option<Box<str>>,
    caller: Option<(EntityType, Box<str>)>,
    target: Option<(EntityType, Box<str>)>,
    client_ip: Option<IpAddr>,
    is_authenticated: bool,
    /// In the order of [`Requests::attributes`].
    attributes: Vec<Option<Box<str>>>,
}

impl Shape {
    /// The request, with attributes as [`Requests::attribute_lists`] gives them.
    pub fn request<'a>(&'a self, attributes: &'a [(&'a str, &'a str)]) -> Request<'a> {
        let entity = |entity: &'a Option<(EntityType, Box<str>)>| {
            entity.as_ref().map(|(kind, id)| Entity::new(*kind, id))
        };
        let mut request = Request::new(&self.api).authenticated(self.is_authenticated).attributes(attributes);
        request.title = self.title.as_deref();
        request.namespace = self.namespace.as_deref();
        request.caller = entity(&self.caller);
        request.target = entity(&self.target);
        request.client_ip = self.client_ip;
        request
    }
}

/// What was read.
#[derive(Debug, Default)]
pub struct Requests {
    /// In the order of their times; those of one time in the order of their lines.
    pub arrivals: Vec<Arrival>,
    /// What tells requests apart.
    pub shapes: Vec<Rc<Shape>>,
    /// The attributes that anybody asks for.
    pub attributes: Vec<String>,
    /// How many lines there were, and where reading stopped.
    pub input: Input,
    /// The lines that were no requests.
    pub skips: Skips,
    /// Requests whose client is no address, but the name of a host perhaps: they are decided without one.
    pub without_address: u64,
    /// Whether any of them says what it costs.
    pub has_costs: bool,
}

impl Requests {
    /// Reads to the end, or to the first error of the input; `attributes` are those that are kept, and `tick` is told the
    /// lines so far.
    ///
    /// # Errors
    ///
    /// When the command line asks for a field that no entry has.
    pub fn read(
        input: impl BufRead,
        format: Format,
        mapping: &Mapping,
        attributes: Vec<String>,
        tick: impl FnMut(u64),
    ) -> Result<Self, String> {
        let read = Self { attributes, ..Self::default() };
        let unseen = mapping.asked().collect();
        let mut reader = Reader { mapping, read, numbers: HashMap::new(), unseen, fields: Vec::new() };
        let input = each_record(input, format, tick, |line, record| {
            if let Err(error) = record.and_then(|record| reader.add(record)) {
                reader.read.skips.add(line, error);
            }
        });
        // An access log has its fields, whether or not anything stands in them.
        if format != Format::Access && !reader.fields.is_empty() {
            mapping.check(|field| !reader.unseen.contains(&field), &reader.fields)?;
        }
        let mut read = reader.read;
        read.input = input;
        // Stable, and quick on what is in order but for a few.
        read.arrivals.sort_by_key(|arrival| arrival.at_unix_ns);
        Ok(read)
    }

    /// Whether any request has this part.
    pub fn have(&self, part: &Part) -> bool {
        let any = |has: &dyn Fn(&Shape) -> bool| self.shapes.iter().any(|shape| has(shape));
        match part {
            Part::Time => !self.arrivals.is_empty(),
            Part::Api => any(&|shape| !shape.api.is_empty()),
            Part::Title => any(&|shape| shape.title.is_some()),
            Part::Namespace => any(&|shape| shape.namespace.is_some()),
            Part::User | Part::CallerType => any(&|shape| shape.caller.is_some()),
            Part::Target | Part::TargetType => any(&|shape| shape.target.is_some()),
            Part::ClientIp => any(&|shape| shape.client_ip.is_some()),
            Part::Authenticated => any(&|shape| shape.is_authenticated),
            Part::Cost => self.has_costs,
            Part::Attribute(name) => match self.attributes.iter().position(|known| known == name) {
                Some(at) => any(&|shape| shape.attributes[at].is_some()),
                None => false,
            },
        }
    }

    /// For each shape its attributes, as requests borrow them.
    pub fn attribute_lists(&self) -> Vec<Vec<(&str, &str)>> {
        let mut lists = Vec::with_capacity(self.shapes.len());
        for shape in &self.shapes {
            let pairs = self.attributes.iter().zip(&shape.attributes);
            lists.push(pairs.filter_map(|(name, value)| Some((name.as_str(), value.as_deref()?))).collect());
        }
        lists
    }
}

/// Makes requests of entries.
struct Reader<'a> {
    mapping: &'a Mapping,
    read: Requests,
    numbers: HashMap<Rc<Shape>, u32>,
    /// Fields that the command line asks for and that no entry had so far.
    unseen: Vec<&'a str>,
    /// The fields of the first entry.
    fields: Vec<String>,
}

impl Reader<'_> {
    fn add(&mut self, record: &dyn Record) -> Result<(), LineError> {
        if self.fields.is_empty() {
            self.fields = record.fields();
            // A column is there, even if nothing stands in it.
            self.unseen.retain(|field| !self.fields.iter().any(|known| known == field));
        }
        self.unseen.retain(|field| record.get(field).is_none());
        let at_unix_ns = match record.at_unix_ns() {
            Some(at_unix_ns) => at_unix_ns,
            None => time::parse(&self.one(&Part::Time, record)?)?,
        };
        let cost = self.cost(record)?;
        let shape = self.shape(record)?;
        let next = u32::try_from(self.read.shapes.len()).map_err(|_| LineError::TooManyClients)?;
        let shape = match self.numbers.get(&shape) {
            Some(number) => *number,
            None => {
                let shape = Rc::new(shape);
                self.read.shapes.push(Rc::clone(&shape));
                self.numbers.insert(shape, next);
                next
            }
        };
        self.read.arrivals.push(Arrival { at_unix_ns, cost, shape });
        Ok(())
    }

    /// A part without which there is no request.
    fn one(&self, part: &Part, record: &dyn Record) -> Result<String, LineError> {
        let first = self.mapping.pieces(part, record).and_then(|mut pieces| pieces.next());
        match first {
            Some(Ok(text)) => Ok(text.into_owned()),
            Some(Err(field)) => Err(LineError::Missing(crate::key::printable(field).into())),
            None => Err(LineError::Missing(part.to_string().into())),
        }
    }

    /// The sum of what is mapped; 1 where the command line maps nothing and the entry says nothing.
    fn cost(&mut self, record: &dyn Record) -> Result<u64, LineError> {
        let is_asked = self.mapping.is_asked(&Part::Cost);
        let mut sum = None;
        for piece in self.mapping.pieces(&Part::Cost, record).into_iter().flatten() {
            match piece {
                Ok(text) => sum = Some(number(&text)?.saturating_add(sum.unwrap_or(0))),
                Err(field) if is_asked => {
                    return Err(LineError::Missing(crate::key::printable(field).into()));
                }
                Err(_) => {}
            }
        }
        self.read.has_costs |= sum.is_some();
        Ok(sum.unwrap_or(1))
    }

    fn shape(&mut self, record: &dyn Record) -> Result<Shape, LineError> {
        let text = |part: &Part| self.mapping.text(part, record).map(|text| Box::from(&*text));
        let entity = |id: &Part, kind: &Part, usual: EntityType| -> Result<_, LineError> {
            let Some(id) = text(id) else { return Ok(None) };
            let kind = text(kind).map_or(Ok(usual), |kind: Box<str>| entity_type(&kind))?;
            Ok(Some((kind, id)))
        };
        let caller = entity(&Part::User, &Part::CallerType, EntityType::TitlePlayerAccount)?;
        let is_authenticated = match text(&Part::Authenticated) {
            Some(word) => truth(&word)?,
            None => caller.is_some(),
        };
        let address = text(&Part::ClientIp);
        let client_ip = address.as_deref().and_then(address_of);
        let attribute = |name: &String| text(&Part::Attribute(name.clone()));
        let shape = Shape {
            api: text(&Part::Api).unwrap_or_default(),
            title: text(&Part::Title),
            namespace: text(&Part::Namespace),
            target: entity(&Part::Target, &Part::TargetType, EntityType::Other)?,
            caller,
            client_ip,
            is_authenticated,
            attributes: self.read.attributes.iter().map(attribute).collect(),
        };
        self.read.without_address += u64::from(address.is_some() && client_ip.is_none());
        Ok(shape)
    }
}

/// A whole number, perhaps written as a fraction of which nothing is left.
fn number(text: &str) -> Result<u64, LineError> {
    let whole = match text.trim().split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole,
        _ => text.trim(),
    };
    if whole.is_empty() || !whole.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(LineError::Value("cost", found(text, "not a whole number")));
    }
    Ok(whole.parse().unwrap_or(u64::MAX))
}

/// An address, perhaps with a port.
fn address_of(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))
}

fn truth(text: &str) -> Result<bool, LineError> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err(LineError::Value("authenticated", found(text, "not true or false"))),
    }
}

/// By its name in code, `GameServer`, or in policy files, `game-server`.
fn entity_type(text: &str) -> Result<EntityType, LineError> {
    let capital = |word: &str| -> String {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
    };
    let joined: String = text.split('-').map(capital).collect();
    joined.parse().map_err(|_| LineError::Value("type", found(text, "not a type as in title-player-account")))
}

/// What a part of a key asks of requests; of an entity whatever of these there is.
pub(crate) fn asked_by_key(part: &KeyPart) -> Vec<Part> {
    match part {
        KeyPart::Title => vec![Part::Title],
        KeyPart::Namespace => vec![Part::Namespace],
        KeyPart::User => vec![Part::User],
        KeyPart::ClientIp { .. } => vec![Part::ClientIp],
        KeyPart::Entity => vec![Part::User, Part::ClientIp],
        KeyPart::Attribute(name) => vec![Part::Attribute(name.clone())],
        KeyPart::Custom(..) => Vec::new(),
    }
}

/// Everything that the rules ask of requests.
pub fn asked_by(policies: &[&Rules]) -> BTreeSet<Part> {
    let mut asked = BTreeSet::new();
    for rule in policies.iter().flat_map(|rules| &rules.rules) {
        asked.extend(rule.key.iter().flat_map(asked_by_key));
        match &rule.cost {
            Cost::Fixed(_) => {}
            Cost::OfRequest => drop(asked.insert(Part::Cost)),
            Cost::Attribute(name) => drop(asked.insert(Part::Attribute(name.clone()))),
        }
        if !rule.matcher.apis.is_empty() {
            asked.insert(Part::Api);
        }
        let conditions = rule.matcher.attributes.iter().chain(&rule.exempt.attributes);
        asked.extend(conditions.map(|(name, _)| Part::Attribute(name.clone())));
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, format: Format, maps: &[&str]) -> Requests {
        let args: Vec<_> = maps.iter().map(|map| map.parse().unwrap()).collect();
        let attributes = vec!["plan".to_owned()];
        let mapping = Mapping::new(&args, format, &attributes).unwrap();
        Requests::read(text.as_bytes(), format, &mapping, attributes, |_| ()).unwrap()
    }

    #[test]
    fn fields_of_the_names_of_parts_are_taken_by_themselves() {
        let text = "\
timestamp,api,title,namespace,user,caller_type,target,target_type,client_ip,authenticated,cost,plan
2,a,t,n,u,game-server,x,Group,192.0.2.1:80,no,7.0,free
1,a,,,,,,,nowhere,,,
";
        let read = read(text, Format::Csv, &[]);
        let lists = read.attribute_lists();
        let times: Vec<_> = read.arrivals.iter().map(|arrival| (arrival.at_unix_ns, arrival.cost)).collect();
        assert_eq!(times, [(1_000_000_000, 1), (2_000_000_000, 7)]);
        assert_eq!(read.without_address, 1);
        let first = read.shapes[0].request(&lists[0]);
        assert_eq!((first.api, first.title, first.namespace), ("a", Some("t"), Some("n")));
        assert_eq!(first.caller, Some(Entity::new(EntityType::GameServer, "u")));
        assert_eq!(first.target, Some(Entity::new(EntityType::Group, "x")));
        assert_eq!(first.client_ip, Some([192, 0, 2, 1].into()));
        assert!(!first.is_authenticated);
        assert_eq!(first.attributes, [("plan", "free")]);
        let second = read.shapes[1].request(&lists[1]);
        assert_eq!((second.caller, second.target, second.client_ip), (None, None, None));
        assert!(second.attributes.is_empty() && second.title.is_none());
    }

    #[test]
    fn sums_and_what_is_wrong_with_them() {
        let text = "time,a,b\n0,1,2\n0,1,\n0,1,x\n0,18446744073709551615,9\n,1,1\n0,-1,1\n";
        let read = read(text, Format::Csv, &["cost=a+b+'10'"]);
        let costs: Vec<_> = read.arrivals.iter().map(|arrival| arrival.cost).collect();
        assert_eq!(costs, [13, u64::MAX]);
        let told: Vec<_> = read.skips.first.iter().map(|(line, error)| format!("{line} {error}")).collect();
        assert_eq!(
            told,
            [
                "3 no \"b\"",
                "4 bad cost \"x\": not a whole number",
                "6 no \"time\"",
                "7 bad cost \"-1\": not a whole number",
            ]
        );
    }

    #[test]
    fn words_that_mean_nothing_are_told() {
        let text = "{\"ts\": 1, \"user\": \"u\", \"caller_type\": \"king\"}\n{\"ts\": 1, \"authenticated\": \"maybe\"}\n";
        let read = read(text, Format::Jsonl, &[]);
        let told: Vec<_> = read.skips.first.iter().map(|(_, error)| error.to_string()).collect();
        assert_eq!(
            told,
            [
                "bad type \"king\": not a type as in title-player-account",
                "bad authenticated \"maybe\": not true or false",
            ]
        );
    }

    #[test]
    fn a_request_is_small() {
        assert_eq!(size_of::<Arrival>(), 24);
    }
}
