package tensorboard

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/anygpu/anygpu/tensor"
	"github.com/anygpu/anygpu/train"
	"github.com/anygpu/anygpu/train/data"
	"github.com/anygpu/anygpu/train/nn"
	"github.com/anygpu/anygpu/train/optim"
)

// schema has the messages of event.proto and summary.proto as far as they are used, for protobuf's own decoder.
const schema = `
name: "event.proto" package: "tensorflow" syntax: "proto3"
message_type {
  name: "Event"
  field { name: "wall_time" number: 1 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "step" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "file_version" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "summary" number: 5 type: TYPE_MESSAGE type_name: ".tensorflow.Summary" label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "session_log" number: 7 type: TYPE_MESSAGE type_name: ".tensorflow.SessionLog" label: LABEL_OPTIONAL oneof_index: 0 }
  oneof_decl { name: "what" }
}
message_type {
  name: "SessionLog"
  enum_type { name: "SessionStatus" value { name: "STATUS_UNSPECIFIED" number: 0 } value { name: "START" number: 1 } }
  field { name: "status" number: 1 type: TYPE_ENUM type_name: ".tensorflow.SessionLog.SessionStatus" label: LABEL_OPTIONAL }
}
message_type {
  name: "Summary"
  nested_type {
    name: "Value"
    field { name: "tag" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "simple_value" number: 2 type: TYPE_FLOAT label: LABEL_OPTIONAL oneof_index: 0 }
    oneof_decl { name: "value" }
  }
  field { name: "value" number: 1 type: TYPE_MESSAGE type_name: ".tensorflow.Summary.Value" label: LABEL_REPEATED }
}`

// crc32c computes the checksum a bit at a time, by its definition: the polynomial 0x1EDC6F41, reflected.
func crc32c(b []byte) uint32 {
	c := ^uint32(0)
	for _, x := range b {
		c ^= uint32(x)
		for range 8 {
			if c&1 == 1 {
				c = c>>1 ^ 0x82f63b78
			} else {
				c >>= 1
			}
		}
	}
	return ^c
}

// read takes an event file apart without the package's own code, and returns each event on a line.
func read(t *testing.T, raw []byte) []string {
	t.Helper()
	var fd descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(schema), &fd); err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(&fd, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(b []byte, stored uint32) {
		rotated := stored - 0xa282ead8
		if got, want := rotated>>17|rotated<<15, crc32c(b); got != want {
			t.Errorf("checksum %#x, want %#x", got, want)
		}
	}
	var out []string
	for len(raw) > 0 {
		n := binary.LittleEndian.Uint64(raw)
		if uint64(len(raw)) < 16+n {
			t.Fatalf("a record of %d bytes in the last %d", n, len(raw))
		}
		body := raw[12 : 12+n]
		check(raw[:8], binary.LittleEndian.Uint32(raw[8:]))
		check(body, binary.LittleEndian.Uint32(raw[12+n:]))
		raw = raw[16+n:]
		m := dynamicpb.NewMessage(file.Messages().ByName("Event"))
		if err := proto.Unmarshal(body, m); err != nil {
			t.Fatal(err)
		}
		if len(m.GetUnknown()) > 0 {
			t.Errorf("fields that event.proto does not have: % x", m.GetUnknown())
		}
		out = append(out, line(m))
	}
	return out
}

func line(m *dynamicpb.Message) string {
	field := func(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
		return m.Get(m.Descriptor().Fields().ByName(name))
	}
	text := fmt.Sprintf("%.1f @%d", field(m, "wall_time").Float(), field(m, "step").Int())
	if v := field(m, "file_version").String(); v != "" {
		text += " " + v
	}
	if s := field(m, "session_log").Message(); s.IsValid() {
		text += fmt.Sprintf(" status %d", field(s, "status").Enum())
	}
	values := field(m, "summary").Message()
	for i := range field(values, "value").List().Len() {
		v := field(values, "value").List().Get(i).Message()
		text += fmt.Sprintf(" %s=%v", field(v, "tag").String(), field(v, "simple_value").Float())
	}
	return text
}

func open(t *testing.T) *Log {
	t.Helper()
	l, err := New(filepath.Join(t.TempDir(), "runs", "1"))
	if err != nil {
		t.Fatal(err)
	}
	l.now = func() time.Time { return time.Unix(1700000000, 500e6) }
	return l
}

