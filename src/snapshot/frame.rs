//! Bytes with their checksum. Only this file names crc32fast.

use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};

use super::error::RestoreError;

/// Writes bytes, and the checksum of all of them so far where it is asked to.
pub(super) struct Sink<W: Write> {
    to: BufWriter<W>,
    sum: crc32fast::Hasher,
}

impl<W: Write> Sink<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { to: BufWriter::new(writer), sum: crc32fast::Hasher::new() }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.to.write_all(bytes)
    }

    /// Writes the checksum, which the next one covers too.
    pub(super) fn seal(&mut self) -> io::Result<()> {
        let sum = self.sum.clone().finalize();
        self.put(&sum.to_le_bytes())
    }

    /// The last checksum, and everything on its way.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.seal()?;
        self.to.flush()
    }
}

/// Reads bytes, and holds them to their checksums.
pub(super) struct Source<R> {
    from: BufReader<R>,
    sum: crc32fast::Hasher,
}

impl<R: Read> Source<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { from: BufReader::new(reader), sum: crc32fast::Hasher::new() }
    }

    pub(super) fn take<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], RestoreError> {
        let mut bytes = [0; COUNT];
        self.from.read_exact(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => RestoreError::Truncated,
            _ => RestoreError::Io(error),
        })?;
        self.sum.update(&bytes);
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, RestoreError> {
        self.take().map(|[byte]| byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, RestoreError> {
        self.take().map(u64::from_le_bytes)
    }

    /// Four numbers.
    pub(super) fn four(&mut self) -> Result<[u64; 4], RestoreError> {
        Ok([self.number()?, self.number()?, self.number()?, self.number()?])
    }

    /// Reads the checksum of everything so far.
    pub(super) fn unseal(&mut self) -> Result<(), RestoreError> {
        let sum = self.sum.clone().finalize();
        if u32::from_le_bytes(self.take()?) == sum { Ok(()) } else { Err(RestoreError::Checksum) }
    }

    /// The last checksum, and nothing after it.
    pub(super) fn finish(mut self) -> Result<(), RestoreError> {
        self.unseal()?;
        match self.take::<1>() {
            Err(RestoreError::Truncated) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(RestoreError::TrailingBytes),
        }
    }
}
