/*
 * queue.pml: whose turn it is in a queue of ephemeral sequential znodes.
 *
 * Two owners, 0 and 1, share connection A; owner 2 is a stranger with a connection of his
 * own. All want one lock. The model asks whether A's owners, who mostly decide without a
 * list, are ever granted the lock wrongly, never granted it, or leave a znode behind.
 * internal/seqnode is the code, internal/znode the life of one znode; their pages give
 * the reasons.
 *
 *   server   one tree, which changes in one order. A request is executed at any time and
 *            in any order, also a list before the create that it was sent behind. Answers
 *            and events come to A in one order (LATE_EVENTS: events at any time).
 *   outage   A's answers and requests are lost; a create may be done or not. The events
 *            come afterwards, in any order.
 *   session  A's can end, once its holders are told: that is session.pml. Its znodes go
 *            any time after that.
 *   operator deletes somebody's znode, or the directory when it is empty. Then numbers
 *            begin at one again.
 *   stranger asks for a list whenever anything changes, so he decides by the tree itself.
 *
 * Checked at each grant:
 *   - Nobody else holds the lock who was not told of his loss. Whose znode the operator
 *     deleted is excused: others may be faster than the event.
 *   - There was a moment at which the owner's znode was there and nobody ahead, but for
 *     members of A who had handed over. A grant by number, or by a member of A that has
 *     left, can come before the event that the operator has deleted the znode.
 *   - The fencing token is greater than all before.
 * Checked at the end, when nothing can happen any more: every owner has had the lock, has
 * lost it or has given up, and no znode is left. The model has no cycle (a check of its
 * own), so it always comes to an end.
 *
 * Bounds: each owner has one turn, unless ROUNDS says more; FAULTS counts outages, the
 * session's end and what the operator does; CANCELS those who give up.
 *
 * Left out: servers that lag behind the leader, so a list needs no sync; readers and
 * writers; several reads in the place of a list; the margin of a hold; transactions that
 * go on under a znode after its hold; a kept lock (kept.pml).
 */

#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef CANCELS
#define CANCELS 1
#endif
#ifndef ROUNDS0
#define ROUNDS0 1 /* how often owner 0 wants the lock */
#endif
#ifndef ROUNDS1
#define ROUNDS1 1
#endif
#ifndef ROUNDS2
#define ROUNDS2 1
#endif

/* What a trace shows: internal/acceptor writes some as models that include this one, and
 * come to their end only if the trace is one of this model's. */
#define CREATE 1 /* at the server */
#define REMOVE 2
#define LIST   3
#define OWN    4 /* the own znode is read */
#define HOLD   5 /* by the owner */
#define LEAVE  6
#define TOLD   7
#define MEDDLE 8 /* the operator deletes a znode */
#ifndef TRACE
#define SEEN(what, who) skip
#define AS_SEEN
#endif

#define NOBODY 9
#define ORPHAN 3 /* the place of a znode that a create of unknown outcome made */

/* An owner's states. */
#define IDLE     0
#define CREATING 1 /* a create is under way */
#define SEARCH   2 /* its outcome is unknown */
#define WAITING  3
#define GRANTED  4 /* only the token is not known yet */
#define HELD     5
#define ENDING   6 /* left or lost: the znode is to be deleted */
#define DONE     7

/* The tree: the znode of each owner, and an orphan. */
byte seq[4];  /* its number; 0: it is not there */
byte id[4];   /* its czxid; the names are unique as well */
bit old[4];   /* of a session that has ended */
byte directory = 1, next = 1, zxid = 1; /* czxid; the next number; the last create's */
byte orphanOf = NOBODY;

/* Watches of A's that are pending at the server. */
bit watchOwn[2], watchDirectory;
byte watchAhead[2] = NOBODY;

/* Requests of A's, sent and not executed yet; and answers and events on their way. */
bit asksCreate[2], asksDelete[2], asksList;
bit asksOrphan; /* to be deleted */
mtype = { Created, Own, NoOwn, There, NotThere, Deleted, Listed, Directory,
          OwnGone, AheadGone, DirectoryGone };
