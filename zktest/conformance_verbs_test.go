package zktest_test

import (
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

func (c *client) create(a *arguments) string {
	path, err := c.conn.Create(
		a.path(), a.data(), int32(a.intOr(zk.FlagPersistent)), a.acl(),
	)
	return c.answer(err, func() string { return path })
}

func (c *client) container(a *arguments) string {
	path, err := c.conn.CreateContainer(
		a.path(), a.data(), int32(a.intOr(zk.FlagContainer)), a.acl(),
	)
	return c.answer(err, func() string { return path })
}

// ttl creates a node that lives so many milliseconds without a child or a change.
func (c *client) ttl(a *arguments) string {
	path, data, life := a.path(), a.data(), time.Duration(a.int())*time.Millisecond
	path, err := c.conn.CreateTTL(path, data, int32(a.intOr(zk.FlagTTL)), a.acl(), life)
	return c.answer(err, func() string { return path })
}

func (c *client) existence(found bool, stat *zk.Stat) string {
	if !found {
		return "missing"
	}
	return c.p.stat(stat)
}

func (c *client) watch(label string, fires <-chan zk.Event) {
	if fires != nil {
		c.watches = append(c.watches, watch{label: label, fires: fires})
	}
}

func (c *client) getW(a *arguments) string {
	path := a.path()
	data, stat, fires, err := c.conn.GetW(path)
	c.watch("getW "+path, fires)
	return c.answer(err, func() string { return text(data) + " " + c.p.stat(stat) })
}

func (c *client) existsW(a *arguments) string {
	path := a.path()
	found, stat, fires, err := c.conn.ExistsW(path)
	c.watch("existsW "+path, fires)
	return c.answer(err, func() string { return c.existence(found, stat) })
}

func (c *client) childrenW(a *arguments) string {
	path := a.path()
	children, stat, fires, err := c.conn.ChildrenW(path)
	c.watch("childrenW "+path, fires)
	return c.answer(err, func() string { return list(children) + " " + c.p.stat(stat) })
}

// multi takes operations between semicolons: create, set, delete and check, each with the
// arguments that it has alone.
func (c *client) multi(a *arguments) string {
	var ops []any
	for _, left := range cutAll(a.left) {
		op := &arguments{base: a.base, left: left}
		switch verb := op.next(); verb {
		case "create":
			ops = append(ops, &zk.CreateRequest{
				Path: op.path(), Data: op.data(),
				Flags: int32(op.intOr(zk.FlagPersistent)), Acl: op.acl(),
			})
		case "set":
			ops = append(ops, &zk.SetDataRequest{
				Path: op.path(), Data: op.data(), Version: int32(op.intOr(-1)),
			})
		case "delete":
			ops = append(ops, &zk.DeleteRequest{
				Path: op.path(), Version: int32(op.intOr(-1)),
			})
		case "check":
			ops = append(ops, &zk.CheckVersionRequest{
				Path: op.path(), Version: int32(op.intOr(-1)),
			})
		default:
			panic("BUG: no such step of a multi: " + verb)
		}
	}
	results, err := c.conn.Multi(ops...)
	lines := []string{c.answer(err, nil)}
	for _, r := range results {
		switch {
		case r.Stat != nil:
			lines = append(
				lines, c.answer(r.Error, func() string { return c.p.stat(r.Stat) }),
			)
		case r.String != "":
			lines = append(lines, c.answer(r.Error, func() string { return r.String }))
		default:
			lines = append(lines, c.answer(r.Error, nil))
		}
	}
	return strings.Join(lines, " | ")
}

// cutAll returns the runs of tokens between semicolons.
func cutAll(tokens []string) [][]string {
	var runs [][]string
	var run []string
	for _, token := range append(tokens[:len(tokens):len(tokens)], ";") {
		if token != ";" {
			run = append(run, token)
			continue
		}
		if run != nil {
			runs = append(runs, run)
		}
		run = nil
	}
	return runs
}

// gone waits until there is no such node: only the server's clock can tell when.
func (c *client) gone(a *arguments) string {
	path := a.path()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(tick / 20) {
		found, _, err := c.conn.Exists(path)
		if err != nil || !found {
			return c.answer(err, func() string { return "gone" })
		}
	}
	return "still there"
}
