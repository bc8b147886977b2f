package main

import (
	"fmt"

	"github.com/zkrecipes/recipes/bench/internal/report"
)

// readmeCommand prints what the README of the project shows of a run.
type readmeCommand struct {
	Data string `arg:"" help:"What a run has saved." type:"existingfile"`
}

// Run prints.
func (c *readmeCommand) Run() error {
	d, err := report.Read(c.Data)
	if err == nil {
		fmt.Print(report.Readme(d))
	}
	return err
}
