//! List bodies: one document whose `items` may be as long as the cluster is large.

use super::scan::Scan;
use super::{FrameError, Gather, Item, ListMeta, MAX_LIST_META, Sink};

/// Cuts a list body into its items. `metadata` may come before or after them.
#[derive(Debug)]
pub struct ListSplitter {
    place: Place,
    member: Member,
    item: Gather,
    /// Member names and `metadata`.
    pub(super) outer: Gather,
    meta: Option<ListMeta>,
    has_items: bool,
    items: u64,
    bytes: u64,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug)]
enum Place {
    Document,
    /// A member name, or the end of the document where `true`.
    Name(bool),
    InName(Scan),
    Colon,
    Value,
    InValue(Scan),
    AfterValue,
    /// An item, or the end of the items where `true`.
    Item(bool),
    InItem(Scan),
    AfterItem,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Items,
    Metadata,
    Kind,
    Other,
}

impl ListSplitter {
    /// A splitter that keeps items of up to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            place: Place::Document,
            member: Member::Other,
            item: Gather::new(limit),
            outer: Gather::new(MAX_LIST_META),
            meta: None,
            has_items: false,
            items: 0,
            bytes: 0,
        }
    }

    /// What the list says about itself, as soon as that has arrived.
    #[must_use]
    pub fn meta(&self) -> Option<&ListMeta> {
        self.meta.as_ref()
    }

    /// Takes the next bytes and hands every item that ends in them to `sink`, in order.
    ///
    /// # Errors
    ///
    /// When the bytes cannot be a list; the splitter is of no use afterwards.
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Item<'_>)) -> Result<(), FrameError> {
        self.push_to(chunk, &mut Whole(sink))
    }

    /// The same, for a sink that may parse an item before its end is known.
    ///
    /// # Errors
    ///
    /// As [`ListSplitter::push`].
    pub fn push_to(&mut self, chunk: &[u8], sink: &mut impl Sink) -> Result<(), FrameError> {
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            match self.place {
                Place::InName(mut scan) => match scan.advance(&chunk[at..]) {
                    Some(length) => {
                        self.outer.add(&chunk[at..at + length]);
                        at += length;
                        self.named()?;
                    }
                    None => at = self.rest(chunk, at, Place::InName(scan)),
                },
                Place::InValue(mut scan) => match scan.advance(&chunk[at..]) {
                    Some(length) => {
                        self.keep(&chunk[at..at + length]);
                        at += length;
                        self.valued(sink)?;
                    }
                    None => at = self.rest(chunk, at, Place::InValue(scan)),
                },
                Place::InItem(mut scan) => match scan.advance(&chunk[at..]) {
                    Some(length) => {
                        self.item
                            .finish(&chunk[at..at + length], &mut |item| sink.item(item));
                        self.items += 1;
                        at += length;
                        self.place = Place::AfterItem;
                    }
                    None => {
                        self.item.add(&chunk[at..]);
                        self.place = Place::InItem(scan);
                        at = chunk.len();
                    }
                },
                _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => at += 1,
                place => match Self::structure(place, self.member, byte) {
                    Some((next, consumed)) => {
                        self.has_items |= matches!(next, Place::Item(true));
                        self.place = next;
                        at += usize::from(consumed);
                        if matches!(next, Place::InItem(_)) && byte == b'{' {
                            let window = (chunk.len() - at).min(self.item.limit);
                            if let Some(length) = sink.front(&chunk[at..at + window]) {
                                self.items += 1;
                                at += length.min(window);
                                self.place = Place::AfterItem;
                            }
                        }
                    }
                    None => {
                        return Err(FrameError::Unexpected {
                            byte,
                            at: self.bytes + at as u64,
                        });
                    }
                },
            }
        }
        self.bytes += chunk.len() as u64;
        Ok(())
    }

    /// Where a byte between values leads, and whether it is used up.
    fn structure(place: Place, member: Member, byte: u8) -> Option<(Place, bool)> {
        Some(match (place, byte) {
            (Place::Document, b'{') => (Place::Name(true), true),
            (Place::Name(_), b'"') => (Place::InName(Scan::begin(byte)?), false),
            (Place::Name(true), b'}') | (Place::AfterValue, b'}') => (Place::End, true),
            (Place::Colon, b':') => (Place::Value, true),
            (Place::Value, b'[') if member == Member::Items => (Place::Item(true), true),
            (Place::Value, _) => (Place::InValue(Scan::begin(byte)?), false),
            (Place::AfterValue, b',') => (Place::Name(false), true),
            (Place::Item(true), b']') | (Place::AfterItem, b']') => (Place::AfterValue, true),
            (Place::Item(_), _) => (Place::InItem(Scan::begin(byte)?), false),
            (Place::AfterItem, b',') => (Place::Item(false), true),
            _ => return None,
        })
    }

    /// Keeps the rest of a chunk that ends inside a name or value.
    fn rest(&mut self, chunk: &[u8], at: usize, place: Place) -> usize {
        self.keep(&chunk[at..]);
        self.place = place;
        chunk.len()
    }

    /// Values of members nobody reads are not kept, however long they are.
    fn keep(&mut self, part: &[u8]) {
        if matches!(self.place, Place::InName(_)) || self.member != Member::Other {
            self.outer.add(part);
        }
    }

    fn named(&mut self) -> Result<(), FrameError> {
        let name: String = serde_json::from_slice(self.outer()?).unwrap_or_default();
        self.outer.clear();
        self.member = match name.as_str() {
            "items" => Member::Items,
            "metadata" => Member::Metadata,
            "kind" => Member::Kind,
            _ => Member::Other,
        };
        self.place = Place::Colon;
        Ok(())
    }

    fn valued(&mut self, sink: &mut impl Sink) -> Result<(), FrameError> {
        match self.member {
            Member::Kind => {
                if let Ok(kind) = serde_json::from_slice::<String>(self.outer()?) {
                    sink.kind(&kind);
                }
                self.outer.clear();
            }
            Member::Metadata => {
                self.meta = Some(ListMeta::parse(self.outer()?)?);
                self.outer.clear();
            }
            // an empty list may be written as null; anything else would be taken for one, and everything for deleted
            Member::Items if self.outer()? == b"null" => {
                self.outer.clear();
                self.has_items = true;
            }
            Member::Items => return Err(FrameError::NoItems),
            Member::Other => {}
        }
        self.member = Member::Other;
        self.place = Place::AfterValue;
        Ok(())
    }

    fn outer(&self) -> Result<&[u8], FrameError> {
        let limit = self.outer.limit;
        if self.outer.total > limit {
            Err(FrameError::MemberTooLarge { limit })
        } else {
            Ok(&self.outer.kept)
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// When the list did not end with it, has no items member or no version: then nothing may be concluded from what it lacks.
    pub fn finish(self) -> Result<ListMeta, FrameError> {
        if !matches!(self.place, Place::End) {
            return Err(FrameError::Truncated {
                items: self.items,
                bytes: self.bytes,
            });
        }
        if !self.has_items {
            return Err(FrameError::NoItems);
        }
        self.meta
            .ok_or_else(|| FrameError::Metadata("it is missing".to_owned()))
    }
}

/// Takes items when they are whole.
struct Whole<'a>(&'a mut dyn FnMut(Item<'_>));

impl Sink for Whole<'_> {
    fn item(&mut self, item: Item<'_>) {
        (self.0)(item);
    }

    fn front(&mut self, _: &[u8]) -> Option<usize> {
        None
    }
}
