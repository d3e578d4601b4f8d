/* Parts of a measurement, shared by measure.c and measure_time.c. */
#ifndef CM_COMMON_MEASURE_INT_H
#define CM_COMMON_MEASURE_INT_H

#include "common/measure.h"

static inline const struct cm_opts_run *cm_meter_opts(const struct cm_meter *m)
{
    return &m->rank->opts->run;
}

/* Tell the record that reports of time-outs read where this rank is. */
void cm_meter_enter(struct cm_meter *m, enum cm_phase_name phase, int64_t iter);

/* Of all ranks of the job. */
CM_MUST_CHECK enum cm_status cm_meter_barrier(struct cm_meter *m);

/* New data in the trial's buffers, and a barrier. */
CM_MUST_CHECK enum cm_status cm_meter_refill(struct cm_meter *m, struct cm_trial *t);

/* The record that reports of time-outs read: this trial begins. */
void cm_meter_begin(struct cm_meter *m, const struct cm_trial *t);

/* Parts of a measurement: fill and first call and -w more; the launches of -c. */
CM_MUST_CHECK enum cm_status cm_meter_warm_up(struct cm_meter *m, struct cm_trial *t,
                                              struct cm_reading *r);
CM_MUST_CHECK enum cm_status cm_meter_checked_launches(struct cm_meter *m, struct cm_trial *t,
                                                       struct cm_reading *r);

/* The trial's operations are those of the meter's side from now on. */
CM_MUST_CHECK enum cm_status cm_meter_bind(struct cm_meter *m, const struct cm_trial *t);

/* One operation, and the faults to be injected there; nothing if the trial is idle. */
CM_MUST_CHECK enum cm_status cm_meter_run(struct cm_meter *m, struct cm_trial *t,
                                          enum cm_phase_name phase, int64_t iter);

/* The fault `corrupt`, if it concerns this rank now: then waits for the operation first. */
CM_MUST_CHECK enum cm_status cm_meter_corrupt(struct cm_meter *m, const struct cm_trial *t,
                                              enum cm_phase_name phase, int64_t iter);

/* Compare the buffers, whose operations are done, with what the last fill must have become. */
CM_MUST_CHECK enum cm_status cm_meter_check(struct cm_meter *m, struct cm_trial *t,
                                            struct cm_reading *r);

/* Fill, barrier, the timed loop, and the check of its last result. */
CM_MUST_CHECK enum cm_status cm_meter_timed_loop(struct cm_meter *m, struct cm_trial *t,
                                                 struct cm_reading *r);

#endif
