// Device chooses a device once, at the start of the program, and uses it for everything: tensors are made on it, or moved to it.
// It is PyTorch's pattern
//
//	device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
//
// Usage: go run ./docs/examples/device [-device NAME]
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/anygpu/anygpu/backend"
	_ "github.com/anygpu/anygpu/backend/all" // the drivers: Vulkan and OpenCL, besides the CPU
	"github.com/anygpu/anygpu/tensor"
)

func main() {
	name := flag.String("device", backend.DefaultName(), "such as cpu, vulkan, opencl:1 or gpu, the best one")
	flag.Parse()
	if err := run(*name); err != nil {
		log.Fatal(err)
	}
}

func run(name string) error {
	dev, err := backend.Open(name)
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Printf("%s is %s\n", dev.Info(), dev.Info().Name)

	s := tensor.NewScope(dev) // what is computed from its tensors is freed with it
	defer s.Close()
	a := s.To(tensor.FromFloat32s([]float32{1, 2, 3, 4}, 2, 2)) // from Go's memory to the device
	b := s.Full(tensor.Float32, 0.5, 2, 2)                      // made on the device
	sum, err := a.MatMul(b).Add(a).ReLU().Sum().Item()          // computed there; one number comes back
	if err != nil {
		return err
	}
	fmt.Println("sum:", sum)

	// Tensors are never moved silently: with a GPU this is an error, which says what to do.
	if name != "cpu" {
		onCPU := tensor.FromFloat32s([]float32{1, 2, 3, 4}, 2, 2)
		fmt.Println(a.MatMul(onCPU).Err())
	}
	return nil
}
