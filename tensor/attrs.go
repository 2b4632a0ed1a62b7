package tensor

// Float returns the number called name, or def where it is absent or no number.
func (a Attrs) Float(name string, def float64) float64 {
	switch v := a[name].(type) {
	case float64:
		return v
	case float32:
		return float64(v)
	case int:
		return float64(v)
	case int64:
		return float64(v)
	}
	return def
}

// Int returns the integer called name, or def.
func (a Attrs) Int(name string, def int) int { return int(a.Float(name, float64(def))) }

// Has reports whether name is there and not nil.
func (a Attrs) Has(name string) bool { return a[name] != nil }

// Bool returns the flag called name; absent is false.
func (a Attrs) Bool(name string) bool {
	v, _ := a[name].(bool)
	return v
}

// String returns the text called name, or def.
func (a Attrs) String(name, def string) string {
	if v, ok := a[name].(string); ok {
		return v
	}
	return def
}

// Ints returns the list called name, or nil; a single number is a list of one.
func (a Attrs) Ints(name string) []int {
	switch v := a[name].(type) {
	case []int:
		return v
	case []any:
		out := make([]int, 0, len(v))
		for _, x := range v {
			out = append(out, Attrs{"": x}.Int("", 0))
		}
		return out
	case float64, int, int64:
		return []int{a.Int(name, 0)}
	}
	return nil
}
