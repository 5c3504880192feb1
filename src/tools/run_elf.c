/* Reading an ELF file, as far as "deltafs run --check" needs it: the program headers, the dynamic section with the
 * libraries that the program needs, the symbols that it takes from them, and its notes. Nothing in the file is trusted:
 * all sizes are checked against that of the file. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/run_parts.h"

#define GO_BUILD_ID 4 /* type of the note, which has the name "Go" */
#define PART_MAX    (256u << 20)

struct elf {
    int fd;
    uint64_t size;
    ElfW(Ehdr) head;
    ElfW(Phdr) * segment;
    char *names; /* of the dynamic section, with a zero behind them */
    size_t names_size;
};

static const char damaged[] = "is damaged: a part of it lies outside of the file";

/* ---- Reading ---- */

static int read_at(const struct elf *f, uint64_t offset, void *out, size_t size)
{
    return offset <= f->size && size <= f->size - offset && pread(f->fd, out, size, (off_t)offset) == (ssize_t)size;
}

/* A part of the file, to be freed, with a zero behind it; NULL if the file does not have it. */
static void *read_part(const struct elf *f, uint64_t offset, uint64_t size)
{
    char *part = size <= PART_MAX && size <= f->size ? malloc((size_t)size + 1) : NULL;

    if (part)
        part[size] = '\0';
    if (part && !read_at(f, offset, part, (size_t)size)) {
        free(part);
        part = NULL;
    }
    return part;
}

static const ElfW(Phdr) * segment_find(const struct elf *f, uint32_t type)
{
    for (size_t i = 0; i < f->head.e_phnum; i++)
        if (f->segment[i].p_type == type)
            return &f->segment[i];
    return NULL;
}

/* Where in the file is what will be at this address? The end of the file if that is nowhere. */
static uint64_t offset_of(const struct elf *f, uint64_t address)
{
    for (size_t i = 0; i < f->head.e_phnum; i++) {
        const ElfW(Phdr) *p = &f->segment[i];
        if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
            return p->p_offset + (address - p->p_vaddr);
    }
    return f->size;
}

/* ---- The parts ---- */

/* Whether the first bytes are those of this program, by which the system knows what it can load. */
static int is_like_this(const ElfW(Ehdr) * head)
{
    ElfW(Ehdr) own;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int is_read = fd >= 0 && read(fd, &own, sizeof own) == (ssize_t)sizeof own;

    if (fd >= 0)
        close(fd);
    return !is_read || (head->e_ident[EI_CLASS] == own.e_ident[EI_CLASS] &&
                        head->e_ident[EI_DATA] == own.e_ident[EI_DATA] && head->e_machine == own.e_machine);
}

/* Notes are a head, a name and a text, both filled up to whole words. */
static int has_go_note(const char *notes, size_t size)
{
    for (size_t at = 0; size - at >= sizeof(ElfW(Nhdr));) {
        ElfW(Nhdr) head;
        memcpy(&head, notes + at, sizeof head);
        at += sizeof head;
        uint64_t whole =
            (((uint64_t)head.n_namesz + 3) & ~UINT64_C(3)) + (((uint64_t)head.n_descsz + 3) & ~UINT64_C(3));
        if (whole > size - at)
            return 0;
        if (head.n_type == GO_BUILD_ID && head.n_namesz == sizeof "Go" + 1 &&
            memcmp(notes + at, "Go\0", sizeof "Go") == 0)
            return 1;
        at += (size_t)whole;
    }
    return 0;
}

static const char *read_notes(const struct elf *f, struct run_elf *out)
{
    for (size_t i = 0; i < f->head.e_phnum; i++) {
        const ElfW(Phdr) *p = &f->segment[i];
        if (p->p_type != PT_NOTE)
            continue;
        char *notes = read_part(f, p->p_offset, p->p_filesz);
        if (!notes)
            return damaged;
        out->is_go |= has_go_note(notes, (size_t)p->p_filesz);
        free(notes);
    }
    return NULL;
}

static uint64_t dynamic_value(const ElfW(Dyn) * dynamic, size_t count, int64_t tag)
{
    for (size_t i = 0; i < count && dynamic[i].d_tag != DT_NULL; i++)
        if (dynamic[i].d_tag == tag)
            return dynamic[i].d_un.d_val;
    return 0;
}

