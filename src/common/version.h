/* The version of the program and of its JSON document. */
#ifndef CM_COMMON_VERSION_H
#define CM_COMMON_VERSION_H

static const char cm_version[] = "0.1.0";

/* Grows when a reader of the JSON document would have to change. */
enum { CM_JSON_SCHEMA = 1 };

#endif
