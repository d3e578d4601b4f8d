/*
 * Going over the elements of a part (data.cu): filling them, or comparing.
 *
 * A part is cut into units of 16 bytes of memory, aligned; the first and the
 * last may be incomplete. Slices are runs of units. A complete unit with one
 * source is loaded, made and stored at once, any other element by element.
 */
#ifndef CM_KERNELS_DATA_VISIT_H
#define CM_KERNELS_DATA_VISIT_H

#include "kernels/data_make.h"

namespace
{

/* ---- places ---------------------------------------------------------------------------------- */

/* Where a thread is in a part: in a run of elements with one source and one page. */
struct place {
    const struct cm_gpu_data &a;
    const struct cm_gpu_part &p;
    uint32_t what;
    uint64_t begin, length; /* the run, in elements of the part; at first there is none */
    uint32_t begin_low;     /* index in the source of its first, lower 32 bits */
    source s;
};

CM_DEV place place_in(const struct cm_gpu_data &a, uint32_t part, const int64_t *sums)
{
    const struct cm_gpu_part &p = a.parts[part];

    return {a, p, what_is(a, p), 0, 0, 0, {&a, sums, {}, 0, (uint32_t)p.first, p.width}};
}

CM_DEV struct cm_source source_of(const place &at, uint64_t i)
{
    uint64_t index = at.p.first + i;

    if (at.p.content == CM_CONTENT_POISON)
        return {0, i, ~(uint64_t)0};
    if (at.p.content != CM_CONTENT_RESULT)
        return {at.a.rank, index, ~(uint64_t)0};
    if (at.a.route.from == CM_FROM_RUNS)
        return cm_route_run(at.a.route.nruns, (const struct cm_run *)at.a.table, index);
    return cm_route_at(&at.a.route, index);
}

/* Go to element `i` of the part. Returns how many from there on have the same source. */
CM_DEV uint64_t go_to(place &at, uint64_t i)
{
    if (i - at.begin >= at.length) {
        struct cm_source from = source_of(at, i);
        uint64_t page = ((uint64_t)1 << 32) - (uint32_t)from.index;

        at.begin = i;
        at.begin_low = (uint32_t)from.index;
        at.length = from.length < page ? from.length : page;
        at.s.lane = cm_gen_lane_of(&at.a.want.gen, from.rank < 0 ? 0 : (uint32_t)from.rank,
                                   (uint32_t)(from.index >> 32));
    }
    at.s.low = at.begin_low + (uint32_t)(i - at.begin);
    return at.length - (i - at.begin);
}

/* ---- visits: store what must be there (FILL), or count what is wrong ------------------------- */

CM_DEV uint64_t load_element(uint64_t p, uint32_t width)
{
    switch (width) {
    case 1:
        return cm_ld((const uint8_t *)p);
    case 2:
        return cm_ld((const uint16_t *)p);
    case 4:
        return cm_ld((const uint32_t *)p);
    default:
        return cm_ld((const uint64_t *)p);
    }
}

CM_DEV void store_element(uint64_t p, uint32_t width, uint64_t v)
{
    switch (width) {
    case 1:
        return cm_st((uint8_t *)p, (uint8_t)v);
    case 2:
        return cm_st((uint16_t *)p, (uint16_t)v);
    case 4:
        return cm_st((uint32_t *)p, (uint32_t)v);
    default:
        return cm_st((uint64_t *)p, v);
    }
}

/* The ends of a part, and what is between two sources: any width, and rare. */
CM_DEV void fill_element(place &at, uint64_t i)
{
    uint32_t width = at.p.width;

    go_to(at, i);
    store_element(at.p.at + i * width, width,
                  width == 8 ? make_input<8, element<8>>(at.s, at.what)
                             : make_input<4, element<4>>(at.s, at.what));
}

CM_DEV bool is_wrong(place &at, uint64_t i)
{
    uint32_t width = at.p.width, unused = 64 - 8 * width;
    uint64_t got, want;

    go_to(at, i);
    got = load_element(at.p.at + i * width, width);
    want = width == 8 ? make_any<8, element<8>>(at.s, at.what)
                      : make_any<4, element<4>>(at.s, at.what);
    return (got ^ want) << unused != 0;
}

template <bool FILL> CM_DEV uint32_t visit_elements(place &at, uint64_t i, uint64_t end)
{
    uint32_t wrong = 0;

    for (; i < end; i++) {
        if constexpr (FILL)
            fill_element(at, i);
        else
            wrong += is_wrong(at, i);
    }
    return wrong;
}

/* Elements that are not zero in four words of differences. */
template <int W> CM_DEV uint32_t count_wrong(const uint32_t (&diff)[4])
{
    uint32_t wrong = 0;

    if constexpr (W == 8) {
        wrong = ((diff[0] | diff[1]) != 0) + ((diff[2] | diff[3]) != 0);
    } else {
        const uint32_t bits = 8 * W, mask = ~0u >> (32 - bits);

        for (uint32_t e = 0; e < 32; e += bits)
            for (uint32_t k = 0; k < 4; k++)
                wrong += (diff[k] >> e & mask) != 0;
    }
    return wrong;
}

template <int W> CM_DEV uint32_t check_unit(const place &at, uint64_t i)
{
    cm_vec16 got = cm_ld16((const void *)(at.p.at + i * W)); /* travels while the other is made */
    cm_vec16 want = make_any<W, unit<W>>(at.s, at.what);
    const uint32_t diff[4] = {got.w[0] ^ want.w[0], got.w[1] ^ want.w[1], got.w[2] ^ want.w[2],
                              got.w[3] ^ want.w[3]};

    return (diff[0] | diff[1] | diff[2] | diff[3]) == 0 ? 0 : count_wrong<W>(diff);
}

/* The complete unit that starts with element `i`, where the place is. */
template <int W, bool FILL> CM_DEV uint32_t visit_unit(const place &at, uint64_t i)
{
    if constexpr (FILL) {
        cm_st16((void *)(at.p.at + i * W), make_input<W, unit<W>>(at.s, at.what));
        return 0;
    } else {
        return check_unit<W>(at, i);
    }
}

/* ---- units and slices of a part -------------------------------------------------------------- */

enum { UNIT = 16 };

struct range {
    uint64_t begin, end;
};

/* Elements of unit `u`. The first unit lacks those before the part. */
CM_DEV range unit_of(const struct cm_gpu_part &p, uint64_t u)
{
    uint64_t n = UNIT / p.width, lead = p.at % UNIT / p.width, begin = u * n,
             end = begin + n - lead;

    return {u == 0 ? 0 : begin - lead, end < p.count ? end : p.count};
}

/* Units of slice `s`: whole rounds of a block, so that a small part is one block's. */
CM_DEV range slice_of(const struct cm_gpu_data &a, const struct cm_gpu_part &p, uint32_t s)
{
    const uint64_t round = CM_GPU_DATA_THREADS;
    uint64_t units = (p.at % UNIT + p.count * p.width + UNIT - 1) / UNIT;
    uint64_t each = ((units + a.slices - 1) / a.slices + round - 1) / round * round;
    uint64_t begin = s * each < units ? s * each : units;

    return {begin, units - begin < each ? units : begin + each};
}

template <bool FILL> CM_DEV uint32_t visit_whole(const place &at, uint64_t i)
{
    switch (at.p.width) {
    case 1:
        return visit_unit<1, FILL>(at, i);
    case 2:
        return visit_unit<2, FILL>(at, i);
    case 4:
        return visit_unit<4, FILL>(at, i);
    default:
        return visit_unit<8, FILL>(at, i);
    }
}

template <bool FILL> CM_DEV uint64_t visit_slice(place at, uint32_t s)
{
    const uint32_t n = UNIT / at.p.width;
    range slice = slice_of(at.a, at.p, s);
    uint64_t wrong = 0;

    for (uint64_t u = slice.begin + cm_tid(); u < slice.end; u += cm_nthr()) {
        range r = unit_of(at.p, u);

        if (go_to(at, r.begin) >= n && r.end - r.begin == n)
            wrong += visit_whole<FILL>(at, r.begin);
        else
            wrong += visit_elements<FILL>(at, r.begin, r.end);
    }
    return wrong;
}

} // namespace

#endif
