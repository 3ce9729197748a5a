//! The drawings of a replay, in the files that were asked for.

use std::io::Write;

use super::Failure;
use super::kept::Kept;
use crate::args::ReplayArgs;
use crate::report::{self, Picture};

/// Files for drawings, opened before a long log is read.
pub(super) struct Drawn<'a> {
    svg: Option<Kept<'a>>,
    #[cfg(feature = "png")]
    png: Option<Kept<'a>>,
}

impl<'a> Drawn<'a> {
    pub(super) fn open(args: &'a ReplayArgs) -> Result<Self, Failure> {
        #[cfg(feature = "png")]
        if args.png.is_some() && args.png == args.svg {
            return Err(Failure::Usage("replay", "--svg and --png name the same file".to_owned()));
        }
        Ok(Self {
            svg: args.svg.as_deref().map(Kept::create).transpose()?,
            #[cfg(feature = "png")]
            png: args.png.as_deref().map(Kept::create).transpose()?,
        })
    }

    pub(super) fn write(self, picture: &Picture<'_>) -> Result<(), Failure> {
        if let Some(mut kept) = self.svg {
            let written =
                report::picture_svg(picture).and_then(|drawing| kept.file.write_all(drawing.as_bytes()));
            kept.written(written)?;
        }
        #[cfg(feature = "png")]
        if let Some(mut kept) = self.png {
            let written = report::picture_png(picture).and_then(|pixels| kept.file.write_all(&pixels));
            kept.written(written)?;
        }
        Ok(())
    }
}
