//! Logistic regression and the linear support vector machine.

use super::calibrate::Sigmoid;
use super::design::Design;
use super::loss::{Logistic, Loss, SquaredHinge};
use super::newton::{Limits, Problem, Solution, solve, solve_size};
use super::prepare::{Preparation, Prepare};
use super::scores::{LinearScores, Report};
use super::split::{Purpose, held_out};
use crate::data::{Id, LabelId, Rows, Space};

/// Parts of which one is held out when the weight of the penalty is chosen.
const LAMBDA_PARTS: u64 = 4;
/// So many held-out rows with a label, and without it, say which weight of the penalty suits it.
const ENOUGH: f64 = 5.0;
/// Parts of the cross-validation for probabilities.
const CALIBRATION_PARTS: u64 = 3;

/// Which loss, and what is made of margins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `ln(1 + exp(-m))`: the score is the log-odds.
    Logistic,
    /// `max(0, 1 - m)^2`.
    Svm {
        /// Whether log-odds are fitted to the margins of held-out rows.
        calibrate: bool,
    },
}

impl Shape {
    /// The weight of the penalty when none is given.
    fn usual(self) -> f64 {
        match self {
            Shape::Logistic => 0.1,
            Shape::Svm { .. } => 0.5,
        }
    }
}

/// The weight of the penalty.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Lambda {
    /// One for all labels.
    One(f64),
    /// For each label the one of least loss on held-out rows, where these say enough, else that of
    /// least loss over all labels; descending.
    Grid(Vec<f64>),
}

impl Lambda {
    /// What `grid` stands for.
    pub(super) const GRID: [f64; 7] = [10.0, 1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5];
}

/// A linear base learner.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::models) struct LinearBase {
    pub(super) shape: Shape,
    pub(super) lambda: Lambda,
    pub(super) limits: Limits,
}

/// Labelled rows to learn from.
#[derive(Debug, Clone, Copy)]
pub(in crate::models) struct Sample<'a> {
    /// Features and labels.
    pub(in crate::models) rows: &'a Rows,
    /// A hash of the features of each row.
    pub(in crate::models) keys: &'a [u64],
    /// How much each row counts where features are prepared; 0 leaves it out.
    pub(in crate::models) weights: &'a [f64],
    /// How much each row counts in each bag.
    pub(in crate::models) bags: &'a [Vec<f64>],
    /// The numbering of labels and features.
    pub(in crate::models) space: &'a Space,
    /// Where held-out rows come from.
    pub(in crate::models) seed: u64,
}

/// One label to learn.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::models) struct Task {
    /// The label.
    pub(in crate::models) label: LabelId,
    /// The labels it is told from besides the features, ascending.
    pub(in crate::models) parents: Vec<LabelId>,
    /// The bag it is learned from.
    pub(in crate::models) bag: usize,
}

/// A task, ready for the solver.
struct Prepared {
    task: usize,
    label: LabelId,
    bag: usize,
    /// The columns of labels that are no parents.
    barred: Vec<u32>,
}

impl LinearBase {
    /// Fits every task. A label that all rows have, or none, is predicted with its frequency.
    pub(in crate::models) fn fit(
        &self,
        sample: Sample,
        prepare: Prepare,
        tasks: &[Task],
    ) -> LinearScores {
        let Sample { rows, space, weights, .. } = sample;
        let features = &space.features;
        let (preparation, ridge) = Preparation::fit(prepare, rows, weights, features);
        let chained = tasks.iter().any(|t| !t.parents.is_empty());
        let labels = if chained { space.labels.len() } else { 0 };
        let values = features.value_len();
        let design = preparation.design(rows, &ridge, values, labels);
        let positive = positive_rows(rows, space.labels.len());
        let first_label = preparation.width(values) as u32;

        let mut scores = LinearScores::new(preparation, values, tasks.len());
        let mut prepared = Vec::new();
        for (t, task) in tasks.iter().enumerate() {
            let bag = &sample.bags[task.bag];
            let on: f64 = positive[task.label.index()].iter().map(|&r| bag[r as usize]).sum();
            let total: f64 = bag.iter().sum();
            if on > 0.0 && on < total {
                let barred =
                    LabelId::all(labels).filter(|y| task.parents.binary_search(y).is_err());
                let barred = barred.map(|y| first_label + y.0).collect();
                prepared.push(Prepared { task: t, label: task.label, bag: task.bag, barred });
            } else {
                scores.set_constant(t, ((on + 1.0) / (total - on + 1.0)).ln());
            }
        }
        let reports = vec![Report::default(); prepared.len()];
        let mut solver =
            Solver { base: self, design: &design, sample, positive: &positive, reports };
        let (lambdas, starts) = solver.lambdas(&prepared);
        let solutions = solver.solve(&prepared, &lambdas, sample.bags, &starts);
        let sigmoids = solver.calibrate(&prepared, &lambdas, &solutions);
        for (i, (p, solution)) in prepared.iter().zip(solutions).enumerate() {
            let report = self.report(&solution, lambdas[i]).farther(solver.reports[i]);
            let weights = &solution.weights;
            scores.set(p.task, weights, first_label, &tasks[p.task].parents, sigmoids[i], report);
        }
        scores
    }

