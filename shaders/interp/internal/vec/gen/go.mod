module github.com/anygpu/anygpu/shaders/interp/internal/vec/gen

go 1.26.0

require (
	github.com/anygpu/anygpu v0.0.0
	github.com/mmcloughlin/avo v0.6.0
)

require (
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/mod v0.23.0 // indirect
	golang.org/x/sync v0.11.0 // indirect
	golang.org/x/tools v0.30.0 // indirect
)

replace github.com/anygpu/anygpu => ../../../../..
