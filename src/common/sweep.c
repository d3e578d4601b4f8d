/*
 * An odometer: size turns fastest, then cycle, root, operation, type. Sizes
 * grow strictly, so a sweep always ends (except with endless cycles).
 */
#include "common/sweep.h"

size_t cm_sweep_size_after(const struct cm_opts_sweep *o, size_t bytes)
{
    size_t next;
    bool overflow = o->step_factor > 1
                        ? __builtin_mul_overflow(bytes, (size_t)o->step_factor, &next)
                        : __builtin_add_overflow(bytes, o->step_bytes, &next);

    return overflow || next <= bytes || next > o->max_bytes ? 0 : next;
}

static uint64_t sizes_in(const struct cm_opts_sweep *o)
{
    uint64_t n = 1;

    if (o->step_factor <= 1)
        return o->step_bytes == 0 ? 1 : (o->max_bytes - o->min_bytes) / o->step_bytes + 1;
    for (size_t b = cm_sweep_size_after(o, o->min_bytes); b != 0; b = cm_sweep_size_after(o, b))
        n++;
    return n;
}

struct cm_sweep cm_sweep_of(const struct cm_opts_sweep *o, bool reduces, bool rooted, int n)
{
    struct cm_sweep s = {.opts = o};

    s.ops = reduces && o->op == CM_ALL ? CM_NOPS : 1;
    s.roots = rooted && o->root == CM_ALL ? n : 1;
    s.now.bytes = o->min_bytes;
    s.now.dtype = o->dtype == CM_ALL ? 0 : o->dtype;
    s.now.op = o->op == CM_ALL ? 0 : o->op;
    s.now.root = !rooted ? -1 : o->root == CM_ALL ? 0 : o->root;
    s.total = sizes_in(o) * (uint64_t)o->cycles * (uint64_t)s.roots * (uint64_t)s.ops *
              (o->dtype == CM_ALL ? CM_NDTYPES : 1);
    return s;
}

/* Turn one wheel; true: it has come round to `first`. */
static bool turn(int *wheel, int first, int count)
{
    if (*wheel - first + 1 < count) {
        ++*wheel;
        return false;
    }
    *wheel = first;
    return true;
}

bool cm_sweep_next(struct cm_sweep *s)
{
    const struct cm_opts_sweep *o = s->opts;
    struct cm_point *p = &s->now;
    size_t next;

    s->done++;
    if (!s->started) {
        s->started = true;
        return true;
    }
    next = cm_sweep_size_after(o, p->bytes);
    p->bytes = next != 0 ? next : o->min_bytes;
    if (next != 0)
        return true;
    if (o->cycles == 0) { /* for ever: nothing after this wheel turns */
        p->cycle++;
        return true;
    }
    if (!turn(&p->cycle, 0, o->cycles))
        return true;
    if (s->roots > 1 && !turn(&p->root, 0, s->roots))
        return true;
    if (s->ops > 1 && !turn(&p->op, 0, s->ops))
        return true;
    return o->dtype == CM_ALL && !turn(&p->dtype, 0, CM_NDTYPES);
}
