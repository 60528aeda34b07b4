cdef extern from *:
    """
    #include <stdatomic.h>
    #include <stdint.h>
    #include <string.h>

    /* With locks, each process would have its own, and they would keep no other process out. */
    #if ATOMIC_LLONG_LOCK_FREE != 2
    #error "the numbers of workers need words of 64 bits that the processor writes at once"
    #endif

    static CYTHON_INLINE double trouter_read_number(const void *memory, Py_ssize_t index) {
        uint64_t word;
        double number;
        atomic_thread_fence(memory_order_acquire);
        word = atomic_load_explicit((_Atomic uint64_t *) memory + index, memory_order_acquire);
        memcpy(&number, &word, sizeof number);
        return number;
    }

    static CYTHON_INLINE void trouter_write_number(void *memory, Py_ssize_t index, double number) {
        uint64_t word;
        memcpy(&word, &number, sizeof word);
        atomic_store_explicit((_Atomic uint64_t *) memory + index, word, memory_order_release);
    }

    static CYTHON_INLINE void trouter_put_in_order(void) {
        atomic_thread_fence(memory_order_seq_cst);
    }
    """
    double trouter_read_number(const void *memory, Py_ssize_t index)
    void trouter_write_number(void *memory, Py_ssize_t index, double number)
    void trouter_put_in_order()

cdef extern from "Python.h":
    Py_buffer *PyMemoryView_GET_BUFFER(object numbers)


cdef inline double read_number(memoryview numbers, Py_ssize_t index) except? -1:
    if not 0 <= index < len(numbers):  # a view that was released raises ValueError
        raise IndexError(index)
    return trouter_read_number(PyMemoryView_GET_BUFFER(numbers).buf, index)


cdef inline int write_number(memoryview numbers, Py_ssize_t index, double value) except -1:
    if not 0 <= index < len(numbers):
        raise IndexError(index)
    trouter_write_number(PyMemoryView_GET_BUFFER(numbers).buf, index, value)
    return 0


cdef inline int put_in_order() except -1:
    trouter_put_in_order()
    return 0