    /// About how many bytes [`LinearBase::fit`] takes for `tasks` tasks over `rows`, which count in
    /// each of `bags`; the scores that come out included.
    pub(in crate::models) fn fit_size(
        &self,
        rows: &Rows,
        space: &Space,
        tasks: usize,
        chained: bool,
        bags: usize,
    ) -> usize {
        let features = &space.features;
        let (labels, links) =
            if chained { (space.labels.len(), rows.labels.ids().len()) } else { (0, 0) };
        let width =
            features.dense_len() + features.sparse_len() + features.value_len() + labels + 1;
        let entries = rows.sparse.entries() + rows.categories.len() + links;
        let design = 8 * rows.dense.len() + 12 * entries + 8 * rows.len;
        // Weights of rows and of tasks, those of fits to a part of the rows included.
        let parts = 1 + CALIBRATION_PARTS as usize;
        let (of_rows, of_tasks) = match (self.has_grid(), self.is_calibrated()) {
            (_, true) => (1 + parts, 2 + parts),
            (true, false) => (3, 4),
            (false, false) => (1, 2),
        };
        let weights = 8 * of_rows * bags * rows.len + 8 * of_tasks * tasks * width;
        // What a task may be told from, its keys, labels and margins.
        let rest = 4 * tasks * labels + 64 * rows.len + 4 * rows.labels.ids().len();
        design + weights + rest + solve_size(rows.len, width, tasks)
    }

    /// Whether each label has a penalty of its own.
    pub(in crate::models) fn has_grid(&self) -> bool {
        matches!(self.lambda, Lambda::Grid(_))
    }

    /// Whether rows are held out while it is fitted.
    pub(in crate::models) fn holds_out(&self) -> bool {
        self.has_grid() || self.is_calibrated()
    }

    fn is_calibrated(&self) -> bool {
        matches!(self.shape, Shape::Svm { calibrate: true })
    }

    fn report(&self, solution: &Solution, lambda: f64) -> Report {
        let &Solution { steps, gradient, .. } = solution;
        Report { lambda, steps, gradient, reached: self.limits.reached(solution) }
    }
}

/// Of `grid` the number nearest to `lambda` by their ratio.
fn nearest(grid: &[f64], lambda: f64) -> f64 {
    let far = |x: &f64| (x / lambda).ln().abs();
    grid.iter().copied().min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(lambda)
}

/// For each label the rows that have it.
fn positive_rows(rows: &Rows, labels: usize) -> Vec<Vec<u32>> {
    let mut positive = vec![Vec::new(); labels];
    for (row, set) in rows.labels.iter().enumerate() {
        set.iter().for_each(|y| positive[y.index()].push(row as u32));
    }
    positive
}

struct Solver<'a> {
    base: &'a LinearBase,
    design: &'a Design,
    sample: Sample<'a>,
    positive: &'a [Vec<u32>],
    /// For each task, of all its fits so far, the one that ended farthest from its minimum.
    reports: Vec<Report>,
}

