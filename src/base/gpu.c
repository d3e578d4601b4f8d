/* Layout of a rank's GPU area. Invariant: every part starts on a line of its own. */
#include "base/gpu.h"

#include <stddef.h>

#include "base/shared.h"

enum { PART_ALIGN = 4096 };

/* Kernels and the wires between nodes agree on what a port is. */
_Static_assert(sizeof(struct cm_gpu_port) == sizeof(struct cm_port_lines) &&
                   offsetof(struct cm_gpu_port, head) == offsetof(struct cm_port_lines, head),
               "lines of a port");
_Static_assert(sizeof(struct cm_gpu_slot_head) == sizeof(struct cm_slot_head) &&
                   offsetof(struct cm_gpu_slot_head, sig) == offsetof(struct cm_slot_head, sig) &&
                   offsetof(struct cm_gpu_slot_head, bytes) ==
                       offsetof(struct cm_slot_head, bytes) &&
                   offsetof(struct cm_gpu_slot_head, near) == offsetof(struct cm_slot_head, near) &&
                   offsetof(struct cm_gpu_slot_head, far) == offsetof(struct cm_slot_head, far_at),
               "head of a slot");

/* Place a part of `count` x `bytes` behind what there is; false if the sum overflows. */
static bool place(struct cm_gpu_area *a, uint64_t count, uint64_t bytes, uint64_t *at)
{
    uint64_t size;

    *at = (a->bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    return !__builtin_mul_overflow(count, bytes, &size) &&
           !__builtin_add_overflow(*at, size, &a->bytes) && a->bytes <= UINT64_MAX / 4;
}

static bool valid(const struct cm_gpu_area *a)
{
    return a->n >= 1 && a->n <= CM_GPU_RANKS && a->channels >= 1 && a->channels <= CM_GPU_BLOCKS &&
           a->depth >= 1 && a->depth <= 64 && (a->depth & (a->depth - 1)) == 0 &&
           a->slot_bytes >= 128 && a->slot_bytes % 128 == 0 && a->inbox_bytes >= 128 &&
           a->inbox_bytes % 128 == 0 && a->arena_bytes % PART_ALIGN == 0 &&
           a->ll_mask >> 1 > a->depth && a->ll_mask >= 15 &&
           (a->ll_mask & ((uint64_t)a->ll_mask + 1)) == 0;
}

enum cm_status cm_gpu_area_fill(struct cm_gpu_area *a)
{
    uint64_t ports = (uint64_t)a->n * a->channels * CM_GPU_PROTOS;
    bool fits;

    if (!valid(a))
        return CM_FAIL(CM_EINVAL, "GPU area: %u ranks, %u channels, depth %u, slots of %llu bytes",
                       a->n, a->channels, a->depth, (unsigned long long)a->slot_bytes);
    a->bytes = sizeof(struct cm_gpu_state);
    a->slot_stride = a->slot_bytes + CM_GPU_LINE; /* the head, and the payload on a line's start */
    fits = place(a, (uint64_t)a->n * CM_GPU_BLOCKS, sizeof(struct cm_gpu_line), &a->lines_at) &&
           place(a, ports, sizeof(struct cm_gpu_word), &a->tails_at) &&
           place(a, ports, sizeof(struct cm_gpu_word), &a->heads_at) &&
           place(a, ports, sizeof(struct cm_gpu_count), &a->counts_at) &&
           place(a, ports * a->depth, a->slot_stride, &a->slots_at) &&
           place(a, 4 * (uint64_t)a->n, a->inbox_bytes, &a->inbox_at) &&
           place(a, 1, a->arena_bytes, &a->arena_at);
    if (!fits)
        return CM_FAIL(CM_EINVAL, "GPU area: slots of %llu and an arena of %llu bytes are too much",
                       (unsigned long long)a->slot_bytes, (unsigned long long)a->arena_bytes);
    a->sync_bytes = a->arena_at;
    return CM_OK;
}
