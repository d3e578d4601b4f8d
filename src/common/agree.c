/*
 * Options of two processes are compared value by value through the option
 * table, so that a new row is covered and the message can name the option.
 */
#include "common/agree.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

/* Rows that may differ: ranks per process, and what a process does for itself. */
static const char *const free_rows[] = {"nthreads", "ngpus",      "device", "log",
                                        "ifname",   "port-range", "ib-hca", "ib-gid"};

static uint64_t hash_value(const struct cm_option_value *v)
{
    uint64_t h = cm_hash(CM_HASH_START, &v->type, sizeof(v->type));

    switch (v->type) {
    case CM_VALUE_BOOL:
    case CM_VALUE_WHOLE:
        return cm_hash(h, &v->whole, sizeof(v->whole));
    case CM_VALUE_REAL:
        return cm_hash(h, &v->real, sizeof(v->real));
    case CM_VALUE_TEXT:
        return cm_hash(h, v->text, strlen(v->text));
    case CM_VALUE_NONE:
        break;
    }
    return h;
}

static bool may_differ(const char *name)
{
    for (size_t i = 0; i < CM_LEN(free_rows); i++)
        if (strcmp(free_rows[i], name) == 0)
            return true;
    return false;
}

void cm_digest_fill(const struct cm_opts *o, struct cm_digest *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->program, sizeof(out->program), "%s", o->program);
    for (int i = 0; cm_options[i].name != NULL; i++) {
        struct cm_option_value v;

        assert(i < CM_MAX_OPTIONS);
        if (may_differ(cm_options[i].name))
            continue;
        cm_option_get(&cm_options[i], o, &v);
        out->row[i] = hash_value(&v);
    }
}

const char *cm_digest_difference(const struct cm_digest *a, const struct cm_digest *b)
{
    for (int i = 0; cm_options[i].name != NULL; i++)
        if (a->row[i] != b->row[i])
            return cm_options[i].name;
    return NULL;
}
