package main

import (
	"fmt"
	tea "github.com/charmbracelet/bubbletea"
	"time"
)

type m struct{ n int }
type done struct{}

func (x m) Init() tea.Cmd { return nil }
func (x m) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch k := msg.(type) {
	case tea.KeyMsg:
		if k.String() == "q" {
			return x, tea.Quit
		}
		x.n = 1
		return x, func() tea.Msg { time.Sleep(1200 * time.Millisecond); return done{} }
	case done:
		x.n = 2
	}
	return x, nil
}
func (x m) View() string {
	return []string{"Which?\n> one\n  two\n", "Working\n", "Finished. Press q.\n"}[x.n]
}
func main() {
	if err := tea.NewProgram(m{}).Start(); err != nil {
		fmt.Println(err)
	}
}
