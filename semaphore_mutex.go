package recipes

// InterProcessSemaphoreMutex is Curator's mutex across processes that is not reentrant: a
// semaphore with one lease. A second Acquire by the holder waits. Use it if a caller
// other than the one that acquired it may release it: any caller may, through the value
// that acquired it (see Release).
type InterProcessSemaphoreMutex struct {
	*leaseLock
}

var _ InterProcessLock = (*InterProcessSemaphoreMutex)(nil)

// self implements nativeLock.
func (l *InterProcessSemaphoreMutex) self() nativeLock { return l }

// NewInterProcessSemaphoreMutex returns the mutex at path.
func NewInterProcessSemaphoreMutex(
	conn Conn, path string, opts ...Option,
) (*InterProcessSemaphoreMutex, error) {
	s, err := newSemaphore(conn, path, opts)
	if err != nil {
		return nil, refuse("NewInterProcessSemaphoreMutex", path, err)
	}
	s.most, s.limit, s.steps.recipe = 1, fixedLimit(1), "semaphore mutex"
	return &InterProcessSemaphoreMutex{newLeaseLock(s, 1)}, nil
}
