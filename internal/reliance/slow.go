package reliance

import "time"

const (
	toldEvery = time.Minute
	slowShare = 2 // of what is a loss
)

// warning returns what tells that answers take long for those that are held; nil if they
// do not, or it was told of late.
func (l *Ledger) warning(now time.Time) func() {
	log, terms := l.slowness.log, l.terms()
	answer, longest := l.evidence.Answer(), terms.LongestAnswer()
	if log == nil || answer*slowShare < longest || now.Sub(l.slowness.told) < toldEvery {
		return nil
	}
	for t := range l.all() {
		if t.held {
			l.slowness.told = now
			return func() {
				log.Warn("zookeeper lock: answers are slow, holds may be lost",
					"answer", rounded(answer), "timeout", terms.Timeout,
					"lost_from", rounded(longest))
			}
		}
	}
	return nil
}
