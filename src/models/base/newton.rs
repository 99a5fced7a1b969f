//! Minimising convex losses: Newton's method with conjugate gradients, many problems side by side.
//!
//! # Definition
//!
//! Each problem minimises `sum_r c_r loss(y_r x_r w) + lambda sum_j ridge_j w_j^2` (Eq. 16 of
//! `pacc-ldf` where every `c` and `ridge` is one); the intercept is free. A Newton step solves
//! `H s = -g` by conjugate gradients until the residual is small against the gradient, and is halved
//! until the objective falls. A problem has converged when the norm of its gradient is at most
//! `tolerance` times that at zero weights.
//!
//! # Cost
//!
//! Gradients and products with the Hessian are the same pass over the rows, `X^T u(X v)`. Problems
//! run in lanes: a pass serves all lanes, each at its own point of its own method, and a lane that is
//! done takes the next problem. What a lane computes does not depend on the other lanes, so results
//! are the same for any number of lanes and threads.

use super::design::{Ask, Design, RowState};
use super::loss::Loss;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much of the expected decrease a step must reach.
const SUFFICIENT: f64 = 1e-4;
/// The least relative accuracy of a Newton direction.
const FORCING: f64 = 0.1;
/// Relative changes of an objective below this are rounding.
const ROUNDING: f64 = 1e-11;
/// The gradient, as a share of that at zero, from which a search may end by rounding: a tolerance
/// below it may be out of reach.
const ROUNDED: f64 = 1e-7;
/// The smallest share of a step that is tried.
const SHORTEST: f64 = 1e-9;

/// One binary problem over the rows of a design.
#[derive(Debug, Clone)]
pub(super) struct Problem<'a> {
    /// The rows that have the label, ascending.
    pub(super) positive: &'a [u32],
    /// How much each row counts; 0 leaves it out.
    pub(super) weights: &'a [f64],
    /// The weight of the penalty.
    pub(super) lambda: f64,
    /// Columns, ascending, whose weights stay zero.
    pub(super) barred: &'a [u32],
    /// Where to begin; zero weights when empty.
    pub(super) start: &'a [f64],
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// The norm of the gradient at which a problem has converged, as a share of that at zero.
    pub(super) tolerance: f64,
    /// The most Newton steps.
    pub(super) steps: usize,
}

impl Limits {
    /// Whether `solution` is a minimum: the gradient vanished, or is so small that rounding ended
    /// the search.
    pub(super) fn reached(&self, solution: &Solution) -> bool {
        let rounded = solution.steps < self.steps && solution.gradient <= ROUNDED;
        solution.gradient <= self.tolerance || rounded
    }
}

/// The minimum of one problem.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Solution {
    /// One weight per column, the intercept last.
    pub(super) weights: Vec<f64>,
    pub(super) objective: f64,
    /// Newton steps that were made.
    pub(super) steps: usize,
    /// The norm of the gradient as a share of that at zero.
    pub(super) gradient: f64,
}

/// Solves every problem, in parallel; solutions are in the order of `problems`.
pub(super) fn solve<L: Loss>(
    design: &Design,
    problems: &[Problem],
    limits: Limits,
) -> Vec<Solution> {
    let next = AtomicUsize::new(0);
    let (workers, lanes) = shares(problems.len());
    let work = |_| -> Vec<(usize, Solution)> {
        match lanes {
            0..=1 => Lanes::<1>::new(design).run::<L>(problems, &next, limits),
            2 => Lanes::<2>::new(design).run::<L>(problems, &next, limits),
            3..=4 => Lanes::<4>::new(design).run::<L>(problems, &next, limits),
            _ => Lanes::<8>::new(design).run::<L>(problems, &next, limits),
        }
    };
    let mut solved: Vec<(usize, Solution)> =
        (0..workers).into_par_iter().map(work).flatten_iter().collect();
    solved.sort_by_key(|s| s.0);
    solved.into_iter().map(|s| s.1).collect()
}

/// How many threads solve `problems` problems, and how many of them each takes at a time, at most.
fn shares(problems: usize) -> (usize, usize) {
    let workers = rayon::current_num_threads().min(problems).max(1);
    (workers, problems.div_ceil(workers))
}

/// About how many bytes [`solve`] takes besides the solutions.
pub(super) fn solve_size(rows: usize, width: usize, problems: usize) -> usize {
    let (workers, lanes) = shares(problems);
    let lanes = lanes.next_power_of_two().min(8);
    // Signs and curvatures of rows; nine vectors over the columns.
    workers * lanes * (16 * rows + 72 * width)
}