func TestEvents(t *testing.T) {
	l := open(t)
	path := l.Path()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.OnSteps(train.StepInfo{Step: 20, Loss: 2.5, LR: 0.125}))
	must(l.OnSteps(train.StepInfo{Step: 300, Loss: math.Inf(1), LR: 0.125, Skipped: 2}))
	must(l.OnEpoch(train.EpochInfo{Step: 300, Loss: 1.5, Metrics: map[string]float64{"val_loss": 1.25, "accuracy": 0.75}}))
	must(l.Scalar("größe\xff", -1, -0.5))
	raw, err := os.ReadFile(path) // before Close: it is all there
	must(err)
	must(l.OnEnd(nil))
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(raw, after) {
		t.Errorf("closing changed the file from %d to %d bytes, %v", len(raw), len(after), err)
	}
	got := read(t, raw)
	want := []string{
		" @0 brain.Event:2",
		" @20 status 1",
		" @20 train/loss=2.5 train/lr=0.125",
		" @300 train/loss=+Inf train/lr=0.125 train/skipped_steps=2",
		" @300 train/epoch_loss=1.5 val/accuracy=0.75 val/loss=1.25",
		" @-1 größe�=-0.5",
	}
	for i := range want[1:] {
		want[i+1] = "1700000000.5" + want[i+1]
	}
	got[0] = strings.TrimLeft(got[0], "0123456789.")
	if !slices.Equal(got, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// The first bytes of every file of version 2, whoever wrote it: a record of 24 bytes, and the checksum of that length.
	if head := raw[:13]; string(head) != "\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\x22\x09" {
		t.Errorf("the file begins with % x", head)
	}
	if name := filepath.Base(path); !strings.HasPrefix(name, "events.out.tfevents.") {
		t.Errorf("file %s", name)
	}
	if err := l.Scalar("x", 1, 1); err == nil || l.Close() != nil {
		t.Errorf("after Close: %v", err)
	}
}

// TestFilesOfTwoRuns: a second log in the same second and folder has a file of its own.
func TestFilesOfTwoRuns(t *testing.T) {
	dir := t.TempDir()
	names := map[string]bool{}
	for range 3 {
		l, err := New(dir)
		if err != nil {
			t.Fatal(err)
		}
		names[l.Path()] = true
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 3 {
		t.Errorf("files %v", names)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(filepath.Join(file, "x")); err == nil {
		t.Error("a folder in a file was made")
	}
}

func TestFullDisk(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	l := open(t)
	l.f.Close()
	l.f = f
	l.w.Reset(f)
	first := l.Scalar("a", 1, 1)
	if first == nil || !strings.Contains(first.Error(), "tensorboard: ") {
		t.Errorf("error %v", first)
	}
	if again := l.Scalar("a", 2, 1); again != first || l.Close() != first {
		t.Errorf("later %v and %v, want the first error", again, l.Close())
	}
}

// TestLoop watches a run.
func TestLoop(t *testing.T) {
	set, err := data.FromSlices([]float32{0, 1, 2, 3}, []int{1}, []int64{0, 0, 1, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	model := nn.NewSequential(nn.NewLinear(1, 2, nn.WithGenerator(tensor.NewGenerator(1))))
	loader := data.NewLoader(set, data.LoaderConfig{BatchSize: 2})
	l := open(t)
	path := l.Path()
	loop := &train.Loop[data.Batch]{
		Model: model, Optimizer: optim.NewSGD(model.Parameters(), optim.SGDConfig{LR: 0.5}), Device: tensor.CPU(), Data: loader, Validation: loader, Epochs: 2,
		Forward: func(s *tensor.Scope, b data.Batch) (_, _ *tensor.Tensor) { return model.Forward(s.To(b.X)), s.To(b.Y) },
		Loss:    nn.CrossEntropy, Metrics: []train.Metric{train.Accuracy()}, ReportEvery: 1, Observers: []train.Observer{l},
	}
	history, err := loop.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, raw)
	if len(got) != 1+1+4+2 {
		t.Errorf("%d events:\n%s", len(got), strings.Join(got, "\n"))
	}
	e := history.Epochs[1]
	want := fmt.Sprintf("1700000000.5 @4 train/epoch_loss=%v val/accuracy=%v val/loss=%v", float64(float32(e.Loss)), float64(float32(e.Metrics["accuracy"])), float64(float32(e.Metrics["val_loss"])))
	if got[len(got)-1] != want {
		t.Errorf("last event %s, want %s", got[len(got)-1], want)
	}
}
