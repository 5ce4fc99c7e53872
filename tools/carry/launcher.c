/* The head of the single file: starts the interpreter in the zip archive that follows it, as the kernel would, from this
   file and with the C library that it carries. So nothing is unpacked, and it does not matter which C library the machine
   has, if any.

   The archive's comment, the last bytes of the file, has the positions of both (own_path.h). The first part of the C library
   is its dynamic loader. */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "own_path.h"

struct program {
    uintptr_t base, entry, headers;
    size_t count;
};

static void die(const char *what, const char *why) {
    dprintf(2, "kdump: cannot start: %s: %s\n", what, why);
    _exit(2);
}

static void *mapped(void *at, size_t size, int allowed, int flags, int fd, off_t offset) {
    void *place = size ? mmap(at, size, allowed, MAP_PRIVATE | flags, fd, offset) : at;
    if (place == MAP_FAILED) die("cannot map its own file", strerror(errno));
    return place;
}

/* Maps a position-independent ELF object at `offset` of the file, which is a multiple of the page size. */
static struct program map(int fd, off_t offset) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    Elf64_Ehdr head;
    Elf64_Phdr segments[16];
    if (pread(fd, &head, sizeof head, offset) != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG)
        || head.e_phnum > sizeof segments / sizeof *segments
        || pread(fd, segments, head.e_phnum * sizeof *segments, offset + (off_t)head.e_phoff)
               != (ssize_t)(head.e_phnum * sizeof *segments))
        die("its own file", "incomplete; compare its checksum");
    uintptr_t end = 0;
    for (size_t i = 0; i < head.e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_memsz > end)
            end = segments[i].p_vaddr + segments[i].p_memsz;
    end = (end + page - 1) & -page;
    uintptr_t base = (uintptr_t)mapped(NULL, end, PROT_NONE, MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < head.e_phnum; i++) {
        const Elf64_Phdr *each = &segments[i];
        if (each->p_type != PT_LOAD) continue;
        int allowed = (each->p_flags & PF_R ? PROT_READ : 0) | (each->p_flags & PF_W ? PROT_WRITE : 0)
                      | (each->p_flags & PF_X ? PROT_EXEC : 0);
        uintptr_t start = (base + each->p_vaddr) & -page, from_file = base + each->p_vaddr + each->p_filesz;
        uintptr_t whole = (from_file + page - 1) & -page, stop = base + each->p_vaddr + each->p_memsz;
        off_t at = offset + (off_t)(each->p_offset & -page);
        /* Its last page as a whole, of which musl gives the rest to malloc: QEMU takes only what is asked for as mapped. */
        mapped((void *)start, whole - start, allowed, MAP_FIXED, fd, at);
        if (each->p_memsz == each->p_filesz) continue;
        if (stop > whole) mapped((void *)whole, stop - whole, allowed, MAP_FIXED | MAP_ANONYMOUS, -1, 0);
        memset((void *)from_file, 0, whole - from_file);
    }
    return (struct program){base, base + head.e_entry, base + head.e_phoff, head.e_phnum};
}

/* Continues at `entry` with the stack with which the kernel started this program. */
_Noreturn static void jump(uintptr_t entry, void *stack) {
#if defined __x86_64__
    __asm__ volatile("mov %1, %%rsp\n\txor %%edx, %%edx\n\txor %%ebp, %%ebp\n\tjmp *%0" : : "r"(entry), "r"(stack) : "memory");
#elif defined __aarch64__
    __asm__ volatile("mov sp, %1\n\tmov x29, #0\n\tmov x30, #0\n\tbr %0" : : "r"(entry), "r"(stack) : "memory");
#endif
    __builtin_unreachable();
}

int main(int argc, char **argv, char **environment) {
    struct footer footer;
    int fd;
    if (!own_path(argc ? argv[0] : NULL, &footer, &fd))
        die("its own file", "unreadable or incomplete; compare its checksum");
    struct program python = map(fd, (off_t)footer.python.place), loader = map(fd, (off_t)footer.libc.place);
    close(fd);
    while (*environment) environment++;
    for (Elf64_auxv_t *each = (Elf64_auxv_t *)(environment + 1); each->a_type != AT_NULL; each++)
        if (each->a_type == AT_PHDR) each->a_un.a_val = python.headers;
        else if (each->a_type == AT_PHNUM) each->a_un.a_val = python.count;
        else if (each->a_type == AT_ENTRY) each->a_un.a_val = python.entry;
        else if (each->a_type == AT_BASE) each->a_un.a_val = loader.base;
    jump(loader.entry, argv - 1);
}
