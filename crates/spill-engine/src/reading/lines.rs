//! Finds lines. A line is what a line feed ends, and what is left behind the last one.

use std::ops::Range;

use super::item::Item;
use super::{AskError, LineAsk};

/// The bytes of the lines asked for, line feeds included, and the number of the first; the number is unknown when counted
/// from the end.
pub(super) fn find(item: &Item<'_>, ask: LineAsk) -> Result<(Range<u64>, Option<u64>), AskError> {
    if ask.count == 0 {
        return Err(AskError::Nothing);
    }
    let (start, number) = match ask.first {
        super::FirstLine::FromStart(0) => return Err(AskError::LineZero),
        super::FirstLine::FromStart(number) => (start_of(item, number)?, Some(number)),
        super::FirstLine::FromEnd(back) => (start_from_end(item, back)?, None),
    };
    let end = behind(item, start, ask.count)?;
    Ok((start..end.unwrap_or(item.size), number))
}

fn start_of(item: &Item<'_>, number: u64) -> Result<u64, AskError> {
    if number == 1 {
        return Ok(0);
    }
    match behind(item, 0, number - 1)? {
        Some(start) if start < item.size => Ok(start),
        Some(_) | None => Err(AskError::LinePastEnd {
            line: number,
            lines: count(item)?,
        }),
    }
}

/// The position behind the `count`th line feed from `from` on.
fn behind(item: &Item<'_>, from: u64, count: u64) -> Result<Option<u64>, AskError> {
    let mut left = count;
    item.scan(from, |at, bytes| {
        for feed in memchr::memchr_iter(b'\n', bytes) {
            left -= 1;
            if left == 0 {
                return Some(at + feed as u64 + 1);
            }
        }
        None
    })
}

/// Where the `back`th line from the end starts; the first line if there are fewer. 0 counts as 1.
fn start_from_end(item: &Item<'_>, back: u64) -> Result<u64, AskError> {
    let mut left = back.max(1);
    let last = item.size.saturating_sub(1);
    let found = item.scan_back(|at, bytes| {
        for feed in memchr::memrchr_iter(b'\n', bytes) {
            // The last byte's line feed ends the last line and starts none.
            if at + feed as u64 == last {
                continue;
            }
            left -= 1;
            if left == 0 {
                return Some(at + feed as u64 + 1);
            }
        }
        None
    })?;
    Ok(found.unwrap_or(0))
}

/// Lines of the whole item, as [`line_count`](crate::line_count) counts them.
pub(super) fn count(item: &Item<'_>) -> Result<u64, AskError> {
    let mut feeds = 0;
    let mut last = None;
    item.scan(0, |_, bytes| {
        feeds += memchr::memchr_iter(b'\n', bytes).count() as u64;
        last = bytes.last().copied();
        None::<()>
    })?;
    Ok(feeds + u64::from(last.is_some_and(|byte| byte != b'\n')))
}
