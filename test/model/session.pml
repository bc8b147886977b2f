/*
 * session.pml: when a holder must be told that its session may be over.
 *
 * A leader, a follower, and one client with a session that a lock depends on. The model
 * asks one question: can the leader end the session before the client's loss clock has
 * told the holder? internal/lossclock is the code; its page gives the protocol facts.
 *
 * Time goes in units. All that is remembered of time is how many units ago something
 * happened (an "age"), so that the states are finite. T, the session timeout, is 12 units;
 * half a tick is 2. Between two units anything may happen in any order, any number of
 * times: faults are not counted.
 *
 *   leader    pings its followers, at least HALF and at most PERIOD units apart. A
 *             follower answers with whom it has heard from: only that keeps the session
 *             alive (Leader.lead, LearnerHandler.ping). It ends the session when it has
 *             not heard of it for T, by a clock that may be ahead by DRIFT.
 *   follower  hears from the client, forwards writes and syncs to the leader, and
 *             answers everything else by itself, also while it is cut off. There is one,
 *             the client's. Another that the client has left can only report it once
 *             more, and so keep the session alive for longer; the model leaves that out.
 *   client    sends contacts (writes, syncs) and pings, reconnects by a handshake that
 *             the leader takes part in (Leader.revalidateSession), and keeps the age of
 *             its best evidence, "good". It tells the holder when good is T - SLACK old.
 *
 * Two numbers belong together. WITHIN is the library's: how far apart two contacts have
 * to be for the second to prove that the first was reported. PERIOD is the server's: how
 * far apart two pings of the leader can be. The library assumes PERIOD < WITHIN.
 *
 * One contact is under way at a time, however many the client has: a piece of evidence is
 * one contact that another one proves, and of two that overlap neither can prove the
 * other. All the others may be left out: they could only keep the session alive for
 * longer. Of the contacts that were answered the model keeps one, any one, for a later
 * one to prove. The code keeps them all, and so do the models that ask whether the holder
 * is told without a reason (CALM). There contacts are sent on time, whether the one
 * before was answered or not, and each is answered within ANSWER.
 *
 *   (nothing)       evidence by contacts and handshakes
 *   PINGS           evidence by the client's pings and handshakes. Busy or idle: only
 *                   while nobody asks for contacts do pings go out in time
 *   PINGS, STILL    and not while the process stands still. That is noticed as it goes on,
 *                   before anything is asked for: those who wait far from their turn, and
 *                   ask for nothing, look at the clock all the time
 *   CALM            without faults, by contacts: is the holder never told? With ANSWER=2,
 *                   answers are slow: two of them, WITHIN and two periods are below DUE
 *
 * Refuters, which must fail: READS, LAST_CONTACT, FROM_DISCONNECT, SLACK=0, PERIOD=4,
 * OVERTAKEN; with PINGS: BUSY_PINGS, STALE_PINGS, IDLE_STALL; with PINGS and STILL: UNNOTICED; with CALM:
 * HELD_EVERY=8, ANSWER=3, ONE_AT_A_TIME. HALF=1, PERIOD=1, WITHIN=2 are a tick of T/6, in the place of T/3; with
 * T=20, of T/10. Of that with PINGS 13 million states were searched, which is not all.
 *
 * Left out, and covered only by the fencing token: what OVERTAKEN, IDLE_STALL and
 * PERIOD=4 show; and a leader without a quorum that still answers syncs, which is to the
 * clock what READS shows. Left out, too: a session of unknown T, a client of the leader
 * itself (which touches the session at once), and a tick that is told wrongly, which is
 * PERIOD=4.
 */

