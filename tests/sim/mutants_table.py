"""The mutants: what is broken, where, and which cases may notice. Read by mutants.py.

A row is (name, file, text, replacement, flavour, cases). The text must be in the file once, so
that a change of the kernels cannot leave a mutant behind that is none.
"""

import collections

Mutant = collections.namedtuple("Mutant", "name file old new flavour cases")

PLAN, LL, SHOT, PASS = "exec_plan.h", "exec_ll.h", "exec_shot.h", "exec_pass.h"
SYNC, PORTS, REMOTE, LINES, MOVE, TYPES = ("gpu_sync.h", "gpu_ports.h", "gpu_remote.h",
                                           "gpu_ll.h", "gpu_move.h", "gpu_types.h")


def forms(*names):
    return [("test_exec_forms", f"test_{name}") for name in names]


def waits(*names):
    return [("test_exec_waits", f"test_{name}") for name in names]


def ends(*names):
    return [("test_exec_ends", f"test_{name}") for name in names]


RANKS = forms("two_ranks", "three_ranks")
ROWS = waits("one_after_the_other", "two_operations_ahead")
NODES = waits("two_nodes") + forms("two_nodes")

ORDER = [
    # PASS
    ("pass: no barrier between wait and move", PASS,
     "if (cm_bar_or(cm_stopped(b) || !cm_pass_meet(b, r, 1, true, m)))\n        return;",
     "cm_pass_meet(b, r, 1, true, m);", RANKS),
    ("pass: no barrier before the shares are used", PASS,
     "e.threads = cm_nthr();\n    cm_bar();", "e.threads = cm_nthr();", RANKS),
    ("pass: no barrier before the last post", PASS,
     "cm_bar();\n    cm_post(b, CM_PHASE_DONE, false);", "cm_post(b, CM_PHASE_DONE, false);",
      RANKS),
    ("pass: leaves without waiting for the others", PASS,
     "if (cm_bar_or(!cm_pass_meet(b, r, CM_PHASE_DONE, false, m)))\n        return;", "cm_bar();",
     RANKS + ROWS),
    # lines
    ("post: relaxed", SYNC,
     "cm_st_release_sys(&line->seq, b.op << CM_PHASE_BITS | phase);",
     "cm_st_relaxed_sys_u64(&line->seq, b.op << CM_PHASE_BITS | phase);", RANKS),
    ("post: released to its own GPU only", SYNC,
     "cm_st_release_sys(&line->seq, b.op << CM_PHASE_BITS | phase);",
     "cmsim_st_release(&line->seq, b.op << CM_PHASE_BITS | phase, CMSIM_GPU, {__FILE__, 1});",
     RANKS),
    ("wait: relaxed", SYNC, "*seen = cm_ld_acquire_sys(word);",
     "*seen = cm_ld_relaxed_sys_u64(word);", RANKS),
    ("signature: stored weakly", SYNC, "cm_st_relaxed_sys_u64(&line->sig[parity], b.sig);",
     "cm_st(&line->sig[parity], b.sig);", ROWS),
    # PLAN
    ("plan: no barrier between the waits and the addresses", PLAN,
     "if (f.nwait > 0 && cm_bar_or(!ok))\n        return false;", "", RANKS),
    ("plan: no barrier before the move", PLAN,
     "slice.n * SIZE});\n    if (cm_bar_or(!ok))", "slice.n * SIZE});\n    if (!ok)", RANKS),
    ("plan: no barrier before slots are published and posts", PLAN,
     "cm_bar();\n            if (w.ports)", "if (w.ports)", RANKS),
    ("plan: the next fold fetched while the last one is in use", PLAN,
     "bool ok = cm_wait_fold(s, f);",
      "cm_fetch_fold(s, at + 1);\n    bool ok = cm_wait_fold(s, f);",
     RANKS),
    ("plan: each wait learns the addresses", PLAN, "if (ok && on.learn)", "if (ok)", RANKS + ROWS),
    ("plan: each post tells the addresses", PLAN, "tells = false;", "", RANKS),
    ("plan: copies to where the data is", MOVE,
     "return cm_is_copy<F>(f, m, e) && e.ndst == 1 && m.dst[0] == m.src[0];", "return false;",
     RANKS),
    # ports
    ("tail: relaxed", PLAN, "cm_st_release_sys(cm_tail_to(", "cm_st_relaxed_sys_u64(cm_tail_to(",
     RANKS),
    ("head: relaxed", PORTS, "cm_st_release_sys(cm_head_from(",
     "cm_st_relaxed_sys_u64(cm_head_from(", RANKS),
    # ports to another node
    ("remote tail: relaxed", PLAN, "cm_st_release_sys(cm_tail_to(",
     "cm_st_relaxed_sys_u64(cm_tail_to(", NODES),
    ("remote tail: released to its own GPU only", PLAN,
     "cm_st_release_sys(cm_tail_to(b, peer, w.channel), s.slot[i] + 1);",
     "cmsim_st_release(cm_tail_to(b, peer, w.channel), s.slot[i] + 1, CMSIM_GPU, {__FILE__, 1});",
     NODES),
    ("remote head: relaxed", PORTS, "cm_st_release_sys(cm_head_from(",
     "cm_st_relaxed_sys_u64(cm_head_from(", NODES),
    ("remote words: polled without acquire", SYNC, "*seen = cm_ld_acquire_sys(word);",
     "*seen = cm_ld_relaxed_sys_u64(word);", NODES),
    ("ll: slots given back before all have read", LL, "return !cm_bar_or(!ok);", "return ok;",
      RANKS),
]

