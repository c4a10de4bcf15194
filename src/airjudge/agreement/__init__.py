"""How far judges, and people, rule alike; how sure that number is; and what their labels make of a score.

Only use cases import this package, and late: it loads scipy.
"""

from airjudge.agreement.arrays import Bools, Floats, Indices
from airjudge.agreement.clusters import ClusteredMean, clustered_mean, sums_by_group
from airjudge.agreement.corrected import Corrected, PredictionPowered, RoganGladen, ppi_mean, rogan_gladen
from airjudge.agreement.labelled import auc, auc_bootstrap, balanced_accuracy, f1, sensitivity_specificity
from airjudge.agreement.many import (
    AltAnnotator,
    AltTest,
    alpha_of,
    alpha_parts,
    alternative_annotator_test,
    flip_rate,
    krippendorff_alpha,
)
from airjudge.agreement.means import Difference, Equivalence, equivalence, paired_difference, pearson, spearman
from airjudge.agreement.pairs import cohen_kappa, gwet_ac1, mcnemar_exact, raw_agreement
from airjudge.agreement.resampling import (
    DEFINED_SHARE,
    Interval,
    cluster_bootstrap,
    percentile_interval,
    resampled_sums,
    sign_flip_test,
    table_bootstrap,
    weight_bootstrap,
)
from airjudge.agreement.tables import (
    ac1_of,
    agreement_of,
    balanced_accuracy_of,
    f1_of,
    grouped_tables,
    kappa_of,
    prevalence_of,
    rate_of,
    sensitivity_of,
    specificity_of,
    table,
)

__all__ = [
    "DEFINED_SHARE",
    "AltAnnotator",
    "AltTest",
    "Bools",
    "ClusteredMean",
    "Corrected",
    "Difference",
    "Equivalence",
    "Floats",
    "Indices",
    "Interval",
    "PredictionPowered",
    "RoganGladen",
    "ac1_of",
    "agreement_of",
    "alpha_of",
    "alpha_parts",
    "alternative_annotator_test",
    "auc",
    "auc_bootstrap",
    "balanced_accuracy",
    "balanced_accuracy_of",
    "cluster_bootstrap",
    "clustered_mean",
    "cohen_kappa",
    "equivalence",
    "f1",
    "f1_of",
    "flip_rate",
    "grouped_tables",
    "gwet_ac1",
    "kappa_of",
    "krippendorff_alpha",
    "mcnemar_exact",
    "paired_difference",
    "pearson",
    "percentile_interval",
    "ppi_mean",
    "prevalence_of",
    "rate_of",
    "raw_agreement",
    "resampled_sums",
    "rogan_gladen",
    "sensitivity_of",
    "sensitivity_specificity",
    "sign_flip_test",
    "spearman",
    "specificity_of",
    "sums_by_group",
    "table",
    "table_bootstrap",
    "weight_bootstrap",
]
