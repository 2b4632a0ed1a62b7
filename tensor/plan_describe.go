package tensor

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"

	"github.com/anygpu/anygpu/shaders/lib"
)

// describe writes what the schedule of nodes depends on to p.code: the kernels with all their numbers, which node uses whose result, and
// by how many claims results are held. It numbers the storages in order of appearance. It reports false where there is something
// that a description cannot have.
func (p *planner) describe(nodes []*node) bool {
	p.epoch++
	p.slots = p.slots[:0]
	k := binary.NativeEndian.AppendUint64(p.code[:0], uint64(keptElements))
	ok := true
	for i, n := range nodes {
		n.number = int32(i)
		if n.dead {
			k = append(k, 'D')
			continue
		}
		k = append(k, 'N', byte(len(n.steps)), byte(len(n.outs)), flags(n.failed != nil, n.base != nil))
		ok = ok && len(n.steps) < 256 && len(n.outs) < 256
		for _, st := range n.outs {
			ok = ok && st.mem == nil && st.err == nil && st.epoch != p.epoch
			p.number(st)
			k = binary.NativeEndian.AppendUint64(k, uint64(st.n)<<8|uint64(st.dtype))
			k = binary.NativeEndian.AppendUint64(k, uint64(uint32(st.refs.Load()))<<32|uint64(uint32(st.scoped.Load())))
			k = binary.NativeEndian.AppendUint64(k, uint64(uint32(st.latent)))
		}
		for _, s := range n.steps {
			if n.base != nil {
				k = binary.NativeEndian.AppendUint64(k, uint64(reflect.ValueOf(n.base).Pointer()))
			} else {
				k, ok = p.types.generator(k, s.gen, ok)
			}
			k = binary.NativeEndian.AppendUint32(k, uint32(len(s.bufs)))
			for _, b := range s.bufs {
				if b.st.epoch != p.epoch {
					ok = ok && b.st.mem != nil && b.st.err == nil && b.st.node == nil
					p.number(b.st)
					k = binary.NativeEndian.AppendUint64(append(k, 'I'), uint64(b.st.n)<<8|uint64(b.st.dtype))
				}
				k = binary.NativeEndian.AppendUint32(append(k, flags(b.write, b.offset != 0)), uint32(b.st.slot))
				if b.offset != 0 {
					k = binary.NativeEndian.AppendUint64(k, uint64(b.offset))
				}
			}
		}
		if !ok {
			break
		}
	}
	p.code = k
	return ok
}

func (p *planner) number(st *storage) {
	st.epoch, st.slot = p.epoch, int32(len(p.slots))
	p.slots = append(p.slots, st)
}

// coders write generators, by type.
type coders map[reflect.Type]int

// changing has the fields of generators that change from step to step. Their kernels are launched from the node's own generator.
var changing = map[reflect.Type][]string{
	reflect.TypeFor[lib.Random]():      {"Seed", "Offset"},
	reflect.TypeFor[lib.MultiTensor](): {"ScalarBits"},
	reflect.TypeFor[lib.MultiNorm]():   nil, // which allocations its tensors are in
}

// changes reports whether a generator's kernels depend on more than its description has.
func changes(gen lib.Generator) bool {
	switch gen.(type) {
	case *lib.Random, *lib.MultiTensor, *lib.MultiNorm:
		return true
	}
	return false
}

// generator appends a generator's fields. Functions are left out: generators have keys that identify those.
func (c coders) generator(k []byte, gen lib.Generator, ok bool) ([]byte, bool) {
	v := reflect.ValueOf(gen)
	k, fine := c.value(c.typed(k, v.Type()), v)
	return k, ok && fine
}

func (c coders) typed(k []byte, t reflect.Type) []byte {
	n, ok := c[t]
	if !ok {
		n = len(c)
		c[t] = n
	}
	return binary.NativeEndian.AppendUint32(k, uint32(n))
}

func (c coders) value(k []byte, v reflect.Value) ([]byte, bool) {
	word := binary.NativeEndian.AppendUint64
	switch v.Kind() {
	case reflect.Bool:
		return append(k, flags(v.Bool())), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return word(k, uint64(v.Int())), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return word(k, v.Uint()), true
	case reflect.Float32, reflect.Float64:
		return word(k, math.Float64bits(v.Float())), true
	case reflect.String:
		return append(word(k, uint64(v.Len())), v.String()...), true
	case reflect.Func:
		return append(k, flags(v.IsNil())), true
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(k, 0), true
		}
		return c.value(c.typed(append(k, 1), v.Elem().Type()), v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return append(k, 0), true
		}
		k = append(k, 1)
		fallthrough
	case reflect.Array:
		k = word(k, uint64(v.Len()))
		for i := range v.Len() {
			var ok bool
			if k, ok = c.value(k, v.Index(i)); !ok {
				return k, false
			}
		}
		return k, true
	case reflect.Struct:
		skip := changing[v.Type()]
		for i := range v.NumField() {
			if len(skip) > 0 && slices.Contains(skip, v.Type().Field(i).Name) {
				continue
			}
			var ok bool
			if k, ok = c.value(k, v.Field(i)); !ok {
				return k, false
			}
		}
		return k, true
	}
	return k, false
}
