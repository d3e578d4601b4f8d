/*
 * Inside of the fake CUDA runtime, shared by fakecudart*.cc only. See fakecudart.cc.
 *
 * One process has one fake_runtime, guarded by one mutex. Every public function
 * runs through fake_call(), which takes the mutex. One thread, the engine, plays
 * all devices: it starts and ends tasks under the mutex and runs kernels without it.
 *
 * A stream is a queue of items; an item is a small graph of runs; a run is one
 * execution of a task. A plain launch, copy or event is an item with one run; a
 * launch of a graph is an item with a run for each node.
 */
#ifndef TESTS_SIM_FAKECUDART_H
#define TESTS_SIM_FAKECUDART_H

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cmsim_host.h"

enum {
    FAKE_DEVICES = 16,
    FAKE_SM_THREADS = 2048, /* the unit in which a device's room for blocks is counted */
    FAKE_SM_BLOCKS = 32,
    FAKE_SM_REGISTERS = 65536,
    FAKE_REGISTERS = 64, /* of every kernel, per thread */
    FAKE_BLOCK_THREADS = 1024,
    FAKE_KERNEL_THREADS = 512,    /* launch bound of every kernel: CM_MAX_THREADS of the dialect */
    FAKE_FRESH = 0xa5,            /* what new memory is full of */
    FAKE_SHARED = 48 << 10,       /* bytes a block may have without asking */
    FAKE_SHARED_OPTIN = 227 << 10 /* with cudaFuncSetAttribute(); also all an SM has */
};
constexpr size_t FAKE_GRAIN = 2u << 20; /* device memory is made in multiples of this */

using fake_lock = std::unique_lock<std::mutex>;

struct fake_settings {
    int devices, sms, cc, driver;
    size_t memory;  /* bytes of a device */
    unsigned queue; /* items that a stream holds before it blocks its user */
    uint64_t seed;  /* of the simulator's scheduler */
    bool trace;     /* one line on stderr for every call */
    bool eager;     /* all kernels are loaded from the start */
    const char *no_peer, *fail, *kernels, *visible;
};

/* ---- what is enqueued ------------------------------------------------------------------------ */

struct fake_run;

/* What is to be done; immutable once enqueued, so that a graph can be launched often. */
struct fake_task {
    explicit fake_task(int on) : device(on)
    {
    }
    virtual ~fake_task() = default;
    /* Start, or go on; with the mutex, from the engine. True: it has ended. */
    virtual bool advance(fake_run &run) const = 0;
    int device;
};
using fake_task_ref = std::shared_ptr<const fake_task>;

struct fake_node {
    fake_task_ref task;
    std::vector<size_t> after; /* indices of earlier nodes */
};

struct fake_run {
    const fake_node *node;
    bool ended;
    unsigned dispatched; /* kernel: blocks given to the simulator so far */
    struct part {
        int id;
        unsigned blocks;
    };
    std::vector<part> sims;         /* kernel: what the simulator has not ended */
    std::shared_ptr<bool> returned; /* host function: true once it has */
};

struct fake_item {
    uint64_t seq; /* order of all items of the process */
    std::shared_ptr<const std::vector<fake_node>> nodes;
    std::vector<fake_run> runs;
    std::shared_ptr<CUgraphExec_st> exec; /* NULL: no graph */
};

/* ---- CUDA's handles -------------------------------------------------------------------------- */

struct fake_capture {
    cudaStreamCaptureMode mode;
    cudaStream_t origin;
    uint64_t thread;
    std::vector<fake_node> nodes;
    std::vector<cudaStream_t> streams; /* the origin and those that joined */
    bool active, broken;
};

struct CUstream_st {
    int device;
    bool legacy, blocking; /* blocking: ordered with the legacy stream; not set for itself */
    bool destroyed;        /* dies once it is empty */
    int priority;
    std::deque<std::unique_ptr<fake_item>> items;
    uint64_t done; /* seq of the last item that ended */
    std::shared_ptr<fake_capture> capture;
    std::vector<size_t> tips; /* nodes that the next captured node comes after */
};

struct CUevent_st {
    int device;
    bool timing;
    uint64_t recorded, completed; /* versions */
    int64_t ns;                   /* time of the last completion */
    std::shared_ptr<fake_capture> capture;
    std::vector<size_t> tips;
};
using fake_event_ref = std::shared_ptr<CUevent_st>;

struct CUgraph_st {
    std::shared_ptr<const std::vector<fake_node>> nodes;
};

struct CUgraphExec_st {
    std::shared_ptr<const std::vector<fake_node>> nodes;
    const fake_item *running; /* launches run one after the other */
};

struct CUkern_st {
    std::string name;
    void (*thunk)(void **);
    size_t argbytes;
    uint32_t loaded; /* bit per device */
    int dynamic_shared;
};

/* ---- devices, memory ------------------------------------------------------------------------- */

struct fake_device {
    int index;      /* in this process */
    int physical;   /* on the machine; names it in handles and identifiers */
    uint32_t peers; /* bit per device: access is enabled */
    unsigned used;  /* room taken by resident blocks, in threads of an SM */
    bool full;      /* in this pass a launch found no room: later ones wait too */
    size_t memory;  /* bytes allocated */
    CUstream_st null_stream;
    std::list<std::unique_ptr<CUstream_st>> streams;
};

/* Memory of a device on a memfd, a multiple of FAKE_GRAIN. Allocations are cut from it. */
struct fake_block {
    int device, fd;
    char *base;
    size_t bytes;
    std::map<size_t, size_t> taken; /* offset, bytes */
};

