/* The interpreter of the single file. It finds its modules in the zip archive that follows the launcher: the first ones are
   frozen, which is Python's word for code that is in memory, kdump_carried.py finds the others. Those that are shared
   libraries are copied into memory that has a name under /proc (memfd_create), and are loaded from there: it does
   not matter if /tmp is full, read-only or mounted noexec, and nothing is left over after a kill. */

#define _GNU_SOURCE
#include <Python.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "own_path.h"

static struct footer footer;
static int own; /* open for reading as long as this runs: the file may be removed, and a process may change its root */

static int all_read(char *bytes, size_t size, off_t position) {
    while (size) {
        ssize_t done = pread(own, bytes, size, position);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return 0;
        bytes += done;
        position += done;
        size -= (size_t)done;
    }
    return 1;
}

static int all_written(int fd, const char *bytes, size_t size) {
    while (size) {
        ssize_t done = write(fd, bytes, size < (1u << 30) ? size : (1u << 30));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return 0;
        bytes += done;
        size -= (size_t)done;
    }
    return 1;
}

/* Without memfd_create (before Linux 3.17, or in a sandbox) or /proc: writes the library to the first directory that
   accepts an executable file. The caller removes the file after loading it. */
static int in_directory(const char *bytes, size_t size, char *path, size_t room) {
    const char *directories[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm", "/run", getenv("HOME")};
    struct statvfs mounted;
    errno = EACCES;
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
        const char *directory = directories[i];
        if (!directory || !*directory || statvfs(directory, &mounted) || mounted.f_flag & ST_NOEXEC) continue;
        if ((size_t)snprintf(path, room, "%s/kdump-XXXXXX", directory) >= room) continue;
        int fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0) continue;
        int whole = all_written(fd, bytes, size);
        close(fd);
        if (whole) return 1;
        unlink(path);
    }
    return 0;
}

/* Puts a library where dlopen can load it, and sets `path`, which is valid only in this process. Returns 0 on failure
   (errno). */
static int place(const char *name, const char *bytes, size_t size, char *path, size_t room) {
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd >= 0) {
        /* Stays open: dlopen would take another library with the same inode for this one. */
        snprintf(path, room, "/proc/self/fd/%d", fd);
        if (access(path, R_OK) == 0 && all_written(fd, bytes, size)) return 1;
        close(fd);
    }
    return in_directory(bytes, size, path, room);
}

static void placed(const char *path) {
    if (strncmp(path, "/proc/", 6)) unlink(path);
}

/* Places the library given as (name, bytes). Returns 0, with an exception set, if that is not what is given. */
static int place_given(PyObject *args, char *path, size_t room) {
    const char *name, *bytes;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "sy#", &name, &bytes, &size)) return 0;
    if (place(name, bytes, (size_t)size, path, room)) return 1;
    fprintf(stderr, "kdump: cannot start: cannot place %s in memory or in a directory; set TMPDIR: %s\n", name,
            strerror(errno));
    exit(2);
}

/* _carry.place(name, bytes) -> path; for extension modules. */
static PyObject *py_place(PyObject *self, PyObject *args) {
    char path[4096];
    return place_given(args, path, sizeof path) ? PyUnicode_DecodeFSDefault(path) : NULL;
}

/* _carry.placed(path): removes a library after loading it, or failing to. */
static PyObject *py_placed(PyObject *self, PyObject *args) {
    const char *path;
    if (!PyArg_ParseTuple(args, "s", &path)) return NULL;
    placed(path);
    Py_RETURN_NONE;
}

/* _carry.load(name, bytes): loads a library whose symbols extension modules need. */
static PyObject *py_load(PyObject *self, PyObject *args) {
    char path[4096];
    if (!place_given(args, path, sizeof path)) return NULL;
    void *loaded = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    placed(path);
    if (loaded) Py_RETURN_NONE;
    PyErr_SetString(PyExc_ImportError, dlerror());
    return NULL;
}

