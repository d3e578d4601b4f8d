/* Node maps for tests: even, uneven, interleaved, one rank alone. */
#ifndef CM_TESTS_NODE_MAPS_H
#define CM_TESTS_NODE_MAPS_H

#include <stdint.h>

/* Rank r is on node (mul * r + add) / div % mod. */
static const struct node_map {
    int mul, add, div, mod;
} node_maps[] = {
    {1, 0, 64, 64},  /* one node */
    {1, 0, 1, 64},   /* every rank alone */
    {1, 0, 2, 64},   /* pairs, the last rank may be alone */
    {-1, 0, 3, 64},  /* negative numbers; the first three, then one more or less */
    {1, 63, 64, 64}, /* the first rank alone */
    {1, 61, 64, 64}, /* three and the rest */
    {1, 0, 1, 2},    /* 0,1,0,1 */
    {1, 0, 1, 3},    /* 0,1,2,0,1,2 */
    {3, 0, 2, 4},    /* 0,1,3,0,2,3,1,2 */
};

static inline void fill_map(const struct node_map *m, int n, int32_t *node)
{
    for (int r = 0; r < n; r++)
        node[r] = (m->mul * r + m->add) / m->div % m->mod;
}

#endif
