//! Which informers are wanted, which run, and what is to be done about it; pure.

use std::collections::BTreeMap;

/// `T` is what an informer is made around; a new one each time it is wanted anew.
pub(super) struct Roster<T> {
    places: BTreeMap<String, Place<T>>,
    numbers: u64,
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
            numbers: 0,
        }
    }
}

struct Place<T> {
    wanted: Option<Wanted<T>>,
    actual: Actual<T>,
}

struct Wanted<T> {
    number: u64,
    what: T,
    leases: usize,
}

/// What the supervisor has under an id.
enum Actual<T> {
    Nothing,
    Starting(u64, T),
    Running(u64, T),
    Stopping(u64, T),
}

/// What is to be done under an id.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Order<T> {
    Start(String, T),
    Stop(String, T),
}

impl<T: Clone> Roster<T> {
    /// Wants the informer of this id once more; it is made if nobody wanted it. Returns its number.
    pub(super) fn lease(&mut self, id: &str, make: impl FnOnce() -> T) -> (u64, T) {
        let place = self.places.entry(id.to_owned()).or_insert(Place {
            wanted: None,
            actual: Actual::Nothing,
        });
        let numbers = &mut self.numbers;
        let wanted = place.wanted.get_or_insert_with(|| {
            *numbers += 1;
            Wanted {
                number: *numbers,
                what: make(),
                leases: 0,
            }
        });
        wanted.leases += 1;
        (wanted.number, wanted.what.clone())
    }

    /// Wants it once less; returned when nobody does any more.
    pub(super) fn release(&mut self, id: &str, number: u64) -> Option<T> {
        let place = self.places.get_mut(id)?;
        let wanted = place
            .wanted
            .as_mut()
            .filter(|wanted| wanted.number == number)?;
        wanted.leases = wanted.leases.saturating_sub(1);
        let given_up = place.wanted.take_if(|wanted| wanted.leases == 0)?;
        if matches!(place.actual, Actual::Nothing) {
            self.places.remove(id);
        }
        Some(given_up.what)
    }

    pub(super) fn wanted(&self) -> Vec<T> {
        let wanted = self
            .places
            .values()
            .filter_map(|place| place.wanted.as_ref());
        wanted.map(|wanted| wanted.what.clone()).collect()
    }

    /// A new incarnation of the supervisor runs what is wanted and nothing else.
    pub(super) fn begin(&mut self) -> Vec<T> {
        self.places.retain(|_, place| place.wanted.is_some());
        for place in self.places.values_mut() {
            place.actual = match &place.wanted {
                Some(wanted) => Actual::Running(wanted.number, wanted.what.clone()),
                None => Actual::Nothing,
            };
        }
        self.wanted()
    }

    /// Whoever carried out orders died over it: what was being started may run, and what was being stopped may still do.
    pub(super) fn resume(&mut self) {
        for place in self.places.values_mut() {
            place.actual = match std::mem::replace(&mut place.actual, Actual::Nothing) {
                Actual::Starting(number, what) | Actual::Stopping(number, what) => {
                    Actual::Running(number, what)
                }
                actual => actual,
            };
        }
    }

    /// What is to be done now.
    pub(super) fn orders(&mut self) -> Vec<Order<T>> {
        let mut orders = Vec::new();
        for (id, place) in &mut self.places {
            let number = place.wanted.as_ref().map(|wanted| wanted.number);
            place.actual = match std::mem::replace(&mut place.actual, Actual::Nothing) {
                Actual::Running(running, what) if number != Some(running) => {
                    orders.push(Order::Stop(id.clone(), what.clone()));
                    Actual::Stopping(running, what)
                }
                Actual::Nothing => match &place.wanted {
                    Some(Wanted { number, what, .. }) => {
                        orders.push(Order::Start(id.clone(), what.clone()));
                        Actual::Starting(*number, what.clone())
                    }
                    None => Actual::Nothing,
                },
                actual => actual,
            };
        }
        orders
    }

    /// It runs, or does not.
    pub(super) fn started(&mut self, id: &str, runs: bool) {
        if let Some(place) = self.places.get_mut(id) {
            place.actual = match std::mem::replace(&mut place.actual, Actual::Nothing) {
                Actual::Starting(number, what) if runs => Actual::Running(number, what),
                Actual::Starting(..) => Actual::Nothing,
                actual => actual,
            };
            self.tidy(id);
        }
    }

    /// It does not run any more.
    pub(super) fn stopped(&mut self, id: &str) {
        if let Some(place) = self.places.get_mut(id) {
            if matches!(place.actual, Actual::Stopping(..)) {
                place.actual = Actual::Nothing;
            }
            self.tidy(id);
        }
    }

    fn tidy(&mut self, id: &str) {
        let empty =
            |place: &Place<T>| place.wanted.is_none() && matches!(place.actual, Actual::Nothing);
        if self.places.get(id).is_some_and(empty) {
            self.places.remove(id);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}