/// What a lane does in the next pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing: there are no problems left.
    Idle,
    /// The gradient at zero, which convergence is measured by.
    Reference,
    /// Objective and gradient at the end of a step.
    Trial,
    /// One step of conjugate gradients.
    Conjugate,
}

/// One problem on its way.
#[derive(Debug)]
struct Lane {
    phase: Phase,
    problem: usize,
    solution: Solution,
    reference: f64,
    gradient: Vec<f64>,
    /// The Newton direction, and the share of it that is tried.
    direction: Vec<f64>,
    share: f64,
    /// The slope of the objective along the direction.
    slope: f64,
    residual: Vec<f64>,
    conjugate: Vec<f64>,
    /// residual * scale * residual, and the value at which it is small enough.
    norm: f64,
    enough: f64,
    inner: usize,
    /// What the residual of each column is multiplied by: 1 / (a guess of the Hessian's diagonal).
    scale: Vec<f64>,
}

struct Lanes<'a, const LANES: usize> {
    design: &'a Design,
    vector: Vec<[f64; LANES]>,
    out: Vec<[f64; LANES]>,
    state: RowState<LANES>,
}

impl<'a, const LANES: usize> Lanes<'a, LANES> {
    fn new(design: &'a Design) -> Self {
        let zeros = |n: usize| vec![[0.0; LANES]; n];
        let (rows, width) = (design.rows, design.width());
        let state = RowState { signed: zeros(rows), curvature: zeros(rows) };
        Lanes { design, vector: zeros(width), out: zeros(width), state }
    }

    fn run<L: Loss>(
        mut self,
        problems: &[Problem],
        next: &AtomicUsize,
        limits: Limits,
    ) -> Vec<(usize, Solution)> {
        let mut lanes: Vec<Lane> = (0..LANES).map(|_| Lane::idle()).collect();
        let mut solved = Vec::new();
        loop {
            let mut asks = [Ask::Curvature; LANES];
            for (k, lane) in lanes.iter_mut().enumerate() {
                if lane.phase == Phase::Idle {
                    let problem = next.fetch_add(1, Ordering::Relaxed);
                    match problems.get(problem) {
                        Some(p) => {
                            lane.begin(problem, self.design.width());
                            self.place(k, p);
                        }
                        None => {
                            self.vector.iter_mut().for_each(|v| v[k] = 0.0);
                            continue;
                        }
                    }
                }
                if lane.phase != Phase::Conjugate {
                    asks[k] = Ask::Gradient;
                }
                self.ask(k, lane);
            }
            if lanes.iter().all(|lane| lane.phase == Phase::Idle) {
                return solved;
            }
            let (vector, state) = (&self.vector, &mut self.state);
            let losses = self.design.pass::<LANES, L>(vector, &asks, state, &mut self.out);
            for (k, lane) in lanes.iter_mut().enumerate() {
                let Some(problem) = problems.get(lane.problem) else { continue };
                let done = match lane.phase {
                    Phase::Idle => continue,
                    Phase::Conjugate => self.conjugate(k, lane, problem),
                    Phase::Reference | Phase::Trial => {
                        self.evaluated(k, lane, problem, losses[k], limits)
                    }
                };
                if done {
                    lane.phase = Phase::Idle;
                    solved.push((lane.problem, std::mem::take(&mut lane.solution)));
                }
            }
        }
    }

    /// Writes the rows of `problem` into lane `k`.
    fn place(&mut self, k: usize, problem: &Problem) {
        let mut positive = problem.positive.iter().peekable();
        for (row, (signed, weight)) in self.state.signed.iter_mut().zip(problem.weights).enumerate()
        {
            let on = positive.next_if(|p| **p as usize == row).is_some();
            signed[k] = if on { *weight } else { -weight };
        }
    }

    /// Writes the vector that `lane` asks about.
    fn ask(&mut self, k: usize, lane: &Lane) {
        match lane.phase {
            Phase::Conjugate => {
                self.vector.iter_mut().zip(&lane.conjugate).for_each(|(v, p)| v[k] = *p);
            }
            Phase::Trial => {
                let point = lane.solution.weights.iter().zip(&lane.direction);
                for (v, (w, s)) in self.vector.iter_mut().zip(point) {
                    v[k] = w + lane.share * s;
                }
            }
            Phase::Idle | Phase::Reference => self.vector.iter_mut().for_each(|v| v[k] = 0.0),
        }
    }

