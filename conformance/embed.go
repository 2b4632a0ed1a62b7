package conformance

import (
	"embed"
	"io/fs"
	"sync"
)

// The recorded cases come with the program, so that an installed one and a clone run them alike.
//
//go:embed testdata/ops testdata/training
var testdata embed.FS

// GoldenData returns the recorded cases that come with the package: folders ops and training.
func GoldenData() fs.FS {
	sub, err := fs.Sub(testdata, "testdata")
	if err != nil {
		return testdata // cannot be: the path is a constant
	}
	return sub
}

// goldenSet is the recorded cases of a run.
type goldenSet struct {
	ops      []*GoldenCase
	training []*TrainingCase
}

var embedded struct {
	sync.Once
	set *goldenSet
	err error
}

// loadGoldenSet reads the recorded cases that a run needs.
func loadGoldenSet(opts *Options) (*goldenSet, error) {
	if opts.Golden != nil {
		return readGoldenSet(opts.Golden)
	}
	embedded.Do(func() { embedded.set, embedded.err = readGoldenSet(GoldenData()) })
	return embedded.set, embedded.err
}

// readGoldenSet finds operators and training cases in a folder: the folder itself, one level below, or two.
func readGoldenSet(fsys fs.FS) (*goldenSet, error) {
	set := &goldenSet{}
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		dir, name := splitPath(path)
		switch name {
		case "cases.json":
			sub, err := fs.Sub(fsys, dir)
			if err != nil {
				return err
			}
			cases, err := LoadGolden(sub)
			set.ops = append(set.ops, cases...)
			return err
		case "expect.json":
			sub, err := fs.Sub(fsys, dir)
			if err != nil {
				return err
			}
			_, base := splitPath(dir)
			c, err := LoadTraining(sub, base)
			if err == nil {
				set.training = append(set.training, c)
			}
			return err
		}
		return nil
	})
	if err == nil && len(set.ops)+len(set.training) == 0 {
		err = &fs.PathError{Op: "read recorded cases", Path: ".", Err: fs.ErrNotExist}
	}
	return set, err
}

func splitPath(p string) (dir, name string) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '/' {
			return p[:i], p[i+1:]
		}
	}
	return ".", p
}
