/* The kernels of fake_kernels.cu, as the fake runtime's tests see them. Addresses are uint64_t. */
#ifndef TESTS_SIM_FAKE_KERNELS_H
#define TESTS_SIM_FAKE_KERNELS_H

#include <stdint.h>

/* fk_add: add `value` to `n` words at `at`. Any grid. */
struct fk_add {
    uint64_t at;
    uint32_t n, value;
};

/*
 * fk_wait: every block adds 1 to the counter at `arrived`, waits until the flag
 * at `flag` is at least `want`, then stores `value` to the word at `out` (0: no).
 */
struct fk_wait {
    uint64_t flag, want;
    uint64_t arrived, out, value;
};

/* fk_raise: store `value` to the flag at `flag`. */
struct fk_raise {
    uint64_t flag, value;
};

/* fk_pingpong: `rounds` times raise `theirs` and wait for `mine` to be as high. One block. */
struct fk_pingpong {
    uint64_t mine, theirs, rounds;
};

/* fk_crooked: a 16-byte load at `at`. */
struct fk_crooked {
    uint64_t at, out;
};

#endif
