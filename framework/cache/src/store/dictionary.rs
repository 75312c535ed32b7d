//! What objects of a kind have in common, so that each need not say it again.

use std::cell::RefCell;

use zstd_safe::{CCtx, CDict, DCtx, DDict};

/// The fastest of the levels: the dictionary does most of the work, higher ones gain a few percent.
const LEVEL: i32 = 1;
/// Larger dictionaries gain little and leave the processor's caches.
const SIZE: usize = 16 << 10;

/// A dictionary trained on objects of one kind.
pub(crate) struct Dictionary {
    pack: CDict<'static>,
    unpack: DDict<'static>,
}

thread_local! {
    // a context is hundreds of kilobytes that are worth keeping
    static PACKER: RefCell<(CCtx<'static>, Vec<u8>)> = RefCell::new((CCtx::create(), Vec::new()));
    static UNPACKER: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

impl Dictionary {
    /// Trains one, which takes some 50 ms. `None` if the samples have too little in common.
    pub(crate) fn train<'a>(samples: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let (mut bytes, mut sizes) = (Vec::new(), Vec::new());
        for sample in samples {
            bytes.extend_from_slice(sample);
            sizes.push(sample.len());
        }
        let mut dictionary = vec![0; SIZE];
        let length = zstd_safe::train_from_buffer(&mut dictionary[..], &bytes, &sizes).ok()?;
        let dictionary = dictionary.get(..length)?;
        Some(Self {
            pack: CDict::try_create(dictionary, LEVEL)?,
            unpack: DDict::try_create(dictionary)?,
        })
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
