/* A folder for reports, and Python's word on the JSON documents in it. */
#ifndef CM_TESTS_JSON_JUDGE_H
#define CM_TESTS_JSON_JUDGE_H

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "test.h"

extern char **environ;

enum { PATH_BYTES = 256, COMMAND_BYTES = 1024 };

static char folder[PATH_BYTES];

static inline const char *path_in(const char *name, char *buf)
{
    snprintf(buf, PATH_BYTES, "%.200s/%s", folder, name);
    return buf;
}

/*
 * One Python process per document: it must be JSON without NaN and Infinity,
 * follow the schema if python3-jsonschema is here, and every expression over
 * the document `d` must hold.
 */
static const char judge[] =
    "import json, sys\n"
    "d = json.load(open(sys.argv[1]), parse_constant=lambda c: sys.exit(c + ' is no JSON'))\n"
    "try:\n"
    "    import jsonschema\n"
    "    jsonschema.validate(d, json.load(open('scripts/result.schema.json')))\n"
    "except ImportError:\n"
    "    print('skip   the schema is not checked: python3-jsonschema is missing')\n"
    "bad = [e for e in sys.argv[2:] if not eval(e)]\n"
    "sys.exit('does not hold: %s' % bad if bad else 0)\n";

enum { MAX_CLAIMS = 24 };

/* Exit status of python3 -c `code`, words...; 127 if there is no python3. */
static inline int python(const char *code, const char *path, const char *const *claims)
{
    char *argv[MAX_CLAIMS + 5] = {(char *)"python3", (char *)"-c", (char *)code, (char *)path};
    pid_t child;
    int status;

    for (int i = 0; claims != NULL && claims[i] != NULL && i < MAX_CLAIMS; i++)
        argv[4 + i] = (char *)claims[i];
    fflush(stdout);
    if (posix_spawnp(&child, "python3", NULL, NULL, argv, environ) != 0)
        return 127;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void check_json(const char *path, const char *const *claims)
{
    CHECK(python(judge, path, claims) == 0, "%s", path);
}

static inline bool no_python(void)
{
    if (python("pass", NULL, NULL) == 0)
        return false;
    SKIP("python3 is missing");
    return true;
}

static inline bool folder_make(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(folder, sizeof(folder), "%.150s/collmark-report-XXXXXX", tmp != NULL ? tmp : "/tmp");
    return mkdtemp(folder) != NULL;
}

static inline void folder_remove(void)
{
    char command[COMMAND_BYTES];

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    if (system(command) != 0)
        fprintf(stderr, "%s is left behind\n", folder);
}

#endif
