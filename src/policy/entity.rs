//! The types of entities by name.

use std::fmt;
use std::str::FromStr;

use super::rule::{Entity, EntityType};

/// Every type, in the order in which an error lists them.
pub(super) const ALL: [EntityType; 8] = [
    EntityType::Namespace,
    EntityType::Title,
    EntityType::MasterPlayerAccount,
    EntityType::TitlePlayerAccount,
    EntityType::Character,
    EntityType::Group,
    EntityType::GameServer,
    EntityType::Other,
];

impl EntityType {
    /// Its name, as `"MasterPlayerAccount"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::Title => "Title",
            Self::MasterPlayerAccount => "MasterPlayerAccount",
            Self::TitlePlayerAccount => "TitlePlayerAccount",
            Self::Character => "Character",
            Self::Group => "Group",
            Self::GameServer => "GameServer",
            Self::Other => "Other",
        }
    }

    /// Whether it is a player: who then pays for what it does, to whomever.
    pub const fn is_player(self) -> bool {
        matches!(self, Self::MasterPlayerAccount | Self::TitlePlayerAccount | Self::Character)
    }
}

impl<'a> Entity<'a> {
    /// An entity of this type and id.
    pub const fn new(kind: EntityType, id: &'a str) -> Self {
        Self { kind, id }
    }
}

impl fmt::Display for EntityType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for EntityType {
    type Err = UnknownEntityType;

    /// By the names that [`as_str`](Self::as_str) gives, letter by letter.
    ///
    /// ```
    /// use tidegate::policy::EntityType;
    ///
    /// assert_eq!("Title".parse(), Ok(EntityType::Title));
    /// assert!("title".parse::<EntityType>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, UnknownEntityType> {
        let known = ALL.into_iter().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| UnknownEntityType { given: text.to_owned() })
    }
}

/// A text that names no [`EntityType`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownEntityType {
    given: String,
}

impl fmt::Display for UnknownEntityType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entity type is {:?}; it must be one of", self.given)?;
        for (at, kind) in ALL.into_iter().enumerate() {
            write!(f, "{}{kind}", if at == 0 { " " } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownEntityType {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_known_by_its_name() {
        for kind in ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        let error = "title".parse::<EntityType>().unwrap_err().to_string();
        assert!(
            error.starts_with("entity type is \"title\"; it must be one of Namespace, Title, "),
            "{error}"
        );
    }
}
