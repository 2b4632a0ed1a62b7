// Package tensorboard writes a run's figures as TensorBoard's event files.
//
// # Overview
//
// A [Log] is an observer of a train.Loop, beside the CSV log:
//
//	log, err := tensorboard.New("runs/1")
//	…
//	loop.Observers = []train.Observer{log}
//
// and 'tensorboard --logdir runs' draws the curves, while the run goes on too. Reports of steps give train/loss, train/lr and, once a
// gradient overflowed, train/skipped_steps; epochs give train/epoch_loss and their metrics as val/loss, val/accuracy and so on. [Log.Scalar]
// adds figures of one's own.
//
// # Invariants
//
//   - Each New makes a file of its own; a resumed run writes another one into the same folder, and TensorBoard drops what the first
//     run had written beyond the step at which the second went on.
//   - What was reported is in the file before the report returns, so that a run that is killed leaves it.
package tensorboard

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/anygpu/anygpu/train"
)

// Log writes an event file. It may be used by several goroutines.
type Log struct {
	mu    sync.Mutex
	f     *os.File
	w     *bufio.Writer
	now   func() time.Time
	begun bool  // the first step is known
	err   error // the first failure
}

var _ train.Observer = (*Log)(nil)

// New makes a folder and an event file in it.
func New(dir string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	// The name that TensorBoard looks for has "tfevents"; files are read in the order of their names.
	name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d", time.Now().Unix(), strings.ReplaceAll(host, string(filepath.Separator), "_"), os.Getpid())
	f, err := create(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	l := &Log{f: f, w: bufio.NewWriter(f), now: time.Now}
	if err := l.write(l.version()); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// create makes a file that was not there.
func create(path string) (*os.File, error) {
	for i := 0; ; i++ {
		f, err := os.OpenFile(fmt.Sprintf("%s.%d", path, i), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
}

// Path returns the file's name.
func (l *Log) Path() string { return l.f.Name() }

// Scalar adds a point to the curve of a tag, such as "train/gradient_norm".
func (l *Log) Scalar(tag string, step int, value float64) error {
	return l.scalars(step, []scalar{{tag, value}})
}

// OnSteps writes the loss, the learning rate and the steps left out.
func (l *Log) OnSteps(s train.StepInfo) error {
	values := []scalar{{"train/loss", s.Loss}, {"train/lr", s.LR}}
	if s.Skipped > 0 {
		values = append(values, scalar{"train/skipped_steps", float64(s.Skipped)})
	}
	return l.scalars(s.Step, values)
}

// OnEpoch writes the epoch's mean loss and its metrics.
func (l *Log) OnEpoch(e train.EpochInfo) error {
	values := []scalar{{"train/epoch_loss", e.Loss}}
	for name, v := range e.Metrics {
		values = append(values, scalar{"val/" + strings.TrimPrefix(name, "val_"), v})
	}
	slices.SortFunc(values[1:], func(a, b scalar) int { return strings.Compare(a.tag, b.tag) })
	return l.scalars(e.Step, values)
}

// OnEnd closes the file.
func (l *Log) OnEnd(error) error { return l.Close() }

// Close writes what is left. A second call does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return l.err
	}
	err := errors.Join(l.w.Flush(), l.f.Close())
	l.f = nil
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("tensorboard: %w", err)
	}
	return l.err
}

// scalar is a value of a summary.
type scalar struct {
	tag   string
	value float64
}

func (l *Log) scalars(step int, values []scalar) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return fmt.Errorf("tensorboard: the log is closed")
	}
	if !l.begun {
		l.begun = true
		if err := l.write(l.start(step)); err != nil {
			return err
		}
	}
	return l.write(l.summary(step, values))
}

// Numbers of fields, and the values of enumerations: tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
const (
	eventWallTime    = 1
	eventStep        = 2
	eventFileVersion = 3
	eventSummary     = 5
	eventSessionLog  = 7
	summaryValue     = 1
	valueTag         = 1
	valueSimple      = 2
	sessionStatus    = 1
	sessionStart     = 1

	fileVersion = "brain.Event:2"
)

// event begins a message tensorflow.Event.
func (l *Log) event(step int) []byte {
	b := protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(float64(l.now().UnixNano())/1e9))
	if step != 0 {
		b = protowire.AppendTag(b, eventStep, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(int64(step)))
	}
	return b
}

// version is the event that every file starts with.
func (l *Log) version() []byte {
	b := protowire.AppendTag(l.event(0), eventFileVersion, protowire.BytesType)
	return protowire.AppendString(b, fileVersion)
}

// start says that the run begins, or goes on, at a step: TensorBoard drops what older files have of that step and later ones.
func (l *Log) start(step int) []byte {
	log := protowire.AppendTag(nil, sessionStatus, protowire.VarintType)
	log = protowire.AppendVarint(log, sessionStart)
	b := protowire.AppendTag(l.event(step), eventSessionLog, protowire.BytesType)
	return protowire.AppendBytes(b, log)
}

func (l *Log) summary(step int, values []scalar) []byte {
	var sum []byte
	for _, v := range values {
		val := protowire.AppendTag(nil, valueTag, protowire.BytesType)
		val = protowire.AppendString(val, strings.ToValidUTF8(v.tag, "�"))
		val = protowire.AppendTag(val, valueSimple, protowire.Fixed32Type)
		val = protowire.AppendFixed32(val, math.Float32bits(float32(v.value)))
		sum = protowire.AppendTag(sum, summaryValue, protowire.BytesType)
		sum = protowire.AppendBytes(sum, val)
	}
	b := protowire.AppendTag(l.event(step), eventSummary, protowire.BytesType)
	return protowire.AppendBytes(b, sum)
}

// write appends a record to the file: length, its checksum, data, their checksum (tensorflow/core/lib/io/record_writer.h).
func (l *Log) write(data []byte) error {
	if l.err != nil {
		return l.err
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	head = binary.LittleEndian.AppendUint32(head, masked(head))
	tail := binary.LittleEndian.AppendUint32(nil, masked(data))
	for _, part := range [][]byte{head, data, tail} {
		if _, err := l.w.Write(part); err != nil {
			l.err = fmt.Errorf("tensorboard: %w", err)
			return l.err
		}
	}
	if err := l.w.Flush(); err != nil {
		l.err = fmt.Errorf("tensorboard: %w", err)
	}
	return l.err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is a CRC-32C that is rotated and moved, so that the checksum of data that hold checksums is no trivial one.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
