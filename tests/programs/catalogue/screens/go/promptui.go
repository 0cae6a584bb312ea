package main

import (
	"github.com/manifoldco/promptui"
	"time"
)

func main() {
	(&promptui.Prompt{Label: "Name"}).Run()
	time.Sleep(time.Second)
	(&promptui.Prompt{Label: "Sure", IsConfirm: true}).Run()
	(&promptui.Prompt{Label: "Password", Mask: '*'}).Run()
	(&promptui.Select{Label: "Which", Items: []string{"one", "two"}}).Run()
}