chan answers = [10] of { mtype, byte, byte, byte }; /* ..., of whom, name, number */
bit lateOwn[2], lateAhead[2], lateDirectory; /* events that come in any order */
bit connected = 1;
byte faults = 0, cancels = 0;

/* What A knows. */
byte st[3], rounds[3];
byte number[2], mine[2], token[2]; /* of the own znode: number, name, fencing token */
bit confirmed[2];  /* the own znode was read, and the watch is pending */
bit orphans[2];    /* an earlier create had an unknown outcome */
bit doubted[2];    /* no list from before counts */
bit first[2], handed[2], abandoned[2];
byte went[2];      /* the name of the last znode that was deleted */
byte mark = 0, markToken = 0;      /* everybody up to that number has gone */
byte born = 0;                     /* the directory's czxid, watched */
byte ahead[2] = NOBODY, aheadId[2];/* who is waited for by a watch */
bit waits[2];                      /* ... which was asked for */
bit stopping[2];                   /* the hold was lost of silence; the owner goes on */
bit tried;                         /* born was asked for */
/* The last list, for each of A's: whether it shows him; the other member, if he is ahead;
 * who else is nearest ahead; whether there is more; and the token, if nobody is behind.
 * altered: somebody has gone since. passed: it was asked for after the other member left. */
byte shows[2], partner[2], blocker[2] = NOBODY, blockerId[2], lastToken[2];
bit more[2], altered[2], passed[2];
byte sShows[2], sPartner[2], sBlocker[2] = NOBODY, sBlockerId[2], sToken[2]; /* on its way */
bit behind[2];                     /* it was sent behind the create */
bit sMore[2], sPassed[2], listing, serves[2], sOrphan;

/* For the checks. */
bit turn[2];     /* there was a moment at which it was its turn */
bit holds[3];    /* and was not told of a loss */
bit past[4];     /* its owner left by himself: its znode excludes nobody */
bit deleted[4];  /* by the operator */
byte tokens = 0; /* the greatest so far */

byte i, j, b;
mtype m;

#define other(p) (1 - (p))
#define living(p) (st[p] >= WAITING && st[p] <= HELD)

#ifdef LATE_EVENTS
#define INORDER 0
#else
#define INORDER 1
#endif
#if defined(LATE_EVENTS) && !defined(TRUSTS_EVENTS) /* refuter: trusts late events */
#define PROVES 0 /* a watch that has not fired proves nothing */
#else
#define PROVES 1
#endif

/* Takes note of those of A whose turn it is by the tree. */
inline turns() {
	i = 0;
	do
	:: i < 2 ->
		if
		:: seq[i] && !turn[i] && !old[i] ->
			turn[i] = 1; j = 0;
			do
			:: j < 4 ->
				if
				:: j != i && seq[j] && seq[j] < seq[i] && !past[j] -> turn[i] = 0
				:: else
				fi;
				j++
			:: else -> break
			od
		:: else
		fi;
		i++
	:: else -> break
	od; i = 0; j = 0
}

inline remove(s) {
	SEEN(REMOVE, s);
	b = id[s]; seq[s] = 0; id[s] = 0; old[s] = 0; past[s] = 0;
	i = 0;
	do
	:: i < 2 ->
		if
		:: s == i && watchOwn[i] ->
			watchOwn[i] = 0;
			if
			:: connected && INORDER -> answers!OwnGone(i, b, 0)
			:: else -> lateOwn[i] = 1
			fi
		:: else
		fi;
		if
		:: watchAhead[i] == s ->
			watchAhead[i] = NOBODY;
			if
			:: connected && INORDER -> answers!AheadGone(i, b, 0)
			:: else -> lateAhead[i] = 1
			fi
		:: else
		fi;
		i++
	:: else -> break
	od;
	b = 0;
	turns()
}

inline create(p) {
	SEEN(CREATE, p);
	if
	:: directory == 0 -> zxid++; directory = zxid; next = 1
	:: else
	fi;
	zxid++; seq[p] = next; id[p] = zxid; next++; past[p] = 0; deleted[p] = 0;
	if
	:: p < 2 -> turn[p] = 0
	:: else
	fi;
	turns()
}

