/*
 * One byte of a line is enough for all of it: caches move whole lines. A store
 * of what is there already is a store like any other, and no rank can tell that
 * it happened, so data stay right while their lines change hands.
 */
#include "common/cache_lines.h"

#include <stdint.h>
#include <stdio.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

void cm_lines_visit(void *buffer, size_t bytes, cm_line_fn *visit, void *arg)
{
    unsigned char *at = buffer, *end = at + bytes;

    while (at < end) {
        visit(at, arg);
        at += CM_CACHE_LINE - (uintptr_t)at % CM_CACHE_LINE;
    }
}

static void rewrite(unsigned char *at, void *arg)
{
    volatile unsigned char *line = at;
    unsigned char was = *line;

    (void)arg;
    *line = was;
}

void cm_lines_rewrite(void *buffer, size_t bytes)
{
    cm_lines_visit(buffer, bytes, rewrite, NULL);
}

static void load(unsigned char *at, void *arg)
{
    (void)arg;
    (void)*(volatile unsigned char *)at;
}

void cm_lines_read(const void *buffer, size_t bytes)
{
    cm_lines_visit((void *)buffer, bytes, load, NULL);
}

/* ---- flushing ---- */

#if defined(__x86_64__)

/* Ordered by nothing but fences, so many are under way at once. */
static void clflushopt(unsigned char *at, void *arg)
{
    (void)arg;
    __asm__ __volatile__("clflushopt %0" : "+m"(*(volatile unsigned char *)at));
}

static void clflush(unsigned char *at, void *arg)
{
    (void)arg;
    __asm__ __volatile__("clflush %0" : "+m"(*(volatile unsigned char *)at));
}

static void settle(void)
{
    __asm__ __volatile__("mfence" ::: "memory");
}

static const struct cm_flusher plain = {"clflush", clflush}, weak = {"clflushopt", clflushopt};

const struct cm_flusher *cm_flusher_find(void)
{
    enum { FEATURES = 7, CLFLUSHOPT_BIT = 1 << 23 };
    unsigned int a, b, c, d;

    if (__get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) && (b & CLFLUSHOPT_BIT) != 0)
        return &weak;
    return &plain; /* every x86-64 has it */
}

#elif defined(__aarch64__)

/* Linux allows it to user programs. */
static void civac(unsigned char *at, void *arg)
{
    (void)arg;
    __asm__ __volatile__("dc civac, %0" ::"r"(at) : "memory");
}

static void settle(void)
{
    __asm__ __volatile__("dsb sy" ::: "memory");
}

const struct cm_flusher *cm_flusher_find(void)
{
    static const struct cm_flusher known = {"dc civac", civac};

    return &known;
}

#else

static void settle(void)
{
}

const struct cm_flusher *cm_flusher_find(void)
{
    return NULL;
}

#endif

void cm_lines_flush(const struct cm_flusher *f, const void *buffer, size_t bytes)
{
    cm_lines_visit((void *)buffer, bytes, f->flush, NULL);
    settle();
}

/* ---- how large caches are ---- */

/* "32768K" */
static size_t size_of_index(int index)
{
    char path[96];
    size_t kib = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    f = fopen(path, "re");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%zuK", &kib) != 1)
        kib = 0;
    fclose(f);
    return kib << 10;
}

size_t cm_cache_largest(void)
{
    enum { INDICES = 8 };
    size_t most = 0;

    for (int i = 0; i < INDICES; i++) {
        size_t bytes = size_of_index(i);

        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t cm_cache_beyond(void)
{
    enum { UNKNOWN = 64 << 20 };
    size_t largest = cm_cache_largest();

    return largest > 0 ? 2 * largest : UNKNOWN;
}
