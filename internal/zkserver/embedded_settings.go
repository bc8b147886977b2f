package zkserver

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/zktest"
)

// known are the lines of zoo.cfg and the flags of Java that zktest has an option for, or
// need none, by what stands before their value.
var known = map[string]finder{
	"minSessionTimeout":                 millis(zktest.WithMinSessionTimeout),
	"-Dznode.container.checkIntervalMs": millis(zktest.WithContainerCheck),
	"reconfigEnabled":                   only(zktest.WithReconfig),
	"-Dreadonlymode.enabled":            only(zktest.WithReadOnlyMode),
	"-Dzookeeper.enableEagerACLCheck":   only(zktest.WithEagerACLCheck),
	"-Dzookeeper.extendedTypesEnabled":  only(nil), // always
	"localSessionsEnabled":              only(nil), // see WithReadOnlyMode
	"localSessionsUpgradingEnabled":     only(nil), // likewise
}

// A finder returns the option that a value stands for, nil for none.
type finder func(value string) (zktest.Option, error)

// millis has a number of milliseconds for its value.
func millis(option func(time.Duration) zktest.Option) finder {
	return func(value string) (zktest.Option, error) {
		n, err := strconv.Atoi(value)
		return option(time.Duration(n) * time.Millisecond), err
	}
}

// only has an option for true, and none for any other value.
func only(option func() zktest.Option) finder {
	return func(value string) (zktest.Option, error) {
		if value != "true" || option == nil {
			return nil, nil
		}
		return option(), nil
	}
}

// embeddedOptions are those that the lines of zoo.cfg and the flags of Java stand for. It
// returns an error for what zktest does not have.
func (s settings) embeddedOptions() ([]zktest.Option, error) {
	var options []zktest.Option
	for _, line := range append(s.config, s.jvm...) {
		if strings.HasPrefix(line, "-X") {
			continue // about Java alone
		}
		key, value, _ := strings.Cut(line, "=")
		find := known[key]
		if find == nil {
			return nil, fmt.Errorf("zkserver: zktest does not have %s; "+
				"a test that needs it says so with zkserver.Real", key)
		}
		option, err := find(value)
		if err != nil {
			return nil, fmt.Errorf("zkserver: %s: %w", line, err)
		}
		if option != nil {
			options = append(options, option)
		}
	}
	return options, nil
}
