package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zkrecipes/recipes/bench/internal/report"
)

// reportCommand reports what other runs have saved; the machine and the versions are
// those of the first. What it reports is saved, too.
type reportCommand struct {
	Note string   `help:"What the report is to say of the runs."`
	Out  string   `default:"." help:"Where RESULTS.md goes." type:"path"`
	Data []string `arg:"" type:"existingfile" help:"What runs have saved."`
}

// Run writes the report.
func (c *reportCommand) Run() error {
	all := &report.Data{}
	for i, file := range c.Data {
		d, err := report.Read(file)
		if err != nil {
			return err
		}
		if i == 0 {
			all = d
			continue
		}
		all.Add(d)
	}
	if c.Note != "" {
		all.Note = c.Note
	}
	return write(all, c.Out, "results/data.json")
}

// write saves the data and writes the report.
func write(d *report.Data, out, file string) error {
	if !filepath.IsAbs(file) {
		file = filepath.Join(out, file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := d.Save(file); err != nil {
		return err
	}
	return render(d, out)
}

// render writes RESULTS.md, and its pictures into the directory results next to it.
func render(d *report.Data, out string) (err error) {
	pictures := filepath.Join(out, "results")
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	drawn, err := report.Pictures(d, pictures)
	if err != nil {
		return err
	}
	page, err := os.Create(filepath.Join(out, "RESULTS.md"))
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	defer func() { err = errors.Join(err, page.Close()) }()
	return report.Markdown(page, d, drawn)
}
