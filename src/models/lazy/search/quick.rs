//! Numbers that quick distances are summed in.

/// A quick distance in the making.
pub(super) trait Quick: Copy + PartialOrd {
    /// Distances up to this fit.
    const ROOM: f64;

    /// This distance, or this change of one.
    fn of(distance: f64) -> Self;

    /// The distance.
    fn value(self) -> f64;

    /// The largest number that stands for at most `limit`.
    fn limit(limit: f64) -> Self;

    /// Adds a change.
    fn add(&mut self, change: Self);

    /// Takes a change away.
    fn take(&mut self, change: Self);
}

impl Quick for f64 {
    const ROOM: f64 = f64::MAX;

    #[inline(always)]
    fn of(distance: f64) -> Self {
        distance
    }

    #[inline(always)]
    fn value(self) -> f64 {
        self
    }

    #[inline(always)]
    fn limit(limit: f64) -> Self {
        limit
    }

    #[inline(always)]
    fn add(&mut self, change: Self) {
        *self += change;
    }

    #[inline(always)]
    fn take(&mut self, change: Self) {
        *self -= change;
    }
}

/// Halves, for distances that are whole numbers of them: a quarter of the memory, so that those of a
/// block stay in the nearest cache. Sums wrap on the way; what they come to fits.
impl Quick for i16 {
    const ROOM: f64 = 8192.0;

    #[inline(always)]
    fn of(distance: f64) -> Self {
        (2.0 * distance) as i16
    }

    #[inline(always)]
    fn value(self) -> f64 {
        0.5 * f64::from(self)
    }

    #[inline(always)]
    fn limit(limit: f64) -> Self {
        (2.0 * limit).floor() as i16
    }

    #[inline(always)]
    fn add(&mut self, change: Self) {
        *self = self.wrapping_add(change);
    }

    #[inline(always)]
    fn take(&mut self, change: Self) {
        *self = self.wrapping_sub(change);
    }
}