LOGIC = [
    # shares and ends
    ("move: the last elements behind the vectors left out", MOVE,
     "tail = head + vectors * LANES;", "tail = head + vectors * LANES + 1;",
     forms("unaligned")),
    ("move: the first elements before the vectors left out", MOVE, "i < head; i += e.threads",
     "i + 1 < head; i += e.threads", forms("unaligned")),
    ("move: destinations need not be in step", MOVE, "differ |= m.dst[d] ^ m.src[0];", "",
     forms("unaligned")),
    ("move: a group of vectors too many", MOVE,
     "for (; copy && v + (COPIES - 1) * (uint64_t)e.threads < count;",
     "for (; copy && v + (COPIES - 2) * (uint64_t)e.threads < count;", RANKS),
    ("plan: the end of a share left out", PLAN, "s.n = cm_min(end - s.at, cap);",
     "s.n = cm_min(end - s.at, cap) - (end - s.at > 1);", RANKS),
    ("plan: a pass does not end at the share's end", PLAN, "end = cm_min(start + f.each, f.len);",
     "end = f.len;", RANKS),
    ("pass: the last share is as long as the others", PASS, "return cm_min(r.len - at, r.each);",
     "return r.each;", RANKS),
    ("ll: a unit that is cut is stored whole", LINES,
     "if (left >= CM_LL_UNIT && p % CM_LL_UNIT == 0) {\n        cm_st(",
     "if (p % CM_LL_UNIT == 0) {\n        cm_st(", RANKS),
    ("plan: blocks' parts of SCRATCH overlap", PLAN, "w.rep * cm_ld(&w.plan->scratch_step)",
     "w.rep * cm_ld(&w.plan->scratch_step) / 2", RANKS),
    # reductions
    ("shot: not in rank order", SHOT, "if (!cm_shot_fetch<bits>(s, p, u, left, &unit))",
     "if (!cm_shot_fetch<bits>(s, cm_turn(s.block, p), u, left, &unit))",
     forms("order_of_reduction")),
    ("pass: not in rank order", PASS, "m.src[p - r.from] =", "m.src[r.from + r.nfrom - 1 - p] =",
     forms("order_of_reduction")),
    ("plan: the doubling of mulsum left out", PLAN,
     "s.move.twice[i] = w.premul && o.space == CM_IN && (o.rank & 1);",
     "s.move.twice[i] = false;", forms("types_in_plan")),
    ("shot: the doubling of mulsum left out", SHOT, "s.premul && (p & 1), p == 0", "false, p == 0",
     forms("types_in_shot")),
    ("pass: the doubling of mulsum by place, not by rank", PASS, "premul && ((r.from + i) & 1)",
     "premul && !((r.from + i) & 1)", forms("types_in_pass")),
    ("avg: not divided", TYPES, "divide && divisor > 1 ?", "false ?", forms("types_in_pass")),
    ("avg: signed integers divided as unsigned", TYPES, "if (is_signed)", "if (false)",
     forms("types_in_pass")),
    # LL
    ("ll: one of two flags looked at", LINES, "low.flag == flag && high.flag == flag",
     "low.flag == flag", RANKS + waits("flags_wrap_in_inboxes")),
    ("ll: old flags never cleaned", LINES, "return ((uint32_t)count & half) > half - rounds;",
     "return false;", waits("flags_wrap_in_inboxes", "flags_wrap_in_slots")),
    ("ll: one of the last rounds does not clean", LINES,
     "return ((uint32_t)count & half) > half - rounds;",
     "return ((uint32_t)count & half) > half - rounds + 1;",
     waits("flags_wrap_in_inboxes", "flags_wrap_in_slots")),
    ("ll: cleaned in a half of the period only", LINES, "uint32_t half = mask >> 1;",
     "uint32_t half = mask;", waits("flags_wrap_in_slots", "flags_wrap_in_inboxes")),
    ("ll: an empty slot has no line", LL,
     "if (s.dst_port[k])\n                cm_ll_put(s.plan.move.dst[k], 0, s.dst_flag[k]);", ";",
     waits("nothing_to_send")),
    ("shot: one inbox for all epochs", SHOT, "uint64_t half = s.epoch & 1;", "uint64_t half = 0;",
     RANKS + ROWS),
    ("shot: does not wait for those that send nothing", SHOT, "ok = ok && cm_shot_meet(s);", "",
     waits("one_after_the_other", "flags_wrap_in_inboxes")),
    # counters
    ("counters of blocks that are not in the launch stay behind", SYNC, "if (b.index == 0)",
     "if (false)", ROWS),
    ("plan: a block writes back the counters of ports that it did not use", PORTS,
     "if (c.receives[p])\n", "", RANKS),
    ("no wait for credit", PORTS, "if (count < depth)\n        return true;", "return true;",
      RANKS),
    ("a credit too many", PORTS, "count + 1 - depth, peer", "count - depth, peer", RANKS),
    ("ll: in the slots of protocol simple", PLAN,
     "s.walk.channel += cm_ld(&s.walk.block.state->area.channels);", ";",
     waits("payload_is_no_flag")),
    # ports to another node
    ("remote: no wait for a full slot", PLAN, "if (!cm_wait_word(b, cm_tail_from(",
     "if (cm_mine(b, peer) != 0 && !cm_wait_word(b, cm_tail_from(", NODES),
    ("remote: no wait for credit", PORTS, "if (count < depth)\n        return true;",
     "if (count < depth || cm_mine(b, peer) == 0)\n        return true;", NODES),
    ("remote: a credit too many", PORTS, "cm_head_from(b, peer, channel), count);",
     "cm_head_from(b, peer, channel), count + (cm_theirs(b, peer) == 0));", NODES),
    ("remote: the wire is not told how long a payload is", PLAN, "cm_st(slot.bytes, bytes);", ";",
     NODES),
    ("remote: beside the head though it does not fit", REMOTE, "bytes <= sizeof(h->near);",
     "bytes <= sizeof(h->near) + 1;", NODES),
    ("remote: behind the head though it fits beside it", REMOTE, "bytes <= sizeof(h->near);",
     "bytes < sizeof(h->near);", NODES),
    ("remote: port of the wrong channel", REMOTE, "channel * cm_ld(&b.state->remote_port)",
     "channel / 2 * cm_ld(&b.state->remote_port)", NODES),
    ("remote: any slot of the port", REMOTE, "count & (cm_ld(&b.state->area.depth) - 1);", "0;",
     NODES),
    ("slot of the wrong channel",
      PORTS, "(uint64_t)sender * CM_GPU_PROTOS * cm_ld(&a.channels) + channel;",
     "(uint64_t)sender * CM_GPU_PROTOS * cm_ld(&a.channels);", RANKS),
    # phases
    ("wait: for one phase less", SYNC, "b.op << CM_PHASE_BITS | phase, peer, &seq",
     "(b.op << CM_PHASE_BITS | phase) - 1, peer, &seq", RANKS),
    ("pass: addresses of the operation before", PASS, "uint32_t parity = b.op & 1;",
     "uint32_t parity = ~b.op & 1;", RANKS),
    ("plan: done before the last moves", PLAN,
     "if ((f.flags & CM_GPU_DONE_FIRST) && !exiting) {", "if (!exiting) {", RANKS),
    ("pass: done before the move", PASS,
     "cm_bar();\n    cm_move_all<",
      "cm_bar();\n    cm_post(b, CM_PHASE_DONE, false);\n    cm_move_all<",
     RANKS + ROWS),
    # when something is wrong
    ("stranger: one look is enough", SYNC,
     "cm_ld_acquire_sys(&line->seq) >> CM_PHASE_BITS == b.op; looks++", "true; looks++",
     ends("rank_that_went_on")),
    ("signatures of lines not compared", SYNC,
     "if (seq >> CM_PHASE_BITS != b.op ||", "if (true ||", ends("stranger")),
    ("signatures of slots not compared", PLAN,
     "if (cm_ld(sig) == b.sig)", "if (true)", ends("stranger")),
    ("the abort word not looked at", SYNC,
     "if (cm_ld_relaxed_sys((const uint32_t *)cm_ld(&b.state->abort)) == 0)", "if (true)",
     ends("missing_rank")),
    ("the hint names nobody", SYNC, "cm_st_relaxed_sys(&hint->peer, peer);", "",
     ends("missing_rank")),
]

MUTANTS = [Mutant(*row[:4], "tsan", row[4]) for row in ORDER] + [
    Mutant(*row[:4], "plain", row[4]) for row in LOGIC]
