package spirv

import (
	"bytes"
	"encoding/binary"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

var allControls = Options{SignedZeroInfNanPreserve: Width16 | Width32 | Width64, RoundingModeRTE: Width16 | Width32 | Width64,
	DenormPreserve: Width16 | Width32 | Width64}

func mustEmit(t *testing.T, k *ir.Kernel, opt Options) []uint32 {
	t.Helper()
	words, err := Emit(k, opt)
	if err != nil {
		t.Fatal(err)
	}
	return words
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed (Debian package spirv-tools), and CI is set", name)
		}
		t.Skipf("%s is not installed (Debian package spirv-tools)", name)
	}
	return path
}

func wordBytes(words []uint32) []byte {
	var buf bytes.Buffer
	for _, w := range words {
		buf.Write(binary.LittleEndian.AppendUint32(nil, w))
	}
	return buf.Bytes()
}

// TestValid has spirv-val check every test kernel, with and without float controls.
func TestValid(t *testing.T) {
	val := tool(t, "spirv-val")
	for name, k := range testKernels(t) {
		for _, opt := range []Options{{}, allControls, {Texels: 2}, {Texels: 32}} {
			words := mustEmit(t, k, opt)
			file := filepath.Join(t.TempDir(), name+".spv")
			if err := os.WriteFile(file, wordBytes(words), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(val, "--target-env", "vulkan1.1", file).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", name, err, out, Text(words))
			}
		}
	}
}

// TestTextAssembles compares Text with an independent assembler: it must give the same instructions back.
func TestTextAssembles(t *testing.T) {
	as := tool(t, "spirv-as")
	withTexels := allControls
	withTexels.Texels = 32
	for name, k := range testKernels(t) {
		words := mustEmit(t, k, withTexels)
		text := Text(words)
		if strings.Contains(text, "malformed") {
			t.Errorf("%s:\n%s", name, text)
			continue
		}
		cmd := exec.Command(as, "--target-env", "spv1.3", "-o", "-", "-")
		cmd.Stdin = strings.NewReader(text)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: spirv-as: %v\n%s\n%s", name, err, stderr.String(), text)
			continue
		}
		back := make([]uint32, len(out)/4)
		for i := range back {
			back[i] = binary.LittleEndian.Uint32(out[4*i:])
		}
		if a, b := shape(words), shape(back); !slices.Equal(a, b) {
			t.Errorf("%s: the assembled text has other instructions than the module (%d and %d words)\n%s", name, len(b), len(a), text)
		}
	}
}

// shape returns a module's words with ids numbered in order of appearance, so that two numberings compare.
func shape(words []uint32) []uint32 {
	seen := map[uint32]uint32{}
	out := []uint32{}
	for rest := words[5:]; len(rest) > 0; rest = rest[rest[0]>>16:] {
		in := slices.Clone(rest[:rest[0]>>16])
		sig := opDefs[opcode(in[0])].sig
		for i := 1; i < len(in) && sig != ""; i++ {
			switch sig[0] {
			case 'T', 'R', 'i':
				if _, ok := seen[in[i]]; !ok {
					seen[in[i]] = uint32(len(seen) + 1)
				}
				in[i] = seen[in[i]]
			case 's':
				_, n := unpackString(in[i:])
				i += n - 1
			}
			if len(sig) < 2 || sig[1] != '*' {
				sig = sig[1:]
			}
		}
		out = append(out, in...)
	}
	return out
}

func TestGolden(t *testing.T) {
	ks := testKernels(t)
	for _, name := range []string{"arith_f32x4", "arrays_x4", "control", "half_storage_x4", "reduce", "storage_x1", "subgroups"} {
		got := Text(mustEmit(t, ks[name], Options{}))
		file := filepath.Join("testdata", name+".spvasm")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs from %s; run go test -update and review the difference\n%s", name, file, got)
		}
	}
}

func TestDeterministic(t *testing.T) {
	a, b := testKernels(t), testKernels(t)
	for name := range a {
		if !slices.Equal(mustEmit(t, a[name], allControls), mustEmit(t, b[name], allControls)) {
			t.Errorf("%s: two emissions differ", name)
		}
	}
}

