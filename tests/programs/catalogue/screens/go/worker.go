package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	lines := make(chan string)
	go func() {
		r := bufio.NewReader(os.Stdin)
		for {
			l, e := r.ReadString('\n')
			if e != nil {
				return
			}
			lines <- l
		}
	}()
	fmt.Print("Name: ")
	<-lines
	time.Sleep(1500 * time.Millisecond)
	fmt.Print("Age? ")
	select {
	case <-lines:
	case <-time.After(60 * time.Second):
	}
}
