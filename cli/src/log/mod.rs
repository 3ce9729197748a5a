//! Access logs: one line ([`mod@line`]), where the bytes come from ([`source`]) and the whole log in
//! memory ([`mod@read`]).

pub mod line;
pub mod read;
pub mod source;