#ifndef T
#define T 12
#endif
#ifndef HALF
#define HALF 2   /* half a tick: the leader's pings are no closer */
#endif
#ifndef PERIOD
#define PERIOD 3 /* ... and no farther apart than this */
#endif
#ifndef WITHIN
#define WITHIN 4 /* what the library takes for the longest period, exclusive */
#endif
#ifndef SLACK
#define SLACK 1  /* the library's allowance for clocks that differ */
#endif
#ifndef DRIFT
#define DRIFT 1  /* by how much they do, in T */
#endif
#ifndef HELD_EVERY
#define HELD_EVERY 1 /* CALM: a contact is sent at least so often */
#endif
#ifndef ANSWER       /* CALM: an answer takes no longer than this */
#ifdef ONE_AT_A_TIME
#define ANSWER 2
#else
#define ANSWER 0
#endif
#endif

#ifdef PINGS
#define ASKED busy
#else
#define ASKED true
#endif

#define PING  (T / 3)     /* the client's pings are no farther apart */
#define DUE   (T - SLACK) /* the age of evidence at which the holder is told */
#define NONE  255

/* What the client does in time, whatever happens. */
#ifdef CALM
#ifdef ONE_AT_A_TIME /* refuter: a contact waits until the one before was answered */
#define ASKED_ON_TIME (asked < HELD_EVERY || under > 0)
#define MAY_ASK (under == 0)
#else
#define ASKED_ON_TIME (asked < HELD_EVERY)
#define MAY_ASK (under < KEPT)
#endif
#define ON_TIME (ASKED_ON_TIME && (under == 0 || way[0] < ANSWER) && PINGS_ON_TIME)
#else
#define ON_TIME PINGS_ON_TIME
#endif
#ifndef PINGS
#define PINGS_ON_TIME true
#else
#ifdef IDLE_STALL /* refuter: the pings of an idle client can be stalled as well */
#define PINGS_ON_TIME (!connected || stalled || ping < PING)
#define RESUMES true
#else
#define PINGS_ON_TIME (!connected || IS_STILL || (stalled && (busy || owed && stopped < PING)) || \
	ping < PING)
#define RESUMES (!IS_STILL && \
	(!connected || (stalled && owed && stopped < PING) || ping <= PING))
#endif
#endif

#ifdef STILL
#define IS_STILL still
bool still = false; /* the process stands still, while nobody asks for contacts */
#else
#define IS_STILL false
#endif

/* The leader. */
byte touched = 0; /* age: it last heard of the session */
byte pinged = 0;  /* age: it last pinged its followers */

/* The client's follower. */
bool linked = true;  /* in touch with the leader */
bool heard = false;  /* from the client, since the last report */
#ifdef OVERTAKEN
bool report = false; /* one is on its way to the leader */
#endif

/* The network between the two. */
bool connected = true;
bool stalled = false; /* nothing gets through, in either direction */

/* A contact on its way: 1 sent, 2 at the follower, 3 judged by the leader. */
byte stage = 0;
byte sent = 0;

/* The client's loss clock. */
byte good = 0;     /* age of the best evidence; at first a handshake's */
bool told = false; /* the holder was told */

#ifdef CALM
#define KEPT 12
byte kept = 0;             /* the contacts that are remembered, the oldest first */
byte wasSent[KEPT], wasAnswered[KEPT];
byte asked = 0;            /* age: a contact was last sent */
byte under = 0, way[KEPT]; /* the contacts under way, the oldest first: ages */
#else
byte candSent = NONE;      /* ages: a contact that a later one may prove */
byte candAnswered = NONE;
#endif

#ifdef PINGS
/* Ages stop growing where they cannot matter any more: a ping is of use only if it was
 * sent less than DUE ago, and so the contact that proves it less than FRESH. */
#define FRESH (DUE - PING - WITHIN)
byte ping = 0;           /* age: the client's last ping */
bool busy = false;       /* contacts are asked for */
bool owed = false;       /* a ping that was due while they were is held up still */
byte stopped = DUE;      /* age: since when they are not; busy: 0 */
byte idle = DUE;         /* ages: from when until when they were not, the last time */
byte resumed = NONE;     /* NONE: that is too long ago to be of use, or now */
#endif

