// Command gendocs writes docs/operators.md from the operator table. Run it in the repository's root:
//
//	go run ./conformance/internal/gendocs
package main

import (
	"fmt"
	"os"

	"github.com/anygpu/anygpu/conformance"
)

func main() {
	if err := os.WriteFile("docs/operators.md", []byte(conformance.OperatorReference()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}
