package lockcache

import (
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A tenant is a Share as its Node sees it.
type tenant Share

// Lost implements znode.Tenant.
func (t *tenant) Lost(cause error) {
	sh := (*Share)(t)
	sh.cancelExpiry()
	sh.forgo()
	sh.loseNow(cause)
}

// attach lets sh rely on the generation's Node. From then on sh is notified of a loss.
// ErrGone says that the Node is lost. After any other error it is held as before, and sh
// may be admitted later.
func (sh *Share) attach() error {
	if sh.Check() != nil {
		return znode.ErrGone
	}
	if sh.margin > 0 {
		if err := sh.conn().Rely(sh.Path, sh, sh.margin); err != nil {
			return err
		}
	}
	if !sh.Attach((*tenant)(sh), sh.margin) {
		sh.forgo()
		return znode.ErrGone
	}
	return nil
}

// detach undoes attach; false if the Node is not held any more, and sh was told. It may
// be called twice.
func (sh *Share) detach() bool {
	sh.forgo()
	return sh.Detach((*tenant)(sh))
}

func (sh *Share) conn() *zkconn.Conn { return sh.generation.entry.key.conn }

// forgo ends what attach has begun for the margin.
func (sh *Share) forgo() {
	if sh.margin > 0 {
		sh.conn().Forgo(sh)
	}
}
