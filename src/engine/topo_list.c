/* The small forms that sysfs, NVML and the text share: bus ids and lists of CPUs. */
#include <ctype.h>
#include <string.h>

#include "base/units.h"
#include "engine/topo_int.h"

static bool are_hex(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isxdigit((unsigned char)s[i]))
            return false;
    return true;
}

bool cm_topo_bus_id(const char *text, char out[16])
{
    size_t domain = strcspn(text, ":");
    const char *rest = text + domain;
    char id[16];
    int n;

    if (domain < 4 || domain > 8 || !are_hex(text, domain))
        return false;
    if (strlen(rest) != 8 || !are_hex(rest + 1, 2) || rest[3] != ':' || !are_hex(rest + 4, 2) ||
        rest[6] != '.' || rest[7] < '0' || rest[7] > '7')
        return false;
    while (domain > 4 && *text == '0') { /* NVML writes eight digits */
        text++;
        domain--;
    }
    n = snprintf(id, sizeof(id), "%s", text);
    if (n >= (int)sizeof(id))
        return false;
    for (int i = 0; i <= n; i++)
        out[i] = (char)tolower((unsigned char)id[i]);
    return true;
}

/* "5" or "3-7" (length len); false: it is neither. */
static bool parse_range(const char *s, size_t len, int64_t *lo, int64_t *hi)
{
    char word[32], *dash;

    if (len >= sizeof(word))
        return false;
    memcpy(word, s, len);
    word[len] = '\0';
    dash = strchr(word, '-');
    if (dash != NULL)
        *dash = '\0';
    if (!cm_parse_int(word, 0, CM_TOPO_CPUS - 1, lo))
        return false;
    *hi = *lo;
    return dash == NULL || cm_parse_int(dash + 1, *lo, CM_TOPO_CPUS - 1, hi);
}

int cm_topo_parse_list(const char *text, int16_t *cpus, int max)
{
    int n = 0;

    for (;;) {
        size_t len = strcspn(text, ",");
        int64_t lo, hi;

        if (!parse_range(text, len, &lo, &hi) || hi - lo >= max - n)
            return -1;
        for (int64_t cpu = lo; cpu <= hi; cpu++)
            cpus[n++] = (int16_t)cpu;
        if (text[len] == '\0')
            return n;
        text += len + 1;
    }
}

void cm_topo_print_list(FILE *f, const int16_t *cpus, int n)
{
    for (int first = 0, last; first < n; first = last + 1) {
        last = first;
        while (last + 1 < n && cpus[last + 1] == cpus[last] + 1)
            last++;
        fprintf(f, "%s%d", first > 0 ? "," : "", cpus[first]);
        if (last > first)
            fprintf(f, "-%d", cpus[last]);
    }
}
