/* The head of the single file: starts the interpreter in the zip archive that follows it. Nothing is unpacked to disk:
   each shared library is copied into memory that has a name under /proc (memfd_create), and is loaded from there. So it
   does not matter if /tmp is full, read-only or mounted noexec, and nothing is left over after a kill.

   The archive's comment, the last 24 bytes of the file, contains the position of libpython: MAGIC, offset, size. */

#define _GNU_SOURCE
#include <Python.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAGIC "kdump\0\0\1"
#define CLOSE_ON_EXEC 1u /* MFD_CLOEXEC, which is missing in old headers */

struct footer {
    char magic[8];
    uint64_t offset, size;
};

/* The functions of libpython that are used: it is loaded at run time, not linked. */
#define USED(X)                                                                                                        \
    X(PyPreConfig_InitPythonConfig) X(Py_PreInitialize) X(PyConfig_InitPythonConfig) X(PyConfig_SetBytesString)        \
    X(PyConfig_SetBytesArgv) X(PyConfig_SetString) X(PyWideStringList_Append) X(Py_InitializeFromConfig)               \
    X(PyStatus_Exception) X(Py_ExitStatusException) X(Py_RunMain) X(PyImport_AppendInittab) X(PyModule_Create2)        \
    X(PyArg_ParseTuple) X(PyUnicode_DecodeFSDefault) X(PyErr_SetFromErrnoWithFilename) X(PyErr_SetString)              \
    X(PyLong_FromLong) X(PyBytes_AsStringAndSize)
#define DECLARE(name) static __typeof__(&name) p_##name;
USED(DECLARE)
static PyObject **p_PyExc_OSError, **p_PyExc_ImportError;

static void die(const char *what, const char *why) {
    fprintf(stderr, "kdump: cannot start: %s: %s\n", what, why);
    exit(2);
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

/* Without memfd_create (before Linux 3.17) or /proc: writes the library to the first directory that accepts an
   executable file. The caller removes the file after loading it. */
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
    int fd = (int)syscall(SYS_memfd_create, name, CLOSE_ON_EXEC);
    if (fd >= 0) {
        /* Stays open: dlopen would take another library with the same descriptor number for this one. */
        snprintf(path, room, "/proc/self/fd/%d", fd);
        if (access(path, R_OK) == 0 && all_written(fd, bytes, size)) return 1;
        close(fd);
    }
    return in_directory(bytes, size, path, room);
}

static void placed(const char *path) {
    if (strncmp(path, "/proc/", 6)) unlink(path);
}

/* Places the library given as (name, bytes). Returns 0, with an exception set, on failure. */
static int place_given(PyObject *args, char *path, size_t room) {
    const char *name;
    char *bytes;
    PyObject *library;
    Py_ssize_t size;
    if (!p_PyArg_ParseTuple(args, "sO", &name, &library) || p_PyBytes_AsStringAndSize(library, &bytes, &size)) return 0;
    if (place(name, bytes, (size_t)size, path, room)) return 1;
    p_PyErr_SetFromErrnoWithFilename(*p_PyExc_OSError, name);
    return 0;
}

/* _carry.place(name, bytes) -> path; for extension modules. */
static PyObject *py_place(PyObject *self, PyObject *args) {
    char path[4096];
    if (!place_given(args, path, sizeof path)) return NULL;
    return p_PyUnicode_DecodeFSDefault(path);
}

/* _carry.placed(path): removes a library after loading it, or failing to. */
static PyObject *py_placed(PyObject *self, PyObject *args) {
    const char *path;
    if (!p_PyArg_ParseTuple(args, "s", &path)) return NULL;
    placed(path);
    return p_PyLong_FromLong(0);
}

/* _carry.load(name, bytes): loads a library that extension modules need; they find it by its own SONAME. */
static PyObject *py_load(PyObject *self, PyObject *args) {
    char path[4096];
    if (!place_given(args, path, sizeof path)) return NULL;
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    placed(path);
    if (!loaded) {
        p_PyErr_SetString(*p_PyExc_ImportError, dlerror());
        return NULL;
    }
    return p_PyLong_FromLong(0);
}