// TestCapabilities checks that a kernel declares what it needs and nothing else.
func TestCapabilities(t *testing.T) {
	ks := testKernels(t)
	for _, tt := range []struct {
		kernel string
		opt    Options
		want   []string
	}{
		{"empty", Options{}, []string{"Shader"}},
		{"empty", allControls, []string{"Shader"}},
		{"arith_f32", Options{}, []string{"Shader"}},
		{"arith_f32x4", Options{RoundingModeRTE: Width16 | Width32}, []string{"RoundingModeRTE", "Shader"}},
		{"arith_i64x2", Options{}, []string{"Int64", "Shader"}},
		{"arith_f64", Options{}, []string{"Float64", "Shader"}},
		{"arith_f16", Options{}, []string{"Float16", "Shader", "StorageBuffer16BitAccess"}},
		{"half_storage_x4", Options{}, []string{"Shader", "StorageBuffer16BitAccess"}},
		{"half_storage_x4", Options{SignedZeroInfNanPreserve: Width64}, []string{"Shader", "StorageBuffer16BitAccess"}},
		{"storage_x1", Options{}, []string{"Int64", "Shader", "StorageBuffer16BitAccess", "StorageBuffer8BitAccess"}},
		{"reduce", Options{SignedZeroInfNanPreserve: Width32}, []string{"Shader", "SignedZeroInfNanPreserve"}},
	} {
		var got []string
		for line := range strings.Lines(Text(mustEmit(t, ks[tt.kernel], tt.opt))) {
			if c, ok := strings.CutPrefix(strings.TrimSpace(line), "OpCapability "); ok {
				got = append(got, c)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s with %+v declares %v, want %v", tt.kernel, tt.opt, got, tt.want)
		}
	}
}

// TestInterface checks the decorations that the driver relies on.
func TestInterface(t *testing.T) {
	ks := testKernels(t)
	for _, tt := range []struct {
		kernel string
		want   []string
		not    []string
	}{
		{"reduce", []string{`OpEntryPoint GLCompute %reduce "main"`, "LocalSize 64 1 1", "OpDecorate %in Binding 0", "OpDecorate %out Binding 1",
			"OpDecorate %out DescriptorSet 0", "OpDecorate %in NonWritable", "OpDecorate %out NonReadable", "OpMemberDecorate %params 0 Offset 0",
			"OpControlBarrier %u32_2 %u32_2 %u32_328"}, []string{"Aliased", "Coherent"}},
		{"arrays_mixed", []string{"OpDecorate %buf Aliased", "OpDecorate %buf_", "OpDecorate %buf Coherent"}, []string{"NonWritable"}},
		{"control", []string{"OpMemberDecorate %params 2 Offset 8", "OpMemberName %params 1 \"m\"", "OpPhi", "OpLoopMerge"}, nil},
		{"half_storage_x4", []string{"FPRoundingMode RTE", "ArrayStride 8"}, []string{"Float16"}},
		{"arith_i32", []string{"OpSDiv", "OpShiftRightArithmetic", "OpSLessThan"}, []string{"OpSRem", "NoContraction"}},
		{"arith_f32", []string{"NoContraction", "OpExtInst %f32 %2 Fma", "OpFUnordNotEqual"}, nil},
	} {
		text := Text(mustEmit(t, ks[tt.kernel], Options{}))
		text = strings.ReplaceAll(text, "OpExtInst %f32 %"+extID(text), "OpExtInst %f32 %2")
		for _, s := range tt.want {
			if !strings.Contains(text, s) {
				t.Errorf("%s: no %q in\n%s", tt.kernel, s, text)
			}
		}
		for _, s := range tt.not {
			if strings.Contains(text, s) {
				t.Errorf("%s: %q in\n%s", tt.kernel, s, text)
			}
		}
	}
}

func extID(text string) string {
	for line := range strings.Lines(text) {
		if before, _, ok := strings.Cut(line, " = OpExtInstImport"); ok {
			return strings.TrimPrefix(before, "%")
		}
	}
	return "none"
}

// TestDedup checks that types and constants are declared once.
func TestDedup(t *testing.T) {
	for name, k := range testKernels(t) {
		seen := map[string]bool{}
		for line := range strings.Lines(Text(mustEmit(t, k, Options{}))) {
			_, decl, ok := strings.Cut(line, " = ")
			if !ok || !strings.HasPrefix(decl, "OpType") && !strings.HasPrefix(decl, "OpConstant") {
				continue
			}
			if seen[decl] && !strings.HasPrefix(decl, "OpTypeStruct") {
				t.Errorf("%s declares twice: %s", name, decl)
			}
			seen[decl] = true
		}
	}
}

func TestErrors(t *testing.T) {
	kernel := func(f func(b *ir.Builder)) *ir.Kernel {
		b := ir.NewBuilder("bad", 1, 1, 1)
		f(b)
		k, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for name, tt := range map[string]struct {
		k    *ir.Kernel
		want string
	}{
		"nil": {nil, "nil"},
		"wide": {kernel(func(b *ir.Builder) {
			m := b.Buffer("x", ir.F32, ir.ReadWrite)
			b.Store(m, b.U32(0), b.Add(b.Load(m, b.U32(0), 8), b.F32(1)))
		}), "8 lanes"},
		"bf16": {kernel(func(b *ir.Builder) {
			m := b.Buffer("x", ir.BF16, ir.ReadWrite)
			b.Store(m, b.U32(1), b.Load(m, b.U32(0), 1))
		}), "bf16"},
		"erf": {kernel(func(b *ir.Builder) {
			m := b.Buffer("x", ir.F32, ir.ReadWrite)
			b.Store(m, b.U32(0), b.Erf(b.Load(m, b.U32(0), 1)))
		}), "no erf"},
		"exp of f64": {kernel(func(b *ir.Builder) {
			m := b.Buffer("x", ir.F64, ir.ReadWrite)
			b.Store(m, b.U32(0), b.Exp(b.Load(m, b.U32(0), 1)))
		}), "no exp of f64"},
	} {
		words, err := Emit(tt.k, Options{})
		if err == nil || words != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %d words and error %v, want an error with %q", name, len(words), err, tt.want)
		}
	}
}

func TestTextOfRubbish(t *testing.T) {
	for _, words := range [][]uint32{nil, {1, 2, 3}, {magic, version, 0, 1, 0, 5 << 16}, {magic, version, 0, 1, 0, 0}, {magic, version, 0, 1, 0, 1<<16 | 9999},
		{magic, version, 0, 1, 0, 2<<16 | 17, 77}, {magic, version, 0, 1, 0, 1<<16 | 21}, {magic, version, 0, 1, 0, 3<<16 | 5, 1, 0x41414141}} {
		if text := Text(words); !strings.Contains(text, "; malformed") {
			t.Errorf("%x: no complaint in %q", words, text)
		}
	}
}

// TestTables checks that the definition tables agree with each other.
func TestTables(t *testing.T) {
	names := map[string]opcode{}
	for _, op := range slices.Sorted(maps.Keys(opDefs)) {
		def := opDefs[op]
		if other, ok := names[def.name]; ok {
			t.Errorf("%s is opcode %d and %d", def.name, op, other)
		}
		names[def.name] = op
		for i := range len(def.sig) {
			if c := def.sig[i]; !strings.ContainsRune("TRinsv*", rune(c)) && enumNames[c] == nil {
				t.Errorf("%s: operand kind %q has no table of names", def.name, c)
			}
		}
	}
	for o := range extMath {
		if enumNames['g'][uint32(extMath[o])] == "" {
			t.Errorf("%s: instruction %d has no name", o, extMath[o])
		}
	}
}

func BenchmarkEmit(b *testing.B) {
	bld := ir.NewBuilder("reduce", 64, 1, 1)
	reduceKernel(bld)
	k, err := bld.Build()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Emit(k, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
