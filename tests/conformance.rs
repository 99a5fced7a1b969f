//! The conformance suite over the registry: one test per spec and check.

use labelflow::conformance::{Check, Exception, Subject, applicable, verdict};
use labelflow::models::Registry;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::Arc;

/// Specs besides the default of each algorithm.
const VARIANTS: &[&str] = &[
    "naibx(event=bernoulli)",
    "naibx(event=multinomial)",
    "naibx(event=gaussian)",
    "naibx(event=categorical)",
    "naibx(sets=8)",
    "naibx(size=labels)",
    "naibx(decide=threshold(0.5))",
    "naibx(decide=top(2), smoothing=0.1)",
    "naibx(decide=size)",
    "brknn(k=1)",
    "brknn(k=3, distance=cosine, scale=none)",
    "brknn_a(k=5, weight=distance)",
    "brknn_b(distance=manhattan, scale=standard)",
    "lpknn(k=7, keep=sample(1000))",
    "mlknn(k=4, weight=distance, smoothing=0.5)",
    "mlknn(k=1000, distance=manhattan)",
    "mlknn(k=3, index=hnsw)",
    "br(keep=all)",
    "br(base=svm)",
    "br(base=logistic(lambda=grid(1, 0.1)), prepare=standard)",
    "br(base=naive_bayes)",
    "br(prepare=tfidf, threshold=tuned(macro_f1))",
    "cc(order=frequency, base=svm(calibrate=none))",
    "cc(base=naive_bayes(event=bernoulli))",
    "ecc(chains=3, keep=all, vote=set)",
    "ecc(chains=3, base=naive_bayes)",
    "pcc(decide=marginal, keep=all)",
    "pcc(base=naive_bayes)",
];

/// Checks that a spec cannot pass by definition. An entry whose check passes fails the test.
const EXCEPTIONS: &[(&str, Exception)] = &[
    ("brknn", EQUALLY_NEAR),
    ("brknn_a", EQUALLY_NEAR),
    ("brknn_b", EQUALLY_NEAR),
    ("lpknn", EQUALLY_NEAR),
    ("mlknn", EQUALLY_NEAR),
    ("brknn(k=1)", EQUALLY_NEAR),
    ("brknn(k=3, distance=cosine, scale=none)", EQUALLY_NEAR),
    ("brknn_a(k=5, weight=distance)", EQUALLY_NEAR),
    ("brknn_b(distance=manhattan, scale=standard)", EQUALLY_NEAR),
    ("lpknn(k=7, keep=sample(1000))", EQUALLY_NEAR),
    ("mlknn(k=4, weight=distance, smoothing=0.5)", EQUALLY_NEAR),
    ("mlknn(k=3, index=hnsw)", EQUALLY_NEAR),
    ("cc", BY_NAME),
    ("cc(base=naive_bayes(event=bernoulli))", BY_NAME),
    ("ecc", BY_NAME),
    ("ecc(chains=3, keep=all, vote=set)", BY_NAME),
    ("ecc(chains=3, base=naive_bayes)", BY_NAME),
    ("pcc", BY_NAME),
    ("pcc(decide=marginal, keep=all)", BY_NAME),
    ("pcc(base=naive_bayes)", BY_NAME),
    ("mlknn(k=1000, distance=manhattan)", EVERYBODY),
    ("br(base=svm)", LAST_DIGITS),
    ("br(base=logistic(lambda=grid(1, 0.1)), prepare=standard)", LAST_DIGITS),
    ("cc(order=frequency, base=svm(calibrate=none))", LAST_DIGITS),
];

const BY_NAME: Exception = Exception {
    check: "relabelling_permutes",
    reason: "the order of a chain is drawn from the names of labels",
};

const EQUALLY_NEAR: Exception = Exception {
    check: "relabelling_permutes",
    reason: "of rows with equal features the first in the order of content is the nearest, and \
             content has names of labels in it; so have ties between labels",
};

const LAST_DIGITS: Exception = Exception {
    check: "relabelling_permutes",
    reason: "rows are fitted in the order of their content, which has names of labels in it: weights \
             agree to the accuracy of the solver, 1e-7, which the check does not allow",
};

const EVERYBODY: Exception = Exception {
    check: "beats_the_label_prior",
    reason: "all rows are asked, whatever the features",
};

fn main() -> ExitCode {
    let registry = Registry::default();
    let defaults = registry.algorithms().iter().map(|a| a.name);
    let mut trials = Vec::new();
    for spec in defaults.chain(VARIANTS.iter().copied()) {
        match Subject::try_new(&registry, spec) {
            Ok(subject) => trials.extend(trials_of(spec, subject)),
            Err(error) => {
                let failed = move || Err(Failed::from(error.to_string()));
                trials.push(Trial::test(format!("{spec}::is_in_the_registry"), failed));
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trials_of(spec: &str, subject: Subject) -> Vec<Trial> {
    let subject = Arc::new(subject);
    let exceptions: Vec<Exception> =
        EXCEPTIONS.iter().filter(|(of, _)| *of == spec).map(|(_, e)| *e).collect();
    let trial = |check: &'static Check| {
        let (subject, exceptions) = (Arc::clone(&subject), exceptions.clone());
        let name = format!("{spec}::{}", check.name);
        Trial::test(name, move || verdict(check, &subject, &exceptions).map_err(Failed::from))
    };
    applicable(&subject).map(trial).collect()
}
