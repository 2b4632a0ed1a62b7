package data

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The mean and standard deviation of Fashion-MNIST's training pixels in [0, 1], used to normalise them.
const (
	fashionMean = 0.2860
	fashionStd  = 0.3530
)

// FashionClasses are the names of Fashion-MNIST's classes, by label.
var FashionClasses = []string{"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"}

// embeddedTrain is how many of the 10,000 embedded images are for training; the rest are for testing.
const embeddedTrain = 9000

//go:embed fashionmnist
var embedded embed.FS

// Images is a dataset of labelled grey images of one size, kept as bytes. Samples have shape [1, height, width] and
// values (pixel/255 - mean)/std.
type Images struct {
	pixels []byte
	labels []int64
	shape  []int
	table  [256]float32 // pixel value -> normalised value
}

// NewImages checks an IDX array of images [n, height, width] and one of labels [n] against each other and against the
// number of classes.
func NewImages(images, labels *IDX, classes int, mean, std float64) (*Images, error) {
	if len(images.Shape) != 3 {
		return nil, fmt.Errorf("data: images have shape %v, expected [n height width]", images.Shape)
	}
	if len(labels.Shape) != 1 {
		return nil, fmt.Errorf("data: labels have shape %v, expected [n]", labels.Shape)
	}
	n, h, w := images.Shape[0], images.Shape[1], images.Shape[2]
	if n != labels.Shape[0] {
		return nil, fmt.Errorf("data: %d images but %d labels", n, labels.Shape[0])
	}
	if h < 1 || w < 1 {
		return nil, fmt.Errorf("data: images have shape %v: height and width must be at least 1", images.Shape)
	}
	d := &Images{pixels: images.Data, labels: make([]int64, n), shape: []int{1, h, w}}
	for i, v := range labels.Data {
		d.labels[i] = int64(v)
	}
	if err := checkLabels(d.labels, classes); err != nil {
		return nil, err
	}
	for i := range d.table {
		d.table[i] = float32((float64(i)/255 - mean) / std)
	}
	return d, nil
}

// Len returns the number of images.
func (d *Images) Len() int { return len(d.labels) }

// At returns image i, normalised.
func (d *Images) At(i int) (Example, error) {
	if err := checkIndex(i, len(d.labels)); err != nil {
		return Example{}, err
	}
	size := d.shape[1] * d.shape[2]
	x := make([]float32, size)
	for j, p := range d.pixels[i*size : (i+1)*size] {
		x[j] = d.table[p]
	}
	return Example{X: x, Shape: d.shape, Y: d.labels[i]}, nil
}

// FashionMNIST returns the training and the test set of Fashion-MNIST: 28x28 grey images of clothes in 10 classes.
// dir is a folder with the four files under their usual names (train-images-idx3-ubyte and so on), plain or with .gz;
// an empty dir takes the sample embedded in the program, 9,000 images to train and 1,000 to test.
func FashionMNIST(dir string) (train, test Dataset[Example], err error) {
	if dir == "" {
		sub, err := fs.Sub(embedded, "fashionmnist")
		if err != nil {
			return nil, nil, err
		}
		all, err := fashionPart(sub, "", "t10k")
		if err != nil {
			return nil, nil, fmt.Errorf("data: embedded sample: %w", err)
		}
		if train, err = Range[Example](all, 0, embeddedTrain); err != nil {
			return nil, nil, err
		}
		test, err = Range[Example](all, embeddedTrain, all.Len())
		return train, test, err
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, nil, fmt.Errorf("data: %w", err)
	} else if !info.IsDir() {
		return nil, nil, fmt.Errorf("data: %s is not a folder; give the folder that holds Fashion-MNIST's four files", dir)
	}
	files := os.DirFS(dir)
	tr, err := fashionPart(files, dir, "train")
	if err != nil {
		return nil, nil, err
	}
	te, err := fashionPart(files, dir, "t10k")
	if err != nil {
		return nil, nil, err
	}
	return tr, te, nil
}

func fashionPart(files fs.FS, dir, prefix string) (*Images, error) {
	images, err := openIDX(files, dir, prefix+"-images-idx3-ubyte")
	if err != nil {
		return nil, err
	}
	labels, err := openIDX(files, dir, prefix+"-labels-idx1-ubyte")
	if err != nil {
		return nil, err
	}
	d, err := NewImages(images, labels, len(FashionClasses), fashionMean, fashionStd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, prefix+"-*"), err)
	}
	return d, nil
}

// openIDX reads name or name.gz.
func openIDX(files fs.FS, dir, name string) (*IDX, error) {
	for _, n := range []string{name, name + ".gz"} {
		f, err := files.Open(n)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		defer f.Close()
		a, err := ReadIDX(f)
		if err != nil {
			return nil, fmt.Errorf("data: %s: %w", filepath.Join(dir, n), err)
		}
		return a, nil
	}
	return nil, fmt.Errorf("data: neither %s nor %s.gz is in %s; Debian's package dataset-fashion-mnist has them under /usr/share/datasets/fashion-mnist", name, name, dir)
}
