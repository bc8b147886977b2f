package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v3"
)

func manCommand(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print the man page", UsageText: "zklock man | man -l -",
		Action: func(_ context.Context, cmd *cli.Command) error {
			return writeMan(stdout, cmd.Root())
		},
	}
}

// writeMan writes the tree of commands as a page for man(1).
func writeMan(to io.Writer, app *cli.Command) error {
	page := &strings.Builder{}
	fmt.Fprintf(page, ".TH ZKLOCK 1 \"\" zklock\n.SH NAME\nzklock \\- %s\n.SH SYNOPSIS\n",
		roff(app.Usage))
	commands := []*cli.Command{}
	for _, cmd := range app.Commands {
		if cmd.UsageText != "" && !cmd.Hidden {
			commands = append(commands, cmd)
			fmt.Fprintf(page, "%s\n.br\n", roff(cmd.UsageText))
		}
	}
	about, _, _ := strings.Cut(app.Description, exampleTitle)
	fmt.Fprintf(page, ".SH DESCRIPTION\n%s.SH CONNECTION FLAGS\n"+
		"They stand before or after the command.\n", paragraphs(about))
	flagsOf(page, app)
	page.WriteString(".SH COMMANDS\n")
	for _, cmd := range commands {
		about, _, _ := strings.Cut(cmd.Description, exampleTitle)
		fmt.Fprintf(page, ".SS %s\n%s.PP\n%s", roff(cmd.UsageText),
			sentence(cmd.Usage), paragraphs(about))
		flagsOf(page, cmd)
		examplesOf(page, cmd)
	}
	title, table, _ := strings.Cut(exitTable, "\n")
	fmt.Fprintf(page, ".SH %s\n.nf\n%s\n.fi\n",
		strings.ToUpper(strings.TrimSuffix(title, ":")), roff(table))
	_, err := io.WriteString(to, page.String())
	return err
}

func examplesOf(page *strings.Builder, cmd *cli.Command) {
	fmt.Fprintf(page, ".PP\n%s.nf\n  %s\n.fi\n", exampleTitle,
		roff(strings.Join(examples[cmd.Name], "\n  ")))
}

func sentence(text string) string {
	return roff(strings.ToUpper(text[:1])+text[1:]) + ".\n"
}

// paragraphs are separated by empty lines.
func paragraphs(text string) string {
	out := ""
	for one := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if one != "" {
			out += ".PP\n" + roff(one) + "\n"
		}
	}
	return out
}

// flagsOf lists the flags of a command, and the environment that stands for them.
func flagsOf(page *strings.Builder, cmd *cli.Command) {
	for _, flag := range cmd.VisibleFlags() {
		about, ok := flag.(cli.DocGenerationFlag)
		if !ok || flag.Names()[0] == "help" || flag.Names()[0] == "version" {
			continue
		}
		names := []string{}
		for _, name := range flag.Names() {
			names = append(names, "\\fB"+roff(dashed(name))+"\\fR")
		}
		value, usage := placeholder(about.GetUsage())
		if value != "" {
			names[len(names)-1] += " \\fI" + roff(value) + "\\fR"
		}
		fmt.Fprintf(page, ".TP\n%s\n%s", strings.Join(names, ", "), sentence(usage))
		if env := about.GetEnvVars(); len(env) > 0 {
			fmt.Fprintf(page, "Environment: %s.\n", roff(strings.Join(env, ", ")))
		}
		if value := about.GetValue(); value != "" && about.TakesValue() &&
			about.IsDefaultVisible() {
			fmt.Fprintf(page, "Default: %s.\n", roff(value))
		}
	}
}

// placeholder takes the name of a flag's value, which stands in backquotes, out of them.
func placeholder(usage string) (value, plain string) {
	_, rest, _ := strings.Cut(usage, "`")
	value, _, _ = strings.Cut(rest, "`")
	return value, strings.ReplaceAll(usage, "`", "")
}

// roff escapes what roff would take for its own.
func roff(text string) string {
	text = strings.ReplaceAll(text, `\`, `\e`)
	text = strings.ReplaceAll(text, "-", `\-`)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
