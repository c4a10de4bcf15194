"""How far two judges rule alike on the same statements."""

from scipy.special import bdtr

from airjudge.agreement.arrays import Bools, defined
from airjudge.agreement.tables import ac1_of, agreement_of, kappa_of, table


def raw_agreement(a: Bools, b: Bools) -> float | None:
    """Share of statements on which two judges rule alike.

    Args:
        a: Verdicts of the first judge, shape (n_statements,).
        b: Verdicts of the second judge, same shape, same statement order.

    Returns:
        In [0, 1]. None if n is 0.

    Raises:
        ValueError: If the shapes differ or are not one-dimensional.
    """
    return defined(agreement_of(table(a, b)))


def cohen_kappa(a: Bools, b: Bools) -> float | None:
    """Cohen's kappa of two judges over the same statements.

    Args:
        a: Verdicts of the first judge, shape (n_statements,).
        b: Verdicts of the second judge, same shape, same statement order.

    Returns:
        Dimensionless, in [-1, 1]: 1 is full agreement, 0 is chance. None if
        chance agreement is 1 (both judges constant and equal) or n is 0.

    Raises:
        ValueError: If the shapes differ or are not one-dimensional.

    Source:
        Cohen (1960). doi:10.1177/001316446002000104
    """
    return defined(kappa_of(table(a, b)))


def gwet_ac1(a: Bools, b: Bools) -> float | None:
    """Gwet's AC1 of two judges: agreement beyond chance that does not collapse where one class is rare.

    Args:
        a: Verdicts of the first judge, shape (n_statements,).
        b: Verdicts of the second judge, same shape, same statement order.

    Returns:
        Dimensionless, in [-1, 1]; 1 also for two constant judges that are equal. None if n is 0.

    Raises:
        ValueError: If the shapes differ or are not one-dimensional.

    Source:
        Gwet (2008), for two raters and two categories. doi:10.1348/000711006X126600
    """
    return defined(ac1_of(table(a, b)))


def mcnemar_exact(only_a: int, only_b: int) -> float | None:
    """Exact McNemar test that two judges rule true equally often: two-sided p.

    It takes statements for independent; `sign_flip_test` over samples does not.

    Args:
        only_a: How many statements only the first judge rules true.
        only_b: How many only the second.

    Returns:
        In [0, 1]. None if the judges never differ: nothing to test.

    Raises:
        ValueError: If a count is negative.

    Source:
        McNemar (1947), doi:10.1007/BF02295996; binomial as in Fagerland, Lydersen and Laake (2013),
        doi:10.1186/1471-2288-13-91
    """
    if only_a < 0 or only_b < 0:
        msg = f"counts cannot be negative: got {only_a} and {only_b}"
        raise ValueError(msg)
    if only_a + only_b == 0:
        return None
    return min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5)))
