/*
 * What Slurm says about a step: its first host, and a port that all of its
 * tasks can work out.
 */
#include <stdio.h>
#include <string.h>

#include "common/rendezvous.h"

enum { PORT_FIRST = 20000, PORTS = 8192, STEPS = 64 };

/* Below the ports that Linux gives to connections by itself (from 32768 on). */
uint16_t cm_slurm_port(int64_t job, int64_t step)
{
    uint64_t mix = (uint64_t)job * STEPS + (uint64_t)step % STEPS;

    return (uint16_t)(PORT_FIRST + mix % PORTS);
}

/* One bracket: copy the first entry of it, of which a range gives its first number. The bytes
   of the bracket, 0: it does not parse. */
static size_t first_of_bracket(const char *at, char **to, size_t *room)
{
    size_t digits = strspn(at + 1, "0123456789");
    const char *end = strchr(at, ']');

    if (digits == 0 || end == NULL || strchr("-,]", at[1 + digits]) == NULL ||
        strspn(at + 1, "0123456789-,") != (size_t)(end - at - 1) || digits >= *room)
        return 0;
    memcpy(*to, at + 1, digits);
    *to += digits;
    *room -= digits;
    return (size_t)(end - at) + 1;
}

/* A name may have several brackets: rack[1-2]n[01-16]. */
bool cm_hostlist_first(const char *list, char *host, size_t size)
{
    const char *at = list;
    char *to = host;
    size_t room = size;

    while (*at != '\0' && *at != ',') {
        size_t n = 1;

        if (*at == ']' || room <= 1)
            return false;
        if (*at == '[') {
            n = first_of_bracket(at, &to, &room);
        } else {
            *to++ = *at;
            room--;
        }
        if (n == 0)
            return false;
        at += n;
    }
    *to = '\0';
    return to != host;
}
