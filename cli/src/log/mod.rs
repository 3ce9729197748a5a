//! Access logs: one line ([`line`]), where the bytes come from ([`source`]) and the whole log in
//! memory ([`read`]).

pub mod line;
pub mod read;
pub mod source;