/* An address range that CUDA knows. */
struct fake_range {
    enum kind { DEVICE, IMPORTED, PINNED, REGISTERED } what;
    char *base;
    size_t bytes;
    int device;
    unsigned flags;    /* pinned, registered */
    fake_block *block; /* DEVICE */
    unsigned opened;   /* IMPORTED: how often */
    std::string key;   /* IMPORTED: handle */
};

struct fake_runtime {
    std::mutex mutex;
    std::condition_variable changed; /* something ended */
    std::condition_variable work;    /* the engine has something to do */
    bool ready;                      /* settings and devices are there */
    fake_settings set;
    std::vector<fake_device> devices;
    std::map<uintptr_t, fake_range> ranges; /* by base */
    std::list<fake_block> blocks;
    std::map<cudaEvent_t, fake_event_ref> events;
    std::map<cudaGraph_t, std::unique_ptr<CUgraph_st>> graphs;
    std::map<cudaGraphExec_t, std::shared_ptr<CUgraphExec_st>> execs;
    std::map<const void *, std::unique_ptr<CUkern_st>> kernels; /* by host function */
    std::vector<std::shared_ptr<fake_capture>> captures;        /* active ones */
    std::map<std::string, unsigned> calls; /* of functions named in FAKECUDA_FAIL */
    cudaError_t sticky;
    uint64_t seq;
    int pid; /* process that made the context; 0: none yet */
};

fake_runtime &fake();

/* ---- calls (fakecudart.cc) ------------------------------------------------------------------- */

enum fake_need {
    FAKE_NOTHING, /* works without a driver */
    FAKE_DRIVER,  /* a driver that is new enough, a device */
    FAKE_CONTEXT  /* also the engine, and no asynchronous error so far */
};
cudaError_t fake_enter(const char *name, fake_need need);
cudaError_t fake_leave(const char *name, cudaError_t e);
/* Does FAKECUDA_FAIL want this call of `name` to fail? Counts it. */
bool fake_injected(const char *name);

/* Frame of every public function: `body` gets the locked mutex and gives the result. */
template <class Body> cudaError_t fake_call(const char *name, fake_need need, Body body)
{
    fake_lock lock(fake().mutex);
    cudaError_t e = fake_enter(name, need);

    if (e == cudaSuccess)
        e = body(lock);
    return fake_leave(name, e);
}

/* Let go of the mutex until pred() or an asynchronous error, and give that error. */
template <class Pred> cudaError_t fake_wait(fake_lock &lock, Pred pred)
{
    fake().changed.wait(lock, [&] { return fake().sticky != cudaSuccess || pred(); });
    return fake().sticky;
}

/* ---- devices (fakecudart_device.cc) ---------------------------------------------------------- */

void fake_devices_init(fake_runtime &rt);
fake_device &fake_current();
bool fake_device_ok(int index);
bool fake_reaches(int physical_a, int physical_b);
cudaError_t fake_device_idle(fake_lock &lock, fake_device &d); /* waits */

/* ---- memory (fakecudart_memory.cc, fakecudart_ipc.cc) ---------------------------------------- */

/*
 * Host threads cannot touch device memory, where the CPU has protection keys:
 * it is tagged with a key that only threads inside a fake_guard may use.
 */
class fake_guard
{
  public:
    fake_guard();
    ~fake_guard();
    fake_guard(const fake_guard &) = delete;
    fake_guard &operator=(const fake_guard &) = delete;

  private:
    int rights_;
};
/* Map a memfd at a multiple of FAKE_GRAIN, a gap on both sides. NULL: no. */
char *fake_map(int fd, size_t bytes);
void fake_unmap(char *base, size_t bytes);
fake_range *fake_find(const void *p); /* range that holds this address, or NULL */
void fake_release_device(fake_device &d);

/* ---- streams, events, captures --------------------------------------------------------------- */

/* Handle to stream; NULL is the legacy stream of the current device. */
cudaError_t fake_stream(cudaStream_t handle, CUstream_st **out);
/* Append to the stream, or to the graph that it captures. `seq`, unless NULL: 0 if captured. */
cudaError_t fake_enqueue(fake_lock &lock, CUstream_st &s, fake_task_ref task, uint64_t *seq);
cudaError_t fake_push(fake_lock &lock, CUstream_st &s, std::unique_ptr<fake_item> item);
/* Let the engine have a core and give cudaErrorNotReady: who polls does so on few cores here. */
cudaError_t fake_not_ready(fake_lock &lock);

uint64_t fake_thread();
/* What must not happen while this thread captures: cudaSuccess, or an error that ends captures. */
cudaError_t fake_unsafe();
cudaError_t fake_break(fake_capture &c, cudaError_t e); /* invalidate, give e */
void fake_end_capture(const std::shared_ptr<fake_capture> &c);
void fake_captured(CUstream_st &s, fake_task_ref task); /* append a node */
cudaError_t fake_implicit(const CUstream_st &s);        /* legacy stream against captures */
cudaError_t fake_capture_wait(CUstream_st &s, CUevent_st &e);

/* ---- engine (fakecudart_engine.cc) ----------------------------------------------------------- */

cudaError_t fake_engine_start();            /* with the mutex; does nothing if it runs */
void fake_engine_poke();                    /* there is something to do */
void fake_engine_reset(fake_lock &lock);    /* drop all items and kernels; clear the sticky error */
void *fake_symbol(const std::string &name); /* from the library of kernels; NULL: absent */
int fake_sim_add(const cmsim_launch &launch);
bool fake_sim_ended(int id);
void fake_callback(cudaHostFn_t fn, void *data, std::shared_ptr<bool> returned);

#endif
