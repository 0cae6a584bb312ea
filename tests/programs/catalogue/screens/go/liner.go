package main

import (
	"github.com/peterh/liner"
	"time"
)

func main() {
	l := liner.NewLiner()
	defer l.Close()
	l.Prompt("Name: ")
	time.Sleep(time.Second)
	l.PasswordPrompt("Password: ")
}
