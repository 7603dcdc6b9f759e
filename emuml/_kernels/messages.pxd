"""Plans of message classes, and places of attributes, for the kernels that send messages."""

from cpython.object cimport PyObject


cdef class Plan:
    cdef readonly str name
    cdef readonly Py_ssize_t index
    cdef readonly bint freezes
    cdef bint copied
    cdef object fields
    cdef Py_ssize_t count
    cdef Py_ssize_t base_bytes
    cdef bint sized
    cdef Py_ssize_t* offsets
    cdef unsigned char* codes
    cdef bint accepts(self, object message)
    cdef bint _accepts_array(self, Py_ssize_t field, object value)
    cdef Py_ssize_t size(self, object message) except -2


cdef Plan plan_for(object message)
cdef Plan known_plan(object message)
cdef Py_ssize_t offset_of(object kind, str name)


cdef inline object slot(object thing, Py_ssize_t offset, str name):
    """Return what an attribute holds whose place in an object is ``offset_of`` its class; 0 is no place."""
    cdef PyObject* value = NULL
    if offset:
        value = (<PyObject**>(<char*><PyObject*>thing + offset))[0]
    return getattr(thing, name) if value == NULL else <object>value
