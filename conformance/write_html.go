package conformance

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
)

//go:embed report.tmpl.html
var reportTemplate string

var reportPage = template.Must(template.New("report").Parse(reportTemplate))

// The HTML report is one file without scripts or references to other files, so that it can be attached to a bug report,
// read on a phone and printed.

type htmlPage struct {
	Title    string
	Started  string
	Quick    bool
	Seed     uint64
	Devices  []htmlDevice
	DTypes   []string
	Matrix   []htmlOp
	Failures []htmlFailure
	Hidden   int // failures that are not shown
	Worst    []htmlWorst
	Missing  []htmlMissing
	Perf     []htmlPerf
	Checked  bool // whether cases were run
}

type htmlDevice struct {
	DeviceInfo
	Memory     string
	Counts     htmlCounts
	Suites     []htmlSuite
	Seconds    string
	FeatureRow string
	LackRow    string
}

type htmlCounts struct{ Pass, Fail, Skip, Missing, All int }

type htmlSuite struct {
	Name, Doc string
	htmlCounts
}

// htmlOp is an operator's row of the matrix: a cell for each device and dtype.
type htmlOp struct {
	Name  string
	Cells []htmlCell
}

type htmlCell struct {
	Class string // pass, fail, missing, none
	Text  string
	Title string
	First bool // the first of its device
}

// htmlFailure is a case that failed, on one device or several.
type htmlFailure struct {
	Name    string
	Devices string
	On      []htmlFailureOn
}

type htmlFailureOn struct{ Device, Message, Rerun string }

type htmlWorst struct {
	Device, Op, DType, Bound, Case string
	ULP, OfBound                   string
	value                          float64
}

type htmlMissing struct {
	Device, What string
	Cases        int
	Examples     string
}

type htmlPerf struct {
	Device        string
	Copy, Product string
	Rows          []htmlPerfRow
	ProductSize   int
}

type htmlPerfRow struct{ Op, Case, Time, GBs, OfCopy, GFLOPs, OfProduct string }

// mostHTMLFailures bounds the page; the JSON report has all.
const mostHTMLFailures = 300

// WriteHTML writes one page: devices and drivers, counts, the operator × dtype × device matrix, failures, worst errors, and
// what was skipped or is not supported.
func (rs Reports) WriteHTML(w io.Writer) error {
	p := htmlPage{Title: "anygpu conformance"}
	for _, d := range allDTypes {
		p.DTypes = append(p.DTypes, d.String())
	}
	for _, r := range rs {
		p.Quick, p.Seed, p.Started = r.Quick, r.Seed, r.Started.Format("2006-01-02 15:04 MST")
		p.Checked = p.Checked || len(r.Results) > 0
		p.Devices = append(p.Devices, r.htmlDevice())
		r.htmlFailures(&p)
		p.Worst = append(p.Worst, r.htmlWorst()...)
		p.Missing = append(p.Missing, r.htmlMissing()...)
		if r.Perf != nil {
			p.Perf = append(p.Perf, r.htmlPerf())
		}
	}
	p.Matrix = rs.htmlMatrix()
	return reportPage.Execute(w, p)
}

func (c *htmlCounts) add(s Status, n int) {
	c.All += n
	switch s {
	case Pass:
		c.Pass += n
	case Fail:
		c.Fail += n
	case Skip:
		c.Skip += n
	case NotSupported:
		c.Missing += n
	}
}

func (r *Report) htmlDevice() htmlDevice {
	d := htmlDevice{DeviceInfo: r.Device, Seconds: fmt.Sprintf("%.0f s", r.Seconds), FeatureRow: strings.Join(r.Device.Features, ", "), LackRow: strings.Join(r.Device.Lacks, ", ")}
	if r.Device.MemoryBytes > 0 {
		d.Memory = fmt.Sprintf("%.1f GiB", float64(r.Device.MemoryBytes)/(1<<30))
	}
	suites := r.Suites()
	for _, s := range suiteTable() {
		if suites[s.name] == nil {
			continue
		}
		h := htmlSuite{Name: s.name, Doc: s.doc}
		for st, n := range suites[s.name] {
			h.add(st, n)
			d.Counts.add(st, n)
		}
		d.Suites = append(d.Suites, h)
	}
	return d
}

func (r *Report) htmlFailures(p *htmlPage) {
	for _, res := range r.Results {
		if res.Status != Fail {
			continue
		}
		on := htmlFailureOn{Device: r.Device.Device, Message: firstLines(res.Message, 30), Rerun: res.Rerun}
		if i := slices.IndexFunc(p.Failures, func(f htmlFailure) bool { return f.Name == res.Name }); i >= 0 {
			p.Failures[i].Devices += ", " + on.Device
			p.Failures[i].On = append(p.Failures[i].On, on)
			continue
		}
		if len(p.Failures) >= mostHTMLFailures {
			p.Hidden++
			continue
		}
		p.Failures = append(p.Failures, htmlFailure{Name: res.Name, Devices: on.Device, On: []htmlFailureOn{on}})
	}
}

