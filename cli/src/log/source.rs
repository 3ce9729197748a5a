//! Where a log comes from: a file, standard input or the bundled sample, plain or compressed.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::PathBuf;

use flate2::bufread::MultiGzDecoder;

use crate::key::printable;
use crate::sample;

/// Which log to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The log that is compiled into the command.
    Sample,
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl Source {
    /// What the command line names: nothing is the sample, `-` is standard input.
    pub fn from_argument(argument: Option<PathBuf>) -> Self {
        match argument {
            None => Source::Sample,
            Some(path) if path.as_os_str() == "-" => Source::Stdin,
            Some(path) => Source::File(path),
        }
    }

    /// Opens the raw bytes, and tells their number where it is known.
    pub fn open(&self) -> io::Result<(Box<dyn Read>, Option<u64>)> {
        match self {
            Source::Sample => {
                let length = u64::try_from(sample::BUNDLED_GZ.len()).ok();
                Ok((Box::new(Cursor::new(sample::BUNDLED_GZ)), length))
            }
            Source::Stdin => Ok((Box::new(io::stdin().lock()), None)),
            Source::File(path) => {
                let file = File::open(path)?;
                // A pipe or a device has no length worth showing.
                let length = file.metadata().ok().filter(|about| about.is_file()).map(|about| about.len());
                Ok((Box::new(file), length))
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Sample => write!(f, "the bundled sample log (seed {})", sample::BUNDLED_SEED),
            Source::Stdin => f.write_str("standard input"),
            Source::File(path) => f.write_str(&printable(&path.to_string_lossy())),
        }
    }
}

const BUFFER: usize = 256 * 1024;

/// Reads `raw` as it is, or decompresses it if it begins like a gzip file, whatever its name says. All
/// members of a gzip file are read, one after the other.
///
/// # Errors
///
/// When the first bytes cannot be read.
pub fn decompress<'a>(mut raw: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    const MAGIC: [u8; 2] = [0x1f, 0x8b];
    let mut head = Vec::with_capacity(MAGIC.len());
    raw.by_ref().take(2).read_to_end(&mut head)?;
    let compressed = head == MAGIC;
    let whole = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(raw));
    Ok(if compressed {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole)))
    } else {
        Box::new(whole)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn read(raw: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        decompress(raw)?.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn plain_and_short_inputs_pass_through() {
        for text in [&b""[..], b"\x1f", b"ab", b"plain\n"] {
            assert_eq!(read(text).unwrap(), text);
        }
    }

    #[test]
    fn every_member_of_a_gzip_file_is_read() {
        let mut raw = gzip(b"one\n");
        raw.extend(gzip(b""));
        raw.extend(gzip(b"two\n"));
        assert_eq!(read(&raw).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn magic_that_arrives_byte_by_byte_is_seen() {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let length = buffer.len().min(1);
                self.0.read(&mut buffer[..length])
            }
        }
        let raw = gzip(b"slow\n");
        let mut text = Vec::new();
        decompress(Slow(&raw)).unwrap().read_to_end(&mut text).unwrap();
        assert_eq!(text, b"slow\n");
    }

    #[test]
    fn a_gzip_file_cut_short_is_an_error() {
        let raw = gzip(&b"line\n".repeat(1000));
        for length in [2, 5, raw.len() / 2, raw.len() - 1] {
            let error = read(&raw[..length]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}: {error}");
        }
    }
}
