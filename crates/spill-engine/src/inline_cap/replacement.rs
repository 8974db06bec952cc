//! The text that stands for a stored one: its ends and one notice, never above the cap.

use super::options::Layout;
use crate::by_content;
use crate::content::ContentKind;

/// Which end of a text matters more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lean {
    /// Both the same; an odd byte goes to the head.
    Even,
    /// The end: failures are told there. The head has a quarter.
    Tail,
}

/// The text to be replaced, as far as a preview needs it.
pub(crate) trait Original {
    /// Bytes in all.
    fn total(&self) -> usize;
    /// Whole characters of the first `bytes` bytes; asked for no more than the cap.
    fn head(&self, bytes: usize) -> &str;
    /// Whole characters of the last `bytes` bytes; asked for no more than the cap.
    fn tail(&self, bytes: usize) -> &str;
}

/// A text that is here.
pub(crate) struct Whole<'a>(pub(crate) &'a str);

impl Original for Whole<'_> {
    fn total(&self) -> usize {
        self.0.len()
    }

    fn head(&self, bytes: usize) -> &str {
        &self.0[..self.0.floor_char_boundary(bytes)]
    }

    fn tail(&self, bytes: usize) -> &str {
        &self.0[self
            .0
            .ceil_char_boundary(self.0.len().saturating_sub(bytes))..]
    }
}

/// What a replacement is made with.
pub(crate) struct Replacement<'a> {
    pub(crate) cap: usize,
    pub(crate) locator: &'a str,
    pub(crate) hint: &'a str,
    pub(crate) layout: Layout,
    pub(crate) lean: Lean,
}

/// What stands around the kept ends, from the largest to the smallest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// A first line, a marker, the notice: for caps of at least four times their size.
    Full,
    /// A marker and the notice: for caps of at least twice their size.
    Marker,
    /// The notice, under one end.
    OneEnd,
    /// The notice, under both ends with nothing between them.
    Glued,
}

/// The kept ends of a text.
#[derive(Clone, Copy)]
struct Ends<'a> {
    head: &'a str,
    tail: &'a str,
}

impl Ends<'_> {
    fn bytes(self) -> usize {
        self.head.len() + self.tail.len()
    }
}

const BETWEEN: &str = "\n\n";

