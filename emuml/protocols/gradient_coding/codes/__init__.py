"""Codes: who computes what, when a round closes, and how answers combine; one file a code."""

from emuml.protocols.gradient_coding.codes.groups import GroupCode
from emuml.protocols.gradient_coding.codes.linear import LinearCode
from emuml.protocols.gradient_coding.codes.repetition import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.protocols.gradient_coding.codes.seam import BuiltCode, Code, Decoding

__all__ = [
    "Uncoded",
    "IgnoreStragglers",
    "FractionalRepetition",
    "Code",
    "BuiltCode",
    "GroupCode",
    "LinearCode",
    "Decoding",
]