inline forgetList(p) {
	shows[p] = 0; partner[p] = 0; blocker[p] = NOBODY; blockerId[p] = 0; lastToken[p] = 0;
	more[p] = 0; altered[p] = 0; passed[p] = 0
}

inline forgetWay(p) {
	ahead[p] = NOBODY; aheadId[p] = 0; waits[p] = 0; watchAhead[p] = NOBODY;
	lateAhead[p] = 0
}

/* Only a list that is asked for after this counts. */
inline doubt(p) { doubted[p] = 1; serves[p] = 0; forgetWay(p); forgetList(p) }

/* The stay is over; the owner comes back if he still wants the lock. */
inline over(p) {
	number[p] = 0; mine[p] = 0; token[p] = 0; confirmed[p] = 0; orphans[p] = 0;
	doubted[p] = 0; first[p] = 0; handed[p] = 0; abandoned[p] = 0; serves[p] = 0;
	watchOwn[p] = 0; lateOwn[p] = 0; asksDelete[p] = 0; asksCreate[p] = 0;
	forgetWay(p); forgetList(p);
	if
	:: rounds[p] > 0 -> st[p] = IDLE
	:: else -> st[p] = DONE
	fi
}

inline handOver(p) {
	handed[p] = 1;
	if
	:: seq[p] && id[p] == mine[p] -> past[p] = 1; turns()
	:: else
	fi
}

inline raise(p) { mark = number[p]; markToken = token[p] }

/* His znode is gone, or cannot be relied on. A waiter rejoins, a holder is told. */
inline lose(p) {
	confirmed[p] = 0; forgetWay(p);
	if
	:: st[p] == HELD -> SEEN(TOLD, p); holds[p] = 0; st[p] = ENDING; asksDelete[p] = connected
	:: st[p] == WAITING || st[p] == GRANTED -> handOver(p); st[p] = ENDING; asksDelete[p] = connected
	:: else
	fi
}

/* The owner leaves by himself, whether he has waited or held. */
inline leave(p) {
	if
	:: st[p] == HELD -> SEEN(LEAVE, p)
	:: else
	fi;
	handOver(p);
	if
#ifdef GAVE_UP_HANDS_OVER /* refuter: a neighbour that gave up hands the lock over */
	:: true -> raise(p)
#else
	:: st[p] == HELD && first[p] -> raise(p)
	:: else
#endif
	fi;
	holds[p] = 0; confirmed[p] = 0; forgetWay(p); st[p] = ENDING; asksDelete[p] = connected
}

inline hold(p) {
	SEEN(HOLD, p);
	i = 0;
	do
	:: i < 3 -> assert(i == p || !holds[i] || deleted[i] || deleted[p]); i++
	:: else -> break
	od; i = 0;
	b = (p == 2 -> id[2] : token[p % 2]);
	assert(b > tokens || deleted[p]);
	if
	:: b > tokens -> tokens = b
	:: else
	fi;
	b = 0; holds[p] = 1; st[p] = HELD; rounds[p]--
}

/* It is the owner's turn. proven: his znode was there then. */
inline grant(p, proven) {
	assert(turn[p] || (!proven && deleted[p]));
	forgetWay(p); first[p] = 1;
	if
	:: token[p] -> hold(p)
	:: else -> st[p] = GRANTED
	fi
}

inline learn(p, t) {
	if
	:: token[p] == 0 ->
		token[p] = t;
		if
		:: st[p] == GRANTED -> hold(p)
		:: else
		fi
	:: else
	fi
}

/* --- The sources of a decision, the cheapest first. --- */

/* The neighbour: another of A's that has to go first. */
#define byNeighbour(p) (!orphans[p] && living(other(p)) && mine[other(p)] < mine[p])

/* The number: all up to the mark have gone, and nobody but members who have handed over
 * is between that and the owner, in the directory that is there now. */
