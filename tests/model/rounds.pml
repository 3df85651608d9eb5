/* Synchronous rounds (docs/protocol.md, section 13): G steps a round, two chunks on a ps each, W workers that may die at
 * any moment, a coordinator that may die too, steps leased a second time (speculation), and a cut between rounds.
 *
 * A step is leased once all of the rounds before are done. The coordinator that takes over knows what both chunks have, and of
 * no lease: whoever worked before goes on, and its step may be leased again. What a ps says of itself is a fact; that a
 * message is late or repeated is a worker that pushes late, or another one that has the same step.
 *
 * Checked: a gradient is counted once a chunk, and is of the version that its round begins with on both chunks; it is
 * counted in its round; a version that is asked for is there, or the step is in everywhere; a cut has exactly the rounds
 * below it; nobody waits for ever.
 *
 *   spin -a [-D...] rounds.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m500000 -w24
 */
#ifndef W
#define W 2
#endif
#ifndef G
#define G 2
#endif
#ifndef R
#define R 2
#endif
#define STEPS (G*R)
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef COCRASHES
#define COCRASHES 1
#endif
#ifndef SPECULATIONS
#define SPECULATIONS 1
#endif
#define NONE 255
#define ROUND(s) ((s)/G)

byte ver[2];            /* rounds that the chunk's live values have had */
bool kept[2];           /* those of the version before are still there */
bool in[2*STEPS];       /* the chunk has the step's gradient (its applied set) */
byte got[2];            /* of this round */
bool done[STEPS];       /* the coordinator knows it */
byte holder[STEPS];     /* how many workers have a lease of it, as the coordinator knows */
byte base;              /* first step that is not done */
byte crashes = CRASHES, cocrashes = COCRASHES, speculations = SPECULATIONS;
byte cut = NONE;        /* the round before which a cut is in progress */
byte copy[2];           /* the version that a chunk was copied at; NONE: it was not */

inline advance() {
  do :: base < STEPS && done[base] -> base++ :: else -> break od
}

inline take_lease(s) {
  s = base;
#ifdef BUG_AHEAD
  do :: s < STEPS && (done[s] || holder[s] > 0) -> s++ :: else -> break od;
  if :: s < STEPS -> holder[s]++ :: else -> s = NONE fi
#else
  do :: s < STEPS && ROUND(s) == ROUND(base) && (done[s] || holder[s] > 0) -> s++ :: else -> break od;
  if
  :: s < STEPS && ROUND(s) == ROUND(base) -> holder[s]++
  :: else ->
     if
     :: base < STEPS && holder[base] == 1 && speculations > 0 -> speculations--; s = base; holder[s]++
     :: else -> s = NONE
     fi
  fi
#endif
}

inline apply(c) {
  if :: cut != NONE && ver[c] == cut && copy[c] == NONE ->
#ifndef BUG_NO_COPY
     copy[c] = ver[c]
#else
     skip
#endif
     :: else -> skip
  fi;
  got[c] = 0; ver[c]++;
#ifndef BUG_NO_KEEP
  kept[c] = true
#endif
}

proctype worker() {
  byte s, c; bool have[2]; byte version[2]; bool sent[2]; bool late;
  s = NONE;
next_step:
  atomic {
    have[0] = false; have[1] = false; sent[0] = false; sent[1] = false; late = false; version[0] = 0; version[1] = 0; c = 0;
    if
    :: base == STEPS -> goto end
    :: base < STEPS && (holder[base] == 0 || (G > 1 && base + 1 < STEPS && ROUND(base + 1) == ROUND(base) && !done[base + 1] && holder[base + 1] == 0) || (holder[base] == 1 && speculations > 0)) ->
       take_lease(s);
       if :: s == NONE -> goto next_step :: else -> skip fi
    fi
  }
pull:
  if
  :: atomic { !have[0] -> c = 0; goto pull_one }
  :: atomic { !have[1] -> c = 1; goto pull_one }
  :: atomic { have[0] && have[1] -> goto push }
  :: atomic { crashes > 0 -> crashes--; goto die }
  fi;
pull_one:
  atomic {
    assert(ver[c] >= ROUND(s));                  /* nobody waits at a ps */
#ifdef BUG_LIVE
    version[c] = ver[c]; have[c] = true; goto pull
#else
    if
    :: ver[c] == ROUND(s) -> version[c] = ver[c]; have[c] = true; goto pull
    :: ver[c] == ROUND(s) + 1 && kept[c] -> version[c] = ROUND(s); have[c] = true; goto pull
    :: else -> late = true; goto report          /* rejected: its round is complete everywhere */
    fi
#endif
  }
push:
  if
  :: atomic { !sent[0] -> c = 0; goto push_one }
  :: atomic { !sent[1] -> c = 1; goto push_one }
  :: atomic { sent[0] && sent[1] -> goto report }
  :: atomic { crashes > 0 -> crashes--; goto die }
  fi;
push_one:
  atomic {
    sent[c] = true;
    if
#ifndef BUG_TWICE
    :: in[c*STEPS+s] -> skip                     /* acknowledged, dropped */
#endif
    :: else ->
       assert(!in[c*STEPS+s]);
       assert(ROUND(s) == ver[c]);               /* of no other round */
       assert(version[0] == ROUND(s) && version[1] == ROUND(s));
       kept[c] = false;
       in[c*STEPS+s] = true;
       got[c]++;
       if :: got[c] == G -> apply(c) :: else -> skip fi
    fi;
    goto push
  }
report:
  atomic {
    if :: late -> assert(in[s] && in[STEPS+s]) :: else -> skip fi;
    assert(in[s] && in[STEPS+s]);
    done[s] = true;
    if :: holder[s] > 0 -> holder[s]-- :: else -> skip fi;
    advance();
    s = NONE;
    goto next_step
  }
die:
  atomic {
    if :: holder[s] > 0 -> holder[s]-- :: else -> skip fi;
    s = NONE;
    goto next_step                               /* another takes its place */
  }
end: skip
}

/* One that takes over: what every chunk has counts as done. */
proctype coordinators() {
  byte i;
  do
  :: atomic { cocrashes > 0 && base < STEPS ->
       cocrashes--; i = 0; base = 0;
       do
       :: i < STEPS ->
#ifdef BUG_TRUST_ONE
          done[i] = in[i];
#else
          done[i] = in[i] && in[STEPS+i];
#endif
          holder[i] = 0; i++
       :: else -> break
       od;
       i = 0; advance() }
  :: base == STEPS -> break
  od
}

/* A cut before a round that no chunk has applied; of which some may have steps already. */
proctype cuts() {
  byte f;
  if :: f = 1 :: f = R fi;
  if
  :: atomic { ver[0] <= f && ver[1] <= f ->
       cut = f; copy[0] = NONE; copy[1] = NONE }
  :: atomic { base == STEPS -> goto over }
  fi;
  atomic { ver[0] >= f && ver[1] >= f ->
    assert(copy[0] == f || (copy[0] == NONE && ver[0] == f));
    assert(copy[1] == f || (copy[1] == NONE && ver[1] == f));
    cut = NONE }
over: skip
}

init {
  atomic {
    byte w = 0;
    do :: w < W -> run worker(); w++ :: else -> break od;
    run coordinators(); run cuts()
  }
  (_nr_pr == 1);
  assert(ver[0] == R && ver[1] == R && base == STEPS)
}
