package tensor

// Event is what an [Observer] gets. An operator gives one event when its operands are known, with Out nil, and one for each time
// that its kernels are recorded, with In nil; operators that only make views give the first alone. Operators that are made of others
// give theirs first, and then those give theirs.
type Event struct {
	Op       *OpInfo
	In       []*Tensor // operands as they were given
	Operands []*Tensor // operands as they are used: after autocast
	Out      []*Tensor // results whose kernels were recorded
	Autocast bool      // a cast that autocast inserted
	Backward bool      // of a gradient: File and Line are those of the operator in the forward pass
	File     string    // the caller: the first file outside the library, without its folder
	Line     int
	Module   string // the path of the innermost layer whose Forward was running, such as "blocks.0.fc"; see [Scope.EnterModule]
}

// Observer is called with every operator whose result belongs to its scope or one inside it. It may compute: what it
// calls is not observed.
type Observer func(Event)

// observation is a scope's observer and its state.
type observation struct {
	f       Observer
	casting int // autocast is at work
	muted   bool
	modules []string // paths of the layers that run, innermost last
}

// EnterModule notes for the observer in force, if there is one, that a layer runs until the function that it returns is called. The path
// is asked for only then, so that layers may call it each time.
func (s *Scope) EnterModule(path func() string) (leave func()) {
	o := s.observing()
	if o == nil {
		return func() {}
	}
	n := len(o.modules)
	o.modules = append(o.modules, path())
	return func() { o.modules = o.modules[:n] }
}

// module returns the path of the layer that runs, if an observer wants to know, or of the one whose gradient is being computed.
func (s *Scope) module() string {
	if s != nil && s.origin != nil {
		return s.originModule
	}
	if o := s.observing(); o != nil && len(o.modules) > 0 {
		return o.modules[len(o.modules)-1]
	}
	return ""
}

// SetObserver sets the scope's observer and returns the one before, to be set again; nil is none. The innermost scope's observer
// is the one that is called.
func (s *Scope) SetObserver(f Observer) Observer {
	if s == nil {
		return nil
	}
	var old Observer
	if s.observer != nil {
		old = s.observer.f
	}
	s.observer = nil
	if f != nil {
		s.observer = &observation{f: f}
	}
	return old
}

// observing returns the observation in force, or nil.
func (s *Scope) observing() *observation {
	for ; s != nil; s = s.parent {
		if o := s.observer; o != nil {
			if o.muted {
				return nil
			}
			return o
		}
	}
	return nil
}

// observe reports an event of the call.
func (c *call) observe(given, out []*Tensor) {
	o := c.scope.observing()
	if o == nil || c.err != nil {
		return
	}
	// Copies: lists of operands stay on the caller's stack where nobody observes.
	in, made := append([]*Tensor(nil), given...), append([]*Tensor(nil), out...)
	e := Event{Op: c.op, In: in, Operands: c.in, Out: made, Autocast: o.casting > 0, Backward: c.scope.origin != nil, Module: c.scope.module()}
	e.File, e.Line = c.site.resolve()
	o.muted = true
	defer func() { o.muted = false }()
	o.f(e)
}

// autocast lets the caster in force rewrite the operands.
func (c *call) autocast() {
	cast := c.scope.currentCaster()
	if cast == nil || c.op.Class == AsIs {
		return
	}
	if o := c.scope.observing(); o != nil {
		o.casting++
		defer func() { o.casting-- }()
	}
	in, err := cast(c.op, c.in)
	if err != nil {
		c.stop("", err)
		return
	}
	for _, t := range in {
		if err := t.Err(); err != nil {
			c.err = err
			return
		}
	}
	c.in = in
}
