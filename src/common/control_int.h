/*
 * The control plane's own data, shared by control.c (its life, its thread and
 * what it hears), control_team.c (operations of the team), control_note.c (why
 * the job ends), control_survey.c (questions) and control_lost.c (neighbours that
 * are gone). Private to them.
 *
 * Everything belongs to the control's thread, except what is marked.
 */
#ifndef CM_COMMON_CONTROL_INT_H
#define CM_COMMON_CONTROL_INT_H

#include <pthread.h>

#include "base/clock.h"
#include "common/control.h"

/* Types of messages. WORD comes from any process, LOST never leaves one, the rest is of leaders. */
enum cm_control_type {
    CM_CONTROL_TEAM = 1,
    CM_CONTROL_NOTE,
    CM_CONTROL_WORD,
    CM_CONTROL_QUESTION,
    CM_CONTROL_ANSWER,
    CM_CONTROL_LOST
};

/* A message that waits for the thread. */
struct cm_letter {
    struct cm_letter *next;
    int proc;
    uint32_t type;
    size_t n;
    unsigned char bytes[];
};

/* The leader of another domain. */
struct cm_neighbour {
    int proc, domain;
    bool gone;     /* lost, or it has left: nothing more is to be heard */
    uint32_t told; /* the note that it told last: its cm_note_key() */
};

/* Why the job ends, as a message has it. */
struct cm_control_note {
    uint32_t status, rank; /* of the abort word */
    uint32_t origin;       /* domain where it was raised */
    uint32_t said;         /* the text is printed */
    uint32_t bytes;        /* of the text; 0: who raised it has logged why */
    char text[CM_NOTE];
};

/* "The word of my domain is raised", to processes whose leader may be gone. */
struct cm_control_word {
    uint32_t status, rank;
};

struct cm_control_notes {
    bool seen;       /* this domain's word is set, and what its note says is known */
    int64_t seen_ns; /* since when the word is seen set; 0: it is not */
    uint32_t key;    /* of `best`; UINT32_MAX: none is known */
    struct cm_control_note best;
};

struct cm_control_survey {
    bool active;
    uint32_t ticket;   /* for whom it is made: struct cm_survey_line */
    uint32_t id;       /* of my question */
    int64_t until_ns;  /* so long answers are waited for */
    int64_t ended_ns;  /* of the last one; long ago: there was none */
    int64_t *heard_ns; /* domains->n: when my question was answered; 0: not yet */
    uint32_t *last;    /* domains->n: the last question of each */
    int32_t *via;      /* ... and the neighbour that it came from: answers go there */
};

/* What a letter of type CM_CONTROL_LOST holds. */
struct cm_control_loss {
    uint32_t status;
    char why[192];
};

struct cm_control_lost {
    bool pending; /* a report is to be made */
    bool asked;
    int proc;
    uint32_t ticket;
    int64_t due_ns; /* when to go on at the latest */
    struct cm_control_loss what;
};

struct cm_control {
    struct cm_control_args a;
    struct cm_shared *shared; /* the head of my segment */
    bool leads;               /* its domain */
    struct cm_neighbour *neighbours;
    int nneighbours;
    pthread_mutex_t gate; /* of proxy */
    struct cm_proxy *proxy;
    pthread_mutex_t lock; /* of what follows, up to the atomics */
    pthread_cond_t news;
    struct cm_letter *first, *last;
    bool attached, stop;
    _Atomic bool ending; /* any thread: losses are no news any more */
    pthread_t thread;
    struct cm_control_notes notes;
    struct cm_control_survey survey;
    struct cm_control_lost lost;
};

static inline enum cm_status cm_control_aborted(const struct cm_control *c)
{
    return cm_abort_status(&c->shared->abort);
}

static inline struct cm_rank_shared *cm_control_record(const struct cm_control *c, int rank)
{
    return cm_rank_shared(c->a.base, c->a.layout, rank);
}

/*
 * control.c. Errors as cm_proxy_send(); CM_EABORT too if the proxy is not there. Any
 * thread, never blocks.
 */
CM_MUST_CHECK enum cm_status cm_control_send(struct cm_control *c, int proc, uint32_t type,
                                             const void *bytes, size_t n);

/* control.c: to all neighbours but the process `except` (-1: to all). Blocks for 100 ms at most
   for each that does not take its messages. The thread. */
void cm_control_flood(struct cm_control *c, uint32_t type, const void *bytes, size_t n, int except);

/* control.c: put a letter into the thread's box. Any thread, blocks no longer than malloc(). */
void cm_control_post(struct cm_control *c, int proc, uint32_t type, const void *bytes, size_t n);

/* control.c: wake the thread. Any thread. */
void cm_control_wake(struct cm_control *c);

/* control.c: for a thread that waits for the control: sleep for a millisecond, move messages. */
void cm_control_pause(struct cm_control *c);

/* control_team.c: a message came. On the thread that drives the proxy. False: it makes no sense. */
bool cm_control_hear_team(struct cm_control *c, const void *bytes, size_t n);

/* control_note.c: a message came; look at the abort word and the clock. */
void cm_control_hear_note(struct cm_control *c, const struct cm_letter *l);
void cm_control_hear_word(struct cm_control *c, const struct cm_letter *l);
void cm_control_tick_notes(struct cm_control *c, int64_t now);

/* control_note.c: tell all neighbours of the process that the word is raised. Any thread. */
void cm_control_pass_word(struct cm_control *c);

/* control_note.c: print this domain's note if nobody has: the leader does not. Any thread. */
void cm_control_say_alone(struct cm_control *c);

/* control_survey.c. CM_ENOMEM; free() what it took in any case. */
CM_MUST_CHECK enum cm_status cm_control_survey_init(struct cm_control *c);
void cm_control_survey_free(struct cm_control *c);
void cm_control_hear_question(struct cm_control *c, const struct cm_letter *l);
void cm_control_hear_answer(struct cm_control *c, const struct cm_letter *l);
void cm_control_tick_survey(struct cm_control *c, int64_t now);

/* control_survey.c: draw a number, and see whether it is served. Any thread. */
uint32_t cm_control_ask(struct cm_control *c);
bool cm_control_served(const struct cm_control *c, uint32_t ticket);

/* control_survey.c: how long an answer may take, from the leader's point of view. */
int64_t cm_control_patience(const struct cm_control *c);

/* control_lost.c: a neighbour is gone; go on with the report. */
void cm_control_hear_loss(struct cm_control *c, const struct cm_letter *l);
void cm_control_tick_lost(struct cm_control *c, int64_t now);

#endif
