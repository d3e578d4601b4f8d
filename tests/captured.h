/* What a piece of code writes to stderr, for tests of messages. */
#ifndef CM_TESTS_CAPTURED_H
#define CM_TESTS_CAPTURED_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct captured {
    FILE *file;
    int saved;
    char text[16384];
};

static inline void capture_begin(struct captured *c)
{
    c->file = tmpfile();
    fflush(stderr);
    c->saved = dup(STDERR_FILENO);
    if (c->file == NULL || c->saved < 0 || dup2(fileno(c->file), STDERR_FILENO) < 0)
        abort();
}

/* Afterwards c->text holds what was written. */
static inline void capture_end(struct captured *c)
{
    size_t n;

    fflush(stderr);
    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    rewind(c->file);
    n = fread(c->text, 1, sizeof(c->text) - 1, c->file);
    c->text[n] = '\0';
    fclose(c->file);
}

#endif
