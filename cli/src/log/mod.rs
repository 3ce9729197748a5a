//! Logs: one line of an access log ([`mod@line`]), where the bytes come from ([`source`]), an access log in
//! memory ([`mod@read`]), and the entries of a log of any format as named fields ([`records`]), with their times ([`time`]).

mod csv;
pub mod line;
pub mod read;
pub mod records;
pub mod source;
pub mod time;