#ifdef FORMER_DIRECTORY /* refuter: the numbers of a former directory count */
#define ofDirectory(t) true
#else
#define ofDirectory(t) (born != 0 && (t) >= born)
#endif
#ifdef OVERLOOKS_BETWEEN /* refuter: who came between two of a process is overlooked */
#define noneBetween(p) (number[p] > mark)
#else
#define noneBetween(p) (number[p] == mark + 1 || (number[p] == mark + 2 && \
	number[other(p)] == mark + 1 && handed[other(p)] && ofDirectory(token[other(p)])))
#endif
#define byNumber(p) (PROVES && mark != 0 && !orphans[p] && noneBetween(p) && \
	ofDirectory(markToken) && ofDirectory(token[p]) && token[p] != 0)

/* The last list, if it shows the owner; and what has happened since, if his znode is
 * known to have been there. */
#define shown(p) (mine[p] != 0 && shows[p] == mine[p] && !doubted[p])
#ifdef UNCONFIRMED /* refuter: the own znode is not looked after */
#define intact(p) true
#else
#define intact(p) (confirmed[p] && PROVES)
#endif
#define isPartner(p) (partner[p] != 0 && mine[other(p)] == partner[p])
#define isStranger(p) (partner[p] != 0 && !isPartner(p) && partner[p] != went[other(p)])
#define clear(p) (shown(p) && blocker[p] == NOBODY && !isStranger(p) && \
	!(isPartner(p) && !handed[other(p)]))
#define asListed(p) (!altered[p] && (partner[p] == 0 || (isPartner(p) && passed[p])))

#ifdef FOUND_IN_ANY_SESSION /* refuter: a znode of another session is taken over */
#define SAME_SESSION true
#else
#define SAME_SESSION !old[p]
#endif
#ifdef NO_WITHDRAW /* refuter: a create that nobody waits for any more leaves its znode */
#define WITHDRAWN true
#else
#define WITHDRAWN false
#endif

#define BUSY (st[0] != DONE || st[1] != DONE)

bit gone[2]; /* a delete was executed, and its answer is on its way */

bit reading[2];
#ifdef OVERTAKEN
bit early[2];
#endif

#ifdef KEEPS_ORPHAN /* refuter: an orphan is left where it is */
#define DISCARDS false
#else
#define DISCARDS true
#endif

inline readOwn(p) {
	SEEN(OWN, p);
	if
	:: seq[p] && id[p] == mine[p] -> watchOwn[p] = 1; answers!Own(p, mine[p], 0)
	:: else -> answers!NoOwn(p, mine[p], 0)
	fi
}
inline readAhead(p) {
	if
	:: seq[ahead[p]] && id[ahead[p]] == aheadId[p] -> watchAhead[p] = ahead[p]
	:: else -> answers!AheadGone(p, aheadId[p], 0)
	fi
}

inline erase(p) {
	if
	:: seq[p] && id[p] == mine[p] -> remove(p)
	:: else
	fi;
	if
	:: orphanOf == p && orphans[p] -> remove(ORPHAN); orphanOf = NOBODY
	:: else
	fi;
	answers!Deleted(p, mine[p], 0); gone[p] = 1
}

/* The other's znode is an orphan now; so it is for whoever waits for it. */
inline moved(o, name) {
	if
	:: partner[o] == name ->
		partner[o] = 0; more[o] = (blocker[o] != NOBODY);
		if
		:: blocker[o] == NOBODY -> blocker[o] = ORPHAN; blockerId[o] = name
		:: else
		fi
	:: else
	fi;
	if
	:: sPartner[o] == name ->
		sPartner[o] = 0; sMore[o] = (sBlocker[o] != NOBODY);
		if
		:: sBlocker[o] == NOBODY -> sBlocker[o] = ORPHAN; sBlockerId[o] = name
		:: else
		fi
	:: else
	fi;
	if
	:: watchAhead[o] != NOBODY && aheadId[o] == name -> watchAhead[o] = ORPHAN
	:: else
	fi;
	if
	:: aheadId[o] == name -> ahead[o] = ORPHAN
	:: else
	fi
}

#ifdef NO_MARGIN /* refuter: the znode of a hold goes before its margin is over */
#define STAYS false
#else
#define STAYS stopping[p]
#endif