    /// Takes objective and gradient of lane `k`; true when the problem is done.
    fn evaluated(
        &mut self,
        k: usize,
        lane: &mut Lane,
        problem: &Problem,
        loss: f64,
        limits: Limits,
    ) -> bool {
        let lambda = problem.lambda;
        let mut objective = loss;
        for ((v, o), ridge) in self.vector.iter().zip(&mut self.out).zip(&self.design.ridge) {
            objective += lambda * ridge * v[k] * v[k];
            o[k] += 2.0 * lambda * ridge * v[k];
        }
        problem.barred.iter().for_each(|&c| self.out[c as usize][k] = 0.0);
        let norm = self.out.iter().map(|o| o[k] * o[k]).sum::<f64>().sqrt();
        let last = &mut lane.solution;
        if lane.phase == Phase::Trial {
            let expected = SUFFICIENT * lane.share * lane.slope;
            // Where the change of the objective is rounding, the gradient decides.
            let equal = (objective - last.objective).abs() <= ROUNDING * last.objective.abs();
            let better = objective <= last.objective + expected
                || (equal && norm < last.gradient * lane.reference);
            if !better {
                lane.share *= 0.5;
                // When no step makes it better, rounding ends the search here.
                return lane.share < SHORTEST;
            }
            last.steps += usize::from(lane.slope < 0.0);
        }
        last.objective = objective;
        last.weights.iter_mut().zip(&self.vector).for_each(|(w, v)| *w = v[k]);
        lane.gradient.iter_mut().zip(&self.out).for_each(|(g, o)| *g = o[k]);
        if lane.phase == Phase::Reference {
            lane.reference = norm;
            if !problem.start.is_empty() {
                lane.direction.copy_from_slice(problem.start);
                (lane.share, lane.slope, lane.phase) = (1.0, 0.0, Phase::Trial);
                last.objective = f64::INFINITY;
                return false;
            }
        }
        last.gradient = if lane.reference > 0.0 { norm / lane.reference } else { 0.0 };
        if last.gradient <= limits.tolerance || last.steps >= limits.steps {
            return true;
        }
        self.begin_direction(k, lane, problem);
        false
    }

    /// Starts conjugate gradients for the Newton direction at the point that was taken.
    fn begin_direction(&self, k: usize, lane: &mut Lane, problem: &Problem) {
        self.precondition(k, lane, problem);
        lane.direction.fill(0.0);
        for (r, g) in lane.residual.iter_mut().zip(&lane.gradient) {
            *r = -g;
        }
        let scaled = lane.residual.iter().zip(&lane.scale).map(|(r, m)| r * m);
        lane.conjugate.iter_mut().zip(scaled).for_each(|(p, r)| *p = r);
        lane.norm = dot(&lane.residual, &lane.conjugate);
        let forcing = lane.solution.gradient.sqrt().min(FORCING);
        lane.enough = forcing * forcing * lane.norm;
        (lane.inner, lane.phase) = (0, Phase::Conjugate);
    }

    /// Guesses the diagonal of the Hessian: dense columns are of unit variance; for sparse columns
    /// one guess for all of them is better than one for each, whose spread the penalty limits.
    fn precondition(&self, k: usize, lane: &mut Lane, problem: &Problem) {
        let design = self.design;
        let total: f64 = self.state.curvature.iter().map(|c| c[k]).sum();
        let square = design.mean_square();
        // Without sparse values there is the intercept alone.
        let sparse = if square > 0.0 { square * total / design.rows as f64 } else { total };
        for (c, m) in lane.scale.iter_mut().enumerate() {
            let ridge = design.ridge.get(c).map_or(0.0, |r| 2.0 * problem.lambda * r);
            let is_dense =
                c < design.dense_width || (c == design.width() - 1 && design.dense_width > 0);
            let data = if is_dense { total } else { sparse };
            *m = 1.0 / (data + ridge).max(f64::MIN_POSITIVE);
        }
    }