static PyMethodDef methods[] = {
    {"place", py_place, METH_VARARGS, "Put a library into memory and return the path to load it from."},
    {"placed", py_placed, METH_VARARGS, "Remove the library's file, if it is on a disk."},
    {"load", py_load, METH_VARARGS, "Load a library that extension modules need."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_carry", NULL, -1, methods, NULL, NULL, NULL, NULL};
static PyObject *init_carry(void) { return p_PyModule_Create2(&module, PYTHON_API_VERSION); }

/* Returns the path of this file: /proc/self/exe or, without /proc or with an explicit ld.so, argv[0] or the like. */
static const char *own_path(const char *called, struct footer *footer, int *fd) {
    const char *paths[] = {"/proc/self/exe", (const char *)getauxval(AT_EXECFN), called};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        /* QEMU opens /proc/self/exe even without /proc; later lookups of that path fail. */
        if (!paths[i] || access(paths[i], R_OK) || (*fd = open(paths[i], O_RDONLY | O_CLOEXEC)) < 0) continue;
        off_t end = lseek(*fd, 0, SEEK_END);
        if (end > (off_t)sizeof *footer
            && pread(*fd, footer, sizeof *footer, end - (off_t)sizeof *footer) == sizeof *footer
            && !memcmp(footer->magic, MAGIC, sizeof footer->magic) && footer->offset + footer->size <= (uint64_t)end)
            return paths[i];
        close(*fd);
    }
    die("its own file", "unreadable or incomplete; compare its checksum");
    return NULL;
}

static void load_python(int fd, const struct footer *footer) {
    char path[4096];
    long page = sysconf(_SC_PAGESIZE);
    off_t start = (off_t)(footer->offset / (uint64_t)page * (uint64_t)page);
    size_t before = (size_t)(footer->offset - (uint64_t)start), size = (size_t)footer->size;
    char *mapped = mmap(NULL, before + size, PROT_READ, MAP_PRIVATE, fd, start);
    if (mapped == MAP_FAILED) die("its own file", strerror(errno));
    if (!place("libpython", mapped + before, size, path, sizeof path))
        die("cannot place libpython in memory or in a directory; set TMPDIR", strerror(errno));
    munmap(mapped, before + size);
    void *python = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    placed(path);
    if (!python) die("the interpreter", dlerror());
#define FIND(name)                                                                                                     \
    if (!(p_##name = (__typeof__(p_##name))dlsym(python, #name))) die("the interpreter", dlerror());
    USED(FIND)
    FIND(PyExc_OSError)
    FIND(PyExc_ImportError)
}

static void must(PyStatus status) {
    if (p_PyStatus_Exception(status)) p_Py_ExitStatusException(status);
}

int main(int argc, char **argv) {
    struct footer footer;
    PyPreConfig before;
    PyConfig config;
    int fd;
    const char *self = own_path(argc ? argv[0] : NULL, &footer, &fd);
    load_python(fd, &footer);
    close(fd);

    /* Choose encodings as `python` does, but by the locale alone: ignore the environment's PYTHON… variables. */
    p_PyPreConfig_InitPythonConfig(&before);
    before.use_environment = 0;
    before.isolated = 1;
    before.parse_argv = 0;
    must(p_Py_PreInitialize(&before));
    p_PyImport_AppendInittab("_carry", init_carry);
    p_PyConfig_InitPythonConfig(&config);
    config.isolated = 1;
    config.use_environment = 0;
    config.user_site_directory = 0;
    config.parse_argv = 0;
    config.site_import = 0;
    config.write_bytecode = 0;
    config.safe_path = 1;
    config.module_search_paths_set = 1;
    must(p_PyConfig_SetBytesString(&config, &config.executable, self));
    must(p_PyConfig_SetBytesString(&config, &config.program_name, "kdump"));
    must(p_PyConfig_SetString(&config, &config.home, L"/"));
    must(p_PyConfig_SetString(&config, &config.run_command, L"import kdump_carried; kdump_carried.start()"));
    must(p_PyWideStringList_Append(&config.module_search_paths, config.executable));
    must(p_PyConfig_SetBytesArgv(&config, argc, argv));
    must(p_Py_InitializeFromConfig(&config));
    return p_Py_RunMain();
}
