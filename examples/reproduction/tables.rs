//! What three papers published about binary relevance and chains, and what stands for it here.

use crate::features::Features;
use crate::links::{Chains, Draws, Link, Rule};
use labelflow::evaluate::Stratify;

/// Published figures of one method on one data set, in the order of the metrics of its table, and
/// their spreads where the paper gives them.
pub type Row = (&'static str, &'static [f64], &'static [f64]);

/// One table of a paper.
pub struct Table {
    pub title: &'static str,
    pub metrics: &'static [&'static str],
    /// The name of a method in the paper, and what stands for it: first the plain spec, then the
    /// experiments, each of which changes one thing.
    pub methods: &'static [(&'static str, &'static [Variant])],
    pub stratify: Stratify,
    pub sets: &'static [Set],
}

/// How rows are predicted, and what is changed before.
#[derive(Clone, Copy)]
pub struct Variant {
    pub way: Way,
    pub features: Features,
    pub folds: Folds,
    /// The data sets it is for; all when empty.
    pub only: &'static [&'static str],
}

/// How rows are divided.
#[derive(Clone, Copy)]
pub enum Folds {
    /// As the table says.
    OfTable,
    /// Each fold has its share of the rows of every label.
    Stratified,
    /// As MEKA's Explorer does it.
    Meka,
}

