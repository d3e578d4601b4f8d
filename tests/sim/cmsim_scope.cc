/*
 * Scopes of ordered accesses, for ThreadSanitizer, which knows none.
 *
 * A token is an address that releases and acquires meet at. A release at a
 * scope leaves its mark at the flag's token of the writer's block, at that of
 * its device if the scope is .gpu or wider, and at the flag itself if it is
 * .sys (a real atomic, in the accessor). An acquire takes the same marks from
 * the reader's side. So the two meet exactly if each one's scope contains the
 * other thread, as the PTX memory model wants it.
 */
#include "cmsim_core.h"
#include "cmsim_sanitizer.h"

#include <limits.h>
#include <string.h>

enum { TOKENS = 1 << 16, OWNERS = 1024 };

struct token {
    const void *flag;
    uintptr_t instance; /* a block's address, or a device's number * 2 + 1 */
};

/* Who used a counter with .gpu scope last. Launches from id `after` on began after its end. */
struct owner {
    const void *counter;
    int device, run, after;
};

/* An open hash table; the address of an entry is the token. */
static struct {
    struct token tokens[TOKENS];
    size_t ntokens;
    struct owner owners[OWNERS];
    bool owned; /* there are any */
} scope;

static size_t hash(const void *p, uintptr_t instance)
{
    return (size_t)(((uintptr_t)p ^ instance * 31) * 0x9e3779b97f4a7c15ull >> 32);
}

static struct token *find(const void *flag, uintptr_t instance)
{
    size_t i = hash(flag, instance) % TOKENS;

    while (scope.tokens[i].flag != nullptr &&
           (scope.tokens[i].flag != flag || scope.tokens[i].instance != instance))
        i = (i + 1) % TOKENS;
    return &scope.tokens[i];
}

static void release_at(const void *flag, uintptr_t instance)
{
    struct token *t = find(flag, instance);

    if (t->flag == nullptr) {
        if (++scope.ntokens > TOKENS / 4 * 3)
            cmsim_fail(CMSIM_TOKENS_FULL, {nullptr, 0}, flag, TOKENS);
        *t = {flag, instance};
    }
    cmsim_tsan_release(t);
}

static void acquire_at(const void *flag, uintptr_t instance)
{
    struct token *t = find(flag, instance);

    if (t->flag != nullptr)
        cmsim_tsan_acquire(t);
}

static uintptr_t my_block(void)
{
    return (uintptr_t)cmsim_core.now->block;
}

static uintptr_t my_device(void)
{
    return (uintptr_t)cmsim_core.now->block->run->device * 2 + 1;
}

void cmsim_release(const void *p, enum cmsim_scope wide)
{
    if (!cmsim_has_tsan())
        return;
    release_at(p, my_block());
    if (wide >= CMSIM_GPU)
        release_at(p, my_device());
}

void cmsim_acquire(const void *p, enum cmsim_scope wide)
{
    if (!cmsim_has_tsan())
        return;
    acquire_at(p, my_block());
    if (wide >= CMSIM_GPU)
        acquire_at(p, my_device());
}

/* An owner is forgotten when its place in the table is needed. */
void cmsim_one_device(const void *p, struct cmsim_site at)
{
    const struct cmsim_run *run = cmsim_core.now->block->run;
    struct owner *o = &scope.owners[hash(p, 0) % OWNERS];

    if (o->counter == p && o->device != run->device && run->id < o->after)
        cmsim_fail(CMSIM_OTHER_DEVICE, at, p, (uint64_t)o->device);
    *o = {p, run->device, run->id, INT_MAX};
    scope.owned = true;
}

void cmsim_scope_end(const struct cmsim_run *run)
{
    if (cmsim_core.nlive == 0 && (scope.ntokens > 0 || scope.owned))
        memset(&scope, 0, sizeof(scope));
    if (!scope.owned)
        return;
    for (struct owner &o : scope.owners)
        if (o.run == run->id && o.after == INT_MAX)
            o.after = cmsim_core.next_id;
}
