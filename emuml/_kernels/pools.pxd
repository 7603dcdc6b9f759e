"""Events that are made and dropped by the million: the memory of dropped ones is used again.

A new event of a class with a pool is a copy of a blank one, made without ``tp_new``; a dropped one is emptied and kept.
That saves half of the time, because the classes that users see derive from SimPy's, and for such classes CPython goes
through every base when an object is made or dropped. Cython's own freelists do not serve them.

For classes derived from ``occurrences.Event`` whose own fields are all references. Each module that cimports this has
pools of its own.
"""

from emuml._kernels.occurrences cimport Event, first_field

cdef extern from *:
    """
    #include <string.h>

    #define EMUML_KEPT 1024  /* dropped objects of a class whose memory is kept */
    #define EMUML_POOLS 8    /* classes of a module */

    typedef struct {
        PyTypeObject *type;     /* owned, as is the blank object */
        PyObject *blank;
        destructor bare;        /* drops an object that is not of the pool */
        PyObject *kept[EMUML_KEPT];
        int count;
    } emuml_pool;

    static emuml_pool emuml_pools[EMUML_POOLS];
    /* Where the fields of events begin, in bytes; the first two are __dict__ and __weakref__. */
    static Py_ssize_t emuml_fields;

    #define EMUML_FIELDS(object) (PyObject **)((char *)(object) + emuml_fields)
    #define EMUML_END(object, type) (PyObject **)((char *)(object) + (type)->tp_basicsize)

    static CYTHON_INLINE PyObject *emuml_make(int number) {
        emuml_pool *pool = &emuml_pools[number];
        PyTypeObject *type = pool->type;
        PyObject *made, **field, **end;
        int again = pool->count > 0;
        if (again) {
            made = pool->kept[--pool->count];
            (void)PyObject_Init(made, type);
        } else {
            made = type->tp_alloc(type, 0);
            if (made == NULL)
                return NULL;
        }
        memcpy((char *)made + sizeof(PyObject), (char *)pool->blank + sizeof(PyObject),
               type->tp_basicsize - sizeof(PyObject));
        end = EMUML_END(made, type);
        for (field = EMUML_FIELDS(made) + 2; field < end; field++)
            Py_INCREF(*field);
        if (again)
            PyObject_GC_Track(made);
        return made;
    }

    static void emuml_drop(PyObject *dropped) {
        PyTypeObject *type = Py_TYPE(dropped);
        PyObject **field, **end, *held;
        emuml_pool *pool = emuml_pools, *last = emuml_pools + EMUML_POOLS - 1;
        PyObject_GC_UnTrack(dropped);
        Py_TRASHCAN_BEGIN(dropped, emuml_drop)
        while (pool < last && pool->type != type)
            pool++;
        if (pool->type == type) {
            field = EMUML_FIELDS(dropped);
            if (field[1] != NULL)
                PyObject_ClearWeakRefs(dropped);
            for (end = EMUML_END(dropped, type); field < end; field++) {
                held = *field;
                *field = NULL;
                Py_XDECREF(held);
            }
            if (pool->count < EMUML_KEPT)
                pool->kept[pool->count++] = dropped;
            else
                type->tp_free(dropped);
        } else {   /* of a subclass made by a user */
            for (pool = emuml_pools; pool < last && !PyType_IsSubtype(type, pool->type); pool++)
                ;
            pool->bare(dropped);
        }
        Py_DECREF(type);
        Py_TRASHCAN_END
    }

    static int emuml_pool_class(int number, PyObject *cls, PyObject *blank, void *first_field) {
        emuml_pool *pool = &emuml_pools[number];
        PyTypeObject *type = (PyTypeObject *)cls, *base = type;
        while (base->tp_flags & Py_TPFLAGS_HEAPTYPE)
            base = base->tp_base;
        emuml_fields = (char *)first_field - (char *)blank;
        if (type->tp_basicsize != base->tp_basicsize || type->tp_itemsize != 0) {
            PyErr_SetString(PyExc_TypeError, "a class with a pool adds fields to the kernel's");
            return -1;
        }
        Py_INCREF(cls);
        Py_INCREF(blank);
        pool->type = type;
        pool->blank = blank;
        pool->bare = base->tp_dealloc;
        type->tp_dealloc = emuml_drop;
        return 0;
    }
    """
    object emuml_make(int number)
    int emuml_pool_class(int number, object cls, object blank, void *first_field) except -1


cdef inline int pool(int number, cls) except -1:
    """Keep the memory of a class's dropped objects, and give it to those that ``emuml_make(number)`` makes."""
    cdef Event blank = cls.__new__(cls)
    return emuml_pool_class(number, cls, blank, first_field(blank))
