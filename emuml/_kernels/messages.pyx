# Twin: emuml/message.py, whose Python loops say the same and serve what is rare here
"""Checks of messages when they are made, and their size on the wire, without encoding them.

A class of messages is analysed once: where each field lies in its objects, and what it may hold. Fields of numbers,
texts, bytes and arrays are checked and measured here; a message with any other field, or with a value that is refused
or unusual, is left to the Python code that knows all of the grammar and words the errors.
"""

from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from types import MemberDescriptorType


cdef extern from "Python.h":
    ctypedef struct PyMemberDef:
        int type
        Py_ssize_t offset
    ctypedef struct PyMemberDescrObject:
        PyMemberDef* d_member
    PyObject* Py_TYPE(object thing)
    int PyUnicode_IS_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1


cdef extern from *:
    """
    /* Whether it is an int of one digit, and its value then. */
    #if PY_VERSION_HEX >= 0x030C0000
    #define emuml_is_small(number) (PyLong_CheckExact(number) && PyUnstable_Long_IsCompact((PyLongObject *)(number)))
    #define emuml_small(number) PyUnstable_Long_CompactValue((PyLongObject *)(number))
    #else
    #define emuml_is_small(number) (PyLong_CheckExact(number) && (size_t)(Py_SIZE(number) + 1) < 3)
    #define emuml_small(number) (Py_SIZE(number) * (Py_ssize_t)((PyLongObject *)(number))->ob_digit[0])
    #endif
    """
    bint is_small "emuml_is_small"(object number) noexcept
    Py_ssize_t small "emuml_small"(object number) noexcept


cdef enum:
    INT, FLOAT, BOOL, TEXT, BYTES, ARRAY, OTHER
    HEADER_BYTES = 40
    CHUNK_BYTES = 1048576
    META_BYTES_MAX = 1048576
    SEGMENTS_MAX = 4096
    DIMENSIONS_MAX = 32
    RECENT = 64
    # Their codes stand in descrobject.h; a field that is no object of a slot is left to Python.
    T_OBJECT = 6
    T_OBJECT_EX = 16

CODES = {"int": INT, "float": FLOAT, "bool": BOOL, "str": TEXT, "bytes": BYTES, "array": ARRAY}

cdef dict _plans = {}
cdef PyObject* _kinds[RECENT]  # classes that were asked for, and their plans, as there are few of them
cdef PyObject* _recent[RECENT]
cdef dict _dtypes = {}  # dtype -> (bytes of its name on the wire, bytes of an item); values of arrays have few
cdef object _analysed = None, _refuse = None, _array = None, _deferred = None, _named = None


def configure(analysed, refuse, array, deferred, named):
    """Say what Python serves.

    Parameters
    ----------
    analysed : callable
        Maps a message class to ``(tag, fields, freezes)``; fields are ``(name, kind, accepts)`` with a kind of
        ``CODES`` or another one.
    refuse : callable
        Checks a message completely and raises what is wrong with it.
    array, deferred : type
        What may stand in a field of arrays.
    named : callable
        Maps a dtype to its name on the wire.
    """
    global _analysed, _refuse, _array, _deferred, _named
    _analysed, _refuse, _array, _deferred, _named = analysed, refuse, array, deferred, named


