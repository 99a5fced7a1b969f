//! From log-odds without parents to labels: greedily, over all sets, or with a beam.

use super::super::RankedSet;
use super::super::base::LogOdds;
use crate::data::{Id, LabelId};
use crate::math::{log_add_exp, sigmoid};

/// Up to so many labels every set is considered.
pub(super) const EXACT: usize = 15;

/// The order of one chain, and what each label adds to the log-odds of those after it.
#[derive(Debug)]
pub(super) struct Chain {
    order: Vec<LabelId>,
    /// Parent by parent; empty when labels stand alone.
    shift: Vec<f64>,
}

impl Chain {
    /// The chain whose labels are the tasks from `first` on.
    pub(super) fn new(order: Vec<LabelId>, scores: &dyn LogOdds, first: usize) -> Self {
        let labels = order.len();
        let mut shift = Vec::new();
        for y in 0..labels {
            let parents = scores.parents(first + y);
            if shift.is_empty() && !parents.is_empty() {
                shift = vec![0.0; labels * labels];
            }
            for (parent, weight) in parents {
                shift[parent.index() * labels + y] = weight;
            }
        }
        Chain { order, shift }
    }

    /// Adds what label `y` says about those after it.
    pub(super) fn turn_on(&self, y: LabelId, log_odds: &mut [f64]) {
        let labels = self.order.len();
        if let Some(row) = self.shift.get(y.index() * labels..(y.index() + 1) * labels) {
            log_odds.iter_mut().zip(row).for_each(|(z, s)| *z += s);
        }
    }

    /// What the labels `on` add to the log-odds of `y`.
    fn shift_of(&self, on: &[LabelId], y: LabelId) -> f64 {
        let labels = self.order.len();
        let of = |j: &LabelId| self.shift.get(j.index() * labels + y.index()).copied();
        on.iter().filter_map(of).sum()
    }

    /// The labels in the order of the chain.
    pub(super) fn order(&self) -> &[LabelId] {
        &self.order
    }

    /// Decides label by label, each from its cut on; `log_odds` become those given the labels decided
    /// before.
    pub(super) fn greedy(&self, log_odds: &mut [f64], cuts: &[f64]) {
        for &y in &self.order {
            if log_odds[y.index()] >= cuts[y.index()] {
                self.turn_on(y, log_odds);
            }
        }
    }

    /// The `most` most probable sets, best first; of equal ones that found first.
    pub(super) fn best_sets(&self, log_odds: &[f64], most: usize, beam: usize) -> Vec<RankedSet> {
        let mut found = Vec::new();
        if self.order.len() <= EXACT {
            let mut search = Search { chain: self, most, found: Vec::new() };
            search.visit(0, 0, 0.0, log_odds);
            found.extend(search.found.into_iter().map(|(ln, set)| (ln, bits(set))));
        } else {
            self.beam(log_odds, beam.max(most), None, |h| found.push((h.ln, h.on.clone())));
            found.truncate(most);
        }
        let set = |(ln, mut labels): (f64, Vec<LabelId>)| {
            labels.sort_unstable();
            RankedSet { labels, probability: ln.exp().min(1.0) }
        };
        found.into_iter().map(set).collect()
    }

    /// The probability of every label: exact up to 15 labels, else the mean over a beam.
    pub(super) fn marginals(&self, log_odds: &[f64], beam: usize, out: &mut [f64]) {
        out.fill(0.0);
        if self.order.len() <= EXACT {
            self.add_marginals(0, 1.0, log_odds, out);
        } else {
            self.beam(log_odds, beam, Some(out), |_| {});
        }
    }

    fn add_marginals(&self, at: usize, weight: f64, log_odds: &[f64], out: &mut [f64]) {
        let Some(&y) = self.order.get(at) else { return };
        let p = sigmoid(log_odds[y.index()]);
        out[y.index()] += weight * p;
        if at + 1 == self.order.len() {
            return;
        }
        if weight * p > 0.0 {
            let mut on = [0.0; EXACT];
            let on = &mut on[..log_odds.len()];
            on.copy_from_slice(log_odds);
            self.turn_on(y, on);
            self.add_marginals(at + 1, weight * p, on, out);
        }
        let absent = weight * sigmoid(-log_odds[y.index()]);
        if absent > 0.0 {
            self.add_marginals(at + 1, absent, log_odds, out);
        }
    }

    /// Keeps the `width` most probable beginnings; `visit` sees the last ones, best first.
    fn beam(
        &self,
        log_odds: &[f64],
        width: usize,
        mut marginals: Option<&mut [f64]>,
        mut visit: impl FnMut(&Beginning),
    ) {
        let mut kept = vec![Beginning { ln: 0.0, on: Vec::new() }];
        for &y in &self.order {
            // Few labels are on, so their shifts are added when asked for.
            let given = |h: &Beginning| log_odds[y.index()] + self.shift_of(&h.on, y);
            let total = kept.iter().fold(f64::NEG_INFINITY, |s, h| log_add_exp(s, h.ln));
            if let Some(out) = marginals.as_deref_mut() {
                let part = |h: &Beginning| (h.ln - total).exp() * sigmoid(given(h));
                out[y.index()] = kept.iter().map(part).sum();
            }
            // (log-probability, beginning, whether y is on), the more probable first.
            let mut next: Vec<(f64, usize, bool)> = Vec::with_capacity(2 * kept.len());
            for (i, h) in kept.iter().enumerate() {
                let z = given(h);
                next.push((h.ln + ln_sigmoid(z), i, true));
                next.push((h.ln + ln_sigmoid(-z), i, false));
            }
            next.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(b.2.cmp(&a.2)));
            next.truncate(width);
            kept = next
                .into_iter()
                .map(|(ln, i, on)| {
                    let mut h = Beginning { ln, on: kept[i].on.clone() };
                    if on {
                        h.on.push(y);
                    }
                    h
                })
                .collect();
        }
        kept.iter().for_each(&mut visit);
    }
}

/// The labels that are on so far, and the probability of having decided so.
#[derive(Debug, Clone)]
struct Beginning {
    ln: f64,
    on: Vec<LabelId>,
}

/// Depth-first search that leaves out what cannot be among the best: probabilities only fall.
struct Search<'a> {
    chain: &'a Chain,
    most: usize,
    /// Best first.
    found: Vec<(f64, u32)>,
}

impl Search<'_> {
    fn visit(&mut self, at: usize, set: u32, ln: f64, log_odds: &[f64]) {
        if self.found.len() == self.most && self.found.last().is_none_or(|w| ln <= w.0) {
            return;
        }
        let Some(&y) = self.chain.order.get(at) else {
            let place = self.found.partition_point(|f| f.0 >= ln);
            self.found.insert(place, (ln, set));
            self.found.truncate(self.most);
            return;
        };
        let z = log_odds[y.index()];
        // The more probable first, so that the others fall short soon.
        for on in [z >= 0.0, z < 0.0] {
            if on {
                let mut next = [0.0; EXACT];
                let next = &mut next[..log_odds.len()];
                next.copy_from_slice(log_odds);
                self.chain.turn_on(y, next);
                self.visit(at + 1, set | (1 << y.0), ln + ln_sigmoid(z), next);
            } else {
                self.visit(at + 1, set, ln + ln_sigmoid(-z), log_odds);
            }
        }
    }
}

fn bits(set: u32) -> Vec<LabelId> {
    (0..u32::BITS).filter(|y| set >> y & 1 == 1).map(LabelId).collect()
}

/// ln sigmoid(z).
fn ln_sigmoid(z: f64) -> f64 {
    z.min(0.0) - (-z.abs()).exp().ln_1p()
}
