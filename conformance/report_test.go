package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/conformance"
	"github.com/anygpu/anygpu/tensor"
)

// sampleReports has a result of each status, with text that needs escaping.
func sampleReports() conformance.Reports {
	ulp, of := 2.5, 0.8
	return conformance.Reports{{
		Device: conformance.DeviceInfo{Device: "vulkan:0", API: "vulkan", Name: "A <GPU>", Driver: "driver", DriverVersion: "1.2", Type: "discrete gpu", Lacks: []string{"double precision"}},
		Mode:   conformance.ModeCheck, Quick: true, Seed: 7,
		Results: []conformance.Result{
			{Name: "operators/exp/float32/contiguous", Suite: "operators", Op: "exp", DType: "float32", Status: conformance.Pass, WorstULP: &ulp, OfBound: &of, Bound: "3 ULP"},
			{Name: "operators/log/float32/contiguous", Suite: "operators", Op: "log", DType: "float32", Status: conformance.Fail, Message: "log is <off>\x1b", Rerun: "anygpu conformance --case '^operators/log/float32/contiguous$'"},
			{Name: "operators/exp/float64/contiguous", Suite: "operators", Op: "exp", DType: "float64", Status: conformance.NotSupported, Message: "double precision"},
			{Name: "memory/copy/large", Suite: "memory", Status: conformance.Skip, Message: "left out by the caller"},
		},
	}}
}

func TestReportFormats(t *testing.T) {
	rs := sampleReports()
	if !rs.Failed() {
		t.Error("a failed case does not make the reports fail")
	}
	var text, js, junit, html bytes.Buffer
	for _, w := range []struct {
		name string
		err  error
	}{{"text", rs.WriteText(&text)}, {"JSON", rs.WriteJSON(&js)}, {"JUnit", rs.WriteJUnit(&junit)}, {"HTML", rs.WriteHTML(&html)}} {
		if w.err != nil {
			t.Errorf("%s: %v", w.name, w.err)
		}
	}
	for _, want := range []string{"vulkan:0 (A <GPU>, driver 1.2)", "FAIL operators/log/float32/contiguous", "rerun: anygpu conformance", "not supported: double precision (1 cases)", "seed 7", "quick"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, text.String())
		}
	}
	var doc struct {
		Format  int
		Reports conformance.Reports
	}
	if err := json.Unmarshal(js.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Format != 1 || len(doc.Reports) != 1 || len(doc.Reports[0].Results) != 4 || *doc.Reports[0].Results[0].WorstULP != 2.5 {
		t.Errorf("the JSON does not come back: %+v", doc)
	}
	var suites struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Skipped  int    `xml:"skipped,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &suites); err != nil {
		t.Fatalf("JUnit: %v\n%s", err, junit.String())
	}
	if s := suites.Suites; len(s) != 2 || s[0].Name != "vulkan:0/memory" || s[1].Tests != 3 || s[1].Failures != 1 || s[1].Skipped != 1 {
		t.Errorf("JUnit suites: %+v", s)
	}
	page := html.String()
	for _, want := range []string{"A &lt;GPU&gt;", "log is &lt;off&gt;", "double precision", "✗1", "viewport", "@media print", "80%"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for _, bad := range []string{"http://", "https://", "<script", "src="} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q: it must need nothing else", bad)
		}
	}
}

func TestCheckSelectsCases(t *testing.T) {
	run := func(o conformance.Options) *conformance.Report {
		t.Helper()
		o.Quick = true
		r, err := conformance.Check(tensor.CPU(), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run(conformance.Options{Suite: regexp.MustCompile("^operators$"), Case: regexp.MustCompile("^operators/(add|mul)/float32/"), Skip: regexp.MustCompile("/empty$")})
	c := r.Counts()
	if c[conformance.Pass] < 6 || c[conformance.Skip] != 2 || c[conformance.Fail] != 0 || len(r.Suites()) != 1 {
		t.Errorf("add and mul: %v", c)
	}
	for _, res := range r.Results {
		if res.Op != "add" && res.Op != "mul" {
			t.Errorf("%s was not asked for", res.Name)
		}
	}
	if r := run(conformance.Options{Mode: conformance.ModeGrad, Case: regexp.MustCompile("/tanh/")}); len(r.Results) != 2 || r.Results[0].Suite != "gradients" || r.Results[1].Suite != "gradients" { // first and second derivatives
		t.Errorf("mode grad: %+v", r.Results)
	}
	sup := run(conformance.Options{Mode: conformance.ModeSupport, Case: regexp.MustCompile("^(exp|mean|bitwise_and)$")})
	got := map[string]map[string]string{}
	for _, row := range sup.Support {
		got[row.Op] = row.DTypes
	}
	if got["exp"]["float16"] != "yes" || got["mean"]["int64"] != "no" || len(sup.Results) != 0 {
		t.Errorf("support: %v", got)
	}
	perf := run(conformance.Options{Mode: conformance.ModePerf, Case: regexp.MustCompile("^(exp|matmul)$")})
	if perf.Perf == nil || perf.Perf.CopyBytesPerSecond <= 0 || perf.Perf.ProductFLOPS <= 0 || len(perf.Perf.Rows) < 2 {
		t.Errorf("perf: %+v", perf.Perf)
	}
	if _, err := conformance.Check(tensor.CPU(), conformance.Options{Mode: "nothing"}); err == nil {
		t.Error("an unknown mode gives no error")
	}
	if _, err := conformance.Check(nil, conformance.Options{}); err == nil {
		t.Error("a nil device gives no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := conformance.Check(tensor.CPU(), conformance.Options{Context: ctx}); !errors.Is(err, context.Canceled) {
		t.Errorf("a run whose context ended returns %v", err)
	}
}

// recorder is a conformance.T that is no *testing.T.
type recorder struct {
	errors, logs []string
}

func (*recorder) Helper() {}
func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}
func (*recorder) Context() context.Context { return context.Background() }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// TestCPU is the one line for the CPU device, with the failures that are known by name.
func TestCPU(t *testing.T) {
	var rec recorder
	conformance.Test(&rec, tensor.CPU())
	for _, e := range rec.errors {
		name, _, _ := strings.Cut(e, ":")
		if why := knownFailures[name]; why != "" {
			t.Logf("known: %s: %s", name, why)
			continue
		}
		t.Error(e)
	}
	if len(rec.logs) == 0 || !strings.Contains(rec.logs[0], "passed") {
		t.Errorf("the summary is %q", rec.logs)
	}
}

// knownFailures are cases that find faults which are not mended yet, with what the fault is; each entry is to go with its fault.
var knownFailures = map[string]string{}