proctype owner(byte p) AS_SEEN {
end:
	do
	/* --- joining --- */
	:: d_step { st[p] == IDLE && connected && seq[p] == 0 -> st[p] = CREATING; asksCreate[p] = 1 }
	:: d_step { st[p] == SEARCH && connected && seq[p] && SAME_SESSION ->
		st[p] = WAITING; mine[p] = id[p]; number[p] = seq[p]; orphans[p] = 1; doubted[p] = 1;
		if
		:: abandoned[p] -> leave(p)
		:: else
		fi }
	/* The look-up can miss it: then it will turn up beside the next one. */
	:: d_step { st[p] == SEARCH && connected && seq[p] && !old[p] && !abandoned[p] &&
			orphanOf == NOBODY ->
		seq[ORPHAN] = seq[p]; id[ORPHAN] = id[p]; orphanOf = p; seq[p] = 0; id[p] = 0;
		turn[p] = 0; st[p] = CREATING; asksCreate[p] = 1; orphans[p] = 1; doubted[p] = 1;
		moved(other(p), id[ORPHAN]) }
	:: d_step { st[p] == SEARCH && connected && seq[p] == 0 ->
		if
		:: abandoned[p] -> asksOrphan = asksOrphan || orphanOf == p; over(p)
		:: else -> st[p] = CREATING; asksCreate[p] = 1; orphans[p] = 1; doubted[p] = 1
		fi }
	:: d_step { st[p] == CREATING && abandoned[p] && WITHDRAWN -> st[p] = DONE }

	/* --- deciding --- */
	:: d_step { st[p] == WAITING && !byNeighbour(p) && byNumber(p) -> grant(p, false) }
	:: d_step { st[p] == WAITING && !byNeighbour(p) && !byNumber(p) && clear(p) ->
		if
		:: intact(p) || asListed(p) -> grant(p, !isPartner(p) || passed[p])
		:: else -> doubt(p)
		fi }
	:: d_step { st[p] == WAITING && !byNeighbour(p) && !byNumber(p) && shown(p) &&
			blocker[p] != NOBODY && !waits[p] && connected ->
		ahead[p] = blocker[p]; aheadId[p] = blockerId[p]; waits[p] = 1; readAhead(p) }
	:: d_step { st[p] == WAITING && !byNeighbour(p) && !byNumber(p) && shown(p) &&
			isStranger(p) && !waits[p] && connected -> /* its create has no answer yet */
		ahead[p] = other(p); aheadId[p] = partner[p]; waits[p] = 1; readAhead(p) }

	/* --- asking: for a list, also behind the create; for the own znode; the directory --- */
	:: d_step { ((st[p] == CREATING && asksCreate[p] && !behind[p]) || (st[p] == WAITING && !byNeighbour(p) &&
			!byNumber(p) && !shown(p))) && connected && !listing ->
		listing = 1; asksList = 1; behind[p] = (st[p] == CREATING);
		serves[0] = (st[0] == WAITING); serves[1] = (st[1] == WAITING);
		sPassed[0] = handed[1]; sPassed[1] = handed[0] }
	:: d_step { living(p) && (waits[p] || byNeighbour(p) || st[p] != WAITING || mark || doubted[p]) &&
			!confirmed[p] && !reading[p] && connected ->
		reading[p] = 1; readOwn(p) }
	:: d_step { st[p] == WAITING && mark && !born && !tried && connected ->
		tried = 1; watchDirectory = 1; answers!Directory(0, directory, 0) }

	/* --- leaving --- */
	:: d_step { st[p] == HELD -> leave(p) }
	:: d_step { st[p] == ENDING && !asksDelete[p] && connected && !STAYS -> asksDelete[p] = 1 }
	/* Silence: the loss clock ends the hold. Its owner has a margin, and then has stopped. */
	:: d_step { st[p] == HELD && faults < FAULTS ->
		SEEN(TOLD, p); faults++; st[p] = ENDING; stopping[p] = 1; confirmed[p] = 0
#ifdef LOST_HANDS_OVER /* refuter: who has lost the lock hands it over */
		; handOver(p);
		if
		:: first[p] -> raise(p)
		:: else
		fi
#endif
		}
	:: d_step { stopping[p] -> stopping[p] = 0; holds[p] = 0 }
	:: d_step { st[p] >= CREATING && st[p] <= WAITING && !abandoned[p] && cancels < CANCELS ->
		cancels++; rounds[p]--;
		if
		:: st[p] == WAITING -> leave(p)
		:: else -> abandoned[p] = 1
		fi }
	od
}

