package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropCodePages unmaps the program's own code and constants. The kernel keeps
// them in its cache and maps those again that are used, a few dozen, without
// reading anything (madvise(2): MADV_DONTNEED on a read-only file mapping).
func dropCodePages() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Text()
		var from, to uintptr
		var access string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &access); err != nil || !strings.HasSuffix(line, " "+exe) {
			continue
		}
		if access != "r-xp" && access != "r--p" {
			continue // data: it has been written
		}
		if _, _, e := unix.RawSyscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); e != 0 {
			return fmt.Errorf("madvise %x-%x: %w", from, to, e)
		}
	}
	return nil
}
