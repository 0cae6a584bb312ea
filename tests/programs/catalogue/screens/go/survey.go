package main

import (
	"github.com/AlecAivazis/survey"
	"time"
)

func main() {
	var a, p, c string
	var b bool
	survey.AskOne(&survey.Input{Message: "Name?"}, &a, nil)
	time.Sleep(time.Second)
	survey.AskOne(&survey.Confirm{Message: "Sure?"}, &b, nil)
	survey.AskOne(&survey.Password{Message: "Password?"}, &p, nil)
	survey.AskOne(&survey.Select{Message: "Which?", Options: []string{"one", "two"}}, &c, nil)
}
