/*
 * What an element of a part must be, and sixteen bytes of them (data.cu).
 *
 * Maker: one formula of base/data_want.h. Shape: one element, or a unit made of
 * several. The switch over the makers stands outside a unit, so the formula is
 * a constant in the code of each.
 */
#ifndef CM_KERNELS_DATA_MAKE_H
#define CM_KERNELS_DATA_MAKE_H

#include "kernels/cm_device.h"

#include "base/data_gpu.h"

namespace
{

/* What an element is computed from, besides the kind of data, which the code has as a constant. */
struct source {
    const struct cm_gpu_data *a;
    const int64_t *sums;
    struct cm_gen_lane lane;
    uint32_t low;   /* index in the source, lower 32 bits */
    uint32_t phase; /* poison: byte of the pattern at index 0 */
    uint32_t width; /* bytes of an element */
};

/* ---- makers: the word of element low + e ----------------------------------------------------- */

template <int W> struct word_of {
    typedef uint32_t type;
};
template <> struct word_of<8> {
    typedef uint64_t type;
};

template <int W, cm_gen_kind K> struct input {
    static CM_FN typename word_of<W>::type make(const source &s, uint32_t e)
    {
        if constexpr (W == 8)
            return cm_gen_input64(&s.a->want.gen, &s.lane, s.low + e, K);
        else
            return cm_gen_input32(&s.a->want.gen, &s.lane, s.low + e, K);
    }
};

template <int W, cm_gen_kind K> struct reduced {
    static CM_FN typename word_of<W>::type make(const source &s, uint32_t e)
    {
        if constexpr (W == 8)
            return cm_want_reduced64(&s.a->want, s.sums, &s.lane, s.low + e, K);
        else
            return cm_want_reduced32(&s.a->want, s.sums, &s.lane, s.low + e, K);
    }
};

template <int W> struct poison {
    static CM_FN typename word_of<W>::type make(const source &s, uint32_t e)
    {
        uint64_t phase = s.phase + (s.low + e) * s.width;

        return (typename word_of<W>::type)cm_poison_at(s.a->poison, phase);
    }
};

template <int W> struct guard {
    static CM_FN typename word_of<W>::type make(const source &s, uint32_t e)
    {
        return cm_guard_byte(s.low + e);
    }
};

/* ---- what is made of them: one element, or a unit -------------------------------------------- */

/* W: 8, or 4 for all narrower ones */
template <int W> struct element {
    typedef uint64_t type;

    template <class Maker> static CM_FN type make(const source &s)
    {
        return Maker::make(s, 0);
    }
};

template <int W> struct unit {
    typedef cm_vec16 type;

    /* The k-th 32 bits of the unit. */
    template <class Maker> static CM_FN uint32_t word(const source &s, uint32_t k)
    {
        const uint32_t n = 4 / W, bits = 8 * W, mask = ~0u >> (32 - bits);
        uint32_t w = 0;

        for (uint32_t e = 0; e < n; e++)
            w |= (Maker::make(s, k * n + e) & mask) << (e * bits);
        return w;
    }

    template <class Maker> static CM_FN type make(const source &s)
    {
        type v = {};

        /* rolled where a word is several formulas: four times the code would gain nothing */
#pragma unroll(W == 4 ? 4 : 1)
        for (uint32_t k = 0; k < 4; k++)
            v = {v.w[1], v.w[2], v.w[3], word<Maker>(s, k)};
        return v;
    }
};

template <> struct unit<8> {
    typedef cm_vec16 type;

    template <class Maker> static CM_FN type make(const source &s)
    {
        uint64_t x = Maker::make(s, 0), y = Maker::make(s, 1);

        return {(uint32_t)x, (uint32_t)(x >> 32), (uint32_t)y, (uint32_t)(y >> 32)};
    }
};

/* ---- the switch over what a part holds ------------------------------------------------------- */

enum { POISON = 16, GUARD, REDUCED = 32 /* + kind; inputs are their kind */ };

CM_DEV uint32_t what_is(const struct cm_gpu_data &a, const struct cm_gpu_part &p)
{
    if (p.content == CM_CONTENT_POISON)
        return POISON;
    if (p.content == CM_CONTENT_GUARD)
        return GUARD;
    if (p.content == CM_CONTENT_RESULT && a.route.from == CM_FROM_ALL)
        return REDUCED + a.want.gen.kind;
    return a.want.gen.kind;
}

template <int W, class Shape> CM_DEV typename Shape::type make_input(const source &s, uint32_t what)
{
    switch (what) {
    case CM_GEN_EXTREME:
        return Shape::template make<input<W, CM_GEN_EXTREME>>(s);
    case CM_GEN_WRAP:
        return Shape::template make<input<W, CM_GEN_WRAP>>(s);
    case CM_GEN_EXACT:
        return Shape::template make<input<W, CM_GEN_EXACT>>(s);
    case CM_GEN_ODD:
        return Shape::template make<input<W, CM_GEN_ODD>>(s);
    case CM_GEN_POWERS:
        return Shape::template make<input<W, CM_GEN_POWERS>>(s);
    case POISON:
        return Shape::template make<poison<W>>(s);
    case GUARD:
        return Shape::template make<guard<W>>(s);
    default:
        return Shape::template make<input<W, CM_GEN_BITS>>(s);
    }
}

template <int W, class Shape> CM_DEV typename Shape::type make_any(const source &s, uint32_t what)
{
    switch (what) {
    case REDUCED + CM_GEN_EXTREME:
        return Shape::template make<reduced<W, CM_GEN_EXTREME>>(s);
    case REDUCED + CM_GEN_WRAP:
        return Shape::template make<reduced<W, CM_GEN_WRAP>>(s);
    case REDUCED + CM_GEN_EXACT:
        return Shape::template make<reduced<W, CM_GEN_EXACT>>(s);
    case REDUCED + CM_GEN_ODD:
        return Shape::template make<reduced<W, CM_GEN_ODD>>(s);
    case REDUCED + CM_GEN_POWERS:
        return Shape::template make<reduced<W, CM_GEN_POWERS>>(s);
    default:
        return make_input<W, Shape>(s, what);
    }
}

} // namespace

#endif
