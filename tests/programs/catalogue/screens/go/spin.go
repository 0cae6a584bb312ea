package main

import (
	"github.com/charmbracelet/bubbles/spinner"
	tea "github.com/charmbracelet/bubbletea"
	"time"
)

type m struct{ s spinner.Model }

func (x m) Init() tea.Cmd {
	return tea.Batch(x.s.Tick, func() tea.Msg { time.Sleep(2500 * time.Millisecond); return tea.Quit() })
}
func (x m) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var c tea.Cmd
	x.s, c = x.s.Update(msg)
	return x, c
}
func (x m) View() string { return x.s.View() + " Install? \n" }
func main()              { s := spinner.New(); tea.NewProgram(m{s}).Start() }
