//go:build linux && (386 || arm || mips || mipsle)

package fanout

import "golang.org/x/sys/unix"

const (
	sysSendfile = unix.SYS_SENDFILE64 // the sendfile(2) that takes a 64-bit offset
	sysMmap     = unix.SYS_MMAP2      // counts its offset in pages; ours is zero
)
