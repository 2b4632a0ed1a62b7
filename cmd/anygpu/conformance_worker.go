package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/anygpu/anygpu/backend"
	"github.com/anygpu/anygpu/conformance"
)

// 'anygpu conformance' runs the cases in processes of its own: a driver that ends its process takes one case with it and not
// the run, and compilers that work on one core at a time in a process use the others too. A worker is this program with the
// hidden command below. It opens one device, lists the cases, and then runs those that it is asked for; both sides talk in lines
// of JSON.

// workerCommand is the hidden command's name.
const workerCommand = "conformance-worker"

// workerPiece asks a worker to run cases, by their places in the list.
type workerPiece struct {
	Cases     []int `json:"cases"`
	Rehearsed bool  `json:"rehearsed"` // kernels of several cases are compiled together, ahead of the cases
}

// workerLine is what a worker says; one of the fields is set.
type workerLine struct {
	Plan    *workerPlan         `json:"plan,omitempty"` // the first line
	Started *int                `json:"started,omitempty"`
	Case    int                 `json:"case,omitempty"` // of Result
	Result  *conformance.Result `json:"result,omitempty"`
	Done    bool                `json:"done,omitempty"` // the piece is done
	Error   string              `json:"error,omitempty"`
}

// workerPlan is the list of cases, dealt into pieces.
type workerPlan struct {
	Report *conformance.Report `json:"report"`
	Cases  []string            `json:"cases"`
	Pieces [][]int             `json:"pieces"`
}

// pieceSize is the number of cases that a worker is asked for at a time: enough for compiling their kernels together, few enough
// that workers end at about the same time.
const pieceSize = 80

func newConformanceWorker() *cobra.Command {
	var cfg conformanceConfig
	cmd := &cobra.Command{
		Use:    workerCommand,
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts, err := cfg.options()
			if err != nil {
				return err
			}
			opts.Context = cmd.Context()
			return serveCases(cfg.devices, opts, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cfg.caseFlags(cmd.Flags())
	return cmd
}

// workerArgs are the arguments that make this program a worker for a device.
func (c conformanceConfig) workerArgs(device string) []string {
	args := []string{workerCommand, "--device", device, "--mode", c.mode, "--seed", fmt.Sprint(c.seed), fmt.Sprintf("--quick=%t", c.quick)}
	for _, f := range []struct{ flag, value string }{{"--suite", c.suite}, {"--case", c.cases}, {"--skip", c.skip}, {"--golden", c.golden}} {
		if f.value != "" {
			args = append(args, f.flag+"="+f.value)
		}
	}
	return args
}

// serveCases is a worker.
func serveCases(device string, opts conformance.Options, in io.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	say := func(l workerLine) {
		if enc.Encode(l) != nil {
			os.Exit(1) // nobody listens
		}
	}
	err := func() error {
		dev, err := backend.Open(device)
		if err != nil {
			return err
		}
		defer dev.Close()
		s, err := conformance.NewSession(dev, opts)
		if err != nil {
			return err
		}
		say(workerLine{Plan: &workerPlan{Report: s.Report(), Cases: s.Cases(), Pieces: s.Pieces(pieceSize)}})
		var running atomic.Bool
		for piece := range piecesOf(opts.Context, in, &running) {
			err := s.Run(piece.Cases, piece.Rehearsed, conformance.Observer{
				Started: func(i int) { say(workerLine{Started: &i}) },
				Done:    func(i int, r conformance.Result) { say(workerLine{Case: i, Result: &r}) },
			})
			if err != nil {
				return err
			}
			running.Store(false)
			say(workerLine{Done: true})
		}
		return opts.Context.Err()
	}()
	if err != nil {
		say(workerLine{Error: err.Error()})
	}
	return err
}

// piecesOf reads pieces until the input or the context ends. A worker whose input ends while it runs a piece ends at once: the
// program that asked is gone.
func piecesOf(ctx context.Context, in io.Reader, running *atomic.Bool) <-chan workerPiece {
	pieces := make(chan workerPiece)
	go func() {
		defer close(pieces)
		for dec := json.NewDecoder(in); ; {
			var p workerPiece
			if dec.Decode(&p) != nil {
				if running.Load() {
					os.Exit(1)
				}
				return
			}
			running.Store(true)
			select {
			case pieces <- p:
			case <-ctx.Done():
				return
			}
		}
	}()
	return pieces
}
