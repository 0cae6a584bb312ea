package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	r := bufio.NewReader(os.Stdin)
	fmt.Print("Name: ")
	r.ReadString('\n')
	time.Sleep(1200 * time.Millisecond)
	fmt.Print("Age? ")
	r.ReadString('\n')
}
