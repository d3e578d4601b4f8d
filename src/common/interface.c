/*
 * The version of the address is asked for first: then --ifname chooses among
 * addresses that can be used.
 */
#include "common/interface.h"

#include <stdlib.h>

static int version_of(int ip)
{
    return ip == CM_IP_4 ? 4 : 6;
}

/* Keep the addresses of the version that is asked for; how many. */
static int keep_version(struct cm_net_if *ifs, int n, int ip)
{
    int kept = 0;

    for (int i = 0; i < n; i++)
        if (ip == CM_IP_ANY || ifs[i].addr.version == version_of(ip))
            ifs[kept++] = ifs[i];
    return kept;
}

enum cm_status cm_interface_choose_from(const struct cm_opts_net *o, struct cm_net_if *ifs, int n,
                                        struct cm_net_if *out)
{
    int kept = keep_version(ifs, n, o->ip);
    enum cm_status st;

    if (kept == 0 && n > 0)
        return CM_FAIL(CM_EINVAL, "--ip %d: no network interface that is up has such an address",
                       version_of(o->ip));
    st = cm_net_select(ifs, &kept, o->ifname);
    if (st == CM_OK)
        *out = ifs[0];
    return st;
}

enum cm_status cm_interface_choose(const struct cm_opts_net *o, struct cm_net_if *out)
{
    struct cm_net_if *ifs = NULL;
    int n = 0;
    enum cm_status st = cm_net_list(&ifs, &n);

    if (st == CM_OK)
        st = cm_interface_choose_from(o, ifs, n, out);
    free(ifs);
    return st;
}
