"""Times and delays between Python and C: ints that stay ints, floats, and what is refused."""

cdef object told(double time, bint whole)
cdef double checked(double time, bint whole) except? -1
cdef double number_of(number, bint *whole) except? -1
cdef int refuse_backwards(double after, delay) except -1
