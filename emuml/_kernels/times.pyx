"""Times and delays between Python and C: ints that stay ints, floats, and what is refused."""

from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.long cimport PyLong_AsLongLongAndOverflow

cdef double INFINITE = float("inf")
cdef double WHOLE_LIMIT = 2.0**53  # from it on, doubles skip integers


cdef object told(double time, bint whole):
    """Return a time as it was given: as an int or as a float."""
    return <long long>time if whole else time


cdef double checked(double time, bint whole) except? -1:
    """Return a time, unless it is an integer that doubles cannot tell from its neighbours."""
    if whole and not -WHOLE_LIMIT < time < WHOLE_LIMIT:
        raise OverflowError(f"an integer time must lie within 2**53 of 0, not at {time:.0f}; use floats")
    return time


cdef int refuse_backwards(double after, delay) except -1:
    """Refuse a delay that is negative or no number."""
    if not after >= 0:
        raise ValueError(f"Negative delay {delay}" if after < 0 else f"a delay must be a number, not {delay}")
    return 0


cdef double number_of(number, bint *whole) except? -1:
    """Return a time or delay as a double, and whether it is an integer."""
    cdef int beyond = 0
    cdef long long integer
    whole[0] = False
    if type(number) is float:
        return PyFloat_AS_DOUBLE(number)
    if isinstance(number, int):
        whole[0] = True
        integer = PyLong_AsLongLongAndOverflow(number, &beyond)
        return checked(beyond * INFINITE if beyond else <double>integer, True)
    return other_number_of(number, whole)


cdef double other_number_of(number, bint *whole) except? -1:
    from numbers import Integral, Rational, Real

    if isinstance(number, float):
        return float(number)
    if isinstance(number, Integral):
        return number_of(int(number), whole)
    if isinstance(number, Real) and not isinstance(number, Rational):
        return float(number)
    raise TypeError(f"a time or delay must be an int or a float, not {number!r} ({type(number).__name__})")
