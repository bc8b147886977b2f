package order

// IsMember tells whether text is the name of a participant of one of the given kinds.
func IsMember(text string, kinds ...string) bool {
	_, ok := Parse(text, kinds)
	return ok
}
