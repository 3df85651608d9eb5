/* Local steps (docs/protocol.md, section 14): what is new beside shoal.pml. A step is a block of batches; what it pushes is
 * a difference, and what applies it at a ps, delayed Nesterov, has state of its own in each chunk: a buffer of the differences
 * since the last update of the momentum, the momentum, and how many differences there were. Two chunks on a ps each, W workers that
 * may die at any moment and whose steps others do again, a cut, and a restore from what it has kept.
 *
 * Of buffer and momentum a mask says which steps' differences are in them: their sum is what a ps holds.
 *
 * Checked: a difference is in exactly one of buffer and momentum, of exactly the steps that the chunk has applied, and
 * as many are in the buffer as the count says; so also in every cut, and in what was restored; every run ends with all steps in.
 *
 *   spin -a [-D...] local.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m500000 -w24
 */
#ifndef W
#define W 2
#endif
#ifndef S
#define S 4             /* steps; at most 8 */
#endif
#ifndef N
#define N 3             /* differences to an update of the momentum */
#endif
#ifndef WIN
#define WIN 3           /* window of open steps */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef RESTORES
#define RESTORES 1
#endif
#define NONE 255
#define BIT(s) (1<<(s))
#define BELOW(f) ((1<<(f))-1)
#define ONES(m) (((m)&1)+(((m)>>1)&1)+(((m)>>2)&1)+(((m)>>3)&1)+(((m)>>4)&1)+(((m)>>5)&1)+(((m)>>6)&1)+(((m)>>7)&1))
#define IN_ALL (in[0] & in[1])

byte in[2];             /* applied set of a chunk */
byte buf[2], mom[2];    /* slots: whose differences are in them */
byte count[2];          /* how many differences it has applied: its version */
byte cut = NONE;        /* F of the cut in progress */
bool copied[2];
byte cin[2], cbuf[2], cmom[2], ccount[2];   /* copies for it */
byte kept;              /* F of the newest checkpoint; 0: the seed */
byte kbuf[2], kmom[2];
byte timeline;
byte crashes = CRASHES, restores = RESTORES;

/* One more difference, after so many. */
inline advance(buffer, momentum, number, step) {
  assert(!((buffer | momentum) & BIT(step)));    /* counted once */
  buffer = buffer | BIT(step); number = number + 1;
  if :: number % N == 0 -> momentum = momentum | buffer; buffer = 0 :: else -> skip fi
}

#define SOUND(buffer, momentum, number, set) \
  (((buffer) & (momentum)) == 0 && ((buffer) | (momentum)) == (set) && ONES(buffer) == (number) % N)

/* Rule 5 of a chunk. */
inline push(c, s) {
  if
#ifndef BUG_TWICE
  :: in[c] & BIT(s) -> skip                      /* acknowledged, dropped */
#endif
  :: else ->
     if
     :: cut != NONE && s >= cut && !copied[c] -> /* 5a */
        copied[c] = true; cin[c] = in[c]; cbuf[c] = buf[c]; cmom[c] = mom[c]; ccount[c] = count[c]
     :: else -> skip
     fi;
     advance(buf[c], mom[c], count[c], s);       /* 5b */
     in[c] = in[c] | BIT(s);
     if
     :: cut != NONE && s < cut && copied[c] ->   /* 5c */
#ifdef BUG_COPY_COUNTS
        ccount[c] = count[c] - 1;                /* the copy counts with the chunk */
#endif
        advance(cbuf[c], cmom[c], ccount[c], s);
        cin[c] = cin[c] | BIT(s)
     :: else -> skip
     fi;
     assert(SOUND(buf[c], mom[c], count[c], in[c]))
  fi
}

