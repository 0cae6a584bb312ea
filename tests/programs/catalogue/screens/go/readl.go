package main

import (
	"github.com/chzyer/readline"
	"time"
)

func main() {
	r, _ := readline.New("db> ")
	for {
		l, e := r.Readline()
		if e != nil || l == "quit" {
			return
		}
		time.Sleep(900 * time.Millisecond)
	}
}
