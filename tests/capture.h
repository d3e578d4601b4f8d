/* Send a file descriptor to a temporary file for a while, to look at what was written. */
#ifndef CM_TESTS_CAPTURE_H
#define CM_TESTS_CAPTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct capture {
    FILE *to;
    int fd, saved;
    char text[1 << 16];
};

static inline void capture_begin(struct capture *c, int fd)
{
    fflush(NULL);
    c->fd = fd;
    c->to = tmpfile();
    c->saved = dup(fd);
    if (c->to == NULL || c->saved < 0 || dup2(fileno(c->to), fd) < 0)
        abort();
}

/* Put the descriptor back. Afterwards c->text holds what was written, cut to its size. */
static inline void capture_end(struct capture *c)
{
    size_t n;

    fflush(NULL);
    dup2(c->saved, c->fd);
    close(c->saved);
    rewind(c->to);
    n = fread(c->text, 1, sizeof(c->text) - 1, c->to);
    c->text[n] = '\0';
    fclose(c->to);
}

#endif
