// Package text has a text to train language models on, embedded in the program. It is a package of its own so that programs
// that don't want it do not carry it.
//
// # Example
//
//	vocabulary := data.NewVocabulary(text.Genesis)
//	tokens, err := vocabulary.Encode(text.Genesis)
//	windows, err := data.NewWindows(tokens, 64, 16)
package text

import _ "embed"

// Genesis is the book of Genesis in the King James Version of 1611 (public domain; the file COPYRIGHT says where it comes from):
// 1,533 lines, one verse each, 196,818 bytes of ASCII.
//
//go:embed genesis.txt
var Genesis string
