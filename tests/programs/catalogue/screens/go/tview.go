package main

import "github.com/rivo/tview"

func main() {
	a := tview.NewApplication()
	f := tview.NewForm().AddInputField("Name", "", 20, nil, nil).AddButton("Save", func() { a.Stop() })
	a.SetRoot(f, true).Run()
}
