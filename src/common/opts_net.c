/*
 * Texts of the options between nodes: is the form right? Whether a machine has
 * what they name is only known where it runs. Nothing here logs.
 */
#include <string.h>

#include "base/units.h"
#include "common/opts_table.h"

enum {
    PORT_MAX = 65535,
    IB_PORT_MAX = 255,
    INTERFACE_BYTES = 15, /* what the kernel allows */
    DEVICE_BYTES = 63,
    NUMBER_BYTES = 16
};

/* text[0 .. n) as a number from 1 to `most`; 0: it is none. */
static int64_t number(const char *text, size_t n, int64_t most)
{
    char digits[NUMBER_BYTES];
    int64_t v;

    if (n == 0 || n >= sizeof(digits) || strspn(text, "0123456789") < n)
        return 0;
    memcpy(digits, text, n);
    digits[n] = '\0';
    return cm_parse_int(digits, 1, most, &v) ? v : 0;
}

/* A name of n characters, none of which has a meaning of its own. */
static bool is_name(const char *text, size_t n, size_t most)
{
    return n > 0 && n <= most && strcspn(text, " \t\r\n/^=,") >= n;
}

static bool is_interface(const char *text, size_t n)
{
    return is_name(text, n, INTERFACE_BYTES);
}

/* NAME or NAME:PORT. */
static bool is_hca(const char *text, size_t n)
{
    const char *colon = memchr(text, ':', n);
    size_t name = colon != NULL ? (size_t)(colon - text) : n;

    if (!is_name(text, name, DEVICE_BYTES))
        return false;
    return colon == NULL || number(colon + 1, n - name - 1, IB_PORT_MAX) > 0;
}

/* "[^][=]A,B,...": every entry is one. */
static bool is_list(const char *text, bool (*is_entry)(const char *text, size_t n))
{
    text += *text == '^';
    text += *text == '=';
    for (;;) {
        size_t n = strcspn(text, ",");

        if (!is_entry(text, n))
            return false;
        if (text[n] == '\0')
            return true;
        text += n + 1;
    }
}

bool cm_valid_ifname(const char *text)
{
    return is_list(text, is_interface);
}

bool cm_valid_hca(const char *text)
{
    return is_list(text, is_hca);
}

/* As cm_net_parse_ports() reads it. */
bool cm_valid_ports(const char *text)
{
    size_t n = strcspn(text, "-");
    int64_t first = number(text, n, PORT_MAX);

    if (first == 0 || text[n] == '\0')
        return first != 0;
    return number(text + n + 1, strlen(text + n + 1), PORT_MAX) >= first;
}

bool cm_valid_rendezvous(const char *text)
{
    static const char file[] = "file:";

    if (strncmp(text, file, strlen(file)) == 0)
        return text[strlen(file)] != '\0';
    return strcmp(text, "mpi") == 0 || strcmp(text, "env") == 0;
}
