package main

import (
	"errors"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// A secondsFlag is a duration, or a number of seconds as flock(1) has it.
type secondsFlag = cli.FlagBase[time.Duration, cli.NoConfig, seconds]

type seconds time.Duration

// errSeconds begins with the word by which inPlainWords knows it.
var errSeconds = errors.New("seconds: neither a number nor a duration")

// Create implements cli.ValueCreator.
func (seconds) Create(
	value time.Duration, to *time.Duration, _ cli.NoConfig,
) cli.Value {
	*to = value
	return (*seconds)(to)
}

// ToString implements cli.ValueCreator.
func (seconds) ToString(value time.Duration) string { return value.String() }

// Set implements flag.Value.
func (s *seconds) Set(text string) error {
	if strings.Trim(text, "0123456789.-+") == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errSeconds
	}
	*s = seconds(d)
	return nil
}

// Get implements flag.Getter.
func (s *seconds) Get() any { return time.Duration(*s) }

// String implements flag.Value.
func (s *seconds) String() string { return time.Duration(*s).String() }
