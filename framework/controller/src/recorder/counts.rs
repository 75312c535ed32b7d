//! What became of notes.

/// Why a note never reached the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// Too many new Events waited.
    Full,
    /// The object's bucket was empty.
    Spam,
    /// This process does not lead, or does not any more.
    Standby,
    /// The rights are missing.
    Forbidden,
    /// The namespace is gone, or going.
    Namespace,
    /// The server refused the Event itself.
    Refused,
    /// The server did not take it in many attempts.
    Unreachable,
    /// The process stopped before it was written.
    Stopped,
    /// A series that was counted here had to make room for another.
    Forgotten,
}

impl Dropped {
    const ALL: [Self; 9] = [
        Self::Full,
        Self::Spam,
        Self::Standby,
        Self::Forbidden,
        Self::Namespace,
        Self::Refused,
        Self::Unreachable,
        Self::Stopped,
        Self::Forgotten,
    ];

    /// The value of the metric's label.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Spam => "spam",
            Self::Standby => "standby",
            Self::Forbidden => "forbidden",
            Self::Namespace => "namespace",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Stopped => "stopped",
            Self::Forgotten => "forgotten",
        }
    }
}

/// What became of the notes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// All that was told.
    pub(crate) notes: u64,
    /// Those of them that raised a count.
    pub(crate) repeated: u64,
    /// Events created.
    pub(crate) created: u64,
    /// Counts of Events written.
    pub(crate) patched: u64,
    /// Attempts after the first.
    pub(crate) retries: u64,
    dropped: [u64; Dropped::ALL.len()],
}

impl Counts {
    pub(super) fn dropped(&mut self, why: Dropped, notes: u64) {
        self.dropped[why as usize] += notes;
    }

    pub(super) fn add(&mut self, other: &Self) {
        let Self {
            notes,
            repeated,
            created,
            patched,
            retries,
            dropped,
        } = other;
        self.notes += notes;
        self.repeated += repeated;
        self.created += created;
        self.patched += patched;
        self.retries += retries;
        for (sum, other) in self.dropped.iter_mut().zip(dropped) {
            *sum += other;
        }
    }

    /// Notes that never reached the server, by reason.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (Dropped, u64)> {
        Dropped::ALL.into_iter().zip(self.dropped)
    }
}