cdef class Plan:
    """Where the fields of one message class are, and what they hold.

    Attributes
    ----------
    name : str
        Of the class.
    index : int
        Its number among all classes that were analysed, from 0.
    freezes : bool
        Whether a message may have to be copied, or its arrays made read-only, when it is sent.
    """

    def __cinit__(self, kind):
        cdef Py_ssize_t place
        tag, fields, freezes = _analysed(kind)
        self.name, self.freezes, self.index = kind.__name__, freezes, len(_plans)
        self.count, self.sized = len(fields), True
        self.fields = [[accepts, None] for _, _, accepts in fields]
        self.offsets = <Py_ssize_t*>malloc(sizeof(Py_ssize_t) * (self.count + 1))
        self.codes = <unsigned char*>malloc(self.count + 1)
        if self.offsets == NULL or self.codes == NULL:
            raise MemoryError
        for place, (name, code, _) in enumerate(fields):
            self.codes[place] = CODES.get(code, OTHER)
            self.offsets[place] = offset_of(kind, name)
            if self.offsets[place] == 0:
                self.codes[place] = OTHER
            self.sized &= self.codes[place] != OTHER
        # Arrays stay shared; what a field of another kind holds may be a list, and each receiver has its own.
        self.copied = freezes and not self.sized
        self.base_bytes = HEADER_BYTES + _array_head(self.count + 1) + _text_bytes(tag)

    def __dealloc__(self):
        free(self.offsets)
        free(self.codes)

    cdef bint accepts(self, object message):
        """Tell whether all fields are fine; where not, Python decides."""
        cdef Py_ssize_t place
        cdef PyObject* value
        cdef int overflow
        for place in range(self.count):
            value = (<PyObject**>(<char*><PyObject*>message + self.offsets[place]))[0]
            if value == NULL:
                return False
            if self.codes[place] == INT:
                if type(<object>value) is not int:
                    return False
                if is_small(<object>value):
                    continue
                PyLong_AsLongLongAndOverflow(<object>value, &overflow)
                if overflow:
                    return False
            elif self.codes[place] == FLOAT:
                if type(<object>value) is not float:
                    return False
            elif self.codes[place] == ARRAY:
                if not self._accepts_array(place, <object>value):
                    return False
            elif self.codes[place] == TEXT:
                if type(<object>value) is not str or not PyUnicode_IS_ASCII(<object>value):
                    return False
            elif self.codes[place] == BOOL:
                if type(<object>value) is not bool:
                    return False
            elif self.codes[place] == BYTES:
                if type(<object>value) is not bytes:
                    return False
            else:
                return False
        return True

    cdef bint _accepts_array(self, Py_ssize_t field, object value):
        # Arrays of one field are nearly always of one dtype: what was found for the last one is remembered.
        if type(value) is not _array and type(value) is not _deferred:
            return False
        accepts, known = self.fields[field]
        if value.dtype is known and len(value.shape) <= DIMENSIONS_MAX:
            return True
        if not accepts(value):
            return False
        self.fields[field][1] = value.dtype
        return True

    cdef Py_ssize_t size(self, object message) except -2:
        """Return bytes on the wire, or -1 where Python must say."""
        cdef Py_ssize_t place, meta = self.base_bytes, segments = 0, arrays = 0, item
        cdef PyObject* value
        if not self.sized:
            return -1
        for place in range(self.count):
            value = (<PyObject**>(<char*><PyObject*>message + self.offsets[place]))[0]
            if self.codes[place] == INT:
                item = _int_bytes(<object>value)
                if item < 0:
                    return -1
                meta += item
            elif self.codes[place] == FLOAT:
                meta += 9
            elif self.codes[place] == BOOL:
                meta += 1
            elif self.codes[place] == TEXT:
                meta += _text_bytes(<object>value)
            elif self.codes[place] == BYTES:
                meta += _bytes_head(PyBytes_GET_SIZE(<object>value)) + PyBytes_GET_SIZE(<object>value)
            else:
                arrays += 1
                meta += 1
                name, width = _described((<object>value).dtype)
                meta += name
                item = width
                shape = (<object>value).shape
                meta += _array_head(PyTuple_GET_SIZE(shape))
                for length in shape:
                    meta += _int_bytes(length)
                    item *= length
                segments += item + 4 * ((item + CHUNK_BYTES - 1) // CHUNK_BYTES)
        if meta - HEADER_BYTES > META_BYTES_MAX or arrays > SEGMENTS_MAX:
            return -1
        return meta + segments


cdef object _described(object dtype):
    found = _dtypes.get(dtype)
    if found is None:
        found = _dtypes[dtype] = (_text_bytes(_named(dtype)), dtype.itemsize)
    return found


cdef Py_ssize_t offset_of(object kind, str name):
    """Return where an attribute lies in an object, or 0."""
    cdef PyMemberDef* member
    descriptor = getattr(kind, name, None)
    if type(descriptor) is not MemberDescriptorType:
        return 0
    member = (<PyMemberDescrObject*><PyObject*>descriptor).d_member
    return member.offset if member.type == T_OBJECT_EX or member.type == T_OBJECT else 0


cdef Py_ssize_t _int_bytes(object number) except -2:
    cdef int overflow = 0
    cdef int64_t value
    if is_small(number):
        value = small(number)
    else:
        value = PyLong_AsLongLongAndOverflow(number, &overflow)
        if overflow:
            return 9 if overflow > 0 else -1
    if value >= 0:
        return 1 if value < 128 else 2 if value < 256 else 3 if value < 65536 else 5 if value <= 0xFFFFFFFF else 9
    if value >= -32:
        return 1
    return 2 if value >= -128 else 3 if value >= -32768 else 5 if value >= -2147483648 else 9


cdef Py_ssize_t _text_bytes(object text) except -1:
    cdef Py_ssize_t size
    if PyUnicode_IS_ASCII(text):
        size = PyUnicode_GET_LENGTH(text)
    else:
        PyUnicode_AsUTF8AndSize(text, &size)
    return size + (1 if size < 32 else 2 if size < 256 else 3 if size < 65536 else 5)


cdef Py_ssize_t _bytes_head(Py_ssize_t size):
    return 2 if size < 256 else 3 if size < 65536 else 5


cdef Py_ssize_t _array_head(Py_ssize_t count):
    return 1 if count < 16 else 3 if count < 65536 else 5


cdef Plan known_plan(object message):
    """Return the plan of a message, or None of what is none: a message was checked when it was made."""
    cdef PyObject* kind = <PyObject*>Py_TYPE(message)
    cdef size_t place = (<size_t>kind >> 5) % RECENT
    cdef PyObject* found
    if _kinds[place] == kind:
        return <Plan>_recent[place]
    found = PyDict_GetItem(_plans, <object>kind)
    if found == NULL:
        return None
    _kinds[place], _recent[place] = kind, found  # borrowed: what is in _plans stays there
    return <Plan>found


cdef Plan plan_for(object message):
    """Return the plan of a message's class, made when it is first asked for."""
    cdef Plan plan = known_plan(message)
    if plan is not None:
        return plan
    plan = Plan(type(message))
    _plans[type(message)] = plan
    return plan


def message_classes():
    """Return (name, index) of each class that was analysed."""
    return [((<Plan>plan).name, (<Plan>plan).index) for plan in _plans.values()]


def check(message):
    """Make sure that all fields hold what they may; errors are raised by the Python check."""
    if not plan_for(message).accepts(message):
        _refuse(message)


def size_bytes(message):
    """Return the bytes that a message takes on the wire, or -1 where it must be encoded to know."""
    return plan_for(message).size(message)


def freezes(message):
    """Tell whether a message of this class may have to be changed when it is sent."""
    return plan_for(message).freezes
