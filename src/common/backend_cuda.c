/*
 * The CUDA backend of a process: its devices, their streams and gangs, and the
 * layout of the ranks' memory.
 *
 * A device is opened once and its ranks form a gang. Staged ranks launch no
 * kernels together, so each opens the device for itself and is a gang of one.
 */
#define _GNU_SOURCE
#include "common/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/launch.h"
#include "common/measure.h"
#include "engine/gang.h"
#include "kernels/gpu_data.h"
#include "kernels/gpu_launch.h"

enum {
    MAX_BLOCKS = 16,       /* of a rank that use ports at once: each has ports of its own */
    SLOT_BYTES = 64 << 10, /* of a slot, unless it makes the ports of all peers too large */
    LEAST_SLOT = 16 << 10,
    PORTS_BYTES = 64 << 20, /* what the ports of a rank should not exceed */
    INBOX_BYTES = 64 << 10, /* of the LL inbox from each of many ranks; of fewer, more */
    INBOXES_BYTES = 512 << 10,
    UNIT = 2 << 20, /* of cm_gpu_alloc() */
    SPARE_PART = 32 /* one part in so many of a device is for plans, graphs and the driver */
};

/* One opening of a device, and its gang. */
struct opened {
    struct cm_gpu *gpu;
    struct cm_gang *gang;
    int members;
};

struct cm_gpus {
    int count;
    struct opened opened[]; /* at most one per rank of the process */
};

/* ---- what there is ---- */

/* Before CUDA starts in this process; what the user has set stays. */
static void prepare_environment(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0); /* code loaded late could wait for a kernel */
}

static void cuda_facts(struct cm_gpu_facts *out)
{
    struct cm_gpu_probe probe;

    memset(out, 0, sizeof(*out));
    out->built = 1;
    prepare_environment();
    cm_gpu_probe(&probe);
    out->driver = probe.driver;
    out->runtime = probe.runtime;
    snprintf(out->why, sizeof(out->why), "%.*s", (int)sizeof(out->why) - 1, probe.why);
    for (int i = 0; i < probe.count; i++) {
        struct cm_gpu_info info;

        if (cm_gpu_info(i, &info) != CM_OK) {
            snprintf(out->why, sizeof(out->why), "device %d cannot be asked for its name", i);
            return;
        }
        snprintf(out->dev[i].bus_id, sizeof(out->dev[i].bus_id), "%.15s", info.bus_id);
        snprintf(out->dev[i].name, sizeof(out->dev[i].name), "%.63s", info.name);
        memcpy(out->dev[i].uuid, info.uuid, sizeof(info.uuid));
        out->dev[i].bytes = info.bytes;
        for (int k = 0; k < probe.count; k++)
            out->dev[i].peers |= (uint32_t)cm_gpu_reaches(i, k) << k;
    }
    out->count = probe.count;
}

/* ---- devices ---- */

static struct opened *find(struct cm_gpus *g, int device)
{
    for (int i = 0; i < g->count; i++)
        if (cm_gpu_index(g->opened[i].gpu) == device)
            return &g->opened[i];
    return NULL;
}

/* The code of all kernels, on the device just opened. */
static enum cm_status preload(void)
{
    enum cm_status st = cm_gpu_preload();

    return st == CM_OK ? cm_gpu_data_preload() : st;
}

/* The opening that a rank on this device uses, new if need be. */
static enum cm_status opened_for(struct cm_gpus *g, int device, bool alone, const struct cm_opts *o,
                                 struct opened **out)
{
    struct opened *d = alone ? NULL : find(g, device);
    bool loaded = find(g, device) != NULL;
    enum cm_status st;

    *out = d;
    if (d != NULL)
        return CM_OK;
    d = &g->opened[g->count];
    st = cm_gpu_open(device, o->launch.null_stream, &d->gpu);
    if (st != CM_OK)
        return st;
    g->count++;
    *out = d;
    return loaded ? CM_OK : preload();
}

static void cuda_close(struct cm_gpus *g)
{
    if (g == NULL)
        return;
    for (int i = 0; i < g->count; i++) {
        cm_gang_close(g->opened[i].gang);
        cm_gpu_close(g->opened[i].gpu);
    }
    free(g);
}

/* Give every rank its place; gangs are made when all members are counted. */
static enum cm_status place_ranks(struct cm_gpus *g, const struct cm_rank_info *mine, int local,
                                  const struct cm_opts *o, struct cm_rank_gpu *ranks)
{
    for (int i = 0; i < local; i++) {
        struct opened *d = NULL;
        enum cm_status st = opened_for(g, mine[i].device, ranks[i].staged, o, &d);

        if (st != CM_OK)
            return st;
        ranks[i].gpu = d->gpu;
        ranks[i].member = d->members++;
    }
    return CM_OK;
}

