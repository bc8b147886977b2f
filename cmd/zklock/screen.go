package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gdamore/tcell/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
)

// show redraws the terminal at each change, until a key leaves.
func show(ctx context.Context, client *recipes.Client, path string) error {
	screen, err := tcell.NewScreen()
	if err == nil {
		err = screen.Init()
	}
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer screen.Fini()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	views := make(chan view)
	failed := make(chan error, 1)
	go func() {
		failed <- follow(ctx, client, path, func(v view) {
			select {
			case views <- v:
			case <-ctx.Done():
			}
		})
	}()
	now := view{}
	for {
		select {
		case now = <-views:
		case err := <-failed:
			return err
		case event, ok := <-screen.EventQ():
			if !ok || leaves(screen, event) {
				return nil
			}
		}
		draw(screen, path, now)
	}
}

// leaves serves a key or a new size, and tells whether it is time to go.
func leaves(screen tcell.Screen, event tcell.Event) bool {
	switch event := event.(type) {
	case *tcell.EventResize:
		screen.Sync()
	case *tcell.EventKey:
		key := event.Key()
		return key == tcell.KeyCtrlC || key == tcell.KeyEscape || event.Str() == "q"
	}
	return false
}

func draw(screen tcell.Screen, path string, now view) {
	screen.Clear()
	width, height := screen.Size()
	for y, line := range fit(page(path, now, width), height) {
		style := tcell.StyleDefault.Bold(y == 0).Dim(y == headLines)
		screen.PutStrStyled(0, y, line, style)
	}
	screen.Show()
}

// headLines is what stands above the table.
const headLines = 2

// screened are the columns from wide to narrow: what comes before the last one is to fit,
// which is long, and cut by the terminal.
var screened = []columns{
	{"KIND", "STATE", "SINCE", "SESSION", "DATA", "ZNODE"},
	{"KIND", "STATE", "TIME", "SESSION", "DATA", "ZNODE"},
	{"KIND", "STATE", "TIME", "DATA", "ZNODE"},
	{"KIND", "STATE", "DATA", "ZNODE"},
}

// page is the queue as lines for a terminal of a width.
func page(path string, now view, width int) []string {
	shown := text.Printable(path)
	if now.at.IsZero() {
		return []string{shown}
	}
	holding := 0
	for _, r := range now.rows {
		if r.State == queues.Holds {
			holding++
		}
	}
	more := ""
	if now.left > 0 {
		more = fmt.Sprintf(", %d more", now.left)
	}
	head := fmt.Sprintf("%s   %d holding, %d waiting%s   since %s, q leaves", shown,
		holding, len(now.rows)-holding, more, now.at.Format(time.TimeOnly))
	if now.err != nil {
		head = fmt.Sprintf("%s   ZooKeeper has not answered since %s; before that:",
			shown, now.at.Format(time.TimeOnly))
	}
	rows := slices.Clone(now.rows)
	for i := range rows {
		rows[i].Node = strings.TrimPrefix(rows[i].Node, path+"/")
	}
	return append([]string{head, ""}, tableFor(rows, width)...)
}

// tableFor chooses the first columns that fit, else the last.
func tableFor(rows []queues.Row, width int) []string {
	for _, order := range screened {
		wide := func(line string) bool { return utf8.RuneCountInString(line) > width }
		if !slices.ContainsFunc(tableOf(rows, order[:len(order)-1]), wide) {
			return tableOf(rows, order)
		}
	}
	return tableOf(rows, screened[len(screened)-1])
}

func tableOf(rows []queues.Row, order columns) []string {
	var table strings.Builder
	_ = writeTable(&table, rows, order) // a Builder takes everything
	return strings.Split(strings.TrimRight(table.String(), "\n"), "\n")
}

// fit cuts lines to a height. The last one says how many do not fit.
func fit(lines []string, height int) []string {
	if height < 2 || len(lines) <= height {
		return lines
	}
	return append(lines[:height-1:height-1],
		fmt.Sprintf("… and %d more", len(lines)-(height-1)))
}
