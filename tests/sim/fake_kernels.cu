/* Small kernels for the tests of the fake runtime (fake_kernels.h). Thread 0 of a block acts. */
#include "kernels/cm_device.h"
#include "fake_kernels.h"

CM_DEV uint64_t *flag_at(uint64_t address)
{
    return (uint64_t *)address;
}

CM_DEV void await(uint64_t address, uint64_t want)
{
    while (cm_ld_acquire_sys(flag_at(address)) < want)
        cm_pause_ns(100);
}

CM_KERNEL(fk_add, struct fk_add)
{
    uint32_t *words = (uint32_t *)a.at;
    uint32_t stride = cm_nblk_x() * cm_nthr();

    for (uint32_t i = cm_bid_x() * cm_nthr() + cm_tid(); i < a.n; i += stride)
        cm_st(words + i, cm_ld(words + i) + a.value);
}

CM_KERNEL(fk_wait, struct fk_wait)
{
    if (cm_tid() != 0)
        return;
    cm_add_relaxed_gpu(flag_at(a.arrived), 1);
    await(a.flag, a.want);
    if (a.out != 0)
        cm_st_release_sys(flag_at(a.out), a.value);
}

CM_KERNEL(fk_raise, struct fk_raise)
{
    if (cm_tid() == 0)
        cm_st_release_sys(flag_at(a.flag), a.value);
}

CM_KERNEL(fk_pingpong, struct fk_pingpong)
{
    if (cm_tid() != 0)
        return;
    for (uint64_t i = 1; i <= a.rounds; i++) {
        cm_st_release_sys(flag_at(a.theirs), i);
        await(a.mine, i);
    }
}

CM_KERNEL(fk_crooked, struct fk_crooked)
{
    cm_st16((void *)a.out, cm_ld16((const void *)a.at));
}
