// Command anygpu shows the devices of a machine, trains a demonstration on them, holds them against
// the operator table, and prints kernels.
//
// Usage:
//
//	anygpu devices [--json]
//	anygpu demo [--model mlp|cnn|gpt] [--device all|NAME,…] [--precision fp32,amp] …
//	anygpu conformance [--device all|NAME,…] [--suite REGEXP] [--case REGEXP] [--mode check|grad|perf|support] …
//	anygpu bench --workload NAME [--device NAME] [--threads N] [--seconds S] [--batch N] [--width N] [--amp]
//	anygpu kernels [--op NAME] [--format ir|clc|spirv]
//
// The exit status is 0 after success, 1 after a failure and 2 after wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	_ "github.com/anygpu/anygpu/backend/all"
)

// usageError is a mistake in the command line: exit status 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)       // a second interrupt ends the program at once
	workerProgram, _ = os.Executable() // without it cases run in this process
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "anygpu:", err)
		os.Exit(exitStatus(err))
	}
}

func exitStatus(err error) int {
	var usage usageError
	// cobra's own complaints about commands and arguments have no type.
	if errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command") {
		return 2
	}
	return 1
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "anygpu",
		Short:         "Train neural networks on any vendor's GPU",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.Help(); err != nil {
				return err
			}
			return usagef("a command is needed: devices, demo, conformance, bench or kernels")
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newDevices(), newDemo(), newConformance(), newConformanceWorker(), newKernels(), newBench())
	return root
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument %q; see '%s --help'", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}
