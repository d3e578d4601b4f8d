/* Names of engines and lists of them. */
#include "common/sides.h"

#include <stdio.h>
#include <string.h>

#include "common/engine.h"

int cm_engine_find(const char *name)
{
    for (int i = 0; i < CM_NENGINES; i++) {
        if (strcmp(cm_engines[i].name, name) == 0)
            return i;
    }
    return -1;
}

/* The next side is engine `id`. */
static void add(struct cm_sides *s, int id)
{
    int before = 0;

    for (int i = 0; i < s->n; i++)
        before += (int)s->of[i].id == id;
    s->of[s->n].id = (enum cm_engine_id)id;
    snprintf(s->of[s->n].name, CM_SIDE_NAME, before > 0 ? "%s#%d" : "%s", cm_engines[id].name,
             before + 1);
    s->n++;
}

bool cm_sides_parse(const char *list, struct cm_sides *out)
{
    struct cm_sides s = {0};

    for (const char *at = list; at != NULL;) {
        size_t len = strcspn(at, ",");
        char name[CM_SIDE_NAME];
        int id;

        if (len >= sizeof(name) || s.n == CM_MAX_SIDES)
            return false;
        memcpy(name, at, len);
        name[len] = '\0';
        id = cm_engine_find(name);
        if (id < 0)
            return false;
        add(&s, id);
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    if (s.n < 2)
        return false;
    *out = s;
    return true;
}

void cm_sides_one(enum cm_engine_id id, struct cm_sides *out)
{
    *out = (struct cm_sides){0};
    add(out, (int)id);
}

bool cm_sides_have(const struct cm_sides *s, enum cm_engine_id id)
{
    bool have = s->n == 0 && id == CM_ENGINE_BUILTIN;

    for (int i = 0; i < s->n; i++)
        have = have || s->of[i].id == id;
    return have;
}

int cm_sides_find(const struct cm_sides *s, const char *name)
{
    for (int i = 0; i < s->n; i++) {
        if (strcmp(s->of[i].name, name) == 0)
            return i;
    }
    return -1;
}
