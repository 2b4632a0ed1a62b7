package data

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // formats of image.Decode
	_ "image/jpeg"
	_ "image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/image/draw"
)

// ImageOptions says how images become samples.
type ImageOptions struct {
	Height, Width int   // scale to this size (bilinear); 0 leaves each as it is
	Grey          bool  // one channel instead of red, green, blue
	MaxPixels     int   // larger images are an error; 64 million if 0
	MaxBytes      int64 // of a file; 256 MiB if 0
}

// complete fills in the defaults.
func (o ImageOptions) complete() ImageOptions {
	if o.MaxPixels == 0 {
		o.MaxPixels = 64 << 20
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 256 << 20
	}
	return o
}

// Folder are images by class, from [ImageFolder] or [ImageManifest]: files that are read when a sample is asked for.
type Folder struct {
	Classes []string
	paths   []string
	labels  []int64
	opts    ImageOptions
}

// ImageFolder lists the PNG, JPEG and GIF files (by extension) of the folders in dir, a folder for each class. Class numbers are the
// folders' places in order of names.
func ImageFolder(dir string, o ImageOptions) (*Folder, error) {
	m := &Folder{opts: o.complete()}
	folders, err := os.ReadDir(dir) // in order of names
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, folder.Name()))
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		for _, f := range files {
			if slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif"}, strings.ToLower(filepath.Ext(f.Name()))) {
				m.paths = append(m.paths, filepath.Join(dir, folder.Name(), f.Name()))
				m.labels = append(m.labels, int64(len(m.Classes)))
			}
		}
		m.Classes = append(m.Classes, folder.Name())
	}
	if len(m.paths) == 0 {
		return nil, fmt.Errorf("data: %s has no folders with images (.png, .jpg, .gif)", dir)
	}
	return m, nil
}

// maxManifest bounds the images that a list may name.
const maxManifest = 100_000_000

// ImageManifest lists the images that a CSV file names: a header with the columns path and label, among others, then a line an image. Paths
// are relative to the file's folder and may not lead out of it. Class numbers are the labels' places in order of names.
func ImageManifest(file string, o ImageOptions) (*Folder, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	paths, labels, err := ReadManifest(f)
	if err != nil {
		return nil, fmt.Errorf("data: %s: %w", file, err)
	}
	m := &Folder{opts: o.complete(), Classes: slices.Compact(slices.Sorted(slices.Values(labels)))}
	for i, path := range paths {
		class, _ := slices.BinarySearch(m.Classes, labels[i])
		m.paths = append(m.paths, filepath.Join(filepath.Dir(file), filepath.FromSlash(path)))
		m.labels = append(m.labels, int64(class))
	}
	return m, nil
}

// ReadManifest reads the columns path and label of a CSV list of images. Errors name the line.
func ReadManifest(r io.Reader) (paths, labels []string, err error) {
	cr := csv.NewReader(r)
	cr.ReuseRecord, cr.TrimLeadingSpace = true, true
	header, err := cr.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("manifest: no header: %w", noEOF(err))
	}
	path, label := slices.Index(header, "path"), slices.Index(header, "label")
	if path < 0 || label < 0 {
		return nil, nil, fmt.Errorf("manifest: the header %q must have the columns path and label", header)
	}
	for {
		rec, err := cr.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("manifest: %w", err) // names the line
		}
		line, _ := cr.FieldPos(0)
		switch p := rec[path]; {
		case !filepath.IsLocal(filepath.FromSlash(p)):
			return nil, nil, fmt.Errorf("manifest: line %d: the path %q is not within the list's folder", line, p)
		case rec[label] == "":
			return nil, nil, fmt.Errorf("manifest: line %d: %s has no label", line, p)
		case len(paths) == maxManifest:
			return nil, nil, fmt.Errorf("manifest: line %d: there are more than %d images", line, maxManifest)
		}
		paths, labels = append(paths, strings.Clone(rec[path])), append(labels, strings.Clone(rec[label]))
	}
	if len(paths) == 0 {
		return nil, nil, fmt.Errorf("manifest: it names no images")
	}
	return paths, labels, nil
}

// Len returns the number of images.
func (m *Folder) Len() int { return len(m.paths) }

// Path returns the file of sample i; empty if there is none.
func (m *Folder) Path(i int) string {
	if i < 0 || i >= len(m.paths) {
		return ""
	}
	return m.paths[i]
}

// At reads sample i: values in [0, 1] of shape [channels, height, width].
func (m *Folder) At(i int) (Example, error) {
	if err := checkIndex(i, len(m.paths)); err != nil {
		return Example{}, err
	}
	info, err := os.Stat(m.paths[i])
	if err != nil {
		return Example{}, err
	}
	if info.Size() > m.opts.MaxBytes {
		return Example{}, fmt.Errorf("%s has %d bytes; at most %d are read", m.paths[i], info.Size(), m.opts.MaxBytes)
	}
	raw, err := os.ReadFile(m.paths[i])
	if err != nil {
		return Example{}, err
	}
	e, err := DecodeImage(raw, m.opts)
	if err != nil {
		return Example{}, fmt.Errorf("%s: %w", m.paths[i], err)
	}
	e.Y = m.labels[i]
	return e, nil
}

// DecodeImage makes a sample of a PNG, JPEG or GIF file; its size is checked before memory is taken.
func DecodeImage(raw []byte, o ImageOptions) (Example, error) {
	most := o.complete().MaxPixels
	cfg, _, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return Example{}, err
	}
	if cfg.Width < 1 || cfg.Height < 1 || cfg.Width > most/cfg.Height {
		return Example{}, fmt.Errorf("image of %dx%d; at most %d pixels are read", cfg.Width, cfg.Height, most)
	}
	img, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return Example{}, err
	}
	size := image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy())
	if o.Height > 0 && o.Width > 0 {
		size = image.Rect(0, 0, o.Width, o.Height)
	}
	rgba := image.NewNRGBA(size)
	draw.BiLinear.Scale(rgba, size, img, img.Bounds(), draw.Src, nil)
	h, w, c := size.Dy(), size.Dx(), 3
	if o.Grey {
		c = 1
	}
	e := Example{X: make([]float32, c*h*w), Shape: []int{c, h, w}}
	for i := range h * w {
		p := rgba.Pix[4*i : 4*i+3]
		r, g, b := float32(p[0])/255, float32(p[1])/255, float32(p[2])/255
		if o.Grey {
			e.X[i] = 0.299*r + 0.587*g + 0.114*b // ITU-R BT.601
			continue
		}
		e.X[i], e.X[h*w+i], e.X[2*h*w+i] = r, g, b
	}
	return e, nil
}