/* What a list tells one of A's; executed at the server. */
inline look(p) {
	sShows[p] = id[p]; sPartner[p] = 0; sBlocker[p] = NOBODY; sBlockerId[p] = 0; sMore[p] = 0;
	sToken[p] = 0;
	if
	:: seq[p] ->
		sToken[p] = zxid;
#ifndef ANY_TOKEN /* refuter: a token from a list in which others stand behind */
		j = 0;
		do
		:: j < 4 ->
			if
			:: seq[j] > seq[p] -> sToken[p] = 0
			:: else
			fi;
			j++
		:: else -> break
		od;
#endif
		if
		:: seq[other(p)] && seq[other(p)] < seq[p] -> sPartner[p] = id[other(p)]
		:: else
		fi;
		j = 2;
		do
		:: j < 4 ->
			if
			:: seq[j] && seq[j] < seq[p] && sBlocker[p] == NOBODY ->
				sBlocker[p] = j; sBlockerId[p] = id[j]
			:: seq[j] && seq[j] < seq[p] && sBlocker[p] != NOBODY -> sMore[p] = 1
			:: else
			fi;
			j++
		:: else -> break
		od; j = 0
	:: else
	fi
}

/* The server executes what A has asked for. */
proctype server() AS_SEEN {
end:
	do
	:: d_step { asksCreate[0] && !seq[0] -> asksCreate[0] = 0; create(0); answers!Created(0, id[0], seq[0]) }
	:: d_step { asksCreate[1] && !seq[1] -> asksCreate[1] = 0; create(1); answers!Created(1, id[1], seq[1]) }
	:: d_step { asksList -> SEEN(LIST, 0); asksList = 0; look(0); look(1); sOrphan = (seq[ORPHAN] != 0);
		answers!Listed(0, 0, 0) }
	:: d_step { asksDelete[0] == 1 && st[0] == ENDING && !gone[0] -> erase(0) }
	:: d_step { asksDelete[1] == 1 && st[1] == ENDING && !gone[1] -> erase(1) }
	:: d_step { asksOrphan -> asksOrphan = 0;
		if
		:: seq[ORPHAN] -> remove(ORPHAN); orphanOf = NOBODY
		:: else
		fi }
	/* The znodes of a session that has ended. */
	:: d_step { old[0] -> remove(0) }
	:: d_step { old[1] -> remove(1) }
	:: d_step { old[ORPHAN] -> remove(ORPHAN); orphanOf = NOBODY }
	od
}
/* The blocker has gone. */
inline goneAhead(p) {
	if
	:: !waits[p] || st[p] != WAITING
	:: else ->
		if
		:: intact(p) && ahead[p] == other(p) -> partner[p] = 0; altered[p] = 1; forgetWay(p)
		:: intact(p) && ahead[p] != other(p) && !more[p] ->
			blocker[p] = NOBODY; blockerId[p] = 0; altered[p] = 1; forgetWay(p)
		:: else -> doubt(p)
		fi
	fi
}

