// Command worker stands in for a process that runs conformance cases, in the tests of what starts such processes. Its first argument
// is a device's name, of which the words say what goes wrong.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	device := os.Args[1]
	enc := json.NewEncoder(os.Stdout)
	say := func(v any) {
		if err := enc.Encode(v); err != nil {
			os.Exit(9)
		}
	}
	if strings.Contains(device, "absent") {
		say(map[string]any{"error": "there is no such device"})
		os.Exit(1)
	}
	if strings.Contains(device, "broken") {
		fmt.Fprintln(os.Stderr, "the loader fell over")
		os.Exit(7)
	}
	var cases []string
	pieces := [][]int{{}, {}, {}}
	for i := range 30 {
		kind := "good"
		switch {
		case strings.Contains(device, "all"):
			kind = "crash"
		case i == 3 && strings.Contains(device, "crash"):
			kind = "crash"
		case i == 7 && strings.Contains(device, "hang"):
			kind = "hang"
		case i == 11 && strings.Contains(device, "compiler"):
			kind = "compiler"
		case i == 13 && strings.Contains(device, "lost"):
			kind = "lost"
		}
		cases = append(cases, fmt.Sprintf("kernels/%s/%d", kind, i))
		pieces[i%3] = append(pieces[i%3], i)
	}
	say(map[string]any{"plan": map[string]any{"report": map[string]any{"device": map[string]any{"device": device}, "mode": "check"}, "cases": cases, "pieces": pieces}})
	fmt.Println("a driver that prints")
	for dec := json.NewDecoder(os.Stdin); ; {
		var piece struct {
			Cases     []int
			Rehearsed bool
		}
		if dec.Decode(&piece) != nil {
			return
		}
		if piece.Rehearsed {
			for _, i := range piece.Cases {
				if strings.Contains(cases[i], "compiler") {
					fmt.Fprintln(os.Stderr, "internal compiler error")
					os.Exit(4)
				}
			}
		}
		for _, i := range piece.Cases {
			say(map[string]any{"started": i})
			status := "pass"
			switch {
			case strings.Contains(cases[i], "crash"):
				fmt.Fprintln(os.Stderr, "3 warnings generated.\nSIGSEGV: segmentation violation")
				os.Exit(2)
			case strings.Contains(cases[i], "hang"):
				time.Sleep(time.Hour)
			case strings.Contains(cases[i], "compiler"):
				status = "fail"
			case strings.Contains(cases[i], "lost"):
				status = "fail"
			}
			say(map[string]any{"case": i, "result": map[string]any{"name": cases[i], "suite": "kernels", "status": status, "message": fmt.Sprint(os.Getpid())}})
			if strings.Contains(cases[i], "lost") {
				say(map[string]any{"error": "the device was lost"})
				os.Exit(1)
			}
		}
		say(map[string]any{"done": true})
	}
}
