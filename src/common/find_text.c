/* The verdict in words. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/find.h"

enum { MOST_NAMED = 4 };

static void add(char *buf, const char *fmt, ...) CM_PRINTF(2, 3);
static void add(char *buf, const char *fmt, ...)
{
    size_t n = strlen(buf);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf + n, CM_FIND_TEXT - n, fmt, ap);
    va_end(ap);
}

bool cm_find_doubtful(const struct cm_find_verdict *v, int unit)
{
    bool doubtful = v->units[unit].class == CM_FIND_UNKNOWN;

    for (size_t i = 0; i < v->nlinks; i++)
        doubtful = doubtful || v->links[i].a == unit || v->links[i].b == unit;
    return doubtful && v->units[unit].class < CM_FIND_SLOW;
}

const char *cm_find_why(const struct cm_find_unit *u, char *buf)
{
    const char *where = u->by_itself ? " by itself" : "";

    buf[0] = '\0';
    add(buf, "%s%s", cm_find_class_name(u->class), where);
    if (u->class == CM_FIND_SLOW && !isnan(u->gbs))
        add(buf, ": %.3g GB/s of %.3g expected", u->gbs, u->expected);
    if (u->class == CM_FIND_SLOW && !u->by_itself)
        add(buf, " with %d partner%s", u->partners, u->partners == 1 ? "" : "s");
    if (u->class == CM_FIND_HANGS && !u->by_itself)
        add(buf, " with all partners but %d", u->ended);
    if (u->class == CM_FIND_CORRUPT && u->wrong_rank >= 0)
        add(buf, ": wrong data, first on rank %d", u->wrong_rank);
    return buf;
}

const char *cm_find_why_link(const struct cm_find_link *l, char *buf)
{
    buf[0] = '\0';
    add(buf, "%s", cm_find_class_name(l->class));
    if (l->class == CM_FIND_SLOW)
        add(buf, ": %.3g GB/s of %.3g expected", l->gbs, l->expected);
    return buf;
}

const char *cm_find_summary(const struct cm_find *f, const struct cm_find_verdict *v, char *buf)
{
    const char *what = f->units.nodes ? "node" : "rank", *comma = ": ";
    int bad = 0, named = 0, open = 0;

    buf[0] = '\0';
    for (int u = 0; u < f->units.n; u++) {
        bad += v->units[u].class >= CM_FIND_SLOW;
        open += v->units[u].class == CM_FIND_UNKNOWN;
    }
    if (bad == 0 && v->nlinks == 0)
        add(buf, "nothing stands out among %d %ss", f->units.n, what);
    else
        add(buf, "%d of %d %ss and %zu link%s bad", bad, f->units.n, what, v->nlinks,
            v->nlinks == 1 ? "" : "s");
    for (int u = 0; u < f->units.n && named < MOST_NAMED; u++) {
        if (v->units[u].class < CM_FIND_SLOW)
            continue;
        add(buf, "%s%s %s", comma, f->units.name[u], cm_find_class_name(v->units[u].class));
        comma = ", ";
        named++;
    }
    for (size_t i = 0; i < v->nlinks && named < MOST_NAMED; i++) {
        add(buf, "%s%s - %s %s", comma, f->units.name[v->links[i].a], f->units.name[v->links[i].b],
            cm_find_class_name(v->links[i].class));
        comma = ", ";
        named++;
    }
    if ((size_t)bad + v->nlinks > (size_t)named)
        add(buf, ", and %zu more", (size_t)bad + v->nlinks - (size_t)named);
    if (open > 0)
        add(buf, "; %d not known", open);
    return buf;
}