inline listed(p) {
	if
	:: st[p] == WAITING && serves[p] && sShows[p] != mine[p] -> lose(p)
#ifdef OVERTAKEN
	:: st[p] == CREATING && !sShows[p] -> early[p] = 1
#endif
	:: (st[p] == WAITING && sShows[p] == mine[p] && (serves[p] || !doubted[p])) ||
			(st[p] == CREATING && !orphans[p] && sShows[p]) ->
		if
		:: st[p] == WAITING -> 
			doubted[p] = 0;
			if
			:: sToken[p] -> learn(p, sToken[p])
			:: else
			fi;
			if
			:: orphans[p] && sOrphan && orphanOf == p && DISCARDS -> asksOrphan = 1
			:: else
			fi;
			orphans[p] = 0
		:: else
		fi;
		forgetWay(p);
		shows[p] = sShows[p]; partner[p] = sPartner[p]; blocker[p] = sBlocker[p];
		blockerId[p] = sBlockerId[p]; lastToken[p] = sToken[p]; more[p] = sMore[p];
		altered[p] = 0; passed[p] = sPassed[p]
	:: else
	fi;
	serves[p] = 0; sShows[p] = 0; sPartner[p] = 0; sBlocker[p] = NOBODY; sBlockerId[p] = 0;
	sToken[p] = 0; sMore[p] = 0; sPassed[p] = 0
}
/* A takes answers and events as they come. */
proctype connection() AS_SEEN {
	byte p, x, n;
end:
	do
	:: d_step { connected && nempty(answers) -> answers?m(p, x, n);
		if
		:: m == Created && st[p] == CREATING ->
			st[p] = WAITING; mine[p] = x; number[p] = n; behind[p] = 0;
			if
			:: shown(p) && lastToken[p] -> learn(p, lastToken[p])
			:: else
			fi;
			if
			:: abandoned[p] -> leave(p)
#ifdef OVERTAKEN /* refuter: a list that has overtaken the create is believed */
			:: early[p] && !abandoned[p] -> early[p] = 0; over(p)
#endif
			:: else
			fi
		:: m == Own -> reading[p] = 0;
			if
			:: x == mine[p] && living(p) -> confirmed[p] = 1; learn(p, x)
			:: else
			fi
		:: m == NoOwn -> reading[p] = 0;
			if
			:: x == mine[p] && living(p) -> lose(p)
			:: else
			fi
		:: m == OwnGone && x == mine[p] && living(p) -> lose(p)
		:: m == AheadGone && x == aheadId[p] -> goneAhead(p)
		:: m == Deleted -> gone[p] = 0; went[p] = x; over(p)
		:: m == Listed -> listing = 0; listed(0); listed(1); sOrphan = 0
		:: m == Directory -> born = x
		:: m == DirectoryGone -> born = 0; tried = 0
		:: else
		fi;
		p = 0; x = 0; n = 0; m = 0 }
	:: d_step { connected && lateOwn[0] -> lateOwn[0] = 0; lose(0) }
	:: d_step { connected && lateOwn[1] -> lateOwn[1] = 0; lose(1) }
	:: d_step { connected && lateAhead[0] -> lateAhead[0] = 0; goneAhead(0) }
	:: d_step { connected && lateAhead[1] -> lateAhead[1] = 0; goneAhead(1) }
	:: d_step { connected && lateDirectory -> lateDirectory = 0; born = 0; tried = 0 }
	:: d_step { !connected -> connected = 1 }
	od
}

/* One of A's loses what was under way. */
inline cutOff(p) {
	reading[p] = 0; gone[p] = 0;
#ifndef EPOCH_KEPT /* refuter: what was known before an outage counts after it */
	confirmed[p] = 0;
	if
	:: st[p] == WAITING -> doubt(p)
	:: else -> forgetList(p)
	fi;
#endif
	if
	:: st[p] == CREATING -> st[p] = SEARCH; asksCreate[p] = 0; behind[p] = 0
#ifdef DELETES_ONCE /* refuter: a delete is tried once */
	:: st[p] == ENDING && asksDelete[p] -> over(p)
#else
	:: st[p] == ENDING -> asksDelete[p] = 0
#endif
	:: else
	fi
}

inline cut() {
	do
	:: len(answers) > 0 ->
		answers?m(p, x, n);
		if
		:: m == OwnGone && x == mine[p] -> lateOwn[p] = 1
		:: m == AheadGone && x == aheadId[p] -> lateAhead[p] = 1
		:: m == DirectoryGone -> lateDirectory = 1
		:: else
		fi
	:: else -> break
	od;
	p = 0; x = 0; n = 0; m = 0;
	asksList = 0; listing = 0; sOrphan = 0;
	sShows[0] = 0; sShows[1] = 0; sPartner[0] = 0; sPartner[1] = 0; sBlocker[0] = NOBODY;
	sBlocker[1] = NOBODY; sBlockerId[0] = 0; sBlockerId[1] = 0; sToken[0] = 0; sToken[1] = 0;
	sMore[0] = 0; sMore[1] = 0; sPassed[0] = 0; sPassed[1] = 0;
#ifndef EPOCH_KEPT
	born = 0; tried = 0;
#endif
	cutOff(0); cutOff(1)
}

