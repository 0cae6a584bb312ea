package main

import (
	"fmt"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"
)

type m struct{ t textinput.Model }

func (x m) Init() tea.Cmd { return textinput.Blink }
func (x m) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if k, ok := msg.(tea.KeyMsg); ok && k.Type == tea.KeyEnter {
		return x, tea.Quit
	}
	var c tea.Cmd
	x.t, c = x.t.Update(msg)
	return x, c
}
func (x m) View() string { return "Name?\n" + x.t.View() + "\n" }
func main() {
	t := textinput.New()
	t.Focus()
	if err := tea.NewProgram(m{t}).Start(); err != nil {
		fmt.Println(err)
	}
}
