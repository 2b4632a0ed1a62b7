package data

import (
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/anygpu/anygpu/tensor"
)

// Vocabulary numbers the characters of a text, in order of their code points.
type Vocabulary struct {
	chars []rune
	ids   map[rune]int64
}

// NewVocabulary returns the characters of a text.
func NewVocabulary(text string) *Vocabulary {
	v := &Vocabulary{ids: map[rune]int64{}}
	for _, c := range text {
		if _, ok := v.ids[c]; !ok {
			v.ids[c] = 0
			v.chars = append(v.chars, c)
		}
	}
	slices.Sort(v.chars)
	for i, c := range v.chars {
		v.ids[c] = int64(i)
	}
	return v
}

// Len returns the number of characters.
func (v *Vocabulary) Len() int { return len(v.chars) }

// Encode returns the numbers of a text's characters.
func (v *Vocabulary) Encode(text string) ([]int64, error) {
	out := make([]int64, 0, len(text))
	for at, c := range text {
		id, ok := v.ids[c]
		if !ok {
			return nil, fmt.Errorf("data: the character %q at byte %d is not in the vocabulary", c, at)
		}
		out = append(out, id)
	}
	return out, nil
}

// Decode returns the text of numbers; those that are no character become U+FFFD.
func (v *Vocabulary) Decode(tokens []int64) string {
	out := make([]rune, len(tokens))
	for i, t := range tokens {
		if out[i] = utf8.RuneError; t >= 0 && t < int64(len(v.chars)) {
			out[i] = v.chars[t]
		}
	}
	return string(out)
}

// ReadText reads a UTF-8 text of at most limit bytes.
func ReadText(r io.Reader, limit int64) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return "", fmt.Errorf("data: text: %w", err)
	}
	if int64(len(b)) > limit {
		return "", fmt.Errorf("data: the text has more than %d bytes", limit)
	}
	for at := 0; at < len(b); {
		c, n := utf8.DecodeRune(b[at:])
		if c == utf8.RuneError && n == 1 {
			return "", fmt.Errorf("data: the text is not UTF-8 at byte %d", at)
		}
		at += n
	}
	return string(b), nil
}

// Sequence is a sample of a language model: tokens, and for each the one that follows.
type Sequence struct{ X, Y []int64 }

// Windows is a stream of tokens as a dataset: sample i starts at token i*Stride.
type Windows struct {
	tokens         []int64
	length, stride int
}

// NewWindows cuts a stream into windows of length tokens, stride apart (length if 0).
func NewWindows(tokens []int64, length, stride int) (*Windows, error) {
	if stride == 0 {
		stride = length
	}
	if length < 1 || stride < 1 || len(tokens) < length+1 {
		return nil, fmt.Errorf("data: windows of %d tokens, %d apart, of a stream of %d: it must have at least %d", length, stride, len(tokens), length+1)
	}
	return &Windows{tokens, length, stride}, nil
}

// Len returns the number of windows.
func (w *Windows) Len() int { return (len(w.tokens)-w.length-1)/w.stride + 1 }

// At returns window i; its slices are parts of the stream.
func (w *Windows) At(i int) (Sequence, error) {
	if err := checkIndex(i, w.Len()); err != nil {
		return Sequence{}, err
	}
	at := i * w.stride
	return Sequence{w.tokens[at : at+w.length], w.tokens[at+1 : at+1+w.length]}, nil
}

// CollateSequences stacks sequences of one length: X and Y are int64 [n, length].
func CollateSequences(samples []Sequence) (Batch, error) {
	if len(samples) == 0 {
		return Batch{}, fmt.Errorf("no samples")
	}
	n := len(samples[0].X)
	var x, y []int64
	for i, s := range samples {
		if len(s.X) != n || len(s.Y) != n {
			return Batch{}, fmt.Errorf("sample %d of the batch has %d and %d tokens, the first has %d", i, len(s.X), len(s.Y), n)
		}
		x, y = append(x, s.X...), append(y, s.Y...)
	}
	b := Batch{X: tensor.FromInt64s(x, len(samples), n), Y: tensor.FromInt64s(y, len(samples), n)}
	if err := b.X.Err(); err != nil {
		return Batch{}, err
	}
	return b, b.Y.Err()
}