inline older(age, limit) {
	if
	:: age < limit -> age++
	:: else
	fi
}

/* The client loses its connection, and what was under way with it. Its next server is in
 * touch with the leader: one that is not drops its clients, sooner or later. */
inline drop() {
	connected = false; stalled = false; linked = true; heard = false;
	stage = 0; sent = 0;
#ifdef OVERTAKEN
	report = false;
#endif
#ifdef PINGS
	ping = 0; owed = false;
#endif
}

inline evidence(age) {
	if
	:: age < good -> good = age
	:: else
	fi
}

#ifdef PINGS
/* flow.pinged: the last ping that was due in an idle time and WITHIN before the contact
 * is proved by it. */
inline provePing() {
	i = sent + WITHIN;
#ifndef BUSY_PINGS /* refuter */
	if
	:: i < resumed -> i = resumed
	:: else
	fi;
#endif
	if
#ifndef STALE_PINGS /* refuter */
	:: i + PING > idle
#endif
	:: else -> evidence(i + PING)
	fi;
	i = 0
}

/* flow.ask: what is shorter than WITHIN was no idle time. */
inline ask() {
	if
	:: stopped >= WITHIN -> idle = stopped; resumed = 0
	:: else
	fi;
	busy = true; owed = false; stopped = 0
}
#endif

#ifdef CALM
/* Clock.Note: all contacts are kept that are a unit apart, and no proof is missed. */
inline proveContact() {
	if
	:: kept == 0 || wasSent[kept - 1] > sent ->
		assert(kept < KEPT);
		wasSent[kept] = sent; wasAnswered[kept] = 0; kept++
	:: else
	fi;
	do
	:: kept > 1 && wasAnswered[1] >= sent + WITHIN ->
		i = 0;
		do
		:: i + 1 < kept ->
			wasSent[i] = wasSent[i + 1]; wasAnswered[i] = wasAnswered[i + 1]; i++
		:: else -> break
		od;
		kept--; wasSent[kept] = 0; wasAnswered[kept] = 0; i = 0
	:: else -> break
	od;
	if
	:: wasAnswered[0] >= sent + WITHIN -> evidence(wasSent[0])
	:: else
	fi
}
#else
inline proveContact() {
	if
	:: candSent != NONE && candAnswered >= sent + WITHIN ->
		evidence(candSent); candSent = sent; candAnswered = 0
	:: candSent == NONE -> candSent = sent; candAnswered = 0
	:: else
	fi
}
#endif

/* An answered contact proves what came before it. */
#ifdef CALM
inline arrive() {
	i = 1;
	do
	:: i < under -> way[i - 1] = way[i]; i++
	:: else -> break
	od;
	under--; way[under] = 0; i = 0
}
#endif

inline answer() {
#ifdef LAST_CONTACT /* refuter: the last contact counts, reported or not */
	evidence(sent);
#endif
#ifdef PINGS
	provePing();
#else
	proveContact();
#endif
	stage = 0; sent = 0
}

/* One unit of time goes by, and the clock tells the holder if that is due. */
inline pass() {
	touched++; pinged++;
	older(good, DUE);
#ifdef PINGS
	if
	:: stage > 0 -> older(sent, FRESH)
	:: else
	fi;
	if
	:: connected -> older(ping, PING + 1)
	:: else
	fi;
	if
	:: !busy -> older(stopped, DUE)
	:: else
	fi;
	if
	:: resumed != NONE && resumed + PING < DUE -> resumed++; older(idle, DUE)
	:: else -> resumed = NONE; idle = DUE
	fi;
#else
	if
	:: stage > 0 -> older(sent, DUE)
	:: else
	fi;
#ifdef CALM
	i = 0;
	do
	:: i < under -> way[i]++; i++
	:: else -> break
	od;
	i = 0;
	do
	:: i < kept -> wasSent[i]++; wasAnswered[i]++; i++
	:: else -> break
	od;
	i = 0;
#else
	if
	:: candSent != NONE && candSent < DUE -> candSent++; candAnswered++
	:: candSent != NONE && candSent >= DUE -> candSent = NONE; candAnswered = NONE
	:: else
	fi;
#endif
#endif
#ifdef CALM
	asked++;
#endif
#ifdef FROM_DISCONNECT /* refuter: the loss is timed from when the disconnect was noticed */
	if
	:: connected -> good = 0
	:: else
	fi;
#endif
	told = told || good >= DUE
}

