/*
 * Stacks that can be left and resumed: what is specific to the CPU.
 */
#ifndef CM_TESTS_SIM_CMSIM_SWITCH_H
#define CM_TESTS_SIM_CMSIM_SWITCH_H

#include <stddef.h>

/*
 * Prepare a stack so that the first switch to it calls entry(), which must not
 * return. low: its lowest address; low + bytes is aligned to 16. Returns the context to switch to.
 */
void *cmsim_context(char *low, size_t bytes, void (*entry)(void));

/*
 * Save the running context in *save and resume `load`. Returns when somebody
 * switches back, perhaps on another host thread. Signal masks and floating
 * point modes belong to the host thread and are left alone.
 */
extern "C" void cmsim_switch(void **save, void *load);

#endif
