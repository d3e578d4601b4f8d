/* Control groups of the calling process: where their files are, and numbers in them. */
#ifndef CM_BASE_CGROUP_H
#define CM_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

enum { CM_CGROUP_PATH = 512 };

/*
 * Folder of the `up`-th ancestor (0: own) of this process's group for
 * `controller` ("memory", "cpu"), whatever the version of the hierarchy.
 * *v2 tells which files it has. False after the root, or without groups.
 */
bool cm_cgroup_dir(const char *controller, int up, char path[CM_CGROUP_PATH], bool *v2);

/* First number of dir/file; false if there is none (also for "max"). */
bool cm_cgroup_number(const char *dir, const char *file, unsigned long long *out);

/* Number behind the word `key` in dir/file ("inactive_file 4096"); 0 if absent. */
unsigned long long cm_cgroup_keyed(const char *dir, const char *file, const char *key);

#endif
