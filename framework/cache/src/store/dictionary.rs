//! What objects of a kind have in common, so that each need not say it again.

use std::cell::RefCell;

use zstd_safe::{CCtx, CDict, DCtx, DDict};

/// The fastest of the levels: the dictionary does most of the work, higher ones gain a few percent.
const LEVEL: i32 = 1;
/// Large enough for the ways of many workloads; larger ones gain little.
const SIZE: usize = 64 << 10;

/// A dictionary trained on objects of one kind.
pub(crate) struct Dictionary {
    pack: CDict<'static>,
    unpack: DDict<'static>,
    /// Bytes of a frame for each byte of JSON, of the samples.
    ratio: f64,
}

thread_local! {
    // a context is hundreds of kilobytes that are worth keeping
    static PACKER: RefCell<(CCtx<'static>, Vec<u8>)> = RefCell::new((CCtx::create(), Vec::new()));
    static UNPACKER: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

impl Dictionary {
    /// Trains one, which takes some 40 ms. `None` if the samples have too little in common.
    pub(crate) fn train(samples: &[&[u8]]) -> Option<Self> {
        let bytes = samples.concat();
        let sizes: Vec<_> = samples.iter().map(|sample| sample.len()).collect();
        let mut dictionary = vec![0; SIZE];
        let length = zstd_safe::train_from_buffer(&mut dictionary[..], &bytes, &sizes).ok()?;
        let dictionary = dictionary.get(..length)?;
        let mut trained = Self {
            pack: CDict::try_create(dictionary, LEVEL)?,
            unpack: DDict::try_create(dictionary)?,
            ratio: 0.0,
        };
        let frames = samples
            .iter()
            .filter_map(|sample| pack(sample, Some(&trained)));
        let packed: usize = frames.map(|frame| frame.len()).sum();
        trained.ratio = packed as f64 / bytes.len().max(1) as f64;
        Some(trained)
    }

    /// Whether a frame is as small as this dictionary makes them.
    pub(super) fn satisfies(&self, frame: usize, json: usize) -> bool {
        frame as f64 <= json as f64 * self.ratio
    }

    /// Bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.pack.sizeof() + self.unpack.sizeof()
    }
}

/// `None` if it fails, which for bytes in memory it does not.
pub(super) fn pack(json: &[u8], dictionary: Option<&Dictionary>) -> Option<Box<[u8]>> {
    PACKER.with_borrow_mut(|(context, buffer)| {
        let bound = zstd_safe::compress_bound(json.len());
        if buffer.len() < bound {
            buffer.resize(bound, 0);
        }
        let packed = match dictionary {
            Some(dictionary) => {
                context.compress_using_cdict(&mut buffer[..], json, &dictionary.pack)
            }
            None => context.compress(&mut buffer[..], json, LEVEL),
        };
        let frame = buffer.get(..packed.ok()?)?.into();
        if buffer.len() > 1 << 20 {
            *buffer = Vec::new();
        }
        Some(frame)
    })
}

/// Fills `json` with what was packed; leaves it empty if the frame was damaged in memory.
pub(super) fn unpack(frame: &[u8], dictionary: Option<&Dictionary>, json: &mut Vec<u8>) {
    let size = unpacked_size(frame);
    if json.len() < size {
        json.resize(size, 0);
    }
    let unpacked = UNPACKER.with_borrow_mut(|context| match dictionary {
        Some(dictionary) => {
            context.decompress_using_ddict(&mut json[..size], frame, &dictionary.unpack)
        }
        None => context.decompress(&mut json[..size], frame),
    });
    json.truncate(unpacked.unwrap_or(0));
}

pub(super) fn unpacked_size(frame: &[u8]) -> usize {
    let size = zstd_safe::get_frame_content_size(frame).ok().flatten();
    size.and_then(|size| size.try_into().ok()).unwrap_or(0)
}
