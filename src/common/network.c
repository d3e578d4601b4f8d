/*
 * Sets of ways to be on the network. A job of thousands of processes has one
 * way, or a few and some odd ones, so a set is small and a merge of sets needs
 * no list of processes.
 */
#include "common/network.h"

#include <stdio.h>
#include <string.h>

static bool alike(const struct cm_network_way *a, const struct cm_network_way *b)
{
    return a->mbit == b->mbit && strcmp(a->wire, b->wire) == 0 &&
           strcmp(a->interface, b->interface) == 0 && strcmp(a->device, b->device) == 0;
}

/* `more` joins the way `into`, which is like it. */
static void join(struct cm_network_way *into, const struct cm_network_way *more)
{
    int32_t procs = into->procs + more->procs;

    if (more->first < into->first)
        *into = *more;
    into->procs = procs;
}

/* Take out of[i], which may have a lower first rank than those before it, to its place. */
static void sort_in(struct cm_network_ways *set, int i)
{
    struct cm_network_way moving = set->of[i];

    for (; i > 0 && set->of[i - 1].first > moving.first; i--)
        set->of[i] = set->of[i - 1];
    set->of[i] = moving;
}

void cm_network_add(struct cm_network_ways *set, const struct cm_network_way *way)
{
    int i = 0;

    while (i < set->n && !alike(&set->of[i], way))
        i++;
    if (i == CM_NETWORK_WAYS) {
        set->others += way->procs;
        return;
    }
    if (i < set->n)
        join(&set->of[i], way);
    else
        set->of[set->n++] = *way;
    sort_in(set, i);
}

int cm_network_main(const struct cm_network_ways *set)
{
    int most = -1;

    for (int i = 0; i < set->n; i++)
        if (most < 0 || set->of[i].procs > set->of[most].procs)
            most = i;
    return most;
}

const char *cm_network_why(const struct cm_opts *o, const char *option, bool set,
                           char buf[CM_SET_BY_BYTES])
{
    if (set)
        return cm_opts_set_by(o, option, buf);
    snprintf(buf, CM_SET_BY_BYTES, "default: fastest");
    return buf;
}
