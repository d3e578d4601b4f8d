/*
 * The tables of element types and reduction operations.
 *
 * Order and names are those of nccl-tests. A table drives parsing, --list,
 * help, tests and kernels; adding a type is one row here plus its load/store.
 */
#ifndef CM_BASE_DTYPE_H
#define CM_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cm_dtype {
    CM_INT8,
    CM_UINT8,
    CM_INT32,
    CM_UINT32,
    CM_INT64,
    CM_UINT64,
    CM_HALF,
    CM_FLOAT,
    CM_DOUBLE,
    CM_BFLOAT16,
    CM_F8E4M3,
    CM_F8E5M2,
    CM_NDTYPES
};

enum cm_kind { CM_KIND_INT, CM_KIND_UINT, CM_KIND_FLOAT };

struct cm_dtype_info {
    const char *name;
    size_t bytes;
    enum cm_kind kind;
    int mantissa; /* floats: bits with the hidden one (float 24); integers: value bits */
    int max_exp;  /* floats: exponent of the largest finite power of two (float 127, half 15) */
};
extern const struct cm_dtype_info cm_dtypes[CM_NDTYPES];

enum cm_op { CM_SUM, CM_PROD, CM_MAX, CM_MIN, CM_AVG, CM_MULSUM, CM_NOPS };

struct cm_op_info {
    const char *name;
    const char *what; /* one line for --list */
};
extern const struct cm_op_info cm_ops[CM_NOPS];

/* Index of `name` in the table, or -1. Exact, case-sensitive. */
int cm_dtype_find(const char *name);
int cm_op_find(const char *name);

/* mulsum: the factor of rank r's input, 1 for even ranks and 2 for odd ones, as nccl-tests. */
static inline int cm_mulsum_scalar(int rank)
{
    return (rank & 1) ? 2 : 1;
}

/*
 * One element to and from double. For floats exact in, round to nearest even
 * out; fp8 saturates finite values to the largest finite one, infinity stays
 * in e5m2 and saturates in e4m3, which has none; NaN stays NaN. For integers
 * by value: towards zero, saturating, NaN to 0; 64-bit integers above 2^53 lose
 * bits, so exact integer code uses cm_int_load/store.
 */
double cm_load(enum cm_dtype t, const void *p);
void cm_store(enum cm_dtype t, void *p, double v);

/* One integer element to and from 64 bits: sign-extended in, truncated out. Integers only. */
uint64_t cm_int_load(enum cm_dtype t, const void *p);
void cm_int_store(enum cm_dtype t, void *p, uint64_t v);

/* Bit conversions, round to nearest even; used by the scalar kernels and by the tables' tests. */
float cm_half_to_float(uint16_t h);
uint16_t cm_float_to_half(float f);
float cm_bf16_to_float(uint16_t h);
uint16_t cm_float_to_bf16(float f);
float cm_e4m3_to_float(uint8_t b);
uint8_t cm_float_to_e4m3(float f);
float cm_e5m2_to_float(uint8_t b);
uint8_t cm_float_to_e5m2(float f);

#endif
