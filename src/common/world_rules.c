/* The user's tuning rules. */
#include "common/world_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "common/same_file.h"
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

/* Its rules, and what stands for the text. `arg`: where the rules go. */
static enum cm_status read_rules(void *arg, const char *path, uint64_t *hash)
{
    char *text = NULL;
    enum cm_status st = read_text(path, &text);

    if (st != CM_OK)
        return st;
    *hash = cm_hash(CM_HASH_START, text, strlen(text));
    st = cm_tune_parse(text, path, arg);
    free(text);
    return st;
}

enum cm_status cm_world_read_rules(const struct cm_boot *b, const struct cm_opts *o,
                                   struct cm_world *w)
{
    const struct cm_same_file f = {"--tuning", o->engine.tuning, read_rules, &w->rules};

    return f.path != NULL ? cm_same_file_read(b, &f) : CM_OK;
}
