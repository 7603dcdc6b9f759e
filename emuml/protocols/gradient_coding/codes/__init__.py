"""Codes: who computes what, when a round closes, and how answers combine; one file a code."""

from emuml.protocols.gradient_coding.codes.balanced import BalancedRepetition
from emuml.protocols.gradient_coding.codes.bernoulli import Bernoulli
from emuml.protocols.gradient_coding.codes.cyclic import CyclicRepetition
from emuml.protocols.gradient_coding.codes.cyclic_mds import CyclicMDS
from emuml.protocols.gradient_coding.codes.expander import Expander
from emuml.protocols.gradient_coding.codes.graph import GraphCode
from emuml.protocols.gradient_coding.codes.groups import GroupCode
from emuml.protocols.gradient_coding.codes.heterogeneous import HeterogeneousCode, answered_in, estimate_absence
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.codes.partial import PartialWork
from emuml.protocols.gradient_coding.codes.repetition import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.protocols.gradient_coding.codes.seam import BuiltCode, Code, Decoding
from emuml.protocols.gradient_coding.codes.stochastic import StochasticCode
from emuml.protocols.gradient_coding.codes.verified import VerifiedCode, VerifiedRepetition
from emuml.protocols.gradient_coding.codes.ye_abbe import YeAbbe

__all__ = [
    "Uncoded",
    "IgnoreStragglers",
    "FractionalRepetition",
    "VerifiedRepetition",
    "StochasticCode",
    "HeterogeneousCode",
    "estimate_absence",
    "answered_in",
    "CyclicRepetition",
    "CyclicMDS",
    "YeAbbe",
    "BalancedRepetition",
    "GraphCode",
    "Expander",
    "Bernoulli",
    "PartialWork",
    "Code",
    "BuiltCode",
    "GroupCode",
    "VerifiedCode",
    "LinearCode",
    "Decoding",
]
