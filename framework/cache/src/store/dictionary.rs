//! What objects of a kind have in common, so that each need not say it again.

use std::cell::RefCell;

use zstd_safe::{CCtx, CDict, DCtx, DDict, SafeResult};

use crate::spare::spare;

/// The fastest of the levels: the dictionary does most of the work, higher ones gain a few percent.
const LEVEL: i32 = 1;
/// The level for what is packed by a neighbour: little is left of it but names and digests, whose shortest form costs half as much time again and saves a quarter.
const LIKE: i32 = -1;
/// Large enough for the ways of many workloads; larger ones gain little.
const SIZE: usize = 64 << 10;

/// Frames up to this much larger than need be stay: new ones take room of their own, and the old ones leave holes that are slow to fill.
const ENOUGH: f64 = 1.3;

/// A dictionary trained on objects of one kind.
pub(crate) struct Dictionary {
    pack: CDict<'static>,
    unpack: DDict<'static>,
    /// Bytes of a frame for each byte of JSON, of objects it was not trained on.
    ratio: f64,
}

thread_local! {
    // a context is hundreds of kilobytes that are worth keeping
    static PACKER: RefCell<(CCtx<'static>, Vec<u8>)> = RefCell::new((CCtx::create(), Vec::new()));
    static UNPACKER: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

impl Dictionary {
    /// One that consists of some of the samples as they are: made in no time, and good for what is like them.
    pub(crate) fn quote(samples: &[Vec<u8>]) -> Option<Self> {
        let bytes: usize = samples.iter().map(|sample| sample.len()).sum();
        let quoted = samples.iter().step_by(bytes.div_ceil(SIZE).max(1));
        let mut content = quoted.flatten().copied().collect::<Vec<_>>();
        content.truncate(SIZE);
        Self::of(&content)
    }

    /// Trains one on samples, which takes some 30 ms, and tries it with others. `None` if the samples have too little in common.
    pub(crate) fn train(samples: &[Vec<u8>], others: &[Vec<u8>]) -> Option<Self> {
        let bytes = samples.concat();
        let sizes: Vec<_> = samples.iter().map(|sample| sample.len()).collect();
        let mut dictionary = vec![0; SIZE];
        let length = zstd_safe::train_from_buffer(&mut dictionary[..], &bytes, &sizes).ok()?;
        let dictionary = dictionary.get(..length)?;
        let mut trained = Self::of(dictionary)?;
        let frames = others
            .iter()
            .filter_map(|other| pack(other, Some(&trained.pack)));
        let packed: usize = frames.map(|frame| frame.len()).sum();
        let bytes: usize = others.iter().map(|other| other.len()).sum();
        trained.ratio = packed as f64 / bytes.max(1) as f64;
        Some(trained)
    }

    fn of(dictionary: &[u8]) -> Option<Self> {
        Some(Self {
            pack: CDict::try_create(dictionary, LEVEL)?,
            unpack: DDict::try_create(dictionary)?,
            ratio: 0.0,
        })
    }

    /// Whether a frame is about as small as this dictionary makes them.
    pub(super) fn satisfies(&self, frame: usize, json: usize) -> bool {
        frame as f64 <= json as f64 * self.ratio * ENOUGH
    }

    pub(super) fn packer(&self) -> &CDict<'static> {
        &self.pack
    }

    /// Bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.pack.sizeof() + self.unpack.sizeof()
    }
}

/// Packs what is like `json`. `None` if it fails, which for bytes in memory it does not.
pub(super) fn packer(json: &[u8]) -> Option<CDict<'static>> {
    CDict::try_create(json, LIKE)
}

/// `None` if it fails, which for bytes in memory it does not.
pub(super) fn pack(json: &[u8], packer: Option<&CDict<'static>>) -> Option<Box<[u8]>> {
    PACKER.with_borrow_mut(|(context, buffer)| {
        let bound = zstd_safe::compress_bound(json.len());
        if buffer.len() < bound {
            buffer.resize(bound, 0);
        }
        let packed = match packer {
            Some(packer) => context.compress_using_cdict(&mut buffer[..], json, packer),
            None => context.compress(&mut buffer[..], json, LEVEL),
        };
        let frame = buffer.get(..packed.ok()?)?.into();
        *buffer = spare(std::mem::take(buffer));
        Some(frame)
    })
}

/// Fills `json` with what was packed; leaves it empty if the frame was damaged in memory.
pub(super) fn unpack(frame: &[u8], dictionary: Option<&Dictionary>, json: &mut Vec<u8>) {
    fill(frame, json, |context, room| match dictionary {
        Some(dictionary) => context.decompress_using_ddict(room, frame, &dictionary.unpack),
        None => context.decompress(room, frame),
    });
}

/// The same, of what was packed with the packer of `like`.
pub(super) fn unpack_like(frame: &[u8], like: &[u8], json: &mut Vec<u8>) {
    fill(frame, json, |context, room| {
        context.decompress_using_dict(room, frame, like)
    });
}

fn fill(
    frame: &[u8],
    json: &mut Vec<u8>,
    unpack: impl FnOnce(&mut DCtx<'static>, &mut [u8]) -> SafeResult,
) {
    let size = unpacked_size(frame);
    if json.len() < size {
        json.resize(size, 0);
    }
    let unpacked = UNPACKER.with_borrow_mut(|context| unpack(context, &mut json[..size]));
    json.truncate(unpacked.unwrap_or(0));
}

pub(super) fn unpacked_size(frame: &[u8]) -> usize {
    let size = zstd_safe::get_frame_content_size(frame).ok().flatten();
    size.and_then(|size| size.try_into().ok()).unwrap_or(0)
}
