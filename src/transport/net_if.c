/*
 * Which interface a job uses. The choice is a filter and a sort over a plain
 * list, so a test can give it any machine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/net.h"

enum { HAVE_BYTES = 512 };

/* Bridges and pairs of containers and virtual machines: they seldom lead to another machine. */
static const char *const inner[] = {"docker", "veth",    "virbr", "br-",
                                    "cni",    "flannel", "cali",  "podman"};

/* How good an interface is if the user names none: the best kind that is there is taken. */
enum kind { KIND_GOOD, KIND_INNER, KIND_LOOPBACK };

static enum kind kind_of(const struct cm_net_if *i)
{
    if (i->loopback)
        return KIND_LOOPBACK;
    for (size_t k = 0; k < CM_LEN(inner); k++)
        if (strncmp(i->name, inner[k], strlen(inner[k])) == 0)
            return KIND_INNER;
    return KIND_GOOD;
}

/* Virtual interfaces have no file, or one that cannot be read. */
static int speed_of(const char *name)
{
    char path[64 + CM_NET_NAME];
    int mbit = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
    f = fopen(path, "re");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%d", &mbit) != 1 || mbit < 0)
        mbit = 0;
    fclose(f);
    return mbit;
}

static bool fill(const struct ifaddrs *a, struct cm_net_if *out)
{
    if (a->ifa_addr == NULL || !(a->ifa_flags & IFF_UP) || strlen(a->ifa_name) >= CM_NET_NAME)
        return false;
    memset(out, 0, sizeof(*out));
    if (!cm_net_of(a->ifa_addr, &out->addr))
        return false;
    strcpy(out->name, a->ifa_name);
    out->index = if_nametoindex(a->ifa_name);
    out->mbit = speed_of(a->ifa_name);
    out->loopback = (a->ifa_flags & IFF_LOOPBACK) != 0;
    return true;
}

enum cm_status cm_net_list(struct cm_net_if **out, int *n)
{
    struct ifaddrs *all;
    struct cm_net_if *ifs;
    size_t count = 0;

    if (getifaddrs(&all) != 0)
        return cm_fail_errno("list of the network interfaces");
    for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next)
        count++;
    ifs = calloc(count + 1, sizeof(*ifs));
    if (ifs == NULL) {
        freeifaddrs(all);
        return CM_FAIL(CM_ENOMEM, "no memory for %zu network interfaces", count);
    }
    *n = 0;
    for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next)
        *n += fill(a, &ifs[*n]);
    freeifaddrs(all);
    *out = ifs;
    return CM_OK;
}

/* What the user named. */
struct spec {
    const char *names; /* separated by commas; "": nothing named */
    bool exclude, exact;
};

static struct spec parse(const char *text)
{
    struct spec s = {text != NULL ? text : "", false, false};

    if (*s.names == '^') {
        s.exclude = true;
        s.names++;
    }
    if (*s.names == '=') {
        s.exact = true;
        s.names++;
    }
    return s;
}

/* Position of the first entry that fits `name`, -1: none does. */
static int position(const struct spec *s, const char *name)
{
    int k = 0;

    for (const char *at = s->names; *at != '\0'; k++) {
        size_t len = strcspn(at, ",");

        if (len > 0 && strncmp(name, at, len) == 0 && (!s->exact || name[len] == '\0'))
            return k;
        at += len;
        at += *at == ',';
    }
    return -1;
}

/* An address that has no meaning beyond the next switch. */
static bool link_local(const struct cm_net_addr *a)
{
    if (a->version == 4)
        return a->ip[0] == 169 && a->ip[1] == 254;
    return a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

/* Does `a` come before `b`? */
static bool before(const struct spec *s, const struct cm_net_if *a, const struct cm_net_if *b)
{
    int pa = s->exclude ? 0 : position(s, a->name), pb = s->exclude ? 0 : position(s, b->name);
    enum kind ka = kind_of(a), kb = kind_of(b);

    if (pa != pb)
        return pa < pb;
    if (ka != kb)
        return ka < kb;
    if (a->mbit != b->mbit)
        return a->mbit > b->mbit;
    if (link_local(&a->addr) != link_local(&b->addr))
        return link_local(&b->addr);
    return a->addr.version < b->addr.version;
}

/* By insertion: few, and what compares equal stays in order. */
static void sort(const struct spec *s, struct cm_net_if *ifs, int n)
{
    for (int i = 1; i < n; i++) {
        struct cm_net_if moving = ifs[i];
        int at = i;

        for (; at > 0 && before(s, &moving, &ifs[at - 1]); at--)
            ifs[at] = ifs[at - 1];
        ifs[at] = moving;
    }
}

static enum cm_status nothing_left(const struct cm_net_if *ifs, int n, const char *spec)
{
    char have[HAVE_BYTES] = "", ip[CM_NET_TEXT];
    size_t len = 0;

    for (int i = 0; i < n && len < sizeof(have); i++)
        len += (size_t)snprintf(have + len, sizeof(have) - len, "%s%s (%s)", i > 0 ? ", " : "",
                                ifs[i].name, cm_net_format(&ifs[i].addr, ip));
    if (n == 0)
        return CM_FAIL(CM_EINVAL, "no network interface is up and has an address");
    return CM_FAIL(CM_EINVAL, "--ifname %s: no such interface; have: %s", spec, have);
}

/* Is it one of those that the user wants, or of the best kind if he did not say? */
static bool wanted(const struct spec *s, const struct cm_net_if *i, enum kind best)
{
    if (*s->names == '\0')
        return kind_of(i) == best;
    return (position(s, i->name) >= 0) != s->exclude;
}

enum cm_status cm_net_select(struct cm_net_if *ifs, int *n, const char *spec)
{
    struct spec s = parse(spec);
    enum kind best = KIND_LOOPBACK;
    int kept = 0;

    for (int i = 0; i < *n; i++)
        best = kind_of(&ifs[i]) < best ? kind_of(&ifs[i]) : best;
    for (int i = 0; i < *n; i++)
        kept += wanted(&s, &ifs[i], best);
    if (kept == 0)
        return nothing_left(ifs, *n, spec);
    kept = 0;
    for (int i = 0; i < *n; i++)
        if (wanted(&s, &ifs[i], best))
            ifs[kept++] = ifs[i];
    *n = kept;
    sort(&s, ifs, kept);
    return CM_OK;
}