/* A's session ends: its owners start over, and are told if they hold. */
inline endSession(p) {
	if
	:: seq[p] -> old[p] = 1
	:: else
	fi;
	watchOwn[p] = 0; lateOwn[p] = 0;
	if
#ifdef ANSWERED_IN_ANY_SESSION /* refuter: an answer to a create is trusted in any session */
	:: st[p] == SEARCH && seq[p] && !abandoned[p] ->
		st[p] = WAITING; mine[p] = id[p]; number[p] = seq[p]; doubted[p] = 1
#endif
	:: st[p] == SEARCH
#ifdef UNTOLD /* refuter: a loss is not told to the holder */
	:: st[p] == HELD
#else
	:: st[p] == HELD -> SEEN(TOLD, p); holds[p] = 0; over(p)
#endif
	:: st[p] == WAITING || st[p] == GRANTED -> over(p)
	:: st[p] == ENDING -> stopping[p] = 0; holds[p] = 0; over(p)
	:: else
	fi
}

proctype world() AS_SEEN {
	byte p, x, n;
end:
	do
	:: d_step { faults < FAULTS && connected && BUSY -> faults++; connected = 0; cut() }
	:: d_step { faults < FAULTS && BUSY -> faults++; cut();
		endSession(0); endSession(1);
		if
		:: seq[ORPHAN] -> old[ORPHAN] = 1
		:: else
		fi }
	:: d_step { faults < FAULTS && seq[0] -> SEEN(MEDDLE, 0); faults++; deleted[0] = 1; remove(0) }
	:: d_step { faults < FAULTS && seq[1] -> SEEN(MEDDLE, 1); faults++; deleted[1] = 1; remove(1) }
	:: d_step { faults < FAULTS && seq[2] -> SEEN(MEDDLE, 2); faults++; deleted[2] = 1; remove(2) }
	:: d_step { faults < FAULTS && directory && !seq[0] && !seq[1] && !seq[2] && !seq[ORPHAN] ->
		faults++; directory = 0;
		if
		:: watchDirectory && connected && INORDER -> answers!DirectoryGone(0, 0, 0)
		:: watchDirectory && !(connected && INORDER) -> lateDirectory = 1
		:: else
		fi;
		watchDirectory = 0 }

	/* --- the stranger --- */
	:: d_step { st[2] == IDLE && rounds[2] > 0 -> create(2); st[2] = WAITING }
	:: d_step { st[2] == WAITING && seq[2] && !(seq[0] && seq[0] < seq[2]) &&
			!(seq[1] && seq[1] < seq[2]) && !(seq[ORPHAN] && seq[ORPHAN] < seq[2]) -> hold(2) }
	:: d_step { st[2] == HELD -> holds[2] = 0; st[2] = IDLE;
		if
		:: seq[2] -> remove(2)
		:: else
		fi }
	:: d_step { st[2] == WAITING && !seq[2] -> st[2] = IDLE }

	/* --- the end --- */
	:: timeout ->
#ifdef TRACE
		assert(seen != LENGTH);
#endif
		assert(!seq[0] && !seq[1] && !seq[2] && !seq[ORPHAN]);
		assert(st[0] == DONE && st[1] == DONE && st[2] == IDLE && rounds[2] == 0);
		break
	od
}
init {
	d_step {
		rounds[0] = ROUNDS0; rounds[1] = ROUNDS1; rounds[2] = ROUNDS2;
		st[0] = (ROUNDS0 -> IDLE : DONE); st[1] = (ROUNDS1 -> IDLE : DONE)
	}
	atomic { run owner(0); run owner(1); run server(); run connection(); run world() }
}