/* _carry.read(position, size) -> bytes of this file */
static PyObject *py_read(PyObject *self, PyObject *args) {
    Py_ssize_t position, size;
    if (!PyArg_ParseTuple(args, "nn", &position, &size)) return NULL;
    PyObject *found = PyBytes_FromStringAndSize(NULL, size);
    if (found && !all_read(PyBytes_AS_STRING(found), (size_t)size, (off_t)position)) {
        Py_DECREF(found);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return found;
}

static PyMethodDef methods[] = {
    {"read", py_read, METH_VARARGS, "Read bytes of this file."},
    {"place", py_place, METH_VARARGS, "Put a library into memory and return the path to load it from."},
    {"placed", py_placed, METH_VARARGS, "Remove the library's file, if it is on a disk."},
    {"load", py_load, METH_VARARGS, "Load a library that extension modules need."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_carry", NULL, -1, methods, NULL, NULL, NULL, NULL};

static PyObject *init_carry(void) {
    PyObject *made = PyModule_Create(&module);
    if (made && (PyModule_AddIntConstant(made, "MEMBERS", (long)footer.members.place)
                 || PyModule_AddIntConstant(made, "MEMBERS_SIZE", (long)footer.members.size)))
        Py_CLEAR(made);
    return made;
}

/* Makes the modules of the member `frozen` known to Python (archive.py writes them). Returns 0 if they cannot be read. */
static int freeze(void) {
    static struct _frozen known[16];
    char *bytes = malloc(footer.frozen.size);
    if (!bytes || !all_read(bytes, footer.frozen.size, (off_t)footer.frozen.place)) return 0;
    const char *end = bytes + footer.frozen.size;
    for (size_t i = 0; bytes < end && i + 1 < sizeof known / sizeof *known; i++) {
        uint32_t head[3];
        memcpy(head, bytes, sizeof head);
        bytes += sizeof head;
        known[i] = (struct _frozen){bytes, (const unsigned char *)bytes + head[0], (int)head[1], (int)head[2]};
        bytes += head[0] + head[1];
    }
    PyImport_FrozenModules = known;
    return 1;
}

static void must(PyStatus status) {
    if (PyStatus_Exception(status)) Py_ExitStatusException(status);
}

int main(int argc, char **argv) {
    PyPreConfig before;
    PyConfig config;
    const char *self = own_path(argc ? argv[0] : NULL, &footer, &own);
    if (!self || !freeze()) return 2; /* cannot be: the launcher found it */

    /* Choose encodings as `python` does, but by the locale alone: ignore the environment's PYTHON… variables. */
    PyPreConfig_InitPythonConfig(&before);
    before.use_environment = 0;
    before.isolated = 1;
    before.parse_argv = 0;
    before.allocator = PYMEM_ALLOCATOR_MIMALLOC; /* musl gives the pages of each large block back at once */
    must(Py_PreInitialize(&before));
    PyImport_AppendInittab("_carry", init_carry);
    PyConfig_InitPythonConfig(&config);
    config.isolated = 1;
    config.use_environment = 0;
    config.user_site_directory = 0;
    config.parse_argv = 0;
    config.site_import = 0;
    config.write_bytecode = 0;
    config.safe_path = 1;
    config.module_search_paths_set = 1;
    must(PyConfig_SetBytesString(&config, &config.executable, self));
    must(PyConfig_SetBytesString(&config, &config.program_name, "kdump"));
    must(PyConfig_SetString(&config, &config.home, L"/"));
    must(PyConfig_SetString(&config, &config.run_command, L"import kdump_carried; kdump_carried.start()"));
    must(PyWideStringList_Append(&config.module_search_paths, config.executable));
    must(PyConfig_SetBytesArgv(&config, argc, argv));
    must(Py_InitializeFromConfig(&config));
    return Py_RunMain();
}
