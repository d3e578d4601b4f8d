/*
 * The shipped tuning table of kernels. Here "channels" are thread blocks of a
 * rank, as many as the size pays for.
 *
 * Inside a node, one exchange or one pass over what peers have; between nodes
 * kernels have ports only, and the choice is that of the host (tune.c), in copy
 * mode: what a message costs there is the wire's. None of it was measured on GPUs
 * yet: it follows from how often each form crosses the links.
 */
#include "engine/tune.h"

const char cm_tune_gpu[] =
    "# collective   ranks  nodes  bytes   algorithm  mode    protocol  channels  chunk\n"
    "hypercube      *      2-     *       recdbl     copy    simple    64        -\n"
    "alltoallv      *      2-     *       direct     copy    simple    64        -\n"
    "all_reduce     *      2      0-256K  hierdbl    copy    simple    64        -\n"
    "all_reduce     *      2-     0-64K   hierdbl    copy    simple    64        -\n"
    "all_reduce     *      2-     *       hier       copy    simple    64        -\n"
    "all_gather     *      5-     0-16K   recdbl     copy    simple    64        -\n"
    "all_gather     *      2-     *       hier       copy    simple    64        -\n"
    "reduce_scatter *      2-     *       hier       copy    simple    64        -\n"
    "broadcast      *      5-     0-16K   tree       copy    simple    64        -\n"
    "broadcast      *      2-     *       hier       copy    simple    64        -\n"
    "reduce         *      5-     0-16K   tree       copy    simple    64        -\n"
    "reduce         *      2-     *       hier       copy    simple    64        -\n"
    "alltoall       *      2-     *       hier       copy    simple    64        -\n"
    "*              *      2-     *       direct     copy    simple    64        -\n"
    "hypercube      *      *      *       recdbl     direct  simple    64        -\n"
    "alltoallv      *      *      *       direct     direct  simple    64        -\n"
    "*              2      *      0-512K  direct     copy    ll        32        -\n"
    "*              3-4    *      0-128K  direct     copy    ll        32        -\n"
    "*              *      *      0-64K   direct     copy    ll        32        -\n"
    "*              *      *      *       direct     direct  simple    64        -\n";
