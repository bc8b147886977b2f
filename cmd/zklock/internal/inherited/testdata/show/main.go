// The program show says which signals it was started to ignore.
package main

import (
	"fmt"

	"github.com/zkrecipes/recipes/cmd/zklock/internal/inherited"
)

func main() {
	for _, s := range inherited.Ignored() {
		fmt.Println(int(s))
	}
}
