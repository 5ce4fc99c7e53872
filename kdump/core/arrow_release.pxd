# What arrow_release.py needs of Python's C API.
cdef extern from "Python.h":
    int Py_IsInitialized() nogil
