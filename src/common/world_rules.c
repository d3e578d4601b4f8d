/*
 * The user's tuning rules. Every process reads the file, so a folder that the nodes
 * share is not needed; that they read the same is compared before anything is chosen.
 */
#include "common/world_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "engine/tune.h"

enum { MOST_BYTES = 1 << 20 };

/* The whole file as a string, which is the caller's. */
static enum cm_status read_text(const char *path, char **out)
{
    FILE *f = fopen(path, "re");
    char *text = f != NULL ? malloc(MOST_BYTES + 1) : NULL;
    enum cm_status st = CM_OK;
    size_t n = 0;

    if (f == NULL)
        return CM_FAIL(CM_EINVAL, "--tuning '%s': %s", path, strerror(errno));
    if (text != NULL)
        n = fread(text, 1, MOST_BYTES + 1, f);
    if (text == NULL)
        st = CM_FAIL(CM_ENOMEM, "--tuning '%s'", path);
    else if (ferror(f))
        st = CM_FAIL(CM_EINVAL, "--tuning '%s': %s", path, strerror(errno));
    else if (n > MOST_BYTES)
        st = CM_FAIL(CM_EINVAL, "--tuning '%s': larger than %d bytes", path, MOST_BYTES);
    else if (memchr(text, '\0', n) != NULL)
        st = CM_FAIL(CM_EINVAL, "--tuning '%s': not a text", path);
    fclose(f);
    if (st != CM_OK) {
        free(text);
        return st;
    }
    text[n] = '\0';
    *out = text;
    return CM_OK;
}

/* Do all processes have the text of process 0? */
static enum cm_status compare(const struct cm_boot *b, const struct cm_opts *o, uint64_t mine)
{
    uint64_t *all = calloc((size_t)b->nprocs, sizeof(*all));
    enum cm_status st = cm_boot_agree(
        b, all != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs));

    if (st == CM_OK)
        st = b->gather(b, &mine, sizeof(mine), all);
    for (int p = 1; st == CM_OK && p < b->nprocs; p++)
        if (all[p] != all[0])
            st = CM_REFUSE(b, CM_EINVAL,
                           "--tuning '%s': process %d reads another text there than process 0",
                           o->engine.tuning, p);
    free(all);
    return st;
}

/* Its rules, and what stands for the text. */
static enum cm_status read_rules(const char *path, struct cm_tune **out, uint64_t *hash)
{
    char *text = NULL;
    enum cm_status st = read_text(path, &text);

    if (st != CM_OK)
        return st;
    *hash = cm_hash(CM_HASH_START, text, strlen(text));
    st = cm_tune_parse(text, path, out);
    free(text);
    return st;
}

/* The first process that fails speaks for those that would fail alike. */
enum cm_status cm_world_read_rules(const struct cm_boot *b, const struct cm_opts *o,
                                   struct cm_world *w)
{
    uint64_t hash = 0;
    enum cm_status st = CM_OK;

    if (o->engine.tuning == NULL)
        return CM_OK;
    if (b->proc == 0)
        st = read_rules(o->engine.tuning, &w->rules, &hash);
    st = cm_boot_agree(b, st);
    if (st != CM_OK)
        return st;
    if (b->proc != 0)
        st = read_rules(o->engine.tuning, &w->rules, &hash);
    st = cm_boot_agree(b, st);
    return st == CM_OK ? compare(b, o, hash) : st;
}
