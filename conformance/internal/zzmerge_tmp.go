//go:build ignore

package main

import (
	"encoding/json"
	"os"

	"github.com/anygpu/anygpu/conformance"
)

func main() {
	var all conformance.Reports
	for _, f := range os.Args[2:] {
		var doc struct{ Reports conformance.Reports }
		b, _ := os.ReadFile(f)
		if err := json.Unmarshal(b, &doc); err != nil {
			panic(err)
		}
		all = append(all, doc.Reports...)
	}
	w, _ := os.Create(os.Args[1])
	if err := all.WriteHTML(w); err != nil {
		panic(err)
	}
}