static enum cm_status form_gangs(struct cm_gpus *g, int local, struct cm_rank_gpu *ranks)
{
    for (int k = 0; k < g->count; k++) {
        enum cm_status st = cm_gang_open(g->opened[k].members, &g->opened[k].gang);

        if (st != CM_OK)
            return st;
        for (int i = 0; i < local; i++)
            if (ranks[i].gpu == g->opened[k].gpu)
                ranks[i].gang = g->opened[k].gang;
    }
    return CM_OK;
}

/* Kernels of a gang wait for each other, so all must be resident. */
static enum cm_status check_cooperative(const struct cm_gpus *g)
{
    for (int i = 0; i < g->count; i++) {
        const struct cm_gpu_info *info = cm_gpu_facts(g->opened[i].gpu);

        if (!info->cooperative)
            return CM_FAIL(CM_EUNSUP, "GPU %d (%s) has no cooperative launches", info->index,
                           info->name);
    }
    return CM_OK;
}

static enum cm_status cuda_open(const struct cm_rank_info *mine, int local, const struct cm_opts *o,
                                bool staged, struct cm_rank_gpu *ranks, struct cm_gpus **out)
{
    struct cm_gpus *g = calloc(1, sizeof(*g) + (size_t)local * sizeof(g->opened[0]));
    enum cm_status st;

    if (g == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for the GPUs of %d ranks", local);
    for (int i = 0; i < local; i++)
        ranks[i].staged = staged;
    st = place_ranks(g, mine, local, o, ranks);
    if (st == CM_OK)
        st = check_cooperative(g);
    if (st == CM_OK)
        st = form_gangs(g, local, ranks);
    if (st != CM_OK) {
        cuda_close(g);
        return st;
    }
    *out = g;
    return CM_OK;
}

static enum cm_status cuda_enter(const struct cm_rank_gpu *r)
{
    return cm_gpu_use(r->gpu);
}

/* ---- memory ---- */

/* What the user says, else a size with which all ports together stay moderate. */
static size_t slot_bytes(const struct cm_opts_engine *e, int n)
{
    size_t slots = (size_t)n * MAX_BLOCKS * CM_GPU_PROTOS * CM_PORT_SLOTS, bytes = SLOT_BYTES;

    if (e->chunk > 0) /* in LL lines it takes twice the room */
        return (e->chunk * (e->proto == CM_PROTO_LL ? 2 : 1) + 127) / 128 * 128;
    if (e->buffer / CM_PORT_SLOTS >= 128)
        return e->buffer / CM_PORT_SLOTS / 128 * 128;
    while (bytes > LEAST_SLOT && bytes * slots > PORTS_BYTES)
        bytes /= 2;
    return bytes;
}

/* The fewer ranks, the larger is what one exchange should take. */
static size_t inbox_bytes(int n)
{
    size_t bytes = INBOXES_BYTES;

    while (bytes > INBOX_BYTES && bytes * (size_t)(n - 1) > INBOXES_BYTES)
        bytes /= 2;
    return bytes;
}

static enum cm_status cuda_area(const struct cm_opts *o, int n, size_t arena_bytes,
                                struct cm_gpu_area *out)
{
    *out = (struct cm_gpu_area){
        .n = (uint32_t)n,
        .channels = MAX_BLOCKS,
        .depth = CM_PORT_SLOTS,
        .ll_mask = UINT32_MAX,
        .slot_bytes = slot_bytes(&o->engine, n),
        .inbox_bytes = inbox_bytes(n),
        .arena_bytes = arena_bytes,
    };
    return cm_gpu_area_fill(out);
}

/* Free bytes of the device less what its ranks need beside their arenas. */
static enum cm_status cuda_room(const struct cm_rank_gpu *r, const struct cm_opts *o, int n,
                                struct cm_room *room)
{
    size_t free_bytes = 0, total = 0, beside = UNIT;
    struct cm_gpu_area area;
    enum cm_status st = cm_gpu_use(r->gpu);

    if (st == CM_OK)
        st = cm_gpu_memory(r->gpu, &free_bytes, &total);
    if (st == CM_OK && !r->staged) {
        st = cuda_area(o, n, 0, &area);
        beside += area.sync_bytes;
    }
    if (st != CM_OK)
        return st;
    beside = beside * (size_t)room->ranks + total / SPARE_PART;
    room->bytes = free_bytes > beside ? free_bytes - beside : 0;
    snprintf(room->where, sizeof(room->where), "memory of GPU %s", cm_gpu_facts(r->gpu)->bus_id);
    return CM_OK;
}

const struct cm_backend cm_backend_cuda = {
    .name = "cuda",
    .facts = cuda_facts,
    .open = cuda_open,
    .close = cuda_close,
    .area = cuda_area,
    .room = cuda_room,
    .enter = cuda_enter,
    .meter = &cm_meter_cuda,
};
