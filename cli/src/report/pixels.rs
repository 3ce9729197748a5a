//! Drawings as PNG files: plotters draws into memory, the text of it by ab_glyph in DejaVu Sans, which is free to use
//! and part of the command (feature `png`).
//!
//! plotters could write text by itself, but then measures all text by the typeface, in SVG too, and a drawing would differ
//! with the feature. Here only the writing is ours.

use std::io::{self, Write};

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, DrawingBackend, IntoDrawingArea};
use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind, FontTransform,
};
use plotters_bitmap::BitMapBackend;

use super::svg::Drawn;

/// Bytes of a pixel: red, green, blue.
const CHANNELS: usize = 3;

/// What `draw` draws, as a PNG file of so many pixels.
///
/// # Errors
/// What the drawing library reports.
pub(super) fn png(
    size: (u32, u32),
    draw: impl FnOnce(&DrawingArea<Pixels<'_>, Shift>) -> Drawn,
) -> io::Result<Vec<u8>> {
    let failed = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let (width, height) = (size.0 as usize, size.1 as usize);
    let mut pixels = vec![255; width * height * CHANNELS];
    {
        let font = FontRef::try_from_slice(dejavu::sans::regular()).map_err(|error| failed(&error))?;
        let bitmap = BitMapBackend::with_buffer(&mut pixels, size);
        let root = Pixels { bitmap, font }.into_drawing_area();
        draw(&root).map_err(|error| failed(&error))?;
    }
    encoded(size, &pixels)
}

/// Pixels as a file, by the PNG specification (third edition, §5): a header, one stream of rows, an end.
fn encoded((width, height): (u32, u32), pixels: &[u8]) -> io::Result<Vec<u8>> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::new();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // Eight bits a channel, true colour, the only compression and filter method, not interlaced.
    header.extend([8, 2, 0, 0, 0]);
    chunk(&mut file, *b"IHDR", &header)?;
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::best());
    for row in pixels.chunks(width as usize * CHANNELS) {
        rows.write_all(&[0])?; // no filter
        rows.write_all(row)?;
    }
    chunk(&mut file, *b"IDAT", &rows.finish()?)?;
    chunk(&mut file, *b"IEND", &[])?;
    Ok(file)
}

/// Length, name, data, and the checksum of name and data.
fn chunk(file: &mut Vec<u8>, name: [u8; 4], data: &[u8]) -> io::Result<()> {
    let length = u32::try_from(data.len()).map_err(io::Error::other)?;
    let mut checksum = flate2::Crc::new();
    checksum.update(&name);
    checksum.update(data);
    file.extend(length.to_be_bytes());
    file.extend(name);
    file.extend(data);
    file.extend(checksum.sum().to_be_bytes());
    Ok(())
}

/// Pixels in memory that can be written on.
pub(super) struct Pixels<'a> {
    bitmap: BitMapBackend<'a>,
    font: FontRef<'static>,
}

type Done<E> = Result<(), DrawingErrorKind<E>>;

