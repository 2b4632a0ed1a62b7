package main

import "syscall"

// peakRSS returns the most memory that the process had resident, in bytes.
func peakRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return int64(u.Maxrss) << 10
}