proctype worker() {
  byte s, mine; bool sent[2];
next_step:
  atomic {
    sent[0] = false; sent[1] = false; s = 0; mine = timeline;
    do :: s < S && (IN_ALL & BIT(s)) -> s++ :: else -> break od;
    if :: s == S -> goto end :: else -> skip fi;
    /* any step of the window, whoever else has it: leases do not keep anybody from one */
    if
    :: skip
    :: s + 1 < S && !(IN_ALL & BIT(s + 1)) -> s = s + 1
    :: s + 2 < S && WIN > 2 && !(IN_ALL & BIT(s + 2)) -> s = s + 2
    fi
  }
push_next:
  if
  :: atomic { mine != timeline -> goto next_step } /* rejected: it drops what it has */
  :: atomic { mine == timeline && !sent[0] -> sent[0] = true; push(0, s); goto push_next }
  :: atomic { mine == timeline && !sent[1] -> sent[1] = true; push(1, s); goto push_next }
  :: atomic { sent[0] && sent[1] -> goto next_step }
  :: atomic { crashes > 0 -> crashes--; goto next_step }   /* dies; another takes its place */
  fi;
end: skip
}

/* Which of copy and live chunk the cut is. */
#define CBUF(c) (copied[c] -> cbuf[c] : buf[c])
#define CMOM(c) (copied[c] -> cmom[c] : mom[c])
#define CCOUNT(c) (copied[c] -> ccount[c] : count[c])
#define CIN(c) (copied[c] -> cin[c] : in[c])

proctype cuts() {
  byte f, mine;
  if :: f = 1 :: f = 2 :: f = S - 1 fi;
  atomic {
    mine = timeline;
    if
    :: (in[0] & ~BELOW(f)) == 0 && (in[1] & ~BELOW(f)) == 0 -> cut = f; copied[0] = false; copied[1] = false
    :: else -> goto over                         /* rejected */
    fi
  }
  if
  :: atomic { mine == timeline && (CIN(0) & BELOW(f)) == BELOW(f) && (CIN(1) & BELOW(f)) == BELOW(f) ->
       assert(SOUND(CBUF(0), CMOM(0), CCOUNT(0), BELOW(f))); assert(SOUND(CBUF(1), CMOM(1), CCOUNT(1), BELOW(f)));
       kbuf[0] = CBUF(0); kbuf[1] = CBUF(1); kmom[0] = CMOM(0); kmom[1] = CMOM(1);
#ifdef BUG_NO_MOMENTUM
       kmom[0] = 0; kmom[1] = 0;                 /* the slot is not in the checkpoint */
#endif
#ifdef BUG_NO_BUFFER
       kbuf[0] = 0; kbuf[1] = 0;
#endif
#ifdef BUG_LIVE_SLOTS
       kbuf[0] = buf[0]; kbuf[1] = buf[1]; kmom[0] = mom[0]; kmom[1] = mom[1];
#endif
       kept = f; cut = NONE }
  :: atomic { mine != timeline -> goto over }      /* cancelled */
  fi;
over: skip
}

/* A ps is lost: all load the newest checkpoint, in a timeline of its own. */
proctype restore() {
  if
  :: atomic { restores > 0 && IN_ALL != BELOW(S) ->
       restores--; timeline++; cut = NONE; copied[0] = false; copied[1] = false;
       in[0] = BELOW(kept); in[1] = BELOW(kept);
       buf[0] = kbuf[0]; buf[1] = kbuf[1]; mom[0] = kmom[0]; mom[1] = kmom[1];
#ifdef BUG_COUNTER
       count[0] = 0; count[1] = 0;
#else
       count[0] = kept; count[1] = kept;         /* the cut says it */
#endif
       assert(SOUND(buf[0], mom[0], count[0], in[0])); assert(SOUND(buf[1], mom[1], count[1], in[1])) }
  :: atomic { IN_ALL == BELOW(S) || restores == 0 -> skip }
  fi
}

init {
  atomic {
    byte w = 0;
    do :: w < W -> run worker(); w++ :: else -> break od;
    run cuts(); run restore()
  }
  (_nr_pr == 1);
  assert(IN_ALL == BELOW(S))
}
