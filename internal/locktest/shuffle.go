package locktest

import "os"

// No server has its children in order: what forgets to sort them fails in these tests. It
// is the environment, so that no test has to ask for it.
func init() {
	if err := os.Setenv("ZKTEST_SHUFFLE", "yes"); err != nil {
		panic(err)
	}
}
