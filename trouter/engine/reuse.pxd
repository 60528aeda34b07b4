cdef extern from *:
    """
    #include <string.h>

    /* At most so many objects' memory is kept for each type. */
    #define TROUTER_KEPT 2048
    /* So many types of one compiled module may reuse memory. */
    #define TROUTER_REUSING 2

    typedef struct {
        PyTypeObject *type;
        int count;
        PyObject *kept[TROUTER_KEPT];
    } trouter_memory;

    static trouter_memory trouter_memories[TROUTER_REUSING];

    static CYTHON_INLINE trouter_memory *trouter_memory_of(PyTypeObject *type) {
        int each;
        for (each = 0; each < TROUTER_REUSING; each++)
            if (trouter_memories[each].type == type) return &trouter_memories[each];
        return NULL;
    }

    static CYTHON_UNUSED PyObject *trouter_allocate(PyTypeObject *type, Py_ssize_t items) {
        trouter_memory *memory = trouter_memory_of(type);
        PyObject *made;
        if (memory == NULL || memory->count == 0) return PyType_GenericAlloc(type, items);
        made = memory->kept[--memory->count];
        memset(made, 0, (size_t) type->tp_basicsize);
        (void) PyObject_INIT(made, type);
        PyObject_GC_Track(made);
        return made;
    }

    static CYTHON_UNUSED void trouter_free(void *gone) {
        trouter_memory *memory = trouter_memory_of(Py_TYPE((PyObject *) gone));
        if (memory == NULL || memory->count == TROUTER_KEPT) PyObject_GC_Del(gone);
        else memory->kept[memory->count++] = (PyObject *) gone;
    }

    static CYTHON_UNUSED void trouter_reuse_memory(PyObject *kind) {
    #if CYTHON_USE_TYPE_SLOTS && !CYTHON_USE_TYPE_SPECS && !defined(Py_GIL_DISABLED) && !defined(TROUTER_NO_REUSE)
        PyTypeObject *type = (PyTypeObject *) kind;
        trouter_memory *memory = trouter_memory_of(NULL);
        if (memory == NULL || !PyType_IS_GC(type)) return;
        memory->type = type;
        type->tp_alloc = trouter_allocate;
        type->tp_free = trouter_free;
    #endif
    }
    """
    void trouter_reuse_memory(object kind)


cdef inline int reuse_memory(object kind) except -1:
    trouter_reuse_memory(kind)
    return 0
