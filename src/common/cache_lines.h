/*
 * Buffers and the processor's caches, line by line: what an application does to
 * them between two operations, or what makes them cold.
 */
#ifndef CM_COMMON_CACHE_LINES_H
#define CM_COMMON_CACHE_LINES_H

#include <stddef.h>

/* Bytes of a cache line, at most; processors with longer ones are visited twice a line. */
enum { CM_CACHE_LINE = 64 };

/* `at` is the first byte of a buffer in one of its lines. */
typedef void cm_line_fn(unsigned char *at, void *arg);

/* Once for every line that the `bytes` at `buffer` lie in, in order; nothing for 0 bytes. */
void cm_lines_visit(void *buffer, size_t bytes, cm_line_fn *visit, void *arg);

/* Store into every line what it holds: then it is modified, and in this core's cache alone. */
void cm_lines_rewrite(void *buffer, size_t bytes);

/* Load from every line. */
void cm_lines_read(const void *buffer, size_t bytes);

/* Throws a line out of all caches of the machine. */
struct cm_flusher {
    const char *name; /* of the instruction */
    cm_line_fn *flush;
};

/* The best one that this processor has for user programs; NULL: none is known. */
const struct cm_flusher *cm_flusher_find(void);

/* Flush every line of the buffer. Returns when it is in memory. */
void cm_lines_flush(const struct cm_flusher *f, const void *buffer, size_t bytes);

/* Bytes of the largest cache that a core of this machine uses, as the kernel has it; 0: unknown. */
size_t cm_cache_largest(void);

/* Bytes of a buffer that pushes all others out of the caches when it is written. */
size_t cm_cache_beyond(void);

#endif