    /// Takes the product of the Hessian and the conjugate direction of lane `k`; true when there is
    /// no way down.
    fn conjugate(&mut self, k: usize, lane: &mut Lane, problem: &Problem) -> bool {
        lane.inner += 1;
        let lambda = problem.lambda;
        for ((o, p), ridge) in self.out.iter_mut().zip(&lane.conjugate).zip(&self.design.ridge) {
            o[k] += 2.0 * lambda * ridge * p;
        }
        problem.barred.iter().for_each(|&c| self.out[c as usize][k] = 0.0);
        let bend: f64 = self.out.iter().zip(&lane.conjugate).map(|(o, p)| o[k] * p).sum();
        // Flat, or no number: what was found so far is the direction.
        if bend > 0.0 && bend.is_finite() {
            let step = lane.norm / bend;
            let mut norm = 0.0;
            for (i, o) in self.out.iter().enumerate() {
                lane.direction[i] += step * lane.conjugate[i];
                lane.residual[i] -= step * o[k];
                norm += lane.residual[i] * lane.residual[i] * lane.scale[i];
            }
            if norm > lane.enough && lane.inner < self.design.width() {
                let keep = norm / lane.norm;
                for i in 0..lane.conjugate.len() {
                    lane.conjugate[i] = lane.scale[i] * lane.residual[i] + keep * lane.conjugate[i];
                }
                lane.norm = norm;
                return false;
            }
        }
        lane.slope = dot(&lane.gradient, &lane.direction);
        (lane.share, lane.phase) = (1.0, Phase::Trial);
        // Where the objective is flat to the last digit, the direction is zero.
        lane.slope.is_nan() || lane.slope >= 0.0
    }
}

impl Lane {
    fn idle() -> Self {
        Lane {
            phase: Phase::Idle,
            problem: usize::MAX,
            solution: Solution::default(),
            reference: 0.0,
            gradient: Vec::new(),
            direction: Vec::new(),
            share: 1.0,
            slope: 0.0,
            residual: Vec::new(),
            conjugate: Vec::new(),
            norm: 0.0,
            enough: 0.0,
            inner: 0,
            scale: Vec::new(),
        }
    }

    fn begin(&mut self, problem: usize, width: usize) {
        let zeros = || vec![0.0; width];
        let solution = Solution { weights: zeros(), ..Solution::default() };
        *self = Lane {
            phase: Phase::Reference,
            problem,
            solution,
            gradient: zeros(),
            direction: zeros(),
            residual: zeros(),
            conjugate: zeros(),
            scale: vec![1.0; width],
            ..Lane::idle()
        };
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::super::loss::Logistic;
    use super::*;

    /// Rows of two numbers, and those with the label.
    fn example() -> (Design, Vec<u32>) {
        let x = |r: usize, d: usize| ((r * (7 + 4 * d) + d) % 19) as f64 / 9.0 - 1.0;
        let mut design = Design { dense_width: 2, offsets: vec![0], ..Design::default() };
        for row in 0..60 {
            design.dense.extend([x(row, 0), x(row, 1)]);
            design.end_row();
        }
        design.ridge = vec![1.0; 2];
        let on = |r: &u32| {
            let r = *r as usize;
            x(r, 0) - x(r, 1) + ((r * 5 % 7) as f64 - 3.0) / 3.0 > 0.0
        };
        (design.finish(), (0..60).filter(on).collect())
    }

    #[test]
    fn a_warm_start_ends_at_the_same_minimum_sooner() {
        let (design, positive) = example();
        let weights = vec![1.0; 60];
        let limits = Limits { tolerance: 1e-9, steps: 100 };
        let problem = |start| Problem {
            positive: &positive,
            weights: &weights,
            lambda: 0.1,
            barred: &[],
            start,
        };
        let cold = &solve::<Logistic>(&design, &[problem(&[])], limits)[0];
        assert!(cold.steps > 2 && cold.gradient <= 1e-9, "{cold:?}");
        let warm = &solve::<Logistic>(&design, &[problem(&cold.weights)], limits)[0];
        assert_eq!(warm.steps, 0);
        assert_eq!(warm.weights, cold.weights);
        let near: Vec<f64> = cold.weights.iter().map(|w| w + 0.01).collect();
        let warm = &solve::<Logistic>(&design, &[problem(&near)], limits)[0];
        assert!(warm.steps < cold.steps, "{} and {}", warm.steps, cold.steps);
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-7;
        assert!(warm.weights.iter().zip(&cold.weights).all(close), "{warm:?} and {cold:?}");
    }

    #[test]
    fn rounding_ends_a_search_near_the_minimum_only() {
        let limits = Limits { tolerance: 1e-12, steps: 50 };
        let ended = |gradient, steps| Solution { gradient, steps, ..Solution::default() };
        assert!(!limits.reached(&ended(1e-6, 7)));
        assert!(limits.reached(&ended(5e-8, 7)));
        assert!(!limits.reached(&ended(5e-8, 50)));
        assert!(limits.reached(&ended(1e-12, 50)));
    }
}
