package zkconn

// notes are what the users of a connection have learned and may want to know again, the
// latest of it. Any of it can be forgotten at any time. They are guarded by Conn.mu.
type notes struct {
	values map[any]any
	keys   []any // in a ring
	next   int   // the index of the key that is forgotten next, once there are many
}

const notesAtMost = 1000

func (n *notes) keep(key, value any) {
	if _, ok := n.values[key]; !ok {
		if len(n.keys) < notesAtMost {
			n.keys = append(n.keys, nil)
		}
		delete(n.values, n.keys[n.next])
		n.keys[n.next] = key
		n.next = (n.next + 1) % notesAtMost
	}
	n.values[key] = value
}

// Note keeps a value for whoever asks for that key.
func (s *Conn) Note(key, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes.keep(key, value)
}

// Noted returns the last value that was kept for a key; nil where it is not known.
func (s *Conn) Noted(key any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notes.values[key]
}
