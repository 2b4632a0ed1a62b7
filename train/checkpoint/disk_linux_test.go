package checkpoint

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/anygpu/anygpu/tensor"
)

const roomEnv = "ANYGPU_TEST_ROOM"

// TestNoRoom saves where the operating system refuses to write on, at several places of a checkpoint's files: the checkpoint before
// stays whole and is the latest, and nothing else is left.
func TestNoRoom(t *testing.T) {
	if dir := os.Getenv(roomEnv); dir != "" { // the child: its files may have so many bytes
		var room uint64
		if _, err := fmt.Sscan(os.Getenv("ANYGPU_TEST_BYTES"), &room); err != nil {
			t.Fatal(err)
		}
		tr := newTrainer(t, tensor.CPU())
		k := &Keeper{Dir: dir}
		base, err := k.Latest()
		if err == nil {
			err = Load(base, &tr.Run)
		}
		if err != nil {
			t.Fatal(err)
		}
		tr.step(t)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
			t.Fatal(err)
		}
		_, err = k.Save(&tr.Run)
		fmt.Printf("saving: %v\n", err)
		os.Exit(0)
	}
	k := &Keeper{Dir: t.TempDir()}
	tr := newTrainer(t, tensor.CPU())
	tr.step(t)
	base, err := k.Save(&tr.Run)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	for _, ext := range []string{weightsExt, stateExt, sidecarExt} {
		info, err := os.Stat(base + ext)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size())
	}
	before := tr.bits(t)
	// Too little for the weights, for the state and for the JSON file alone, and just enough.
	for _, room := range []int64{0, sizes[0] - 1, sizes[1] - 1, max(sizes[0], sizes[1], sizes[2]) + 64} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoRoom$")
		cmd.Env = append(os.Environ(), roomEnv+"="+k.Dir, fmt.Sprintf("ANYGPU_TEST_BYTES=%d", room))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		fits := room > max(sizes[0], sizes[1], sizes[2])
		if fits != strings.Contains(string(out), "saving: <nil>") || !fits && !strings.Contains(string(out), "file too large") {
			t.Errorf("room for %d bytes: %s", room, out)
		}
		latest, err := k.Latest()
		if err != nil || (latest == base) == fits {
			t.Errorf("room for %d bytes: the latest checkpoint is %s, %v", room, latest, err)
		}
		again := newTrainer(t, tensor.CPU())
		if err := Load(base, &again.Run); err != nil || !bytes.Equal(again.bits(t), before) {
			t.Errorf("room for %d bytes: the checkpoint before: %v", room, err)
		}
		if left, _ := filepath.Glob(filepath.Join(k.Dir, ".*.tmp")); len(left) > 0 {
			t.Errorf("room for %d bytes: %v stay", room, left)
		}
	}
}
