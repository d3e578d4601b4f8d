/*
 * Each function of the kernel dialect once, for tests/test_ptx.sh: accessors.golden
 * says which instructions it must become. Nothing here ever runs.
 */
#include "kernels/cm_device.h"

struct golden_args {
    uint64_t p, q, v;
};

#define GOLDEN(name) CM_KERNEL(golden_##name, golden_args)
#define AT(T) ((T *)a.p)
#define KEEP(v) cm_st((uint32_t *)a.q, (uint32_t)(v))

GOLDEN(cm_tid)
{
    KEEP(cm_tid());
}
GOLDEN(cm_nthr)
{
    KEEP(cm_nthr());
}
GOLDEN(cm_bid_x)
{
    KEEP(cm_bid_x());
}
GOLDEN(cm_bid_y)
{
    KEEP(cm_bid_y());
}
GOLDEN(cm_nblk_x)
{
    KEEP(cm_nblk_x());
}
GOLDEN(cm_bar)
{
    cm_bar();
}
GOLDEN(cm_bar_or)
{
    KEEP(cm_bar_or(a.v != 0));
}
GOLDEN(cm_pause_ns)
{
    cm_pause_ns((uint32_t)a.v);
}

GOLDEN(cm_ld_u8)
{
    KEEP(cm_ld(AT(const uint8_t)));
}
GOLDEN(cm_ld_u16)
{
    KEEP(cm_ld(AT(const uint16_t)));
}
GOLDEN(cm_ld_u32)
{
    KEEP(cm_ld(AT(const uint32_t)));
}
GOLDEN(cm_ld_u64)
{
    cm_st((uint64_t *)a.q, cm_ld(AT(const uint64_t)));
}
GOLDEN(cm_st_u8)
{
    cm_st(AT(uint8_t), (uint8_t)a.v);
}
GOLDEN(cm_st_u16)
{
    cm_st(AT(uint16_t), (uint16_t)a.v);
}
GOLDEN(cm_st_u32)
{
    cm_st(AT(uint32_t), (uint32_t)a.v);
}
GOLDEN(cm_st_u64)
{
    cm_st(AT(uint64_t), a.v);
}
GOLDEN(cm_ld16)
{
    cm_ld16(AT(void));
}
GOLDEN(cm_st16)
{
    cm_st16(AT(void), {1, 2, 3, 4});
}

GOLDEN(cm_ld_acquire_sys)
{
    cm_ld_acquire_sys(AT(uint64_t));
}
GOLDEN(cm_st_release_sys)
{
    cm_st_release_sys(AT(uint64_t), a.v);
}
GOLDEN(cm_ld_relaxed_sys)
{
    cm_ld_relaxed_sys(AT(uint32_t));
}
GOLDEN(cm_st_relaxed_sys)
{
    cm_st_relaxed_sys(AT(uint32_t), (uint32_t)a.v);
}
GOLDEN(cm_ld_relaxed_sys_u64)
{
    cm_st((uint64_t *)a.q, cm_ld_relaxed_sys_u64(AT(uint64_t)));
}
GOLDEN(cm_st_relaxed_sys_u64)
{
    cm_st_relaxed_sys_u64(AT(uint64_t), a.v);
}
GOLDEN(cm_ld_ll)
{
    cm_ld_ll(AT(void));
}
GOLDEN(cm_st_ll)
{
    cm_st_ll(AT(void), (uint32_t)a.v, (uint32_t)(a.v >> 32));
}
GOLDEN(cm_prefetch)
{
    cm_prefetch(AT(void));
}
GOLDEN(cm_add_relaxed_gpu)
{
    cm_add_relaxed_gpu(AT(uint64_t), a.v);
}