active proctype world() {
	byte i;
end:
	do
	/* --- time --- */
	:: d_step { !told && pinged < PERIOD && touched < T - DRIFT && ON_TIME -> pass() }
	:: told -> break /* what follows is the holder's business */

	/* --- the leader --- */
	:: d_step { !told && pinged >= HALF ->
		pinged = 0;
#ifdef OVERTAKEN /* refuter: a contact can overtake a report that is on its way */
		if
		:: linked && heard -> heard = false; report = true
		:: else
		fi }
	:: d_step { !told && report -> report = false; touched = 0 }
#else
		if
		:: linked && heard -> heard = false; touched = 0
		:: else
		fi }
#endif
	:: !told && touched >= T - DRIFT -> assert(false) /* it ends the session */

	/* --- contacts --- */
#ifdef CALM
	:: d_step { !told && MAY_ASK && (asked > 0 || kept == 0) ->
		way[under] = 0; under++; asked = 0 }
	:: d_step { !told && under > 0 -> heard = true; sent = way[0]; arrive(); answer() }
#else
	:: d_step { !told && stage == 0 && connected && ASKED -> stage = 1; sent = 0 }
	:: d_step { !told && stage == 1 && !stalled -> stage = 2; heard = true }
#ifdef READS /* refuter: what a follower answers by itself is a contact */
	:: d_step { !told && stage == 2 -> stage = 3 }
#else
	:: d_step { !told && stage == 2 && linked -> stage = 3 }
#endif
	:: d_step { !told && stage == 3 && !stalled -> answer() }
#endif

	/* --- the client's pings: none is answered by the leader --- */
#ifdef PINGS
	:: d_step { !told && connected && !stalled -> heard = true; ping = 0 }
	:: d_step { !told && busy -> busy = false; owed = stalled && ping >= PING }
	:: d_step { !told && !busy && RESUMES -> ask() }
#endif

#ifdef CALM
	:: told -> assert(false)
#else
#ifndef PINGS /* any contact may be the one that a later one proves */
	:: d_step { !told && candSent != NONE -> candSent = NONE; candAnswered = NONE }
#endif
	/* --- faults --- */
	:: d_step { !told && connected -> drop() } /* also: the follower dies, or restarts */
	:: d_step { !told && connected && !stalled -> stalled = true }
	:: d_step { !told && stalled && !IS_STILL -> stalled = false
#ifdef PINGS /* the ping that was due goes out first */
		; if
		:: ping >= PING -> heard = true; ping = 0; owed = false
		:: else
		fi
#endif
		}
#ifdef STILL
	:: d_step { !told && connected && !stalled && !busy -> stalled = true; still = true }
	:: d_step { !told && still -> still = false; stalled = false
#ifndef UNNOTICED /* refuter: it goes on as if nothing had happened */
		; stopped = 0 /* flow.interrupt */
#endif
		; if
		:: connected && ping >= PING -> heard = true; ping = 0
		:: else
		fi
		}
#endif
	:: d_step { !told && connected && linked -> linked = false }
	/* A new leader gives every session its whole time; all servers drop their clients. */
	:: d_step { !told -> drop(); touched = 0; pinged = 0 }
	/* A handshake that began up to a unit ago: the leader hears of the session. */
	:: d_step { !told && !connected -> connected = true; touched = 0; evidence(1) }
#endif
	od
}
