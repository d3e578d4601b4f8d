/*
 * Reading control groups. A limit may stand at any level above the process, so
 * callers walk from the own group to the root. In a container the path of the
 * group may not exist below the mount; the walk then passes it by and ends at
 * the mount's root, which is what the container may see.
 */
#include "base/cgroup.h"

#include <stdio.h>
#include <string.h>

/* Does the comma-separated list (of length n) hold `word`? */
static bool lists(const char *list, size_t n, const char *word)
{
    size_t len = strlen(word);

    for (const char *end = list + n; list < end;) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        size_t item = (size_t)((comma != NULL ? comma : end) - list);

        if (item == len && memcmp(list, word, len) == 0)
            return true;
        list += item + 1;
    }
    return false;
}

/* Path of the own group below its mount, from a line "id:controllers:path". */
static bool parse_line(char *line, const char *controller, char **path, bool *v2)
{
    char *first = strchr(line, ':'), *second = first != NULL ? strchr(first + 1, ':') : NULL;

    if (second == NULL)
        return false;
    *path = second + 1;
    (*path)[strcspn(*path, "\n")] = '\0';
    *v2 = second == first + 1;
    return *v2 || lists(first + 1, (size_t)(second - first - 1), controller);
}

/* The version 1 line of the controller wins over the unified one (hybrid systems have both). */
static bool own_group(const char *controller, char path[CM_CGROUP_PATH], bool *v2)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[CM_CGROUP_PATH], *at;
    bool found = false, unified;

    if (f == NULL)
        return false;
    while (fgets(line, sizeof(line), f) != NULL) {
        if (!parse_line(line, controller, &at, &unified) || (found && unified))
            continue;
        snprintf(path, CM_CGROUP_PATH, "%s", at);
        *v2 = unified;
        found = true;
    }
    fclose(f);
    return found;
}

bool cm_cgroup_dir(const char *controller, int up, char path[CM_CGROUP_PATH], bool *v2)
{
    char own[CM_CGROUP_PATH];
    int n;

    if (!own_group(controller, own, v2))
        return false;
    for (int i = 0; i < up; i++) {
        char *slash = strrchr(own, '/');

        if (slash == NULL || (slash == own && own[1] == '\0'))
            return false;
        slash[slash == own ? 1 : 0] = '\0';
    }
    n = snprintf(path, CM_CGROUP_PATH, "/sys/fs/cgroup%s%s%s", *v2 ? "" : "/",
                 *v2 ? "" : controller, own);
    return n > 0 && n < CM_CGROUP_PATH;
}

static FILE *open_in(const char *dir, const char *file)
{
    char path[CM_CGROUP_PATH + 64];
    int n = snprintf(path, sizeof(path), "%s/%s", dir, file);

    return n > 0 && (size_t)n < sizeof(path) ? fopen(path, "re") : NULL;
}

bool cm_cgroup_number(const char *dir, const char *file, unsigned long long *out)
{
    FILE *f = open_in(dir, file);
    unsigned long long v;
    bool ok;

    if (f == NULL)
        return false;
    ok = fscanf(f, "%llu", &v) == 1;
    fclose(f);
    if (ok)
        *out = v;
    return ok;
}

unsigned long long cm_cgroup_keyed(const char *dir, const char *file, const char *key)
{
    FILE *f = open_in(dir, file);
    unsigned long long v, found = 0;
    char word[64];

    if (f == NULL)
        return 0;
    while (fscanf(f, "%63s %llu", word, &v) == 2)
        if (strcmp(word, key) == 0)
            found = v;
    fclose(f);
    return found;
}
