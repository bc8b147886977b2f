package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// scripts are the completions, a file zklock.SHELL each. They ask zklock itself.
//
//go:embed completion
var scripts embed.FS

var shells = []string{"bash", "zsh", "fish"}

const aboutCompletion = `The completion function of zklock runs nothing of what is typed,
and does not connect. But when TAB is pressed, zsh itself expands $(...), for any command:
before any completion ("bindkey '^I' complete-word" prevents this), and when it completes
a redirection.

`

func completionCommand(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print the completion of commands and flags for a shell",
		UsageText:   "zklock completion " + strings.Join(shells, "|"),
		Description: aboutCompletion + exitCodes,
		Action: func(_ context.Context, cmd *cli.Command) error {
			shell := cmd.Args().First()
			switch {
			case shell == "":
				return cli.ShowSubcommandHelp(cmd)
			case !slices.Contains(shells, shell):
				return usage("completion %s: there is none for such a shell; "+
					"see %s --help", echo(shell), cmd.FullName())
			}
			script, err := scripts.ReadFile("completion/zklock." + shell)
			if err == nil {
				_, err = stdout.Write(script)
			}
			return err
		},
	}
}

// completeName is the first argument with which the scripts ask what can come next.
const completeName = "__complete"

// What an answer consists of. It is its first line.
const (
	words    = "words"    // those in the lines that follow: WORD, a tab, what it means
	files    = "files"    // of the shell
	commands = "commands" // programs, or files
)

// complete answers "words WORD..." and "line LINE": what can stand in place of the last
// word, which may be empty, or be the end of the line. All but the program's name is in
// the words.
func complete(app *cli.Command, args []string, stdout io.Writer) {
	if len(args) < 2 {
		return
	}
	typed := args[1:]
	if args[0] == "line" {
		typed = split(args[1])[1:]
	}
	if len(typed) == 0 {
		return
	}
	last := len(typed) - 1
	at := &position{app: app, cmd: app}
	for _, word := range typed[:last] {
		at.pass(word)
	}
	kind, suggestions := at.next(typed[last])
	_, _ = fmt.Fprintln(stdout, kind) // a shell that is gone asks for nothing
	for _, c := range suggestions {
		if strings.HasPrefix(c.word, typed[last]) {
			_, _ = fmt.Fprintf(stdout, "%s\t%s\n", c.word, c.meaning)
		}
	}
}

// split splits a line into words as a shell does, but expands and runs nothing. The last
// word is the one at the end of the line.
func split(line string) (all []string) {
	var word strings.Builder
	begun, escaped, quote := false, false, rune(0)
	for _, c := range line {
		space := strings.ContainsRune(" \t\n", c) && quote == 0 && !escaped
		begun = begun || !space
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case !space:
			word.WriteRune(c)
		case begun:
			all = append(all, word.String())
			word.Reset()
			begun = false
		}
	}
	return append(all, word.String())
}

// A position is a place in a command line, behind the words that were passed.
type position struct {
	app      *cli.Command
	cmd      *cli.Command // the last that was named
	args     int          // how many there are
	over     bool         // no more flags
	dashes   bool         // those between PATH and CMD were there
	value    cli.Flag     // whose value comes next, or nil
	redirect bool         // a redirection's file comes next
	argv     bool         // there are no redirections: the shell has seen to them
}

// redirection is an operator of the shell, and its file if that is in the same word.
var redirection = regexp.MustCompile(`^[0-9&]*[<>][>|&]?(.*)$`)

func (p *position) pass(word string) {
	redirect := redirection.FindStringSubmatch(word)
	if p.argv {
		redirect = nil
	}
	switch {
	case p.redirect:
		p.redirect = false
	case redirect != nil:
		p.redirect = redirect[1] == ""
	case p.value != nil:
		p.value = nil
	case p.command() && word == "--" && !p.dashes:
		p.dashes = true
	case !p.flags():
		p.args++
	case word == "--":
		p.over = true
	case len(word) > 1 && word[0] == '-':
		name, _, complete := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if flag := p.flag(name); flag != nil && takesValue(flag) && !complete {
			p.value = flag
		}
	case p.args == 0 && p.cmd.Command(word) != nil:
		p.cmd = p.cmd.Command(word)
	default:
		p.args++
	}
}

// runs tells whether the command has a CMD, before which its flags end.
func (p *position) runs() bool { return p.cmd.StopOnNthArg != nil }

// command tells whether CMD comes next.
func (p *position) command() bool { return p.runs() && p.args == *p.cmd.StopOnNthArg }

// flags tells whether a flag can come next.
func (p *position) flags() bool {
	return !p.over && (!p.runs() || p.args < *p.cmd.StopOnNthArg)
}

// known are the flags that can stand here.
func (p *position) known() []cli.Flag {
	if p.cmd == p.app {
		return p.app.Flags
	}
	return slices.Concat(p.cmd.Flags, p.app.Flags)
}

func (p *position) flag(name string) cli.Flag {
	for _, flag := range p.known() {
		if slices.Contains(flag.Names(), name) {
			return flag
		}
	}
	return nil
}

func takesValue(flag cli.Flag) bool {
	about, ok := flag.(cli.DocGenerationFlag)
	return ok && about.TakesValue()
}

// A suggestion is a word that can come next.
type suggestion struct{ word, meaning string }

// next returns what can come next, where a part of it was typed already.
func (p *position) next(begin string) (kind string, suggestions []suggestion) {
	name, _, valued := strings.Cut(begin, "=")
	flag := p.value
	if flag == nil && valued && p.flags() && strings.HasPrefix(name, "-") {
		flag = p.flag(strings.TrimLeft(name, "-"))
	}
	switch text, ok := flag.(*cli.StringFlag); {
	case p.redirect, redirection.MatchString(begin), ok && text.TakesFile:
		return files, nil
	case flag != nil:
		return words, nil
	case p.command():
		return commands, nil
	case p.runs() && p.args > *p.cmd.StopOnNthArg:
		return files, nil
	case p.flags() && strings.HasPrefix(begin, "-"):
		return words, p.ofFlags()
	}
	return words, p.ofCommands()
}

func (p *position) ofFlags() []suggestion {
	all := []suggestion{{"--help", "show help"}}
	for _, flag := range p.known() {
		meaning := ""
		if about, ok := flag.(cli.DocGenerationFlag); ok {
			_, meaning = placeholder(about.GetUsage())
		}
		for _, name := range flag.Names() {
			all = append(all, suggestion{dashed(name), meaning})
		}
	}
	return all
}

func (p *position) ofCommands() (all []suggestion) {
	switch {
	case p.args > 0:
	case p.cmd == p.app, p.cmd.Name == "help":
		for _, cmd := range p.app.Commands {
			all = append(all, suggestion{cmd.Name, cmd.Usage})
		}
	case p.cmd.Name == "completion":
		for _, shell := range shells {
			all = append(all, suggestion{shell, ""})
		}
	}
	return all
}
