package backend

import (
	"reflect"
	"testing"

	"github.com/anygpu/anygpu/shaders/ir"
)

func TestDisable(t *testing.T) {
	all := ir.Caps{F16Arith: true, F16Storage: true, U8Storage: true, I64: true, F64: true, SubgroupSize: 32, MaxSubgroups: 8, MaxLanes: 4}
	for _, c := range []struct {
		env   string
		caps  ir.Caps
		want  ir.Caps
		notes []string
	}{
		{"", all, all, nil},
		{"f16", all, ir.Caps{U8Storage: true, I64: true, F64: true, SubgroupSize: 32, MaxSubgroups: 8, MaxLanes: 4}, []string{"f16 was switched off by ANYGPU_DISABLE"}},
		{"f16arith", all, ir.Caps{F16Storage: true, U8Storage: true, I64: true, F64: true, SubgroupSize: 32, MaxSubgroups: 8, MaxLanes: 4}, []string{"f16arith was switched off by ANYGPU_DISABLE"}},
		{" U8, i64,,f64 ,subgroup", all, ir.Caps{F16Arith: true, F16Storage: true, SubgroupSize: 32, MaxLanes: 4}, []string{"u8 was switched off by ANYGPU_DISABLE",
			"i64 was switched off by ANYGPU_DISABLE", "f64 was switched off by ANYGPU_DISABLE", "subgroup was switched off by ANYGPU_DISABLE"}},
		{"f16,i64", ir.Caps{MaxLanes: 4}, ir.Caps{MaxLanes: 4}, nil}, // nothing to switch off
		{"fp16", all, all, []string{`ANYGPU_DISABLE names "fp16", which is no feature; the features are f16, f16arith, u8, i64, f64, subgroup, jit`}},
	} {
		t.Setenv(EnvDisable, c.env)
		info := Info{Caps: c.caps}
		Disable(&info)
		if info.Caps != c.want || !reflect.DeepEqual(info.Notes, c.notes) {
			t.Errorf("%q: %+v, notes %q; want %+v, %q", c.env, info.Caps, info.Notes, c.want, c.notes)
		}
	}
}