static const char *name_at(const struct elf *f, uint64_t at)
{
    return at < f->names_size ? f->names + at : "";
}

static const char *read_needed(struct elf *f, const ElfW(Dyn) * dynamic, size_t count, struct run_elf *out)
{
    f->names_size = (size_t)dynamic_value(dynamic, count, DT_STRSZ);
    f->names = read_part(f, offset_of(f, dynamic_value(dynamic, count, DT_STRTAB)), f->names_size);
    if (!f->names)
        return damaged;
    for (size_t i = 0; i < count && dynamic[i].d_tag != DT_NULL; i++) {
        const char *name = dynamic[i].d_tag == DT_NEEDED ? name_at(f, dynamic[i].d_un.d_val) : "";
        out->has_libc |= strcmp(name, "libc.so.6") == 0;
        out->has_io_uring |= strncmp(name, "liburing.", strlen("liburing.")) == 0;
    }
    return NULL;
}

static const char *read_dynamic(struct elf *f, struct run_elf *out)
{
    const ElfW(Phdr) *p = segment_find(f, PT_DYNAMIC);
    ElfW(Dyn) *dynamic = p ? read_part(f, p->p_offset, p->p_filesz) : NULL;

    if (!dynamic)
        return damaged;
    const char *wrong = read_needed(f, dynamic, (size_t)(p->p_filesz / sizeof *dynamic), out);
    free(dynamic);
    return wrong;
}

/* The symbols that the program takes from libraries. Without a table of sections, which nobody needs for running the
 * program, their number is not known. */
static const char *read_symbols(const struct elf *f, struct run_elf *out)
{
    ElfW(Shdr) section = {.sh_type = SHT_NULL};

    for (size_t i = 0; i < f->head.e_shnum && section.sh_type != SHT_DYNSYM; i++)
        if (!read_at(f, f->head.e_shoff + i * sizeof section, &section, sizeof section))
            return damaged;
    if (section.sh_type != SHT_DYNSYM)
        return NULL;
    ElfW(Sym) *symbol = read_part(f, section.sh_offset, section.sh_size);
    if (!symbol)
        return damaged;
    for (size_t i = 0; i < section.sh_size / sizeof *symbol; i++) {
        const char *name = symbol[i].st_shndx == SHN_UNDEF ? name_at(f, symbol[i].st_name) : "";
        out->has_syscall |= strcmp(name, "syscall") == 0;
        out->has_io_uring |= strncmp(name, "io_uring_", strlen("io_uring_")) == 0;
    }
    free(symbol);
    return NULL;
}

static const char *read_segments(struct elf *f, struct run_elf *out)
{
    const char *wrong = read_notes(f, out);

    out->is_static = !segment_find(f, PT_INTERP);
    if (!wrong && !out->is_static)
        wrong = read_dynamic(f, out);
    if (!wrong && !out->is_static)
        wrong = read_symbols(f, out);
    return wrong;
}

const char *run_elf_read(int fd, struct run_elf *out)
{
    struct elf f = {.fd = fd};
    struct stat st;

    *out = (struct run_elf){0};
    f.size = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    out->is_elf = read_at(&f, 0, &f.head, sizeof f.head) && memcmp(f.head.e_ident, ELFMAG, SELFMAG) == 0;
    if (!out->is_elf)
        return NULL;
    out->is_foreign = !is_like_this(&f.head);
    if (out->is_foreign)
        return NULL;
    if (f.head.e_type != ET_EXEC && f.head.e_type != ET_DYN)
        return "is no program, but an object or core file";
    if (f.head.e_phentsize != sizeof *f.segment || (f.head.e_shnum > 0 && f.head.e_shentsize != sizeof(ElfW(Shdr))))
        return damaged;
    f.segment = read_part(&f, f.head.e_phoff, (uint64_t)f.head.e_phnum * sizeof *f.segment);
    const char *wrong = f.segment ? read_segments(&f, out) : damaged;
    free(f.segment);
    free(f.names);
    return wrong;
}
