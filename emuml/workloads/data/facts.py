"""What is known about the three data sets of ErasureHead's experiments (arXiv:1901.09671), as it prepares them.

Cardinalities and numbers of rows of Covertype and the house sales are counted on the data; those of the Amazon set are
the published ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class Original:
    """What is known about a data set and where it is looked for.

    Parameters
    ----------
    columns : tuple of str
        Names of the input columns, in order.
    target : str
    rows : int
        Rows that are kept.
    cardinalities : tuple of int
        Distinct values of each input column among the rows kept.
    one_hot_columns : int
        Columns of the encoded table, without a constant one.
    files : tuple of str
        Where it is looked for beneath ``EMUML_DATA``.
    fetch : str
        Python that makes scikit-learn fetch and keep it.
    openml : tuple of int
        Numbers at OpenML, the best copy first.
    pairs : tuple of (int, int)
        Columns that are crossed.
    labels : tuple of int
        Targets of the rows kept; if empty, they are no labels but any numbers.
    has_others : bool
        Whether the source has rows with other labels, which are left out.
    unit : float
        Of the target, by which it is divided.
    """

    columns: tuple[str, ...]
    target: str
    rows: int
    cardinalities: tuple[int, ...]
    one_hot_columns: int
    files: tuple[str, ...]
    fetch: str
    openml: tuple[int, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    labels: tuple[int, ...] = ()
    has_others: bool = False
    unit: float = 1.0


_FETCH_OPENML = (
    "from sklearn.datasets import fetch_openml; fetch_openml(data_id={}, as_frame=False, parser='liac-arff')"
)
_ABSENT_SOILS = (0, 4, 13, 14, 36)
"""Soil types, counted from 0, of which no row of class 1 or 2 is."""

ORIGINALS = {
    "covertype": Original(
        columns=(
            *("Elevation", "Aspect", "Slope", "Horizontal_Distance_To_Hydrology", "Vertical_Distance_To_Hydrology"),
            *("Horizontal_Distance_To_Roadways", "Hillshade_9am", "Hillshade_Noon", "Hillshade_3pm"),
            "Horizontal_Distance_To_Fire_Points",
            *(f"Wilderness_Area_{i}" for i in range(4)),
            *(f"Soil_Type_{i}" for i in range(40)),
        ),
        target="Cover_Type",
        rows=495_141,
        cardinalities=(
            *(1495, 361, 67, 544, 700, 5785, 206, 185, 255, 5827),
            *(2 for _ in range(4)),
            *(1 if soil in _ABSENT_SOILS else 2 for soil in range(40)),
        ),
        one_hot_columns=15_508,
        files=("covertype.npz", "covertype.npz.xz", "ml/covtype_full.npz.xz"),
        fetch="from sklearn.datasets import fetch_covtype; fetch_covtype()",
        labels=(1, 2),
        has_others=True,
    ),
    "kc-house": Original(
        columns=(
            *("bedrooms", "bathrooms", "sqft_living", "sqft_lot", "floors", "waterfront", "view", "condition", "grade"),
            *("sqft_above", "sqft_basement", "yr_built", "yr_renovated", "zipcode", "lat", "long"),
            *("sqft_living15", "sqft_lot15"),
        ),
        target="price",
        rows=21_613,
        cardinalities=(13, 30, 1038, 9782, 6, 2, 5, 5, 12, 946, 306, 116, 70, 70, 5034, 752, 777, 8689),
        one_hot_columns=27_653,
        files=("kc-house.npz", "kc-house.npz.xz", "ml/kc_house_data.csv.xz"),
        fetch=_FETCH_OPENML.format(42731),
        openml=(42731, 42092),
        unit=1e6,
    ),
    "amazon-access": Original(
        columns=(
            *("RESOURCE", "MGR_ID", "ROLE_ROLLUP_1", "ROLE_ROLLUP_2", "ROLE_DEPTNAME", "ROLE_TITLE"),
            *("ROLE_FAMILY_DESC", "ROLE_FAMILY", "ROLE_CODE"),
        ),
        target="ACTION",
        rows=32_769,
        cardinalities=(7518, 4243, 128, 177, 449, 343, 2358, 67, 343),
        one_hot_columns=241_914,
        files=("amazon-access.npz", "amazon-access.npz.xz", "ml/amazon_access.csv.xz"),
        fetch=_FETCH_OPENML.format(4135),
        openml=(4135, 46905),
        labels=(0, 1),
        pairs=tuple(pair for pair in combinations(range(9), 2) if pair not in ((2, 3), (5, 7))),
    ),
}
