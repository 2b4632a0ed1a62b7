package clload

//go:generate go run generate.go