impl Solver<'_> {
    fn solve(
        &mut self,
        prepared: &[Prepared],
        lambdas: &[f64],
        bags: &[Vec<f64>],
        starts: &[Vec<f64>],
    ) -> Vec<Solution> {
        let problem = |(i, p)| {
            let p: &Prepared = p;
            Problem {
                positive: &self.positive[p.label.index()],
                weights: &bags[p.bag],
                lambda: lambdas[i],
                barred: &p.barred,
                start: starts.get(i).map_or(&[], Vec::as_slice),
            }
        };
        let problems: Vec<Problem> = prepared.iter().enumerate().map(problem).collect();
        let solutions = match self.base.shape {
            Shape::Logistic => solve::<Logistic>(self.design, &problems, self.base.limits),
            Shape::Svm { .. } => solve::<SquaredHinge>(self.design, &problems, self.base.limits),
        };
        for ((report, solution), lambda) in self.reports.iter_mut().zip(&solutions).zip(lambdas) {
            *report = report.farther(self.base.report(solution, *lambda));
        }
        solutions
    }

    /// The bags without (`inside = false`) or with only (`true`) the rows of part `part`.
    fn part(&self, purpose: Purpose, parts: u64, part: u64, inside: bool) -> Vec<Vec<f64>> {
        let held = |key: &u64| held_out(self.sample.seed, purpose, *key, parts) == part;
        let of_bag = |bag: &Vec<f64>| {
            let rows = bag.iter().zip(self.sample.keys);
            rows.map(|(w, key)| if held(key) == inside { *w } else { 0.0 }).collect()
        };
        self.sample.bags.iter().map(of_bag).collect()
    }

    /// The weight of the penalty of each task, and where the solver should begin.
    fn lambdas(&mut self, prepared: &[Prepared]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let base = self.base;
        let grid = match &base.lambda {
            Lambda::One(lambda) => return (vec![*lambda; prepared.len()], Vec::new()),
            Lambda::Grid(grid) => grid,
        };
        let train = self.part(Purpose::Lambda, LAMBDA_PARTS, 0, false);
        let test = self.part(Purpose::Lambda, LAMBDA_PARTS, 0, true);
        let telling: Vec<bool> = prepared.iter().map(|p| self.tells(p, &test)).collect();
        let usual = base.shape.usual();
        let mut best = vec![(f64::INFINITY, usual); prepared.len()];
        let mut shared = (f64::INFINITY, nearest(grid, usual));
        let mut starts: Vec<Vec<f64>> = vec![Vec::new(); prepared.len()];
        let mut warm = starts.clone();
        for &lambda in grid {
            // From strong to weak: each minimum is near the one before.
            let solutions = self.solve(prepared, &vec![lambda; prepared.len()], &train, &warm);
            let mut sum = 0.0;
            for (i, (p, solution)) in prepared.iter().zip(solutions).enumerate() {
                if telling[i] {
                    let loss = self.loss(p, &solution.weights, &test);
                    sum += loss;
                    if loss < best[i].0 {
                        best[i] = (loss, lambda);
                        starts[i].clone_from(&solution.weights);
                    }
                }
                warm[i] = solution.weights;
            }
            if telling.contains(&true) && sum < shared.0 {
                shared = (sum, lambda);
            }
        }
        let chosen =
            best.iter().zip(&telling).map(|(b, &tells)| if tells { b.1 } else { shared.1 });
        (chosen.collect(), starts)
    }

    /// Whether enough rows of `bags` have the label of a task, and enough do not.
    fn tells(&self, p: &Prepared, bags: &[Vec<f64>]) -> bool {
        let bag = &bags[p.bag];
        let on: f64 = self.positive[p.label.index()].iter().map(|&r| bag[r as usize]).sum();
        on >= ENOUGH && bag.iter().sum::<f64>() - on >= ENOUGH
    }

    /// The loss of `weights` on the rows of `bags`.
    fn loss(&self, p: &Prepared, weights: &[f64], bags: &[Vec<f64>]) -> f64 {
        let at = match self.base.shape {
            Shape::Logistic => Logistic::at,
            Shape::Svm { .. } => SquaredHinge::at,
        };
        let loss = |(margin, is_on, weight): (f64, bool, f64)| {
            weight * at(if is_on { margin } else { -margin }).loss
        };
        self.points(p, weights, bags).map(loss).sum()
    }

    /// (margin, has the label, weight) of the rows of `bags` that count.
    fn points(
        &self,
        p: &Prepared,
        weights: &[f64],
        bags: &[Vec<f64>],
    ) -> impl Iterator<Item = (f64, bool, f64)> {
        let mut on = vec![false; self.design.rows];
        self.positive[p.label.index()].iter().for_each(|&r| on[r as usize] = true);
        let margins = self.design.times(weights).into_iter();
        let bag: Vec<f64> = bags[p.bag].clone();
        let points = margins.zip(on).zip(bag).map(|((m, is_on), w)| (m, is_on, w));
        points.filter(|p| p.2 > 0.0)
    }

    /// For each task the log-odds of a margin, fitted on margins of rows that were held out.
    fn calibrate(
        &mut self,
        prepared: &[Prepared],
        lambdas: &[f64],
        solutions: &[Solution],
    ) -> Vec<Sigmoid> {
        if !self.base.is_calibrated() {
            return vec![Sigmoid::IDENTITY; prepared.len()];
        }
        let starts: Vec<Vec<f64>> = solutions.iter().map(|s| s.weights.clone()).collect();
        // Weights are kept, and margins of one task at a time: there are as many as rows.
        let mut parts = Vec::new();
        for part in 0..CALIBRATION_PARTS {
            let train = self.part(Purpose::Calibration, CALIBRATION_PARTS, part, false);
            let test = self.part(Purpose::Calibration, CALIBRATION_PARTS, part, true);
            parts.push((test, self.solve(prepared, lambdas, &train, &starts)));
        }
        let sigmoid = |(i, p): (usize, &Prepared)| {
            let part = |(test, held): &(Vec<Vec<f64>>, Vec<Solution>)| {
                self.points(p, &held[i].weights, test).collect::<Vec<_>>()
            };
            Sigmoid::fit(&parts.iter().flat_map(part).collect::<Vec<_>>())
        };
        prepared.iter().enumerate().map(sigmoid).collect()
    }
}
