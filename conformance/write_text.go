package conformance

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Reports are the outcomes of runs on several devices.
type Reports []*Report

// Failed reports whether a case failed on any device.
func (rs Reports) Failed() bool { return slices.ContainsFunc(rs, (*Report).Failed) }

// WriteJSON writes the reports as one JSON object.
func (rs Reports) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(struct {
		Format  int     `json:"format"` // 1
		Reports Reports `json:"reports"`
	}{1, rs})
}

// mostFailures is how many failures a summary for people shows of a device.
const mostFailures = 20

// WriteText writes a summary for people: counts by device and suite, each failure with the command that reruns it, and what
// is not supported.
func (rs Reports) WriteText(w io.Writer) error {
	var sb strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&sb, "%s\n", r.Device)
		switch r.Mode {
		case ModeSupport:
			r.writeSupport(&sb)
			continue
		case ModePerf:
			r.writePerf(&sb)
			continue
		}
		tw := tabwriter.NewWriter(&sb, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(tw, "  suite\tpass\tfail\tskip\tnot supported\t")
		suites := r.Suites()
		for _, s := range SuiteNames() {
			if c := suites[s]; c != nil {
				fmt.Fprintf(tw, "  %s\t%d\t%d\t%d\t%d\t\n", s, c[Pass], c[Fail], c[Skip], c[NotSupported])
			}
		}
		c := r.Counts()
		fmt.Fprintf(tw, "  all\t%d\t%d\t%d\t%d\t\n", c[Pass], c[Fail], c[Skip], c[NotSupported])
		tw.Flush()
		shown := 0
		for _, res := range r.Results {
			if res.Status != Fail {
				continue
			}
			if shown++; shown > mostFailures {
				continue
			}
			fmt.Fprintf(&sb, "  FAIL %s\n    %s\n    rerun: %s\n", res.Name, strings.ReplaceAll(firstLines(res.Message, 12), "\n", "\n    "), res.Rerun)
		}
		if shown > mostFailures {
			fmt.Fprintf(&sb, "  and %d more failures, which the JSON and HTML reports have\n", shown-mostFailures)
		}
		missing := r.Missing()
		for _, what := range slices.Sorted(maps.Keys(missing)) {
			fmt.Fprintf(&sb, "  not supported: %s (%d cases)\n", what, missing[what])
		}
		mode := ""
		if r.Quick {
			mode = ", a quick run: a sample of the cases"
		}
		fmt.Fprintf(&sb, "  %.1f s, seed %d%s\n", r.Seconds, r.Seed, mode)
	}
	_, err := io.WriteString(w, sb.String())
	return err
}

func firstLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	if len(lines) > n {
		lines = append(lines[:n], "…")
	}
	return strings.Join(lines, "\n")
}

func (r *Report) writeSupport(sb *strings.Builder) {
	tw := tabwriter.NewWriter(sb, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "  operator")
	for _, d := range allDTypes {
		fmt.Fprintf(tw, "\t%s", d)
	}
	fmt.Fprintln(tw)
	notes := map[string]int{}
	for _, row := range r.Support {
		fmt.Fprintf(tw, "  %s", row.Op)
		for _, d := range allDTypes {
			v := row.DTypes[d.String()]
			switch v {
			case "yes":
			case "no":
				v = "-"
			case "":
				v = "?"
				notes["?: the row has no sample to try it with"]++
			default:
				notes["x: "+v]++
				v = "x"
			}
			fmt.Fprintf(tw, "\t%s", v)
		}
		fmt.Fprintln(tw)
	}
	tw.Flush()
	fmt.Fprintln(sb, "  -: the operator takes the dtype on no device")
	for _, n := range slices.Sorted(maps.Keys(notes)) {
		fmt.Fprintf(sb, "  %s (%d)\n", n, notes[n])
	}
}

func (r *Report) writePerf(sb *strings.Builder) {
	p := r.Perf
	if p == nil {
		return
	}
	fmt.Fprintf(sb, "  a copy on the device: %.2f GB/s, read and written; a float32 product of %d x %d matrices: %.2f GFLOP/s\n", p.CopyBytesPerSecond/1e9, p.ProductSize, p.ProductSize, p.ProductFLOPS/1e9)
	tw := tabwriter.NewWriter(sb, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "  operator\tcase\tus\tGB/s\tof copy\tGFLOP/s\tof product\tkernels\t")
	for _, row := range p.Rows {
		c := row.cells()
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%.3g\t\n", row.Op, row.Case, c.time, c.gbs, c.ofCopy, c.gflops, c.ofProduct, row.Launches)
	}
	tw.Flush()
	sb.WriteString("  us: of one application, the median; GB/s: operands and results, each counted once; kernels: launches of one application.\n" +
		"  Above 100 % of the copy: the operands are in a cache. -: too small for a rate, its time is that of a launch; or no product.\n")
}

// perfCells are the figures of a row as text.
type perfCells struct{ time, gbs, ofCopy, gflops, ofProduct string }

func (row PerfRow) cells() perfCells {
	c := perfCells{time: fmt.Sprintf("%.1f", row.Seconds*1e6), gbs: "-", ofCopy: "-", gflops: "-", ofProduct: "-"}
	if row.BytesPerSecond > 0 {
		c.gbs, c.ofCopy = fmt.Sprintf("%.2f", row.BytesPerSecond/1e9), fmt.Sprintf("%.0f%%", 100*row.OfCopy)
	}
	if row.FLOPS > 0 {
		c.gflops, c.ofProduct = fmt.Sprintf("%.2f", row.FLOPS/1e9), fmt.Sprintf("%.0f%%", 100*row.OfProduct)
	}
	return c
}

// JUnit's XML, as CI systems read it: a testsuite for each device and suite.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Stamp    string      `xml:"timestamp,attr"`
	Host     string      `xml:"hostname,attr"` // the device
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string       `xml:"name,attr"`
	Class   string       `xml:"classname,attr"`
	Time    string       `xml:"time,attr"`
	Failure *junitDetail `xml:"failure,omitempty"`
	Skipped *junitDetail `xml:"skipped,omitempty"`
}

type junitDetail struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the reports as JUnit XML. What is not supported counts as skipped there, with the missing feature.
func (rs Reports) WriteJUnit(w io.Writer) error {
	var doc junitSuites
	for _, r := range rs {
		for _, name := range SuiteNames() {
			s := junitSuite{Name: r.Device.Device + "/" + name, Stamp: r.Started.Format("2006-01-02T15:04:05"), Host: r.Device.Device}
			total := 0.0
			for _, res := range r.Results {
				if res.Suite != name {
					continue
				}
				c := junitCase{Name: res.Name, Class: strings.ReplaceAll(r.Device.Device, ":", "_") + "." + name, Time: fmt.Sprintf("%.4f", res.Seconds)}
				s.Tests++
				total += res.Seconds
				switch res.Status {
				case Fail:
					s.Failures++
					c.Failure = &junitDetail{strings.SplitN(res.Message, "\n", 2)[0], validXML(res.Message + "\nrerun: " + res.Rerun)}
				case Skip, NotSupported:
					s.Skipped++
					c.Skipped = &junitDetail{Message: string(res.Status) + ": " + res.Message}
				}
				s.Cases = append(s.Cases, c)
			}
			if s.Tests > 0 {
				s.Time = fmt.Sprintf("%.3f", total)
				doc.Suites = append(doc.Suites, s)
			}
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	if err := enc.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// validXML drops control characters, which XML 1.0 cannot hold; compilers' logs may have them.
func validXML(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}