// worstRows is how many operators of a device the table of worst errors shows.
const worstRows = 12

// htmlWorst returns the operators of a device with the largest errors as parts of their bounds, each once.
func (r *Report) htmlWorst() []htmlWorst {
	best := map[string]htmlWorst{}
	for _, res := range r.Results {
		if res.WorstULP == nil || res.OfBound == nil || res.Op == "" || res.Suite != "operators" || *res.OfBound == 0 {
			continue
		}
		key := res.Op + " " + res.DType
		if w, ok := best[key]; !ok || *res.OfBound > w.value {
			best[key] = htmlWorst{r.Device.Device, res.Op, res.DType, res.Bound, res.Name, fmt.Sprintf("%.3g", *res.WorstULP), fmt.Sprintf("%.0f%%", 100**res.OfBound), *res.OfBound}
		}
	}
	out := slices.Collect(maps.Values(best))
	slices.SortFunc(out, func(a, b htmlWorst) int {
		if a.value != b.value {
			if a.value > b.value {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Op+a.DType, b.Op+b.DType)
	})
	return out[:min(len(out), worstRows)]
}

// htmlMissing groups what is not supported, and what the caller left out.
func (r *Report) htmlMissing() []htmlMissing {
	groups := map[string]*htmlMissing{}
	for _, res := range r.Results {
		if res.Status != NotSupported && res.Status != Skip {
			continue
		}
		what := res.Message
		if res.Status == Skip {
			what = "skipped: " + what
		}
		g := groups[what]
		if g == nil {
			g = &htmlMissing{Device: r.Device.Device, What: what}
			groups[what] = g
		}
		if g.Cases < 3 {
			g.Examples = strings.TrimPrefix(g.Examples+", "+res.Name, ", ")
		}
		g.Cases++
	}
	var out []htmlMissing
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, *groups[k])
	}
	return out
}

func (r *Report) htmlPerf() htmlPerf {
	h := htmlPerf{Device: r.Device.Device, Copy: fmt.Sprintf("%.2f GB/s", r.Perf.CopyBytesPerSecond/1e9), Product: fmt.Sprintf("%.2f GFLOP/s", r.Perf.ProductFLOPS/1e9), ProductSize: r.Perf.ProductSize}
	for _, row := range r.Perf.Rows {
		c := row.cells()
		hr := htmlPerfRow{Op: row.Op, Case: row.Case, Time: c.time, GBs: c.gbs, OfCopy: c.ofCopy, GFLOPs: c.gflops, OfProduct: c.ofProduct}
		h.Rows = append(h.Rows, hr)
	}
	return h
}

// htmlMatrix makes the operator × dtype × device matrix from the cases or from the support rows.
func (rs Reports) htmlMatrix() []htmlOp {
	type key struct {
		device    int
		op, dtype string
	}
	counts := map[key]*htmlCounts{}
	support := map[key]string{}
	order := []string{}
	seen := map[string]bool{}
	see := func(op string) {
		if !seen[op] {
			seen[op] = true
			order = append(order, op)
		}
	}
	for i, r := range rs {
		for _, row := range r.Support {
			see(row.Op)
			for d, v := range row.DTypes {
				support[key{i, row.Op, d}] = v
			}
		}
		for _, res := range r.Results {
			if res.Op == "" || res.DType == "" || res.Suite != "operators" && res.Suite != "gradients" {
				continue
			}
			see(res.Op)
			k := key{i, res.Op, res.DType}
			if counts[k] == nil {
				counts[k] = &htmlCounts{}
			}
			counts[k].add(res.Status, 1)
		}
	}
	slices.Sort(order)
	var out []htmlOp
	for _, op := range order {
		row := htmlOp{Name: op}
		for i := range rs {
			for j, d := range allDTypes {
				k := key{i, op, d.String()}
				c := cellOf(counts[k], support[k])
				c.First = j == 0
				c.Title = strings.TrimSpace(fmt.Sprintf("%s, %s, %s: %s", rs[i].Device.Device, op, d, c.Title))
				row.Cells = append(row.Cells, c)
			}
		}
		out = append(out, row)
	}
	return out
}

func cellOf(c *htmlCounts, support string) htmlCell {
	switch {
	case c == nil && support == "yes":
		return htmlCell{Class: "pass", Text: "✓", Title: "supported"}
	case c == nil && support != "" && support != "no":
		return htmlCell{Class: "missing", Text: "○", Title: support}
	case c == nil:
		return htmlCell{Class: "none", Text: "·", Title: "not taken by the operator, or not run"}
	case c.Fail > 0:
		return htmlCell{Class: "fail", Text: fmt.Sprintf("✗%d", c.Fail), Title: fmt.Sprintf("%d of %d cases failed", c.Fail, c.All)}
	case c.Pass == 0:
		return htmlCell{Class: "missing", Text: "○", Title: fmt.Sprintf("%d cases not supported or skipped", c.All)}
	}
	return htmlCell{Class: "pass", Text: "✓", Title: fmt.Sprintf("%d cases passed", c.Pass)}
}