impl<'a> DrawingBackend for Pixels<'a> {
    type ErrorType = <BitMapBackend<'a> as DrawingBackend>::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.bitmap.get_size()
    }

    fn ensure_prepared(&mut self) -> Done<Self::ErrorType> {
        self.bitmap.ensure_prepared()
    }

    fn present(&mut self) -> Done<Self::ErrorType> {
        self.bitmap.present()
    }

    fn draw_pixel(&mut self, at: BackendCoord, colour: BackendColor) -> Done<Self::ErrorType> {
        self.bitmap.draw_pixel(at, colour)
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        at: BackendCoord,
    ) -> Done<Self::ErrorType> {
        let colour = style.color();
        // The size of a typeface is that of its em, here as in SVG.
        let em = self.font.units_per_em().unwrap_or(1_000.0);
        #[expect(clippy::cast_possible_truncation, reason = "letters are no thousand pixels high")]
        let size = PxScale::from(style.size() as f32 * self.font.height_unscaled() / em);
        let scaled = self.font.as_scaled(size);
        let width: f32 = text.chars().map(|letter| scaled.h_advance(scaled.glyph_id(letter))).sum();
        let anchor = style.anchor();
        let mut x = match anchor.h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width / 2.0,
            HPos::Right => -width,
        };
        let baseline = match anchor.v_pos {
            VPos::Top => scaled.ascent(),
            VPos::Center => (scaled.ascent() + scaled.descent()) / 2.0,
            VPos::Bottom => scaled.descent(),
        };
        let transform = style.transform();
        for letter in text.chars() {
            let glyph = scaled.glyph_id(letter);
            let placed = glyph.with_scale_and_position(size, point(x, baseline));
            x += scaled.h_advance(glyph);
            let Some(outline) = scaled.outline_glyph(placed) else { continue };
            let corner = outline.px_bounds().min;
            let mut inked = Vec::new();
            outline.draw(|column, row, coverage| inked.push((column, row, coverage)));
            for (column, row, coverage) in inked {
                let (along, down) = (whole(corner.x) + signed(column), whole(corner.y) + signed(row));
                let (x, y) = turned(&transform, along, down);
                let alpha = colour.alpha * f64::from(coverage.min(1.0));
                self.bitmap.draw_pixel((at.0 + x, at.1 + y), BackendColor { alpha, rgb: colour.rgb })?;
            }
        }
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Done<Self::ErrorType> {
        self.bitmap.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Done<Self::ErrorType> {
        self.bitmap.draw_rect(from, to, style, fill)
    }
}

/// Where a point of a text is that is turned about its anchor.
fn turned(transform: &FontTransform, along: i32, down: i32) -> (i32, i32) {
    match transform {
        FontTransform::None => (along, down),
        FontTransform::Rotate90 => (-down, along),
        FontTransform::Rotate180 => (-along, -down),
        FontTransform::Rotate270 => (down, -along),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "letters stand within a drawing")]
fn whole(at: f32) -> i32 {
    at.floor() as i32
}

fn signed(at: u32) -> i32 {
    i32::try_from(at).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file's chunks, each checksum asserted.
    fn chunks(mut file: &[u8]) -> Vec<(String, Vec<u8>)> {
        file = file.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
        let mut chunks = Vec::new();
        while !file.is_empty() {
            let length = u32::from_be_bytes(file[..4].try_into().unwrap()) as usize;
            let (covered, rest) = file[4..].split_at(4 + length);
            let mut checksum = flate2::Crc::new();
            checksum.update(covered);
            assert_eq!(rest[..4], checksum.sum().to_be_bytes());
            let name = String::from_utf8(covered[..4].to_vec()).unwrap();
            chunks.push((name, covered[4..].to_vec()));
            file = &rest[4..];
        }
        chunks
    }

    #[test]
    fn a_file_is_a_header_rows_and_an_end() {
        let pixels: Vec<u8> = (0..2 * 3 * 3).collect();
        let chunks = chunks(&encoded((2, 3), &pixels).unwrap());
        let names: Vec<&str> = chunks.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["IHDR", "IDAT", "IEND"]);
        assert_eq!(chunks[0].1, [0, 0, 0, 2, 0, 0, 0, 3, 8, 2, 0, 0, 0]);
        let mut rows = Vec::new();
        io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&chunks[1].1[..]), &mut rows).unwrap();
        assert_eq!(rows, [0, 0, 1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10, 11, 0, 12, 13, 14, 15, 16, 17]);
    }

    #[test]
    fn text_is_turned_about_its_anchor() {
        // Upright, reading upwards: what is further along is higher, what is further down is to the right.
        assert_eq!(turned(&FontTransform::Rotate270, 5, 2), (2, -5));
        assert_eq!(turned(&FontTransform::Rotate90, 5, 2), (-2, 5));
    }
}
