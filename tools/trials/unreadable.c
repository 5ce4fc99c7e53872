/* Preloaded into a broker: reads of 4096 bytes of one file fail with EIO, as on a disk with a bad sector.
   EIO_FILE is how the file's path ends, EIO_FROM the first byte. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(int fd, off_t at, size_t size) {
    const char *file = getenv("EIO_FILE");
    char link[64], path[4096];
    if (!file)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < (ssize_t)strlen(file))
        return 0;
    path[length] = 0;
    long from = atol(getenv("EIO_FROM"));
    return !strcmp(path + length - strlen(file), file) && at + (off_t)size > from && at < from + 4096;
}

#define PREAD(name)                                                            \
    ssize_t name(int fd, void *into, size_t size, off_t at) {                  \
        static ssize_t (*real)(int, void *, size_t, off_t);                    \
        if (!real)                                                             \
            real = dlsym(RTLD_NEXT, #name);                                    \
        if (fails(fd, at, size))                                               \
            return errno = EIO, -1;                                            \
        return real(fd, into, size, at);                                       \
    }
#define SENDFILE(name)                                                         \
    ssize_t name(int out, int in, off_t *at, size_t size) {                    \
        static ssize_t (*real)(int, int, off_t *, size_t);                     \
        if (!real)                                                             \
            real = dlsym(RTLD_NEXT, #name);                                    \
        if (at && fails(in, *at, size))                                        \
            return errno = EIO, -1;                                            \
        return real(out, in, at, size);                                        \
    }
PREAD(pread)
PREAD(pread64)
SENDFILE(sendfile)
SENDFILE(sendfile64)
