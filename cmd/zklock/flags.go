package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
)

// typedKey is where the app keeps what was typed.
const typedKey = "typed"

// spread writes each flag of a group on its own, and its value: -nE3 is -n -E 3, as
// getopt(3) has it. A group in which a flag is unknown stays as it is.
func spread(app *cli.Command, args []string) []string {
	out := slices.Clone(args[:min(len(args), 1)])
	at := &position{app: app, cmd: app, argv: true}
	for _, word := range args[len(out):] {
		words := []string{word}
		if at.value == nil && at.flags() {
			words = at.group(word)
		}
		for _, one := range words {
			at.pass(one)
		}
		out = append(out, words...)
	}
	return out
}

func (p *position) group(word string) []string {
	name, _, _ := strings.Cut(strings.TrimPrefix(word, "-"), "=")
	if !dash(word) || utf8.RuneCountInString(name) < 2 || dash(name) ||
		p.flag(name) != nil {
		return []string{word}
	}
	var all []string
	for i, letter := range word[1:] {
		flag := p.flag(string(letter))
		if flag == nil {
			return []string{word}
		}
		all = append(all, "-"+string(letter))
		if value := word[1+i+utf8.RuneLen(letter):]; takesValue(flag) && value != "" {
			return append(all, value)
		}
	}
	return all
}

// asTyped is a flag as it was typed, which may have one dash or two.
func asTyped(cmd *cli.Command, name string) string {
	typed, _ := cmd.Root().Metadata[typedKey].([]string)
	for _, word := range typed {
		flag, _, _ := strings.Cut(word, "=")
		if dash(word) && strings.TrimLeft(flag, "-") == name {
			return flag
		}
	}
	return dashed(name)
}

// ofFlock are the flags of flock(1) that zklock has not, and what is to be typed instead.
var ofFlock = map[string]string{
	"c": shellHint, "command": shellHint,
	"o": closeHint, "close": closeHint,
	"u": unlockHint, "unlock": unlockHint,
	"F": "zklock runs beside CMD; leave it out", "no-fork": "zklock runs beside CMD; " +
		"leave it out",
	"verbose": "leave it out; an error says who has the lock",
	"fcntl":   "leave it out; no file is locked",
}

const (
	closeHint  = "CMD inherits nothing that would keep the lock; leave it out"
	unlockHint = "the lock is released when CMD ends"
)