impl Replacement<'_> {
    /// The replacement of a text that is larger than the cap; `None` when not even the notice fits.
    pub(crate) fn render(&self, original: &impl Original) -> Option<String> {
        let total = original.total();
        let frame = match self.layout {
            Layout::Glued => Frame::Glued,
            Layout::Marked if is_data_uri(original.head(self.cap)) => {
                return Some(self.notice(total)).filter(|notice| notice.len() <= self.cap);
            }
            Layout::Marked if self.price(Frame::Full, total) <= self.cap / 4 => Frame::Full,
            Layout::Marked if self.price(Frame::Marker, total) <= self.cap / 2 => Frame::Marker,
            Layout::Marked => Frame::OneEnd,
        };
        let reserved = self.ends(frame, original, total);
        let text = match frame {
            Frame::Glued => self.assemble(frame, reserved, total),
            Frame::Full | Frame::Marker | Frame::OneEnd => {
                self.tightened(frame, original, reserved)
            }
        };
        (text.len() <= self.cap).then_some(text)
    }

    /// The preview of `text` as `kind` above the notice; `None` when there is no room for one.
    pub(crate) fn by_content(&self, text: &str, kind: ContentKind) -> Option<String> {
        let notice = self.notice_that(&format!("Shown in parts, {} bytes.", text.len()));
        let room = self.cap.checked_sub(BETWEEN.len() + notice.len())?;
        let preview = by_content::within(text, kind, room)?;
        Some(format!("{preview}{BETWEEN}{notice}"))
    }

    /// The bytes that were reserved for a longer count go to the ends, and these stop at lines.
    fn tightened(&self, frame: Frame, original: &impl Original, reserved: Ends<'_>) -> String {
        let total = original.total();
        let tight = self.ends(frame, original, total - reserved.bytes());
        let candidates = [at_lines(tight), tight];
        candidates
            .into_iter()
            .map(|ends| self.assemble(frame, ends, total))
            .find(|text| text.len() <= self.cap)
            .unwrap_or_else(|| self.assemble(frame, reserved, total))
    }

    /// The ends that fit beside a frame that says that `omitted` bytes are left out.
    fn ends<'a>(&self, frame: Frame, original: &'a impl Original, omitted: usize) -> Ends<'a> {
        let room = self.cap.saturating_sub(self.price(frame, omitted));
        let (head, tail) = match (frame, self.lean) {
            (Frame::OneEnd, Lean::Even) => (room, 0),
            (Frame::OneEnd, Lean::Tail) => (0, room),
            (Frame::Full | Frame::Marker, Lean::Tail) => (room / 4, room - room / 4),
            (Frame::Full | Frame::Marker, Lean::Even) | (Frame::Glued, _) => {
                (room.div_ceil(2), room / 2)
            }
        };
        Ends {
            head: original.head(head),
            tail: original.tail(tail),
        }
    }

    fn price(&self, frame: Frame, omitted: usize) -> usize {
        let notice = BETWEEN.len() + self.notice(omitted).len();
        match frame {
            Frame::Full => notice + marker(omitted).len() + self.first_line(omitted).len(),
            Frame::Marker => notice + marker(omitted).len(),
            Frame::OneEnd | Frame::Glued => notice,
        }
    }

    fn assemble(&self, frame: Frame, ends: Ends<'_>, total: usize) -> String {
        let omitted = total - ends.bytes();
        if ends.bytes() == 0 {
            return self.notice(omitted);
        }
        let mut text = String::with_capacity(self.price(frame, omitted) + ends.bytes());
        if frame == Frame::Full {
            text.push_str(&self.first_line(omitted));
        }
        text.push_str(ends.head);
        let marked = matches!(frame, Frame::Full | Frame::Marker);
        if marked && !ends.head.is_empty() && !ends.tail.is_empty() {
            let marker = marker(omitted);
            let after_line = ends.head.ends_with('\n');
            text.push_str(if after_line {
                marker.trim_start()
            } else {
                &marker
            });
        }
        text.push_str(ends.tail);
        text.push_str(BETWEEN);
        text.push_str(&self.notice(omitted));
        text
    }

    fn notice(&self, omitted: usize) -> String {
        self.notice_that(&format!("Omitted {omitted} bytes."))
    }

    fn notice_that(&self, omission: &str) -> String {
        let stored = format!(
            "{omission} Full formatted result stored at: {}.",
            self.locator
        );
        format!("({})", crate::retain::notice(&stored, self.hint))
    }

    fn first_line(&self, omitted: usize) -> String {
        format!(
            "({omitted} bytes are left out below; the whole is at {})\n",
            self.locator
        )
    }
}

/// A picture or other medium written as one text: no part of it is worth anything.
fn is_data_uri(start: &str) -> bool {
    let start = &start[..start.floor_char_boundary(256)];
    start.starts_with("data:") && start.contains(";base64,")
}

fn marker(omitted: usize) -> String {
    format!("\n[... {omitted} bytes left out ...]\n")
}

/// Cut at line ends, where each end keeps at least half of itself.
fn at_lines(ends: Ends<'_>) -> Ends<'_> {
    let Ends { head, tail } = ends;
    let head_end = head.rfind('\n').map_or(0, |line_feed| line_feed + 1);
    let tail_start = tail
        .find('\n')
        .map_or(tail.len(), |line_feed| line_feed + 1);
    Ends {
        head: if head_end * 2 >= head.len() {
            &head[..head_end]
        } else {
            head
        },
        tail: if tail_start * 2 <= tail.len() {
            &tail[tail_start..]
        } else {
            tail
        },
    }
}