/// How rows are predicted.
#[derive(Clone, Copy)]
pub enum Way {
    Spec(&'static str),
    /// From the scores of the spec.
    Ruled(Rule, &'static str),
    Chains(Chains),
}

const fn way(way: Way) -> Variant {
    Variant { way, features: Features::AsTheyAre, folds: Folds::OfTable, only: &[] }
}

const fn plain(spec: &'static str) -> Variant {
    way(Way::Spec(spec))
}

const fn with(spec: &'static str, features: Features) -> Variant {
    Variant { features, ..plain(spec) }
}

const fn on(only: &'static [&'static str], variant: Variant) -> Variant {
    Variant { only, ..variant }
}

const fn stratified(spec: &'static str) -> Variant {
    Variant { folds: Folds::Stratified, ..plain(spec) }
}

const fn in_folds_of_meka(variant: Variant) -> Variant {
    Variant { folds: Folds::Meka, ..variant }
}

/// The chain that MEKA calls "quick": each link leaves out rows without its label, up to a quarter
/// of all rows.
const fn quick(link: Link) -> Variant {
    way(Way::Chains(Chains { link, chains: 1, draws: Draws::Own, left_out: 0.25 }))
}

/// Chains of all rows, or of a bag of them each.
const fn chains(link: Link, chains: u64) -> Variant {
    way(Way::Chains(Chains { link, chains, draws: Draws::Own, left_out: 0.0 }))
}

impl Variant {
    /// What a table says.
    pub fn name(&self) -> String {
        let way = match self.way {
            Way::Spec(spec) => format!("`{spec}`"),
            Way::Ruled(Rule::NeverEmpty, spec) => format!("`{spec}`, never empty"),
            Way::Ruled(Rule::Cardinality, spec) => format!("`{spec}`, MEKA's threshold"),
            Way::Chains(chains) => chains.name(),
        };
        let folds = match self.folds {
            Folds::OfTable => "",
            Folds::Stratified => ", stratified",
            Folds::Meka => ", MEKA's folds",
        };
        format!("{way}{}{folds}", self.features.name())
    }
}

pub struct Set {
    pub directory: &'static str,
    pub file: &'static str,
    pub folds: usize,
    /// Whether the paper's precision and recall are over all labels of all rows.
    pub micro: bool,
    /// Methods of the table; those that the paper does not give are left out.
    pub published: &'static [Row],
}

const fn set(directory: &'static str, folds: usize, published: &'static [Row]) -> Set {
    Set { directory, file: directory, folds, micro: false, published }
}

const fn micro(directory: &'static str, folds: usize, published: &'static [Row]) -> Set {
    Set { directory, file: directory, folds, micro: true, published }
}

const SVM: &str = "cc(base=svm(calibrate=none))";
const SVMS: &str = "ecc(base=svm(calibrate=none), vote=set)";
const SVM_LINK: Link = Link::Spec("br(base=svm(calibrate=none))");
/// The quick chain in the order that MEKA shuffles labels into.
const ORDERED: Variant =
    way(Way::Chains(Chains { link: Link::Hinge, chains: 1, draws: Draws::Meka, left_out: 0.25 }));
/// Ten chains in the orders and bags of MEKA.
const DRAWN: Variant =
    way(Way::Chains(Chains { link: Link::Weka, chains: 10, draws: Draws::Meka, left_out: 0.0 }));
const BAYES_LINK: Link = Link::Spec("br(base=naive_bayes)");
const BAYES: &str = "br(base=naive_bayes)";
const WORDS: &str = "br(base=naive_bayes(event=bernoulli))";
const BAYES_ENSEMBLE: &str = "ecc(base=naive_bayes, chains=20, vote=set)";
const WORDS_ENSEMBLE: &str = "ecc(base=naive_bayes(event=bernoulli), chains=20, vote=set)";
/// Their files declare binary words as numbers.
const NUMBERS: &[&str] = &["slashdot", "langlog"];
const DENSE: &[&str] = &["yeast", "scene", "emotions", "music-meka", "cal500"];
/// Where the example's own chains are compared with `cc` and `ecc`, nothing changed.
const CONTROL: &[&str] = &["emotions", "music-meka", "yeast"];
/// Sets of words.
const TEXT: &[&str] = &["enron", "langlog", "slashdot", "bibtex"];

/// Tables of the three papers. A number of folds of 1 is a hold-out of a third.
#[rustfmt::skip]
pub const TABLES: &[Table] = &[
    Table {
        title: "PACC-LDF, Table 4",
        metrics: &["exact_match", "jaccard", "macro_f1", "micro_f1"],
        methods: &[
            ("BR", &[
                plain("br"),
                plain("br(prepare=standard)"),
                plain("br(prepare=standard, threshold=cardinality)"),
                on(&["corel16k001"], plain("br(threshold=cardinality)")),
                on(&["corel16k001"], plain("br(base=logistic(max_steps=6), prepare=standard, threshold=cardinality)")),
                on(&["genbase"], stratified("br")),
            ]),
            ("CC", &[plain("cc"), plain("cc(prepare=standard)"), on(&["genbase"], stratified("cc"))]),
        ],
        stratify: Stratify::None,
        sets: &[
            set("emotions", 5, &[("BR", &[0.239, 0.511, 0.636, 0.650], &[0.069, 0.049, 0.043, 0.042]), ("CC", &[0.260, 0.516, 0.623, 0.633], &[0.044, 0.038, 0.035, 0.034])]),
            set("scene", 5, &[("BR", &[0.466, 0.567, 0.652, 0.645], &[0.024, 0.020, 0.019, 0.019]), ("CC", &[0.546, 0.608, 0.639, 0.631], &[0.017, 0.020, 0.021, 0.022])]),
            set("yeast", 5, &[("BR", &[0.139, 0.512, 0.424, 0.642], &[0.015, 0.018, 0.014, 0.015]), ("CC", &[0.194, 0.505, 0.404, 0.626], &[0.016, 0.013, 0.019, 0.009])]),
            set("birds", 5, &[("BR", &[0.476, 0.576, 0.335, 0.441], &[0.060, 0.055, 0.028, 0.048]), ("CC", &[0.476, 0.579, 0.341, 0.449], &[0.056, 0.051, 0.013, 0.030])]),
            set("genbase", 5, &[("BR", &[0.949, 0.973, 0.725, 0.977], &[0.030, 0.017, 0.055, 0.015]), ("CC", &[0.974, 0.986, 0.740, 0.989], &[0.009, 0.006, 0.050, 0.004])]),
            set("medical", 5, &[("BR", &[0.580, 0.698, 0.372, 0.761], &[0.046, 0.029, 0.022, 0.020]), ("CC", &[0.586, 0.672, 0.355, 0.750], &[0.040, 0.028, 0.025, 0.015])]),
            set("enron", 5, &[("BR", &[0.089, 0.377, 0.216, 0.497], &[0.017, 0.015, 0.026, 0.010]), ("CC", &[0.099, 0.380, 0.208, 0.497], &[0.011, 0.009, 0.028, 0.006])]),
            set("langlog", 5, &[("BR", &[0.224, 0.315, 0.090, 0.272], &[0.032, 0.020, 0.016, 0.015]), ("CC", &[0.237, 0.275, 0.055, 0.225], &[0.023, 0.012, 0.009, 0.024])]),
            set("rcv1subset1-top944", 3, &[("BR", &[0.047, 0.243, 0.232, 0.344], &[0.003, 0.003, 0.008, 0.003]), ("CC", &[0.111, 0.289, 0.240, 0.369], &[0.007, 0.003, 0.013, 0.001])]),
            set("corel16k001", 3, &[("BR", &[0.006, 0.117, 0.093, 0.194], &[0.001, 0.006, 0.007, 0.008]), ("CC", &[0.012, 0.093, 0.070, 0.142], &[0.001, 0.001, 0.002, 0.002])]),
            set("bibtex", 3, &[("BR", &[0.110, 0.287, 0.297, 0.376], &[0.005, 0.001, 0.008, 0.008]), ("CC", &[0.120, 0.299, 0.308, 0.385], &[0.006, 0.003, 0.009, 0.007])]),
            set("corel5k", 3, &[("BR", &[0.003, 0.097, 0.045, 0.164], &[0.002, 0.003, 0.003, 0.002]), ("CC", &[0.009, 0.116, 0.043, 0.178], &[0.001, 0.001, 0.004, 0.002])]),
        ],
    },
    Table {
        title: "NaiBX, Tables 6 and 7",
        metrics: &["label_cardinality", "hamming_score", "exact_match", "jaccard", "precision", "recall"],
        methods: &[
            ("CC-SVM", &[
                plain(SVM),
                with(SVM, Features::UnitRange),
                on(CONTROL, chains(SVM_LINK, 1)),
                on(DENSE, quick(SVM_LINK)),
                on(DENSE, quick(Link::Hinge)),
                on(&["yeast", "cal500"], ORDERED),
                on(&["cal500"], in_folds_of_meka(ORDERED)),
                on(&["slashdot"], chains(Link::Hinge, 1)),
            ]),
            ("ECC-SVM", &[
                plain(SVMS),
                with(SVMS, Features::UnitRange),
                on(CONTROL, Variant { features: Features::UnitRange, ..chains(SVM_LINK, 10) }),
                on(DENSE, chains(Link::Hinge, 10)),
                on(&["bibtex"], plain("ecc(base=svm(calibrate=none), vote=set, threshold=cardinality)")),
            ]),
            ("CC-NBC", &[
                plain("cc(base=naive_bayes)"),
                on(NUMBERS, plain("cc(base=naive_bayes(event=bernoulli))")),
                on(&["bibtex"], plain("cc(base=naive_bayes, order=given)")),
                on(&["bibtex"], in_folds_of_meka(plain("cc(base=naive_bayes, order=given)"))),
                on(CONTROL, chains(BAYES_LINK, 1)),
                on(DENSE, quick(BAYES_LINK)),
                on(TEXT, chains(Link::Weka, 1)),
            ]),
            ("ECC-NBC", &[
                plain("ecc(base=naive_bayes, vote=set)"),
                on(NUMBERS, plain("ecc(base=naive_bayes(event=bernoulli), vote=set)")),
                on(TEXT, chains(Link::Weka, 10)),
                on(&["music-meka", "cal500"], chains(Link::Weka, 10)),
                on(&["cal500"], in_folds_of_meka(chains(Link::Weka, 10))),
                on(&["music-meka", "cal500"], DRAWN),
                on(&["music-meka", "cal500"], in_folds_of_meka(DRAWN)),
            ]),
        ],
        stratify: Stratify::None,
        sets: &[
            set("yeast", 10, &[("CC-SVM", &[4.245, 0.785, 0.201, 0.529, 0.652, 0.660], &[]), ("ECC-SVM", &[3.949, 0.799, 0.203, 0.536, 0.680, 0.633], &[]), ("CC-NBC", &[6.165, 0.706, 0.096, 0.476, 0.545, 0.744], &[]), ("ECC-NBC", &[5.122, 0.701, 0.105, 0.428, 0.505, 0.610], &[])]),
            set("scene", 10, &[("CC-SVM", &[1.091, 0.892, 0.634, 0.688, 0.711, 0.720], &[]), ("ECC-SVM", &[1.013, 0.906, 0.642, 0.694, 0.752, 0.710], &[]), ("CC-NBC", &[2.174, 0.762, 0.172, 0.454, 0.461, 0.854], &[]), ("ECC-NBC", &[2.160, 0.765, 0.178, 0.460, 0.422, 0.848], &[])]),
            set("emotions", 10, &[("CC-SVM", &[2.066, 0.780, 0.283, 0.550, 0.633, 0.702], &[]), ("ECC-SVM", &[1.934, 0.806, 0.320, 0.578, 0.682, 0.706], &[]), ("CC-NBC", &[2.551, 0.739, 0.211, 0.521, 0.565, 0.766], &[]), ("ECC-NBC", &[2.447, 0.755, 0.233, 0.538, 0.581, 0.761], &[])]),
            Set { directory: "emotions", file: "music-meka", folds: 10, micro: false, published: &[("CC-SVM", &[2.059, 0.786, 0.304, 0.564, 0.650, 0.715], &[]), ("ECC-SVM", &[1.895, 0.807, 0.326, 0.577, 0.687, 0.696], &[]), ("CC-NBC", &[2.544, 0.746, 0.215, 0.527, 0.570, 0.774], &[]), ("ECC-NBC", &[2.448, 0.754, 0.240, 0.538, 0.580, 0.760], &[])] },
            set("cal500", 10, &[("CC-SVM", &[23.906, 0.823, 0.000, 0.244, 0.412, 0.375], &[]), ("ECC-SVM", &[13.572, 0.855, 0.000, 0.228, 0.531, 0.277], &[]), ("CC-NBC", &[78.195, 0.571, 0.000, 0.180, 0.209, 0.562], &[]), ("ECC-NBC", &[56.779, 0.690, 0.000, 0.222, 0.254, 0.554], &[])]),
            micro("enron", 10, &[("CC-SVM", &[3.220, 0.939, 0.132, 0.409, 0.521, 0.497], &[]), ("ECC-SVM", &[2.958, 0.947, 0.143, 0.448, 0.600, 0.525], &[]), ("CC-NBC", &[11.627, 0.796, 0.004, 0.228, 0.181, 0.622], &[]), ("ECC-NBC", &[10.425, 0.816, 0.004, 0.243, 0.195, 0.601], &[])]),
            micro("langlog", 10, &[("CC-SVM", &[0.692, 0.981, 0.237, 0.288, 0.321, 0.188], &[]), ("ECC-SVM", &[0.356, 0.984, 0.234, 0.265, 0.473, 0.143], &[]), ("CC-NBC", &[25.403, 0.672, 0.142, 0.180, 0.039, 0.850], &[])]),
            micro("slashdot", 10, &[("CC-SVM", &[1.139, 0.951, 0.413, 0.499, 0.541, 0.522], &[]), ("ECC-SVM", &[0.941, 0.957, 0.411, 0.489, 0.629, 0.502], &[]), ("CC-NBC", &[1.576, 0.936, 0.271, 0.422, 0.426, 0.568], &[]), ("ECC-NBC", &[1.494, 0.940, 0.281, 0.431, 0.451, 0.570], &[])]),
            micro("bibtex", 1, &[("CC-SVM", &[1.724, 0.985, 0.161, 0.328, 0.488, 0.362], &[]), ("ECC-SVM", &[2.465, 0.982, 0.148, 0.348, 0.426, 0.451], &[]), ("CC-NBC", &[18.830, 0.882, 0.074, 0.190, 0.084, 0.680], &[])]),
        ],
    },
    Table {
        title: "mNB and mFAN, Tables 3 and 4",
        metrics: &["exact_match", "hamming_score"],
        methods: &[
            ("BR-NB", &[
                plain(BAYES),
                with(BAYES, Features::Quartiles),
                with(BAYES, Features::Selected),
                on(&["yeast"], Variant { features: Features::Selected, ..way(Way::Ruled(Rule::Cardinality, BAYES)) }),
                on(&["slashdot"], plain(WORDS)),
                on(&["slashdot"], way(Way::Ruled(Rule::Cardinality, WORDS))),
                on(&["slashdot"], way(Way::Ruled(Rule::NeverEmpty, WORDS))),
            ]),
            ("ECC-NB", &[
                plain(BAYES_ENSEMBLE),
                with(BAYES_ENSEMBLE, Features::Quartiles),
                with(BAYES_ENSEMBLE, Features::Selected),
                on(&["yeast"], with(BAYES_ENSEMBLE, Features::HalfSelected)),
                on(&["yeast"], Variant { features: Features::Selected, ..way(Way::Ruled(Rule::Cardinality, BAYES_ENSEMBLE)) }),
                on(&["slashdot"], plain(WORDS_ENSEMBLE)),
                on(&["slashdot"], way(Way::Ruled(Rule::Cardinality, WORDS_ENSEMBLE))),
                on(&["slashdot"], way(Way::Ruled(Rule::NeverEmpty, WORDS_ENSEMBLE))),
            ]),
        ],
        stratify: Stratify::Rarest,
        sets: &[
            set("cal500", 5, &[("BR-NB", &[0.00, 0.63], &[]), ("ECC-NB", &[0.00, 0.59], &[])]),
            set("emotions", 5, &[("BR-NB", &[0.25, 0.75], &[]), ("ECC-NB", &[0.25, 0.76], &[])]),
            set("enron", 5, &[("BR-NB", &[0.02, 0.87], &[]), ("ECC-NB", &[0.02, 0.77], &[])]),
            set("genbase", 5, &[("BR-NB", &[0.77, 0.98], &[]), ("ECC-NB", &[0.76, 0.99], &[])]),
            set("medical", 5, &[("BR-NB", &[0.18, 0.69], &[]), ("ECC-NB", &[0.20, 0.98], &[])]),
            set("scene", 5, &[("BR-NB", &[0.29, 0.82], &[]), ("ECC-NB", &[0.30, 0.83], &[])]),
            set("slashdot", 5, &[("BR-NB", &[0.41, 0.86], &[]), ("ECC-NB", &[0.44, 0.95], &[])]),
            set("yeast", 5, &[("BR-NB", &[0.11, 0.75], &[]), ("ECC-NB", &[0.13, 0.76], &[])]),
        ],
    },
];

/// How many features the authors of mNB and mFAN selected (their Table 2).
pub fn selected(set: &str) -> usize {
    match set {
        "emotions" => 22,
        "scene" => 184,
        "yeast" => 28,
        "cal500" => 66,
        "slashdot" => 465,
        "genbase" => 82,
        "enron" => 220,
        "medical" => 436,
        _ => usize::MAX,
    }
}
