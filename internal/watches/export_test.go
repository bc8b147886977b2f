package watches

// Kept tells how many watches ws remembers.
func (ws *Shared) Kept() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.shared) + len(ws.retired)
}
