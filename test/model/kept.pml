/*
 * kept.pml: a queue entry that one process keeps for several owners (WithCaching).
 *
 * Owners of one process use one znode after the other, without a request, while a
 * stranger may join behind it. internal/lockcache is the code. Checked: the stranger and
 * a user never hold at the same time; once the process knows that he waits, it hands over
 * PASSES times at the most; and he gets the lock, also where the entry is idle. Then no
 * step can be taken any more, and he must have had all his turns.
 *
 * A loss clock runs out before the servers end the session: that is session.pml. The
 * queue has these two entries only: for longer ones see queue.pml. Left out: entries of
 * readers, who use it together, a maximum of time, and the timer of an idle entry.
 */

#ifndef PASSES
#define PASSES 2
#endif
#ifndef WANTS
#define WANTS 6 /* how often owners of the process want the lock */
#endif
#ifndef TURNS
#define TURNS 2 /* how often the stranger does */
#endif
#ifndef FAULTS
#define FAULTS 2
#endif

#define NONE    0
#define WAITING 1
#define HELD    2
#define GIVEN   3 /* given up: it is to be deleted */

byte entry = NONE, wants = WANTS, turns = TURNS, faults = 0, passes = 0;
bool znode = false;     /* the entry's is in the directory */
bool used = false, fresh = false;
bool contended = false; /* the process knows that somebody waits behind */
bool lapsed = false;    /* the entry's loss clock ran out */
bool joined = false, before = false, holds = false; /* the stranger; ahead of the entry */

#ifdef NO_BOUND /* refuter: passes without bound while another process waits */
#define MAY_PASS true
#else
#define MAY_PASS (!contended || fresh || passes < PASSES)
#endif
#ifdef IDLE_KEPT /* refuter: an idle entry is kept when a znode joins behind */
#define MUST_GO (contended && passes >= PASSES)
#else
#define MUST_GO (contended && (passes >= PASSES || wants == 0))
#endif
#ifdef USED_AFTER_LOSS /* refuter: a kept place is used after its loss clock ran out */
#define USABLE true
#else
#define USABLE (!lapsed)
#endif

active proctype world() {
end:
	do
	/* --- the process --- */
	:: d_step { entry == NONE && wants > 0 && !znode ->
		entry = WAITING; znode = true; before = joined; lapsed = false }
	:: d_step { entry == WAITING && !(joined && before) ->
		entry = HELD; fresh = true; passes = 0; contended = false }
	:: d_step { entry == HELD && joined && !contended -> contended = true }
	:: d_step { entry == HELD && !used && wants > 0 && USABLE && MAY_PASS ->
		assert(!holds); used = true; wants--;
		if
		:: contended && !fresh -> passes++
		:: else
		fi;
		assert(passes <= PASSES); fresh = false }
	:: d_step { used -> used = false }
	:: d_step { entry == HELD && !used && !fresh && MUST_GO -> entry = GIVEN }
	:: d_step { entry == GIVEN -> znode = false; entry = NONE; passes = 0; contended = false }

	/* --- silence: the clock runs out, users are told; and the session may end --- */
	:: d_step { entry == HELD && !lapsed && faults < FAULTS ->
		faults++; lapsed = true; used = false }
	:: d_step { lapsed && znode -> znode = false }
	:: d_step { lapsed && !znode && entry == HELD && !used && !USABLE ->
		entry = NONE; fresh = false; passes = 0; contended = false; lapsed = false }

	/* --- the stranger --- */
	:: d_step { !joined && turns > 0 -> joined = true; before = !znode; turns-- }
	:: d_step { joined && !holds && (before || !znode) -> holds = true; assert(!used) }
	:: d_step { holds -> holds = false; joined = false; before = false }

	:: timeout -> assert(turns == 0 && !joined && wants == 0); break
	od
}
