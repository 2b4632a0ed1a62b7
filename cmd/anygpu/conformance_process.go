package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// worker is a process that runs cases, seen from the program that started it.
type worker struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan workerLine // closed when the process has ended
	err    error           // how it ended, once lines is closed
	stderr firstLines
}

// startWorker starts a program as a worker. The process is killed when ctx ends.
func startWorker(ctx context.Context, program string, args []string) (*worker, error) {
	w := &worker{cmd: exec.CommandContext(ctx, program, args...), lines: make(chan workerLine, 64)}
	w.cmd.Stderr = &w.stderr
	w.cmd.WaitDelay = 5 * time.Second // a driver's own children may hold the pipes
	var err error
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("a process for the cases: %w", err)
	}
	go func() {
		defer close(w.lines)
		w.receive(out)
		w.err = w.cmd.Wait()
	}()
	return w, nil
}

// receive reads lines until the output ends. What is no line of a worker is a driver's: it belongs to the errors.
func (w *worker) receive(out io.Reader) {
	for r := bufio.NewReader(out); ; {
		text, err := r.ReadBytes('\n')
		var line workerLine
		if json.Unmarshal(text, &line) == nil {
			w.lines <- line
		} else {
			_, _ = w.stderr.Write(text)
		}
		if err != nil {
			return
		}
	}
}

func (w *worker) ask(p workerPiece) error {
	w.stderr.clear()
	if err := json.NewEncoder(w.stdin).Encode(p); err != nil {
		_, err = w.read(time.Second)
		return err
	}
	return nil
}

// read returns the next line. A worker that says nothing for the given time is killed.
func (w *worker) read(limit time.Duration) (workerLine, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case line, ok := <-w.lines:
		if !ok {
			return line, w.ending()
		}
		return line, nil
	case <-timer.C:
		w.kill()
		return workerLine{}, fmt.Errorf("no end after %s, the process was killed%s", limit, w.stderr.text())
	}
}

// ending says how the process ended.
func (w *worker) ending() error {
	text := "it exited"
	if w.err != nil {
		text = w.err.Error()
	}
	return errors.New("the process ended: " + text + w.stderr.text())
}

func (w *worker) kill() {
	_ = w.cmd.Process.Kill() // it may have ended
	for range w.lines {      // until it has
	}
}

// close ends the worker: at the end of its input it closes the device. One that does not is killed.
func (w *worker) close() {
	_ = w.stdin.Close()
	timer := time.AfterFunc(10*time.Second, func() { _ = w.cmd.Process.Kill() })
	defer timer.Stop()
	for range w.lines {
	}
}

// firstLines keeps the first lines of what a process writes about its end, the ones with the cause.
type firstLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const keptErrors = 4 << 10 // bytes

func (f *firstLines) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if room := keptErrors - f.buf.Len(); room > 0 {
		f.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (f *firstLines) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buf.Reset()
}

// text returns what is kept as the end of a message.
func (f *firstLines) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out strings.Builder
	for line := range strings.Lines(f.buf.String()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, "generated.") { // "3 warnings generated.": compilers'
			out.WriteString("\n" + line)
		}
	}
	return out.String()
}
