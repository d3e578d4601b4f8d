/* Send a file descriptor to a temporary file for a while, to look at what was written. */
#ifndef CM_TESTS_CAPTURE_H
#define CM_TESTS_CAPTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct capture {
    FILE *to;
    int fd, saved;
};

static inline void capture_begin(struct capture *c, int fd)
{
    fflush(stdout);
    c->fd = fd;
    c->to = tmpfile();
    c->saved = dup(fd);
    if (c->to == NULL || c->saved < 0 || dup2(fileno(c->to), fd) < 0)
        abort();
}

/* Put the descriptor back; what was written, cut to size - 1 bytes, goes to `text`. */
static inline void capture_end(struct capture *c, char *text, size_t size)
{
    size_t n;

    fflush(stdout);
    dup2(c->saved, c->fd);
    close(c->saved);
    rewind(c->to);
    n = fread(text, 1, size - 1, c->to);
    text[n] = '\0';
    fclose(c->to);
}

#endif
