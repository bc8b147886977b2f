package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/zkrecipes/recipes/zktest"
)

var ops = map[string]zktest.Op{
	"any": zktest.Any, "create": zktest.OpCreate,
	"create-container": zktest.OpCreateContainer, "delete": zktest.OpDelete,
	"exists": zktest.OpExists, "get": zktest.OpGet, "set": zktest.OpSet,
	"get-acl": zktest.OpGetACL, "set-acl": zktest.OpSetACL,
	"children": zktest.OpChildren, "sync": zktest.OpSync, "multi": zktest.OpMulti,
	"auth": zktest.OpAuth, "add-watch": zktest.OpAddWatch,
	"check-watches": zktest.OpCheckWatches, "remove-watches": zktest.OpRemoveWatches,
	"set-watches": zktest.OpSetWatches, "ping": zktest.OpPing, "close": zktest.OpClose,
}

var directions = map[string]zktest.Direction{
	"to-server": zktest.ToServer, "to-client": zktest.ToClient, "both": zktest.Both,
}

// hostileReplies are those of zktest, by their names.
func hostileReplies() map[string]zktest.HostileReply {
	byName := map[string]zktest.HostileReply{}
	for _, r := range zktest.HostileReplies() {
		byName[r.Name] = r
	}
	return byName
}

// network disturbs the one link that all who connect over TCP share.
func (a *admin) network(r *http.Request) (string, error) {
	link := a.cluster.Link("")
	faults := map[string]func(){
		"cut": link.Cut, "heal": link.Heal, "reset": link.Reset, "freeze": link.Freeze,
		"thaw": link.Thaw, "spare": link.Spare,
	}
	ofOne := map[string]func(zktest.Op){
		"lose-request": link.LoseRequest, "lose-reply": link.LoseReply,
		"throttle": link.Throttle,
	}
	fault := r.PathValue("fault")
	switch {
	case faults[fault] != nil:
		if err := only(r); err != nil {
			return "", err
		}
		faults[fault]()
	case ofOne[fault] != nil:
		op, err := oneOf(r, "op", ops)
		if err != nil {
			return "", err
		}
		ofOne[fault](op)
	case fault == "hostile":
		reply, err := oneOf(r, "reply", hostileReplies())
		if err != nil {
			return "", err
		}
		link.Hostile(reply)
	case fault == "stall":
		direction, err := oneOf(r, "direction", directions)
		if err != nil {
			return "", err
		}
		link.Stall(direction)
	case fault == "delay":
		between, err := durations(r, "least", "most")
		if err != nil {
			return "", err
		}
		least, most := between[0], between[1]
		if least > most {
			return "", refuse(http.StatusBadRequest,
				"least %v: want at most %v, as most says", least, most)
		}
		link.Delay(least, most)
	default:
		return "", refuse(http.StatusNotFound, "fault %q: no network has it", fault)
	}
	return "", nil
}

// oneOf reads the only thing that a request has.
func oneOf[V any](r *http.Request, key string, values map[string]V) (V, error) {
	if err := only(r, key); err != nil {
		return *new(V), err
	}
	value, ok := values[r.Form.Get(key)]
	if !ok {
		return value, refuse(http.StatusBadRequest, "%s %q: want one of %s", key,
			r.Form.Get(key), strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	return value, nil
}
