/*
 * The switch between stacks: by hand for x86-64, which takes a few
 * nanoseconds; with ucontext elsewhere (or with -DCMSIM_UCONTEXT), which asks
 * the kernel to swap signal masks and is several times slower.
 */
#include "cmsim_switch.h"

#include <stdint.h>

#if defined(__x86_64__) && !defined(CMSIM_UCONTEXT)

/* Registers that a callee must preserve go onto the old stack; the context is its pointer. */
__asm__(".text\n"
        ".globl cmsim_switch\n"
        ".hidden cmsim_switch\n"
        ".type cmsim_switch,@function\n"
        "cmsim_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size cmsim_switch,.-cmsim_switch\n");

void *cmsim_context(char *low, size_t bytes, void (*entry)(void))
{
    enum { REGISTERS = 6 };
    void **top = (void **)(low + bytes);

    /* From the top: a return address that ends back-traces, then what the switch pops. */
    *--top = nullptr;
    *--top = (void *)(uintptr_t)entry;
    for (int i = 0; i < REGISTERS; i++)
        *--top = nullptr;
    return top;
}

#else

#include <ucontext.h>

/* A context that waits lives on its own stack: here, or in the frame that left it. */
void *cmsim_context(char *low, size_t bytes, void (*entry)(void))
{
    const size_t head = (sizeof(ucontext_t) + 15) / 16 * 16;
    ucontext_t *u = (ucontext_t *)(low + bytes - head);

    getcontext(u);
    u->uc_stack.ss_sp = low;
    u->uc_stack.ss_size = bytes - head;
    u->uc_link = nullptr;
    makecontext(u, entry, 0);
    return u;
}

void cmsim_switch(void **save, void *load)
{
    ucontext_t here;

    *save = &here;
    swapcontext(&here, (ucontext_t *)load);
}

#endif
