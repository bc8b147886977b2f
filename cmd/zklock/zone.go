package main

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"time"
)

// errZone is why the local time is not known: nil if it is.
var errZone error

// localZone makes time.Local what TZ says, as the C library does: the name of a time
// zone, or else a rule, such as CET-1CEST,M3.5.0,M10.5.0/3. Go knows names alone, and
// takes all else for UTC.
func localZone() error {
	text, set := os.LookupEnv("TZ")
	text = strings.TrimPrefix(text, ":")
	if !set || text == "" {
		return nil
	}
	if strings.HasPrefix(text, "/") {
		data, err := os.ReadFile(text) //nolint:gosec // the user names it
		if err == nil {
			_, err = time.LoadLocationFromTZData(text, data)
		}
		if err == nil {
			return nil
		}
	} else if _, err := time.LoadLocation(text); err == nil {
		return nil
	}
	zone := zoneOf(text)
	if zone == nil {
		return usage("TZ=%s: neither a time zone of this machine (see "+
			"/usr/share/zoneinfo) nor a rule, such as CET-1CEST,M3.5.0,M10.5.0/3",
			echo(text))
	}
	time.Local = zone
	return nil
}

// zoneOf is the time zone of a rule; nil if it is none. The rule stands at the end of a
// file of time zones, where it is for the times after the last one in the file (RFC
// 8536): a file without any is a rule, and Go can read it.
func zoneOf(rule string) *time.Location {
	if strings.ContainsAny(rule, "\n\x00") || !strings.ContainsAny(rule, "0123456789") {
		return nil
	}
	const unknown = "??" // the name that stays if Go does not understand the rule
	counts := []uint32{0, 0, 0, 0, 1, uint32(len(unknown)) + 1}
	body := slices.Concat([]byte{0, 0, 0, 0, 0, 0}, []byte(unknown), []byte{0})
	var file []byte
	for range 2 { // for readers that know numbers of 32 bits, and of 64
		file = append(append(file, "TZif2"...), make([]byte, 15)...)
		for _, n := range counts {
			file = binary.BigEndian.AppendUint32(file, n)
		}
		file = append(file, body...)
	}
	file = append(append(append(file, '\n'), rule...), '\n')
	zone, err := time.LoadLocationFromTZData("Local", file)
	if err != nil {
		return nil
	}
	if name, _ := time.Unix(0, 0).In(zone).Zone(); name == unknown {
		return nil
	}
	return zone
}
